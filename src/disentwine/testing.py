"""The contract of models as one check, for people who add a model."""

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
IMAGES = 3
LATE = 10**9
"""A step after the end of every schedule."""


def check_model(
    build: Build,
    *,
    image_shape: tuple[int, int, int],
    factors: int = 0,
    estimated: Collection[str] = (),
    finite_differences: bool = True,
) -> None:
    """Check a model against the contract; raises `AssertionError` for the first promise it breaks.

    Arguments:
        build: makes a new model at each call.
        image_shape: (height, width, channels) of the images it is for.
        factors: columns of the labels that its loss reads.
        estimated: loss terms, also of the discriminator, whose gradient is an estimator by design, such
            as a straight-through one, so that it differs from finite differences.
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
    x, y = torch.rand(2, IMAGES, channels, height, width)
    batch = Batch(x, torch.rand(IMAGES, factors), LATE)
    actions: tuple[str, ...] = getattr(model, "actions", ())
    if not actions:
        return batch
    return batch._replace(y=y, action=torch.arange(IMAGES) % len(actions))


def _each(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """The batch with a function applied to all its tensors."""
    tensors = {name: part for name, part in batch._asdict().items() if isinstance(part, Tensor)}
    changed: dict[str, Any] = {name: change(part) for name, part in tensors.items()}
    return batch._replace(**changed)


def _promise(kept: bool, sentence: str) -> None:
    if not kept:
        raise AssertionError(sentence)


def _close(a: Tensor, b: Tensor, *, tolerance: float) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def _losses(model: Model) -> dict[str, str]:
    """The loss methods, and their names in a message."""
    own = {"loss": "loss"}
    return (
        own | {"discriminator_loss": "discriminator's loss"}
        if isinstance(model, Adversarial)
        else own
    )


def _loss(model: Model, batch: Batch, method: str = "loss") -> Losses:
    """The loss, with the same noise every time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        losses: Losses = getattr(model, method)(batch)
        return losses


def _others(model: Model, method: str) -> list[nn.Parameter]:
    """The parameters that a loss does not train."""
    return discriminator_parameters(model) if method == "loss" else own_parameters(model)


def _check_arguments(build: Build, batch: Batch) -> None:
    model = build()
    cls = type(model)
    _promise(isinstance(model, Model), f"{cls.__name__} is not a Model")
    _promise(cls.__name__ in repr(model), "repr(model) does not name its class")
    names = inspect.signature(cls).parameters
    for name in names:
        _promise(hasattr(model, name), f"the argument '{name}' is not kept as an attribute")
    kept = {name: getattr(model, name) for name in names}
    twin = cls(**kept)
    for name, value in kept.items():
        same = getattr(twin, name) == value
        _promise(bool(same), f"the argument '{name}' is not kept as it was given")
    shapes, twins = (
        {name: value.shape for name, value in m.state_dict().items()} for m in (model, twin)
    )
    _promise(shapes == twins, "a model built from its own attributes has other parameters")


def _check_discriminator(build: Build, batch: Batch) -> None:
    model = build()
    if isinstance(model, Adversarial):
        modules = dict(model.named_children())
        _promise(
            DISCRIMINATOR in modules,
            f"the model is adversarial, but has no submodule '{DISCRIMINATOR}'",
        )
        _promise(len(discriminator_parameters(model)) > 0, "the discriminator has nothing to learn")
        _promise(model.discriminator_training.updates >= 1, "the discriminator is never updated")
        taken = [n for n in model.loss(batch).terms if n.startswith(f"{DISCRIMINATOR}_")]
        _promise(not taken, f"the loss terms {taken} are named like the discriminator's")


def _check_losses(build: Build, batch: Batch) -> None:
    model = build()
    for method, what in _losses(model).items():
        for mode in (True, False):
            model.train(mode)
            for n in (IMAGES, 1):
                some = _each(batch, lambda part, n=n: part[:n])  # type: ignore[misc]
                _check_terms(getattr(model, method)(some), n, what)
            first, again = (_loss(model, batch, method).total for _ in range(2))
            _promise(
                torch.equal(first, again), f"the {what} differs although the noise is the same"
            )
        with torch.no_grad():
            _check_terms(getattr(model, method)(batch), IMAGES, what)


def _check_terms(losses: Losses, n: int, what: str) -> None:
    _promise(len(losses.terms) > 0, f"the {what} has no terms")
    unknown = set(losses.weights) - set(losses.terms)
    _promise(not unknown, f"the {what} weighs terms that it does not have: {unknown}")
    for name, term in losses.terms.items():
        shape = tuple(term.shape)
        _promise(
            shape in ((n,), ()),
            f"the {what} term '{name}' of {n} images has shape {shape}, not ({n},) or ()",
        )
        _promise(
            bool(term.isfinite().all()), f"the {what} term '{name}' of {n} images is not finite"
        )


def _check_gradients(build: Build, batch: Batch) -> None:
    model = build().train()
    # Images are learned before actions, perhaps only then.
    stages = [batch] if batch.action is None else [batch, batch._replace(y=None, action=None)]
    for (method, what), seen in product(_losses(model).items(), stages):
        with frozen(_others(model, method)):
            total = getattr(model, method)(seen).total
            _promise(total.requires_grad, f"the total {what} has no gradient")
            total.backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            gradient = parameter.grad
            _promise(gradient is not None, f"no gradient reaches the parameter '{name}'")
            _promise(
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
        _promise(torch.equal(before, after), f"{method} differs after saving and loading")
    for loss, what in _losses(model).items():
        before, after = (_loss(m, batch, loss).total for m in (model, other))
        _promise(torch.equal(before, after), f"the {what} differs after saving and loading")


def _check_images(model: Model, x: Tensor) -> None:
    n = len(x)
    model.train()
    codes, images = model.represent(x), model.reconstruct(x)
    _promise(model.training, "represent or reconstruct leaves the model in evaluation mode")
    _promise(
        codes.ndim == 2 and len(codes) == n and codes.shape[1] > 0,
        f"represent of {n} images has shape {tuple(codes.shape)}, not ({n}, d)",
    )
    _promise(
        images.shape == x.shape,
        f"reconstruct of shape {tuple(x.shape)} has shape {tuple(images.shape)}",
    )
    _promise(bool(((images >= 0) & (images <= 1)).all()), "reconstruct gives values outside [0, 1]")
    for method, answer in (("represent", codes), ("reconstruct", images)):
        _promise(not answer.requires_grad, f"{method} carries gradients")
        again = getattr(model, method)(x)
        _promise(torch.equal(answer, again), f"{method} gives another answer when asked again")
        alone = getattr(model, method)(x[:1])
        _promise(
            _close(alone, answer[:1], tolerance=1e-4),
            f"{method} of an image depends on the images beside it",
        )


def _check_decoded_images(model: Model, image_shape: tuple[int, int, int]) -> None:
    arrays = np.random.default_rng(0).integers(0, 256, (IMAGES, *image_shape), dtype=np.uint8)
    x = torch.from_numpy(arrays).permute(0, 3, 1, 2) / 255
    codes, images = model.represent(x), model.reconstruct(x).permute(0, 2, 3, 1)
    for shown, wanted_codes, wanted_images in (
        (arrays, codes, images),
        (arrays[0], codes[0], images[0]),
    ):
        what = "a stack of uint8 images" if shown.ndim == 4 else "one uint8 image"
        answer = model.represent(shown)
        _promise(
            isinstance(answer, np.ndarray)
            # Sums over one image are rounded differently than over many; quantized codes enlarge that.
            and _close(torch.from_numpy(answer), wanted_codes, tolerance=1e-3),
            f"represent answers {what} unlike the tensor of the same images",
        )
        answer = model.reconstruct(shown)
        _promise(
            isinstance(answer, np.ndarray)
            and answer.dtype == np.uint8
            and answer.shape == shown.shape
            and bool((torch.from_numpy(answer) / 255 - wanted_images).abs().max() <= 1 / 255),
            f"reconstruct answers {what} unlike the tensor of the same images",
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
    batch = _each(batch, lambda part: part.double() if part.is_floating_point() else part)
    for method in ("represent", "reconstruct"):
        answer: Any = getattr(model, method)(batch.x)
        _promise(answer.dtype == torch.float64, f"{method} does not keep float64")
    terms = {name for method in _losses(model) for name in _loss(model, batch, method).terms}
    unknown = set(estimated) - terms
    _promise(not unknown, f"there are no loss terms {sorted(unknown)} to call estimated")
    for method, what in _losses(model).items():
        with frozen(_others(model, method)):
            for name, term in _loss(model, batch, method).terms.items():
                _promise(
                    term.dtype == torch.float64, f"the {what} term '{name}' does not keep float64"
                )
                if finite_differences and term.requires_grad and name not in estimated:
                    _check_slope(_Term(model, batch, method, name), f"{what} term '{name}'")


def _check_slope(term: _Term, what: str) -> None:
    trained = {name: p for name, p in term.named_parameters() if p.requires_grad}

    def value(*parameters: Tensor) -> Tensor:
        return functional_call(term, dict(zip(trained, parameters, strict=True)), ())  # type: ignore[no-any-return]

    values = tuple(p.detach().clone().requires_grad_() for p in trained.values())
    try:
        # A step ten times smaller than usual: among many thousand units one may be at its kink.
        gradcheck(value, values, eps=1e-7, fast_mode=True, check_undefined_grad=False)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise AssertionError(
            f"the gradient of the {what} is not its slope: {reason[:200]}"
        ) from error
