"""Conversion between uint8 images and tensors, evaluation mode, and input validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.errors import UsageError


def as_latents(latents: Any, *, width: int, like: Tensor, what: str = "latents") -> Tensor:
    """Latents (n, width) as a tensor; a single vector (width,) becomes one row.

    Arguments:
        latents: an array, such as from `represent`, or a tensor.
        width: number of latent dimensions.
        like: tensor that determines dtype and device.
        what: name for errors.

    >>> as_latents(np.zeros(3), width=3, like=torch.zeros(()))
    tensor([[0., 0., 0.]])
    """
    try:
        given = latents if isinstance(latents, Tensor) else torch.from_numpy(np.array(latents))
    except (TypeError, ValueError):
        raise UsageError(f"{what}: give an array or tensor of numbers, got {latents!r}") from None
    rows = given[None] if given.ndim == 1 else given
    if rows.ndim != 2 or rows.shape[1] != width:
        raise UsageError(
            f"{what} {tuple(given.shape)}: give (n, {width}), as `represent` of this model does"
        )
    return rows.to(like)


def check_count(n: Any) -> None:
    """Raise `UsageError` unless the number of images to sample is a positive integer."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise UsageError(f"n: give the number of images to sample, 1 or more; got {n}")


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Context of evaluation mode without gradients; the previous mode is restored.

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
"""Largest number of images in one forward pass, which bounds the memory."""

RANGE_MARGIN = 0.5
"""Tolerance around [0, 1], for overshoots of resizing; larger values indicate missing scaling."""


def to_unit_range(images: Tensor) -> Tensor:
    """`uint8` (n, height, width, channels) to [0, 1] (n, channels, height, width), channels-last.

    >>> to_unit_range(torch.full((2, 8, 8, 3), 255, dtype=torch.uint8)).shape
    torch.Size([2, 3, 8, 8])
    """
    return images.permute(0, 3, 1, 2).float().div_(255)


def to_uint8(x: Tensor) -> Tensor:
    """[0, 1] (n, channels, height, width) to `uint8` (n, height, width, channels)."""
    return x.clamp(0, 1).mul(255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def accepts_images(method: Callable[..., Tensor]) -> Callable[..., Any]:
    """Decorator: a method of `(self, x, ...)` over image tensors also accepts `uint8` arrays.

    For a `uint8` array (height, width, channels) or (n, height, width, channels), the method returns
    arrays: images as `uint8`, latents as floats. For a float tensor (n, channels, height, width) in
    [0, 1] it returns a tensor. The method runs without gradients and in evaluation mode.
    """

    @wraps(method)
    def wrapper(self: nn.Module, x: Any, *args: Any, **kwargs: Any) -> Any:
        return map_images(self, x, lambda chunk, rows: method(self, chunk, *args, **kwargs))

    return wrapper


def map_images(
    module: nn.Module,
    x: Any,
    function: Callable[[Tensor, slice], Tensor],
    *,
    shape: tuple[int, ...] | None = None,
) -> Any:
    """Apply a function to images in chunks and convert the results as in `accepts_images`.

    Arguments:
        module: the model, which is set to evaluation mode.
        x: `uint8` images or a float tensor.
        function: maps an image tensor and its slice of rows of `x` to a tensor.
        shape: required (height, width, channels); by default `image_shape` of the module.
    """
    needed = shape or getattr(module, "image_shape", None)
    weight = next(module.parameters())
    with evaluation_mode(module):
        if isinstance(x, Tensor) and x.is_floating_point():
            if x.ndim != 4:
                raise _not_images(x)
            _check_shape((*x.shape[2:], x.shape[1]), needed)
            if len(x) and (x.min() < -RANGE_MARGIN or x.max() > 1 + RANGE_MARGIN):
                raise _not_images(x)
            return function(x.to(weight), slice(0, len(x))).to(x.device)
        images, single = _as_stack(x)
        _check_shape(tuple(images.shape[1:]), needed)
        results = torch.cat(
            [
                function(to_unit_range(images[rows]).to(weight), rows).cpu()
                for rows in (slice(i, i + CHUNK) for i in range(0, len(images), CHUNK))
            ]
        )
    array = (to_uint8(results) if results.ndim == 4 else results).numpy()
    return array[0] if single else array


def check_images(x: Any, shape: tuple[int, ...]) -> None:
    """Raise `UsageError` unless images have the shape (height, width, channels); see `accepts_images`."""
    if isinstance(x, Tensor) and x.is_floating_point() and x.ndim == 4:
        _check_shape((*x.shape[2:], x.shape[1]), shape)
    else:
        _check_shape(tuple(_as_stack(x)[0].shape[1:]), shape)


def _as_stack(x: Any) -> tuple[Tensor, bool]:
    images = x if isinstance(x, Tensor) else _from_array(x)
    if images.dtype != torch.uint8 or images.ndim not in (3, 4):
        raise _not_images(images)
    if len(images) == 0:
        raise UsageError("images: the stack is empty; give at least one image")
    return (images[None], True) if images.ndim == 3 else (images, False)


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
