"""What is asked of Wasserstein autoencoders with causes, and how sharp models paint."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from disentwine.core.random import fixed_noise
from disentwine.data import Arrays, Pendulum
from disentwine.evaluation.counterfactuals import sharpness_scores
from disentwine.evaluation.independence import exogenous_scores
from disentwine.metrics.images import sharpness
from disentwine.models import CausalVAE, CausalWAE

EDGES = (("pendulum_angle", "shadow_length"), ("light_angle", "shadow_position"))


class Coder(nn.Module):
    """A code that is the labels themselves, or noise; a decoder whose slopes are known."""

    def __init__(self, *, dependent: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.dependent = dependent

    def exogenous(self, x: Tensor, u: Tensor) -> Tensor:
        return u if self.dependent else torch.randn(len(u), 2)

    def injectivity(self, x: Tensor) -> Tensor:
        return 1 + x.mean((1, 2, 3))


@pytest.fixture
def pictures() -> Arrays:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(90, 2))
    factors[:30:2] = np.nan
    return Arrays(
        images=rng.integers(0, 256, (90, 8, 8, 1), dtype=np.uint8),
        factors=factors,
        names=("a", "b"),
        allow_missing=True,
    )


@pytest.mark.parametrize("dependent", [True, False])
def test_dependence_and_slopes_are_told(pictures: Arrays, dependent: bool) -> None:
    with fixed_noise(0):
        found = exogenous_scores(Coder(dependent=dependent), pictures, np.arange(90))
    p, criterion, slope = found
    assert [score.name for score in found] == ["independence-p", "independence-hsic", "injectivity"]
    assert (p.value == 0.005) == dependent
    assert criterion.noise_floor is not None
    assert (criterion.value > 2 * criterion.noise_floor) == dependent
    assert p.n == 75  # those with all labels
    assert slope.n == 64
    bright = pictures.images[np.isfinite(pictures.factors).all(axis=1)].mean((1, 2, 3)) / 255
    assert slope.value == pytest.approx(1 + bright[np.linspace(0, 74, 64).astype(int)].min())


def test_others_are_not_asked(pictures: Arrays) -> None:
    model: Any = nn.Linear(2, 2)
    assert exogenous_scores(model, pictures, np.arange(90)) == []
    assert exogenous_scores(Coder(dependent=True), pictures, np.arange(0, 30, 2)) == []
    assert sharpness_scores(model, pictures, np.arange(90)) == []


def test_models_that_intervene_are_measured_beside_the_simulator() -> None:
    pendulum = Pendulum(size=32)
    indices = pendulum.split["test"][:6]
    with fixed_noise(0):
        vae = CausalVAE.for_data(pendulum, edges=EDGES)
        wae = CausalWAE.for_data(pendulum, edges=EDGES)
    for model in (vae, wae):
        plain, done = sharpness_scores(model, pendulum, indices)
        assert (plain.name, plain.n) == ("sharpness", 6)
        assert (done.name, done.n) == ("sharpness-do", 24)
        images = pendulum.images[indices]  # draws of six from six, in another order
        assert plain.value == pytest.approx(sharpness(model.reconstruct(images), images).value)
    assert exogenous_scores(vae, pendulum, indices) == []
    assert all(np.isfinite(s.value) for s in exogenous_scores(wae, pendulum, indices))
