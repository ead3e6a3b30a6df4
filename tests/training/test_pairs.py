"""Images first, then pairs: the batches of models that learn actions, and that resuming is exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.data.transitions import transitions
from disentwine.errors import Interrupted
from disentwine.models import CTVAE
from disentwine.testing import small_grid
from disentwine.training.fit import fit
from disentwine.training.one_factor import with_batches_for
from disentwine.training.pairs import PairSource
from disentwine.training.sampling import BatchSource, batch_indices
from disentwine.training.trainer import fixed_noise

DATA = small_grid((16, 16, 1))
PRETRAINING = 4
TRAINING: dict[str, Any] = {
    "steps": 9,
    "batch_size": 8,
    "save_every": 3,
    "log_every": 2,
    "threads": 1,
    "device": "cpu",
    "progress": False,
}


def build(**options: Any) -> CTVAE:
    with fixed_noise(0):
        small = {"codes": 8, "dimensions": 4, "width": 8, "layer_width": 8, "hidden": 4}
        return CTVAE.for_data(DATA, pretraining=PRETRAINING, **(small | options))


def test_batches_are_images_first_and_then_pairs_of_the_training_images() -> None:
    split = with_batches_for(build(), DATA).split
    images, pairs = set(DATA.split["train"].tolist()), set()
    for step in range(60):
        batch = batch_indices(split["train"], step=step, batch_size=8, seed=0)
        assert batch.shape == ((8,) if step < PRETRAINING else (8, 3))
        if batch.ndim == 2:
            pairs |= set(map(tuple, batch.tolist()))
            assert images >= set(batch[:, :2].ravel().tolist())
    everything = transitions(DATA)
    assert pairs <= set(map(tuple, everything.pairs["train"].tolist()))
    held_out = split["validation"][:, :2].ravel().tolist()
    assert set(held_out) <= set(DATA.split["validation"].tolist())


def source(model: CTVAE, *, drawn: int) -> PairSource:
    split = with_batches_for(model, DATA).split["train"]
    return PairSource(BatchSource(DATA, device=torch.device("cpu")), model, split, drawn=drawn)


def test_pairs_in_training_are_of_codes_whether_kept_or_not() -> None:
    model = build().eval()
    rows = transitions(DATA).pairs["train"][:6]
    kept, anew = (source(model, drawn=drawn) for drawn in (10**6, 1))
    first, second = kept.take(rows), anew.take(rows)
    assert kept.table is not None
    assert anew.table is None
    x, y, action = transitions(DATA).batch(rows)
    for batch in (first, second):
        assert batch.x.dtype == torch.int64
        assert np.array_equal(batch.x.numpy(), model.represent(x))
        assert batch.y is not None
        assert np.array_equal(batch.y.numpy(), model.represent(y))
        assert batch.action is not None
        assert batch.action.tolist() == action.tolist()
    with torch.no_grad():
        seen = kept.take(rows)
    assert seen.x.is_floating_point(), "validation sees images"
    together = source(build(joint=True), drawn=10**6).take(rows)
    assert together.x.is_floating_point(), "as does joint training"


@pytest.mark.parametrize("joint", [False, True])
def test_the_second_stage_leaves_images_alone_unless_it_is_joint(joint: bool) -> None:
    kept: dict[int, dict[str, torch.Tensor]] = {}

    def keep(model: Any, step: int) -> None:
        kept[step] = {k: v.clone() for k, v in model.state_dict().items()}

    fit(build(joint=joint), DATA, on_save=keep, **TRAINING | {"save_every": 2})
    for name in kept[0]:
        learnt_first = not torch.equal(kept[0][name], kept[PRETRAINING][name])
        learnt_later = not torch.equal(kept[PRETRAINING][name], kept[8][name])
        own = name.startswith("autoencoder")
        assert learnt_first == own, name
        if name != "places":
            assert learnt_later == (joint or not own), name


@pytest.mark.parametrize("options", [{}, {"joint": True, "codebook_training": "ema"}], ids=str)
def test_resuming_is_exact(tmp_path: Path, fingerprint: Any, options: dict[str, Any]) -> None:
    fit(build(**options), DATA, out=tmp_path / "straight", **TRAINING)
    for last in (3, 6):  # before and after the second stage begins

        def stop(model: Any, step: int, last: int = last) -> None:
            if step == last:
                raise Interrupted("", signal_number=15)

        with pytest.raises(Interrupted):
            fit(build(**options), DATA, out=tmp_path / "stopped", on_save=stop, **TRAINING)
    fit(build(**options), DATA, out=tmp_path / "stopped", **TRAINING)
    assert fingerprint(tmp_path / "stopped") == fingerprint(tmp_path / "straight")
