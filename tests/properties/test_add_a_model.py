"""A new model is one class and one line, and `check_model` tells what it forgot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from disentwine.core.capabilities import capabilities
from disentwine.core.model import Batch, Losses, Model
from disentwine.models import MODELS
from disentwine.nn.encoders import ImageShape
from disentwine.nn.images import accepts_images
from disentwine.runs.fit import train_recipe
from disentwine.runs.recipe import parse_recipe
from disentwine.runs.run import load_run
from disentwine.testing import check_model

SHAPE = (8, 8, 1)


class Toy(Model):
    """A linear autoencoder with a penalty on its codes."""

    def __init__(self, *, image_shape: ImageShape, width: int = 3, penalty: float = 0.1) -> None:
        super().__init__()
        self.image_shape, self.width, self.penalty = image_shape, width, penalty
        height, columns, channels = image_shape
        pixels = height * columns * channels
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(pixels, width))
        self.decoder = nn.Sequential(
            nn.Linear(width, pixels), nn.Unflatten(1, (channels, height, columns))
        )

    def loss(self, batch: Batch) -> Losses:
        codes = self.encoder(batch.x)
        error = (batch.x - self.decoder(codes)).square().flatten(1).sum(1)
        return Losses({"error": error, "size": codes.square().mean()}, {"size": self.penalty})

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        codes: Tensor = self.encoder(x)
        return codes

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        images: Tensor = self.decoder(self.encoder(x))
        return images.clamp(0, 1)


def test_a_new_model_keeps_the_contract() -> None:
    check_model(lambda: Toy(image_shape=SHAPE), image_shape=SHAPE)
    assert capabilities(Toy(image_shape=SHAPE)) == ()


def test_a_new_model_trains_from_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "toy", Toy)
    content = {
        "data": {"name": "pendulum", "size": 32},
        "model": {"name": "toy", "width": 2},
        "training": {"steps": 4, "batch_size": 8, "save_every": 2, "threads": 1},
    }
    train_recipe(parse_recipe(content, source="here"), tmp_path / "run", progress=False)
    run = load_run(tmp_path / "run")
    assert run.recipe.model == {"name": "toy", "width": 2, "penalty": 0.1}
    assert isinstance(run.model, Toy)
    assert run.model.image_shape == (32, 32, 3)
    assert run.model.represent(run.dataset.images[:3]).shape == (3, 2)
    assert run.model.reconstruct(run.dataset.images[0]).shape == (32, 32, 3)


class IdleParameter(Toy):
    def __init__(self, *, image_shape: ImageShape, width: int = 3, penalty: float = 0.1) -> None:
        super().__init__(image_shape=image_shape, width=width, penalty=penalty)
        self.idle = nn.Parameter(torch.zeros(3))


class ZeroGradient(IdleParameter):
    def loss(self, batch: Batch) -> Losses:
        losses = super().loss(batch)
        return Losses({**losses.terms, "nothing": 0 * self.idle.sum()}, losses.weights)


class ForgetsAnArgument(Toy):
    def __init__(self, *, image_shape: ImageShape, depth: int = 3) -> None:
        super().__init__(image_shape=image_shape, width=depth)


class ChangesAnArgument(Toy):
    def __init__(self, *, image_shape: ImageShape, width: int = 3) -> None:
        super().__init__(image_shape=image_shape, width=2 * width)


class NoisyCodes(Toy):
    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        codes: Tensor = self.encoder(x)
        return codes + torch.randn_like(codes)


class NoisyImages(Toy):
    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        return torch.rand_like(x)


class MixesImages(Toy):
    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        codes: Tensor = self.encoder(x)
        return codes - codes.mean(0)


class FlatCodes(Toy):
    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        codes: Tensor = self.encoder(x)
        return codes.sum(1)


class SmallImages(Toy):
    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        return x[..., 1:].clamp(0, 1)


class UnboundedImages(Toy):
    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        return 100 + x


class TensorsOnly(Toy):
    def represent(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            codes: Tensor = self.encoder(torch.as_tensor(x).flatten(1).float())
        return codes


class CarriesGradients(Toy):
    def represent(self, x: Tensor) -> Tensor:
        codes: Tensor = self.encoder(x)
        return codes


class StaysInEvaluation(Toy):
    def represent(self, x: Any) -> Any:
        self.eval()
        return super().represent(x)


class WithTerm(Toy):
    """Adds one term to the loss."""

    def extra(self, batch: Batch) -> Tensor:
        raise NotImplementedError

    def loss(self, batch: Batch) -> Losses:
        losses = super().loss(batch)
        return Losses({**losses.terms, "extra": self.extra(batch)}, losses.weights)


class WrongTermShape(WithTerm):
    def extra(self, batch: Batch) -> Tensor:
        return torch.ones(len(batch.x), 2)


class BrokenForOne(WithTerm):
    def extra(self, batch: Batch) -> Tensor:
        codes: Tensor = self.encoder(batch.x)
        return codes.std(0).sum() if len(batch.x) > 1 else codes.sum() * torch.nan


class WrongGradient(WithTerm):
    def extra(self, batch: Batch) -> Tensor:
        codes: Tensor = self.encoder(batch.x)
        return codes.sum(1) + (codes.square().sum(1)).detach()


class SinglePrecision(WithTerm):
    def extra(self, batch: Batch) -> Tensor:
        codes: Tensor = self.encoder(batch.x)
        return codes.sum(1).float()


class HiddenNoise(WithTerm):
    calls = 0

    def extra(self, batch: Batch) -> Tensor:
        self.calls += 1
        codes: Tensor = self.encoder(batch.x)
        return codes.sum(1) * self.calls


class UnknownWeight(Toy):
    def loss(self, batch: Batch) -> Losses:
        return Losses(super().loss(batch).terms, {"sise": 2.0})


class NoTerms(Toy):
    def loss(self, batch: Batch) -> Losses:
        return Losses({})


class ForgetsState(Toy):
    """Keeps what it needs outside the state that is saved."""

    def __init__(self, *, image_shape: ImageShape, width: int = 3, penalty: float = 0.1) -> None:
        super().__init__(image_shape=image_shape, width=width, penalty=penalty)
        self.hidden = torch.rand(())

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        codes: Tensor = self.encoder(x)
        return codes + self.hidden


class NoName(Toy):
    def __repr__(self) -> str:
        return "a model"


@pytest.mark.parametrize(
    ("mutant", "sentence"),
    [
        (IdleParameter, "no gradient reaches the parameter 'idle'"),
        (ZeroGradient, "the gradient of the parameter 'idle' is zero everywhere"),
        (ForgetsAnArgument, "the argument 'depth' is not stored as an attribute"),
        (ChangesAnArgument, "the argument 'width' is not stored unchanged"),
        (NoisyCodes, "represent"),
        (NoisyImages, "reconstruct"),
        (MixesImages, "represent of an image depends on the other images of the batch"),
        (FlatCodes, r"represent of 3 images has shape \(3,\), not \(3, d\)"),
        (SmallImages, "reconstruct of shape"),
        (UnboundedImages, r"outside \[0, 1\]"),
        (TensorsOnly, "represent of a stack of uint8 images differs"),
        (CarriesGradients, "represent returns a tensor with gradients"),
        (StaysInEvaluation, "leaves the model in evaluation mode"),
        (WrongTermShape, r"the loss term 'extra' of 3 images has shape \(3, 2\)"),
        (BrokenForOne, "the loss term 'extra' of 1 images is not finite"),
        (WrongGradient, "the gradient of the loss term 'extra' differs from finite differences"),
        (SinglePrecision, "the loss term 'extra' does not keep float64"),
        (HiddenNoise, "the loss differs although the noise is the same"),
        (UnknownWeight, "weighs terms that it does not have: {'sise'}"),
        (NoTerms, "the loss has no terms"),
        (ForgetsState, "represent differs after saving and loading"),
        (NoName, "does not name its class"),
    ],
)
def test_a_broken_promise_is_named(mutant: type[Toy], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_model(lambda: mutant(image_shape=SHAPE), image_shape=SHAPE)


def test_an_estimated_gradient_is_allowed_by_name_only() -> None:
    check_model(lambda: WrongGradient(image_shape=SHAPE), image_shape=SHAPE, estimated=["extra"])
    with pytest.raises(AssertionError, match="there are no loss terms"):
        check_model(lambda: Toy(image_shape=SHAPE), image_shape=SHAPE, estimated=["extra"])


def test_labels_are_given_to_models_that_read_them() -> None:
    class Supervised(WithTerm):
        def extra(self, batch: Batch) -> Tensor:
            codes: Tensor = self.encoder(batch.x)
            return (codes - batch.u).square().sum(1)

    check_model(lambda: Supervised(image_shape=SHAPE), image_shape=SHAPE, factors=3)


def test_the_callers_generator_is_left_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    check_model(lambda: Toy(image_shape=SHAPE), image_shape=SHAPE)
    assert torch.equal(before, torch.get_rng_state())
