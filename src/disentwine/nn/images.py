"""Images between uint8 arrays and float tensors, and evaluation mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

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


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients inside; the mode that was before comes back.

    >>> dropout = nn.Dropout(0.5)
    >>> with evaluation_mode(dropout): dropout(torch.ones(3))
    tensor([1., 1., 1.])
    >>> dropout.training
    True
    """
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was_training)


CHUNK = 256
"""How many pictures pass through a network at once, so that a whole data set needs little memory."""

RANGE_MARGIN = 0.5
"""How far from [0, 1] resized pictures may lie; what is further was not brought there."""


def to_unit_range(pictures: Tensor) -> Tensor:
    """`uint8` (n, height, width, channels) to [0, 1] (n, channels, height, width), channels-last.

    >>> to_unit_range(torch.full((2, 8, 8, 3), 255, dtype=torch.uint8)).shape
    torch.Size([2, 3, 8, 8])
    """
    return pictures.permute(0, 3, 1, 2).float().div_(255)


def to_uint8(x: Tensor) -> Tensor:
    """[0, 1] (n, channels, height, width) to `uint8` (n, height, width, channels)."""
    return x.clamp(0, 1).mul(255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def accepts_images(method: Callable[..., Tensor]) -> Callable[..., Any]:
    """Let a method of `(self, x, ...)` over image tensors also be called with pictures.

    A `uint8` array (height, width, channels), or a stack of them, is answered in kind: images as
    `uint8` arrays, codes as float arrays. A float tensor (n, channels, height, width) in [0, 1] is
    answered with a tensor. Either way without gradients and in evaluation mode.
    """

    @wraps(method)
    def face(self: nn.Module, x: Any, *args: Any, **kwargs: Any) -> Any:
        return answer_in_kind(self, x, lambda chunk, rows: method(self, chunk, *args, **kwargs))

    return face


def answer_in_kind(
    module: nn.Module,
    x: Any,
    answer: Callable[[Tensor, slice], Tensor],
    *,
    shape: tuple[int, ...] | None = None,
) -> Any:
    """What `accepts_images` does, for a function that also wants to know which rows it is given.

    Arguments:
        module: where the networks are.
        x: pictures or a tensor.
        answer: of some rows.
        shape: (height, width, channels) that pictures must have; by default the module's `image_shape`.
    """
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            needed = shape or getattr(module, "image_shape", None)
            if isinstance(x, Tensor) and x.is_floating_point():
                if x.ndim != 4:
                    raise _not_images(x)
                _check_shape((*x.shape[2:], x.shape[1]), needed)
                if len(x) and (x.min() < -RANGE_MARGIN or x.max() > 1 + RANGE_MARGIN):
                    raise _not_images(x)
                return answer(x.to(next(module.parameters())), slice(0, len(x))).to(x.device)
            pictures, single = _as_stack(x)
            _check_shape(tuple(pictures.shape[1:]), needed)
            weight = next(module.parameters())
            answers = torch.cat(
                [
                    answer(to_unit_range(pictures[rows]).to(weight), rows).cpu()
                    for rows in (slice(i, i + CHUNK) for i in range(0, len(pictures), CHUNK))
                ]
            )
    finally:
        module.train(was_training)
    array = (to_uint8(answers) if answers.ndim == 4 else answers).numpy()
    return array[0] if single else array


def check_images(x: Any, shape: tuple[int, ...]) -> None:
    """Refuse what are no images of a shape (height, width, channels), see `accepts_images`."""
    if isinstance(x, Tensor) and x.is_floating_point() and x.ndim == 4:
        _check_shape((*x.shape[2:], x.shape[1]), shape)
    else:
        _check_shape(tuple(_as_stack(x)[0].shape[1:]), shape)


def _as_stack(x: Any) -> tuple[Tensor, bool]:
    pictures = x if isinstance(x, Tensor) else _from_array(x)
    if pictures.dtype != torch.uint8 or pictures.ndim not in (3, 4):
        raise _not_images(pictures)
    if len(pictures) == 0:
        raise UsageError("images: the stack is empty; give at least one image")
    return (pictures[None], True) if pictures.ndim == 3 else (pictures, False)


def _from_array(x: Any) -> Tensor:
    try:
        return torch.from_numpy(np.require(x, requirements=("C", "W")))
    except (TypeError, ValueError):
        raise UsageError(f"images must be arrays or tensors; got {type(x).__name__}") from None


def _not_images(x: Tensor) -> UsageError:
    return UsageError(
        "images must be uint8 arrays (height, width, channels) or a stack of them, or float "
        f"tensors (n, channels, height, width) in [0, 1]; got {x.dtype} of shape {tuple(x.shape)}"
        + (f" from {x.min():g} to {x.max():g}" if x.numel() else "")
    )


def _check_shape(shape: tuple[int, ...], needed: tuple[int, ...] | None) -> None:
    if needed is not None and shape != tuple(needed):
        raise UsageError(
            f"images must be {' x '.join(map(str, needed))} (height x width x channels) for this "
            f"model, got {' x '.join(map(str, shape))}; `read_image` of "
            "`disentwine.data.images` resizes files"
        )
