"""What type checkers know of `for_data`; `mypy` fails where an expected error is missing."""

from __future__ import annotations

from typing import assert_type

from disentwine import DCIGN, VAE, VQVAE, fit
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.models import MODELS


def options_are_checked(dataset: Dataset) -> None:
    assert_type(VAE.for_data(dataset, latent=3, network="mlp"), VAE)
    VAE.for_data(dataset, latnet=3)  # type: ignore[call-arg]
    VAE.for_data(dataset, latent="3")  # type: ignore[arg-type]
    VQVAE.for_data(dataset, num_codebooks=3)  # type: ignore[call-arg]


def data_decide_the_first_arguments(dataset: Dataset) -> None:
    assert_type(VAE((16, 16, 1), latent=3), VAE)
    assert_type(DCIGN((16, 16, 1), (0, 1)), DCIGN)
    DCIGN.for_data(dataset, varied=(0, 1))  # type: ignore[call-arg]


def tables_take_any_option(dataset: Dataset) -> None:
    assert_type(MODELS["vae"].for_data(dataset, latent=3), Model)


def options_of_a_training_are_checked(model: VAE, dataset: Dataset) -> None:
    assert_type(fit(model, dataset, steps=3, clip_norm=1.0), VAE)
    fit(model, dataset, step=3)  # type: ignore[call-arg]
    fit(model, dataset, steps="3")  # type: ignore[arg-type]
