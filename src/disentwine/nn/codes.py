"""Codes as users hold them, arrays or tensors, and as networks take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from disentwine.errors import UsageError


def as_codes(codes: Any, *, width: int, like: Tensor, what: str = "codes") -> Tensor:
    """Codes (n, width) as a tensor; one code (width,) is a row.

    Arguments:
        codes: an array, such as `represent` answers pictures with, or a tensor.
        width: numbers of a code.
        like: has the type and place of the network's numbers.
        what: they are called in an error.

    >>> as_codes(np.zeros(3), width=3, like=torch.zeros(()))
    tensor([[0., 0., 0.]])
    """
    try:
        given = codes if isinstance(codes, Tensor) else torch.from_numpy(np.array(codes))
    except (TypeError, ValueError):
        raise UsageError(f"{what}: give an array or tensor of numbers, got {codes!r}") from None
    rows = given[None] if given.ndim == 1 else given
    if rows.ndim != 2 or rows.shape[1] != width:
        raise UsageError(
            f"{what} {tuple(given.shape)}: give (n, {width}), as `represent` of this model does"
        )
    return rows.to(like)


def check_count(n: Any) -> None:
    """Refuse to draw no image, or a number of them that is none."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise UsageError(f"n: give how many images to draw, 1 or more; got {n}")
