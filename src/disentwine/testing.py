"""Conformance test for new models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from itertools import product
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call

from disentwine.core.capabilities import DISCRIMINATOR, Adversarial
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, Losses, Model
from disentwine.data.arrays import Arrays
from disentwine.training.optimizers import discriminator_parameters, frozen, own_parameters

Build = Callable[[], Model]
BATCH_SIZE = 3
AFTER_SCHEDULES = 10**9
"""A step after the end of every schedule."""


def check_model(
    build: Build,
    *,
    image_shape: tuple[int, int, int],
    factors: int = 0,
    estimated: Collection[str] = (),
    finite_differences: bool = True,
) -> None:
    """Check a model against the contract of `Model`; raises `AssertionError` at the first violation.

    Arguments:
        build: returns a new model at each call.
        image_shape: (height, width, channels) of its images.
        factors: number of label columns that its loss reads.
        estimated: loss terms, also of the discriminator, with a gradient estimator, such as a
            straight-through one, which differs from finite differences by design.
        finite_differences: compare the gradients of the other terms with finite differences, which
            takes longer than all other checks together.

    >>> from disentwine import VAE
    >>> check_model(lambda: VAE(image_shape=(8, 8, 1), latent=2), image_shape=(8, 8, 1))
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        batch = _batch(build(), image_shape, factors)
        for check in (
            _check_arguments,
            _check_discriminator,
            _check_losses,
            _check_gradients,
            _check_saving,
        ):
            check(build, batch)
        _check_images(build(), batch.x)
        _check_decoded_images(build(), image_shape)
        _check_double(build(), batch, estimated, finite_differences)


def small_grid(image_shape: tuple[int, int, int]) -> Dataset:
    """Random images on a grid of two ordinal factors, for models that learn actions.

    >>> small_grid((8, 8, 1))
    Arrays(64 images of 8x8x1; size, colour)
    """
    kinds: dict[str, Any] = {"size": "ordinal", "colour": "ordinal"}
    return Arrays(
        images=np.random.default_rng(0).integers(0, 256, (64, *image_shape), dtype=np.uint8),
        factors=np.stack([axis.ravel() for axis in np.mgrid[:8, :8]], axis=1).astype(float),
        names=tuple(kinds),
        kinds=kinds,
    )


def _batch(model: Model, image_shape: tuple[int, int, int], factors: int) -> Batch:
    height, width, channels = image_shape
    x, y = torch.rand(2, BATCH_SIZE, channels, height, width)
    batch = Batch(x, torch.rand(BATCH_SIZE, factors), AFTER_SCHEDULES)
    actions: tuple[str, ...] = getattr(model, "actions", ())
    if not actions:
        return batch
    return batch._replace(y=y, action=torch.arange(BATCH_SIZE) % len(actions))


def _map_tensors(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """The batch with a function applied to all its tensors."""
    tensors = {name: value for name, value in batch._asdict().items() if isinstance(value, Tensor)}
    changed: dict[str, Any] = {name: change(value) for name, value in tensors.items()}
    return batch._replace(**changed)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _close(a: Tensor, b: Tensor, *, tolerance: float) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def _losses(model: Model) -> dict[str, str]:
    """The loss methods, and their names in a message."""
    methods = {"loss": "loss"}
    if isinstance(model, Adversarial):
        methods["discriminator_loss"] = "discriminator's loss"
    return methods


def _loss(model: Model, batch: Batch, method: str = "loss") -> Losses:
    """The loss, with the same noise every time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        losses: Losses = getattr(model, method)(batch)
        return losses


def _untrained_parameters(model: Model, method: str) -> list[nn.Parameter]:
    """The parameters that a loss does not train."""
    return discriminator_parameters(model) if method == "loss" else own_parameters(model)


def _check_arguments(build: Build, batch: Batch) -> None:
    model = build()
    cls = type(model)
    _require(isinstance(model, Model), f"{cls.__name__} is not a Model")
    _require(cls.__name__ in repr(model), "repr(model) does not name its class")
    names = inspect.signature(cls).parameters
    for name in names:
        _require(hasattr(model, name), f"the argument '{name}' is not stored as an attribute")
    arguments = {name: getattr(model, name) for name in names}
    rebuilt = cls(**arguments)
    for name, value in arguments.items():
        same = getattr(rebuilt, name) == value
        _require(bool(same), f"the argument '{name}' is not stored unchanged")
    shapes, rebuilt_shapes = (
        {name: value.shape for name, value in m.state_dict().items()} for m in (model, rebuilt)
    )
    _require(
        shapes == rebuilt_shapes, "a model built from its own attributes has different parameters"
    )


def _check_discriminator(build: Build, batch: Batch) -> None:
    model = build()
    if isinstance(model, Adversarial):
        modules = dict(model.named_children())
        _require(
            DISCRIMINATOR in modules,
            f"the model is adversarial, but has no submodule '{DISCRIMINATOR}'",
        )
        _require(len(discriminator_parameters(model)) > 0, "the discriminator has no parameters")
        _require(model.discriminator_training.updates >= 1, "the discriminator is never updated")
        clashing = [n for n in model.loss(batch).terms if n.startswith(f"{DISCRIMINATOR}_")]
        _require(not clashing, f"the loss terms {clashing} are named like the discriminator's")


def _check_losses(build: Build, batch: Batch) -> None:
    model = build()
    for method, what in _losses(model).items():
        for mode in (True, False):
            model.train(mode)
            for n in (BATCH_SIZE, 1):
                part = _map_tensors(batch, lambda tensor, n=n: tensor[:n])  # type: ignore[misc]
                _check_terms(getattr(model, method)(part), n, what)
            first, again = (_loss(model, batch, method).total for _ in range(2))
            _require(
                torch.equal(first, again), f"the {what} differs although the noise is the same"
            )
        with torch.no_grad():
            _check_terms(getattr(model, method)(batch), BATCH_SIZE, what)


def _check_terms(losses: Losses, n: int, what: str) -> None:
    _require(len(losses.terms) > 0, f"the {what} has no terms")
    unknown = set(losses.weights) - set(losses.terms)
    _require(not unknown, f"the {what} weighs terms that it does not have: {unknown}")
    for name, term in losses.terms.items():
        shape = tuple(term.shape)
        _require(
            shape in ((n,), ()),
            f"the {what} term '{name}' of {n} images has shape {shape}, not ({n},) or ()",
        )
        _require(
            bool(term.isfinite().all()), f"the {what} term '{name}' of {n} images is not finite"
        )


def _check_gradients(build: Build, batch: Batch) -> None:
    model = build().train()
    # Models of actions may train some parameters on images alone.
    stages = [batch] if batch.action is None else [batch, batch._replace(y=None, action=None)]
    for (method, what), stage_batch in product(_losses(model).items(), stages):
        with frozen(_untrained_parameters(model, method)):
            total = getattr(model, method)(stage_batch).total
            _require(total.requires_grad, f"the total {what} has no gradient")
            total.backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            gradient = parameter.grad
            _require(gradient is not None, f"no gradient reaches the parameter '{name}'")
            _require(
                gradient is None or bool(gradient.any()),
                f"the gradient of the parameter '{name}' is zero everywhere",
            )


def _check_saving(build: Build, batch: Batch) -> None:
    model, other = build().eval(), build().eval()
    content = save_tensors(
        {k: v.clone(memory_format=torch.contiguous_format) for k, v in model.state_dict().items()}
    )
    other.load_state_dict(load_tensors(content))
    for method in ("represent", "reconstruct"):
        before, after = (getattr(m, method)(batch.x) for m in (model, other))
        _require(torch.equal(before, after), f"{method} differs after saving and loading")
    for loss, what in _losses(model).items():
        before, after = (_loss(m, batch, loss).total for m in (model, other))
        _require(torch.equal(before, after), f"the {what} differs after saving and loading")


def _check_images(model: Model, x: Tensor) -> None:
    n = len(x)
    model.train()
    latents, images = model.represent(x), model.reconstruct(x)
    _require(model.training, "represent or reconstruct leaves the model in evaluation mode")
    _require(
        latents.ndim == 2 and len(latents) == n and latents.shape[1] > 0,
        f"represent of {n} images has shape {tuple(latents.shape)}, not ({n}, d)",
    )
    _require(
        images.shape == x.shape,
        f"reconstruct of shape {tuple(x.shape)} has shape {tuple(images.shape)}",
    )
    _require(
        bool(((images >= 0) & (images <= 1)).all()), "reconstruct returns values outside [0, 1]"
    )
    for method, answer in (("represent", latents), ("reconstruct", images)):
        _require(not answer.requires_grad, f"{method} returns a tensor with gradients")
        again = getattr(model, method)(x)
        _require(torch.equal(answer, again), f"{method} is not deterministic")
        alone = getattr(model, method)(x[:1])
        _require(
            _close(alone, answer[:1], tolerance=1e-4),
            f"{method} of an image depends on the other images of the batch",
        )


def _check_decoded_images(model: Model, image_shape: tuple[int, int, int]) -> None:
    arrays = np.random.default_rng(0).integers(0, 256, (BATCH_SIZE, *image_shape), dtype=np.uint8)
    x = torch.from_numpy(arrays).permute(0, 3, 1, 2) / 255
    latents, images = model.represent(x), model.reconstruct(x).permute(0, 2, 3, 1)
    for array, expected_latents, expected_images in (
        (arrays, latents, images),
        (arrays[0], latents[0], images[0]),
    ):
        what = "a stack of uint8 images" if array.ndim == 4 else "one uint8 image"
        answer = model.represent(array)
        _require(
            isinstance(answer, np.ndarray)
            # A batch of one is rounded differently from a larger one; quantization amplifies that.
            and _close(torch.from_numpy(answer), expected_latents, tolerance=1e-3),
            f"represent of {what} differs from represent of the same images as a tensor",
        )
        answer = model.reconstruct(array)
        _require(
            isinstance(answer, np.ndarray)
            and answer.dtype == np.uint8
            and answer.shape == array.shape
            and bool((torch.from_numpy(answer) / 255 - expected_images).abs().max() <= 1 / 255),
            f"reconstruct of {what} differs from reconstruct of the same images as a tensor",
        )


class _Term(nn.Module):
    """One loss term as a function of the parameters alone."""

    def __init__(self, model: Model, batch: Batch, method: str, name: str) -> None:
        super().__init__()
        self.model, self.batch, self.method, self.name = model, batch, method, name

    def forward(self) -> Tensor:
        return _loss(self.model, self.batch, self.method).terms[self.name]


def _check_double(
    model: Model, batch: Batch, estimated: Collection[str], finite_differences: bool
) -> None:
    model.double().train()
    batch = _map_tensors(batch, lambda x: x.double() if x.is_floating_point() else x)
    for method in ("represent", "reconstruct"):
        answer: Any = getattr(model, method)(batch.x)
        _require(answer.dtype == torch.float64, f"{method} does not keep float64")
    terms = {name for method in _losses(model) for name in _loss(model, batch, method).terms}
    unknown = set(estimated) - terms
    _require(not unknown, f"there are no loss terms {sorted(unknown)} to list in `estimated`")
    for method, what in _losses(model).items():
        with frozen(_untrained_parameters(model, method)):
            for name, term in _loss(model, batch, method).terms.items():
                _require(
                    term.dtype == torch.float64, f"the {what} term '{name}' does not keep float64"
                )
                if finite_differences and term.requires_grad and name not in estimated:
                    _check_gradient(_Term(model, batch, method, name), f"{what} term '{name}'")


def _check_gradient(term: _Term, what: str) -> None:
    trained = {name: p for name, p in term.named_parameters() if p.requires_grad}

    def value(*parameters: Tensor) -> Tensor:
        return functional_call(term, dict(zip(trained, parameters, strict=True)), ())  # type: ignore[no-any-return]

    values = tuple(p.detach().clone().requires_grad_() for p in trained.values())
    try:
        # A step ten times smaller than usual: one of many thousand ReLUs may be close to its kink.
        gradcheck(value, values, eps=1e-7, fast_mode=True, check_undefined_grad=False)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise AssertionError(
            f"the gradient of the {what} differs from finite differences: {reason[:200]}"
        ) from error
