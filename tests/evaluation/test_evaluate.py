"""The numbers mean what their names say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from disentwine import VAE
from disentwine.core.capabilities import Quantizes
from disentwine.core.dataset import Dataset, Factor, evenly_spaced, random_subset
from disentwine.core.model import Batch, Losses
from disentwine.data import Arrays
from disentwine.errors import DataError, UsageError
from disentwine.evaluation.baselines import evaluate_baseline
from disentwine.evaluation.disentanglement import NO_QUANTITIES, ONE_FACTOR, score_latents
from disentwine.evaluation.evaluate import Evaluation, evaluate
from disentwine.evaluation.held_out import LIMIT, held_out
from disentwine.metrics.active_latents import active_units
from disentwine.metrics.disentanglement.gaps import sap
from disentwine.metrics.disentanglement.modularity import explicitness
from disentwine.metrics.images import reconstruction_error
from disentwine.metrics.registry import METRICS
from disentwine.models import MODELS
from disentwine.report.sections.latents import mutual_information
from disentwine.report.text import number
from disentwine.testing import small_grid
from disentwine.training.options import TrainingOptions
from disentwine.training.trainer import Trainer


def test_black_for_white_costs_one_and_the_same_image_nothing() -> None:
    black = np.zeros((3, 4, 4, 1), np.uint8)
    assert reconstruction_error(black, black + 255).value == 1
    assert reconstruction_error(black, black).value == 0
    half = black.copy()
    half[:, :2] = 255
    assert reconstruction_error(black, half).value == pytest.approx(0.5)
    assert reconstruction_error(black, half).n == 3


def test_images_that_do_not_match_are_refused() -> None:
    images = np.zeros((3, 4, 4, 1), np.uint8)
    with pytest.raises(UsageError, match="same shape"):
        reconstruction_error(images, images[:2])
    with pytest.raises(UsageError, match="at least one"):
        reconstruction_error(images[:0], images[:0])


def test_only_units_that_vary_are_active() -> None:
    codes = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 0.05, 0.5] + [0, 9, 0]
    score = active_units(codes)
    assert (score.value, score.details["active"]) == (2, [True, False, True])


def test_units_that_are_names_are_active_where_the_name_changes_whatever_its_number() -> None:
    names = np.array([[7.0, 0.0, 3.0]] * 999 + [[7.0, 63.0, 3.0]])
    assert active_units(names).details["active"] == [False, True, False]
    names[:100, 2] = 4
    found = active_units(names, discrete_codes=True)
    assert found.details["active"] == [False, False, True]


@pytest.mark.parametrize("name", ["vq-vae", "mcq-vae", "ct-vae"])
def test_codes_that_are_names_are_not_measured_as_quantities(name: str) -> None:
    data = small_grid((16, 16, 1))
    small = {"codebook_size": 8, "code_dim": 4, "channels": 8}
    model = MODELS[name].for_data(data, **({"autoencoder": small} if name == "ct-vae" else small))
    wanted = ["sap", "mig", "factor-vae", "irs", "mic-tic", "explicitness"]
    found = evaluate(model, data, wanted)
    assert isinstance(model, Quantizes)
    quantities = ["sap", "factor-vae", "irs", "mic-tic"]
    assert found.skipped == dict.fromkeys(quantities, NO_QUANTITIES)
    assert {"mig", "explicitness"} <= {score.name for score in found.scores}
    assert found.latents is not None
    renamed = np.random.default_rng(0).permutation(8)[found.latents.astype(int)].astype(float)
    factors = data.factors[found.indices]
    again = score_latents(renamed, factors, data.spec, discrete_codes=True, metrics=["mig"])
    score = found.score("mig")
    assert score is not None
    assert again.scores[0].value == pytest.approx(score.value)


def test_units_that_a_model_does_not_use_do_not_count_for_sap() -> None:
    data = small_grid((16, 16, 1))

    class Faint(VAE):
        """A VAE with a copy of each code that hardly varies."""

        def represent(self, images: Any) -> Any:
            codes = super().represent(images)
            return np.hstack([codes / codes.std(0), codes / codes.std(0) / 1000])

    model = Faint.for_data(data, latent=3)
    found = evaluate(model, data, ["sap"])
    assert found.latents is not None
    factors, kinds = data.factors[found.indices], [factor.kind for factor in data.spec]
    values = [
        sap(codes, factors, kinds=kinds).value for codes in (found.latents, found.latents[:, :3])
    ]
    score = found.score("sap")
    assert score is not None
    assert score.value == pytest.approx(values[1])
    assert score.value > values[0] + 0.01


@pytest.fixture
def sorted_shades() -> Arrays:
    """One shade after the other, from black to white."""
    shades = np.repeat(np.linspace(0, 255, 1200).astype(np.uint8), 16).reshape(-1, 4, 4, 1)
    everything = np.arange(1200)
    made = Arrays(images=shades)
    made.split = {"train": everything, "validation": everything, "test": everything}
    return made


class Moments(VAE):
    """A VAE whose loss is the variance of the shades in a batch."""

    def loss(self, batch: Batch) -> Losses:
        return Losses({"variance": batch.x.mean((1, 2, 3)).var(correction=0)})


def test_moments_of_a_batch_are_nearly_those_of_sorted_data(sorted_shades: Arrays) -> None:
    """Of 1,200 shades in batches of 256: a batch in sorted order would have 1/22 of the variance."""
    model = Moments.for_data(sorted_shades, latent=2)
    found = evaluate(model, sorted_shades, "none")
    variance = found.score("variance")
    assert variance is not None
    assert variance.value == pytest.approx(1 / 12, rel=0.2)
    trainer = Trainer(
        model,
        sorted_shades,
        TrainingOptions(steps=1, batch_size=4, device="cpu"),
        seed=0,
    )
    assert trainer.validate()["variance"] == pytest.approx(1 / 12, rel=0.2)


def test_codes_come_in_the_order_of_their_images(sorted_shades: Arrays) -> None:
    model = VAE.for_data(sorted_shades, latent=2)
    found = evaluate(model, sorted_shades, "none")
    assert found.latents is not None
    expected = model.represent(sorted_shades.images[found.indices])
    assert np.allclose(found.latents, expected, atol=1e-5)


def test_metrics_that_would_learn_thousands_of_names_are_left_out() -> None:
    v = np.arange(600.0)[:, None] // 2
    found = score_latents(v, v, [Factor("character", "categorical")], metrics=["dci", "mig"])
    assert [score.name for score in found.scores] == ["mig"]
    assert found.skipped["dci"].startswith("'character' has 300 categories, more than 256")


def test_metrics_that_tell_factors_apart_need_two() -> None:
    """Left out are exactly those that find nothing to wish for in codes that are noise."""
    rng = np.random.default_rng(0)
    codes, v = rng.normal(size=(300, 3)), rng.integers(0, 4, (300, 2)).astype(float)
    quick = [name for name in METRICS if name != "mic-tic"]
    found = score_latents(codes, v[:, :1], [Factor("a")], metrics=quick)
    perfect = {name for name in quick if METRICS[name].function(codes, v[:, :1]).value == 1}
    assert found.skipped == dict.fromkeys(perfect, ONE_FACTOR)
    assert "z-diff" in perfect
    both = score_latents(codes, v, [Factor("a"), Factor("b")], metrics=["z-diff"])
    assert [score.name for score in both.scores] == ["z-diff"]


@pytest.mark.parametrize(("metric", "name"), [("mig", "mig"), ("mic-tic", "mic")])
def test_a_map_of_what_units_know_tells_what_chance_gives_a_cell(metric: str, name: str) -> None:
    rng = np.random.default_rng(0)
    codes, v = rng.normal(size=(200, 4)), rng.integers(0, 4, (200, 2)).astype(float)
    scores = score_latents(codes, v, [Factor("a"), Factor("b")], metrics=[metric]).scores
    found = Evaluation("test", np.arange(200), scores, codes, None)
    subject: Any = SimpleNamespace(found=found, active_by_kl=False, active=np.array([True]))
    section, score = mutual_information(subject), found.score(name)
    assert section is not None
    assert score is not None
    chance = number(float(score.details["matrix_noise_floor"]))
    assert f"The chance level is {chance}." in section.text
    assert "Shown are" not in section.text


def test_a_map_of_many_units_says_which_are_shown() -> None:
    rng = np.random.default_rng(0)
    codes, v = rng.normal(size=(200, 50)), rng.integers(0, 4, (200, 2)).astype(float)
    scores = score_latents(codes, v, [Factor("a"), Factor("b")], metrics=["mig"]).scores
    found = Evaluation("test", np.arange(200), scores, codes, None)
    section = mutual_information(
        cast(Any, SimpleNamespace(found=found, active_by_kl=False, active=np.array([True])))
    )
    assert section is not None
    assert "Shown are the 40 of 50 latents that are most informative." in section.text


def partly_labelled(*shares: float, n: int = 100) -> tuple[np.ndarray, list[Factor]]:
    """Factors of which the first images carry labels, each a share of them."""
    v = np.random.default_rng(0).integers(0, 4, (n, len(shares))).astype(float)
    for column, share in zip(v.T, shares, strict=True):
        column[round(share * n) :] = np.nan
    return v, [Factor(name) for name in "abcdef"[: len(shares)]]


def test_a_concept_with_few_labels_does_not_cost_the_others_their_images() -> None:
    v, spec = partly_labelled(1, 0.1, 0.8)
    codes = np.random.default_rng(1).normal(size=(100, 2))
    found = score_latents(codes, v, spec, metrics=["mig"])
    assert found.scores[0].n == 80
    assert found.scores[0].details["factors"] == ["a", "c"]
    reason = "10 of 100 labelled images have it, fewer than half"
    assert found.skipped == {"factor 'b'": reason}
    assert score_latents(codes, v, spec, metrics="none").skipped == {}


def test_images_without_any_label_do_not_count_against_a_concept() -> None:
    v, spec = partly_labelled(0.2, 0.2, 0.1)
    codes = np.random.default_rng(1).normal(size=(100, 2))
    found = score_latents(codes, v, spec, metrics=["mig"])
    assert (found.scores[0].n, found.skipped) == (10, {})


def test_the_concept_with_the_fewest_labels_is_named_where_too_few_images_have_all() -> None:
    v = np.random.default_rng(0).integers(0, 4, (9, 3)).astype(float)
    v[:4, 1:] = v[4:7, [0, 2]] = v[7:, :2] = np.nan  # each image has one label: none has two
    codes = np.random.default_rng(1).normal(size=(9, 2))
    found = score_latents(codes, v, [Factor("a"), Factor("b"), Factor("c")], metrics=["mig"])
    assert found.scores == []
    assert "'c' is on 2 of 9: label more images" in found.skipped["mig"]


def test_values_are_means_over_seeds_with_their_spread() -> None:
    rng = np.random.default_rng(0)
    v = rng.integers(0, 4, (120, 2)).astype(float)
    codes, spec = v + rng.normal(size=v.shape), [Factor("a"), Factor("b")]
    each = [explicitness(codes, v, seed=seed) for seed in (3, 8)]
    first, second = (score.value for score in each)
    assert abs(first - second) > 0.01
    (found,) = score_latents(codes, v, spec, metrics=["explicitness"], seeds=(3, 8)).scores
    assert found.value == pytest.approx((first + second) / 2)
    assert found.details["spread"] == pytest.approx(abs(first - second) / np.sqrt(2))
    assert (found.details["seeds"], found.noise_floor) == (2, each[0].noise_floor)
    (alone,) = score_latents(codes, v, spec, metrics=["explicitness"], seeds=(8,)).scores
    assert (alone.value, alone.details["spread"], alone.details["seeds"]) == (second, None, 1)


def test_metrics_are_told_which_factors_are_names() -> None:
    """A code that swaps two of three names tells them all; as numbers they correlate by 1/2."""
    v = np.tile([0.0, 1.0, 2.0], 20)[:, None]
    codes = np.tile([0.0, 2.0, 1.0], 20)[:, None]
    for kind, expected in (("categorical", 1), ("continuous", 1 / 4)):
        (found,) = score_latents(codes, v, [Factor("shape", kind)], metrics=["sap"]).scores
        assert found.value == pytest.approx(expected)


def test_seeds_may_come_one_by_one() -> None:
    v = np.random.default_rng(0).integers(0, 4, (100, 2)).astype(float)
    spec = [Factor("a"), Factor("b")]
    found = score_latents(v, v, spec, metrics=["mig", "sap"], seeds=(seed for seed in [0]))
    assert [score.name for score in found.scores] == ["mig", "sap"]
    with pytest.raises(UsageError, match="at least one"):
        score_latents(v, v, spec, seeds=())


@pytest.mark.parametrize(("n", "scored"), [(9, False), (10, True)])
def test_nothing_is_scored_on_a_handful_of_labels(n: int, scored: bool) -> None:
    v = np.full((50, 2), np.nan)
    v[:n] = np.random.default_rng(0).integers(0, 3, (n, 2))
    codes = np.random.default_rng(1).normal(size=(50, 2))
    found = score_latents(codes, v, [Factor("a"), Factor("b")], metrics=["sap"])
    assert bool(found.scores) == scored
    if not scored:
        assert "9 of these images have all labels, fewer than 10" in found.skipped["sap"]


SIDES = (25, 20, 10, 4)


class SortedGrid(Dataset):
    """Every combination once, in order, all of them held out."""

    def __init__(self, *, train: int = 0, validation: int = 0) -> None:
        axes = np.meshgrid(*map(np.arange, SIDES), indexing="ij")
        self.factors = np.stack([axis.ravel() for axis in axes], axis=1).astype(np.float64)
        n = len(self.factors)
        self.images = np.zeros((n, 1, 1, 1), np.uint8)
        self.spec = tuple(Factor(name, "ordinal") for name in "abcd")
        parts = np.split(np.arange(n), [train, train + validation])
        self.split = dict(zip(("train", "validation", "test"), parts, strict=True))


def test_they_are_of_the_split_once_each_and_always_the_same() -> None:
    data = SortedGrid(train=2_000, validation=3_000)
    name, indices = held_out(data, LIMIT)
    assert (name, len(indices)) == ("test", LIMIT)
    assert np.isin(indices, data.split["test"]).all()
    assert (np.diff(indices) > 0).all()
    assert (held_out(data, LIMIT)[1] == indices).all()


def test_a_split_within_the_limit_is_taken_whole() -> None:
    data = SortedGrid(train=15_000)
    assert (held_out(data, LIMIT)[1] == data.split["test"]).all()


def test_validation_stands_in_for_an_empty_test_split() -> None:
    name, indices = held_out(SortedGrid(train=14_000, validation=6_000), LIMIT)
    assert (name, len(indices)) == ("validation", LIMIT)
    with pytest.raises(DataError, match="splits are empty"):
        held_out(SortedGrid(train=20_000), LIMIT)


def test_a_perfect_code_of_a_sorted_grid_is_scored_as_on_all_of_it() -> None:
    data = SortedGrid()
    found = evaluate_baseline("ground-truth", data, ["sap"])
    whole = sap(data.factors, data.factors).value
    assert found.scores[0].value == pytest.approx(whole, abs=0.05)
    # What a stride answers, which ties the last factor to the place in the grid.
    strided = data.factors[evenly_spaced(data.split["test"], LIMIT)]
    assert sap(strided, strided).value < whole - 0.3


def test_a_sample_keeps_the_order_and_the_type_of_indices() -> None:
    indices = np.arange(1_000) * 3
    chosen = random_subset(indices, 10)
    assert chosen.dtype == indices.dtype
    assert np.isin(chosen, indices).all()
    assert (np.diff(chosen) > 0).all()
    assert (random_subset(indices, 1_000) == indices).all()
