"""Batches in which one factor varies: which images they hold, and that resuming repeats them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.core.model import Batch, Losses
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.data.samplers.one_factor import OneFactor
from disentwine.errors import DataError, Interrupted, UsageError
from disentwine.models import DCIGN, MODELS
from disentwine.runs.fit import fit

GRID = np.stack(np.meshgrid(range(4), range(3), range(5), indexing="ij"), axis=-1).reshape(-1, 3)
FACTORS = GRID.astype(np.float64)
TRAINING: dict[str, Any] = {
    "steps": 13,
    "batch_size": 4,
    "save_every": 4,
    "log_every": 3,
    "threads": 1,
    "device": "cpu",
    "progress": False,
}


def split(factors: np.ndarray = FACTORS, **options: Any) -> OneFactor:
    return OneFactor(factors, np.arange(len(factors)), **({"varied": (0, 1, 2)} | options))


def batches(of: OneFactor, n: int, *, batch_size: int = 64, seed: int = 0) -> list[np.ndarray]:
    return [of.batch(step=step, batch_size=batch_size, seed=seed) for step in range(n)]


def test_exactly_one_factor_varies_and_the_whole_group_is_there() -> None:
    seen: Counter[int] = Counter()
    for batch in batches(split(), 300):
        distinct = [len(np.unique(column)) for column in FACTORS[batch].T]
        (varying,) = np.flatnonzero(np.array(distinct) > 1)
        assert len(batch) == len(set(batch.tolist())) == distinct[varying] == (4, 3, 5)[varying]
        seen[int(varying)] += 1
    # Each of three factors is drawn 100 times in the mean, with a standard deviation of 8.2.
    assert all(60 < seen[factor] < 140 for factor in range(3))


def test_all_images_are_seen_equally_often() -> None:
    """Within 5 standard deviations of their number, also where one group is of 2 and another of 20;
    were groups drawn alike, images of the first would be seen ten times as often."""
    ragged = np.array([[100 + i, 0] for i in range(2)] + [[i, 1] for i in range(20)], float)
    counts = np.zeros(len(ragged))
    for batch in batches(split(ragged, varied=(0, 1)), 6000, batch_size=1):
        counts[batch] += 1
    assert abs(counts - counts.mean()).max() < 5 * counts.mean() ** 0.5


def test_a_batch_is_a_function_of_seed_and_step() -> None:
    first, again = batches(split(), 20), batches(split(), 20)
    other = batches(split(), 20, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_large_groups_are_drawn_from() -> None:
    drawn = [tuple(sorted(b)) for b in batches(split(varied=(2,)), 50, batch_size=2)]
    assert {len(b) for b in drawn} == {2}
    assert len(set(drawn)) > 5


def test_effects_may_follow_what_varies() -> None:
    follows = np.column_stack([FACTORS[:, :2], FACTORS[:, 0] + FACTORS[:, 1]])
    for batch in batches(split(follows, varied=(0, 1)), 50):
        assert sorted(len(np.unique(c)) > 1 for c in follows[batch].T) == [False, True, True]


def test_unlabelled_images_are_left_out() -> None:
    some = FACTORS.copy()
    some[::2, 1] = np.nan
    drawn = np.concatenate(batches(split(some), 200))
    assert np.isfinite(some[drawn]).all()
    assert set(drawn.tolist()) <= set(range(1, len(some), 2))


def test_many_continuous_factors_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    held = rng.normal(size=(500, 12))
    twins = np.concatenate([held, held])
    twins[:500, 3] += 1
    for batch in batches(split(twins, varied=tuple(range(12))), 30):
        assert abs(batch[0] - batch[1]) == 500


def test_data_without_company_is_refused() -> None:
    with pytest.raises(DataError, match="no two of the 40 training images differ in one factor"):
        split(np.random.default_rng(0).normal(size=(40, 3)))


class Witness(DCIGN):
    """Remembers what it was shown."""

    shown: list[tuple[bool, torch.Tensor]]

    def loss(self, batch: Batch) -> Losses:
        self.shown.append((self.training, batch.u))
        return super().loss(batch)


@pytest.fixture
def pictures() -> Arrays:
    images = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 1), dtype=np.uint8)
    return Arrays(images=images, factors=FACTORS)


def witness(pictures: Arrays) -> Witness:
    with fixed_noise(0):
        model = Witness.for_data(pictures)
    model.shown = []
    return model


def test_training_varies_one_factor_and_validation_all(pictures: Arrays) -> None:
    model = fit(witness(pictures), pictures, **TRAINING)
    for training, u in model.shown:
        varying = (u != u[0]).any(0)
        assert varying.sum() == (1 if training else 3)
    assert sum(training for training, _ in model.shown) == TRAINING["steps"]
    assert isinstance(pictures.split["train"], np.ndarray)


def test_resuming_is_exact(
    pictures: Arrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fingerprint: Any
) -> None:
    monkeypatch.setitem(MODELS, "witness", Witness)

    def stop(model: Any, step: int) -> None:
        if step == 8:
            raise Interrupted("", signal_number=15)

    fit(witness(pictures), pictures, out=tmp_path / "straight", **TRAINING)
    with pytest.raises(Interrupted):
        fit(witness(pictures), pictures, out=tmp_path / "stopped", on_save=stop, **TRAINING)
    fit(witness(pictures), pictures, out=tmp_path / "stopped", **TRAINING)
    assert fingerprint(tmp_path / "stopped") == fingerprint(tmp_path / "straight")


def few_neighbours(n: int) -> np.ndarray:
    """Factors (20, 2) of which the first n images differ in the first factor alone, and others in both."""
    factors = np.stack([np.arange(20.0), np.arange(20.0)], axis=1)
    factors[:n, 1] = 0
    return factors


@pytest.mark.parametrize(
    ("factors", "told"),
    [
        (few_neighbours(4), ["4 of the 20 training images", "never vary alone: b"]),
        (few_neighbours(18)[:, ::-1], ["18 of the 20", "never vary alone: a"]),
        (FACTORS[:, 1:], []),
    ],
)
def test_who_learns_from_few_images_is_told(
    factors: np.ndarray, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    n = len(factors)
    images = np.zeros((n, 16, 16, 1), np.uint8)
    dataset = Arrays(images=images, factors=factors, names=["a", "b"])
    dataset.split = {**dataset.split, "train": np.arange(n)}
    model = DCIGN.for_data(dataset)
    (stage,) = model.training_plan(dataset, steps=1, batch_size=4)
    train: Any = stage.train
    said = capsys.readouterr().err
    assert all(part in said for part in told)
    assert bool(said) == bool(told)
    seen = {int(i) for batch in batches(train, 200) for i in batch}
    assert len(seen) == train.sampled_images


def test_units_of_it_can_be_made_anew(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 1), dtype=np.uint8)
    dataset = Arrays(images=images, factors=FACTORS, names=["a", "b", "c"])
    start = tmp_path / "start"
    fit(DCIGN.for_data(dataset), dataset, out=start, **TRAINING)
    model = DCIGN.for_data(dataset)
    fit(model, dataset, init_from=start, reset_inactive_latents=True, **TRAINING)
    assert np.isfinite(model.represent(images)).all()


def test_a_single_image_is_no_batch(tmp_path: Path) -> None:
    images = np.zeros((60, 16, 16, 1), np.uint8)
    dataset = Arrays(images=images, factors=FACTORS, names=["a", "b", "c"])
    with pytest.raises(UsageError, match="no factor varies in a batch of one"):
        fit(DCIGN.for_data(dataset), dataset, **(TRAINING | {"batch_size": 1}))
    fewer = Arrays(images=images, factors=FACTORS[:, :2], names=["a", "b"])
    with pytest.raises(UsageError, match="but the data set has 2; build it with DCIGN"):
        fit(DCIGN.for_data(dataset), fewer, **TRAINING)
