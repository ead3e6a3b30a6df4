"""Images first, then pairs: the batches of models that learn actions, and that resuming is exact."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.core.model import Batch
from disentwine.core.plan import Stage
from disentwine.core.random import fixed_noise
from disentwine.data.transitions import transitions
from disentwine.errors import Interrupted, UsageError
from disentwine.figures.curves import best_step
from disentwine.models import CTVAE
from disentwine.models.quantized.code_batches import CodeBatches
from disentwine.models.quantized.mcq_vae import QuantizerOptions
from disentwine.models.quantized.transition_losses import Rollout
from disentwine.nn.transition import TransitionOptions
from disentwine.runs.fit import fit
from disentwine.runs.run import load_run
from disentwine.testing import small_grid
from disentwine.training.trainer import BatchSource, Trainer

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
        small: dict[str, Any] = {
            "autoencoder": QuantizerOptions(codebook_size=8, code_dim=4, channels=8),
            "transition": TransitionOptions(node_dim=8, edge_hidden=4),
        }
        return CTVAE.for_data(DATA, pretrain_steps=PRETRAINING, **(small | options))


def stage_at(plan: tuple[Stage, ...], step: int) -> Stage:
    return [stage for stage in plan if stage.start <= step][-1]


def test_batches_are_images_first_and_then_pairs_of_the_training_images() -> None:
    plan = build().training_plan(DATA, steps=60, batch_size=8)
    images, pairs = set(DATA.split["train"].tolist()), set()
    for step in range(60):
        batch = stage_at(plan, step).train.batch(step=step, batch_size=8, seed=0)
        assert batch.shape == ((8,) if step < PRETRAINING else (8, 3))
        if batch.ndim == 2:
            pairs |= set(map(tuple, batch.tolist()))
            assert images >= set(batch[:, :2].ravel().tolist())
    everything = transitions(DATA)
    assert pairs <= set(map(tuple, everything.pairs["train"].tolist()))
    validation = set(DATA.split["validation"].tolist())
    assert set(stage_at(plan, PRETRAINING - 1).validation.tolist()) == validation
    held_out = stage_at(plan, PRETRAINING).validation
    assert held_out.shape[1] == 3
    assert set(held_out[:, :2].ravel().tolist()) <= validation


def test_later_batches_are_rows_of_pairs_that_follow_each_other() -> None:
    model = build(rollout=Rollout(length=3, from_step=PRETRAINING + 2))
    plan = model.training_plan(DATA, steps=20, batch_size=8)
    single = stage_at(plan, PRETRAINING + 1)
    assert single.train.batch(step=PRETRAINING + 1, batch_size=8, seed=0).shape == (8, 3)
    there_are = set(map(tuple, transitions(DATA).pairs["train"].tolist()))
    again = ended = 0
    for step in range(PRETRAINING + 2, 20):
        train = stage_at(plan, step).train
        rows = train.batch(step=step, batch_size=8, seed=0)
        assert np.array_equal(rows, train.batch(step=step, batch_size=8, seed=0))
        for row in rows.reshape(8, 3, 3).tolist():
            assert set(map(tuple, row)) <= there_are
            for (_, y, action), (x, _, following) in pairwise(row):
                assert x == y
                again += following == action
                ended += following != action
                possible = any((x, z, action) in there_are for z in range(len(DATA)))
                assert (following == action) == possible
    assert again > 0
    assert ended > 0
    assert single.validation.shape[1] == 9, "so that scores before and after are of the same loss"


def test_rows_of_pairs_are_told_action_by_action() -> None:
    model = build(rollout=Rollout(length=2)).eval()
    plan = model.training_plan(DATA, steps=20, batch_size=8)
    rows = stage_at(plan, PRETRAINING).train.batch(step=PRETRAINING, batch_size=6, seed=0)
    batch = code_batches(model, sampled=10**6)(rows, IMAGES)
    ((z, second),) = batch.later
    assert batch.action is not None
    assert batch.action.tolist() == rows[:, 2].tolist()
    assert second.tolist() == rows[:, 5].tolist()
    assert np.array_equal(z.numpy(), model.represent(DATA.images[rows[:, 4]]))


IMAGES = BatchSource(DATA, device=torch.device("cpu"))


def code_batches(model: CTVAE, *, sampled: int) -> CodeBatches:
    pairs = transitions(DATA).pairs["train"]
    return CodeBatches(model, pairs, joint=model.joint, sampled=sampled)


def test_pairs_in_training_are_of_codes_whether_kept_or_not() -> None:
    model = build().eval()
    rows = transitions(DATA).pairs["train"][:6]
    kept, anew = (code_batches(model, sampled=sampled) for sampled in (10**6, 1))
    first, second = kept(rows, IMAGES), anew(rows, IMAGES)
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
        seen = kept(rows, IMAGES)
    assert seen.x.is_floating_point(), "validation sees images"
    together = code_batches(build(joint=True), sampled=10**6)(rows, IMAGES)
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
        own = name.startswith("mcq_vae")
        assert learnt_first == own, name
        if name != "places":
            assert learnt_later == (joint or not own), name


def test_each_stage_is_logged_and_validated_by_its_own_loss(tmp_path: Path) -> None:
    options = TRAINING | {"log_every": 3, "save_every": 2}
    seen: dict[int, float] = {}

    def keep(model: Any, step: int) -> None:
        images = torch.from_numpy(DATA.images[DATA.split["validation"]]).permute(0, 3, 1, 2) / 255
        with torch.no_grad():
            seen[step] = model.eval().mcq_vae.loss(Batch(images, images)).total.item()

    fit(build(), DATA, out=tmp_path / "run", on_save=keep, **options)
    run = load_run(tmp_path / "run")
    records = {(r["kind"], r["step"]): r for r in run.metrics}
    for step in (0, 2, PRETRAINING):
        assert "l_y" not in records["validation", step]
        assert records["validation", step]["loss"] == pytest.approx(seen[step], rel=1e-4)
    assert all("l_y" in records["validation", step] for step in (6, 8, 9))
    assert [step for kind, step in records if kind == "train"] == [3, PRETRAINING, 6, 9]
    assert "l_y" not in records["train", PRETRAINING]
    assert "reconstruction" not in records["train", 6]
    assert run.status["best"]["step"] > PRETRAINING, "the scores before it are of another loss"
    assert best_step(run.metrics) == run.status["best"]["step"]


@pytest.mark.parametrize(
    ("steps", "rows"), [(PRETRAINING + 1, {}), (9, {"rollout": Rollout(length=2, from_step=8)})]
)
def test_a_record_is_a_mean_over_the_updates_of_its_own_stage(
    tmp_path: Path, steps: int, rows: dict[str, Any]
) -> None:
    """All updates a record, of which a switch leaves one: its terms are not divided by all."""
    for name, every in (("often", 1), ("seldom", steps)):
        options = TRAINING | {"steps": steps, "log_every": every}
        fit(build(**rows), DATA, out=tmp_path / name, **options)
    often, seldom = (
        [r for r in load_run(tmp_path / name).metrics if r["kind"] == "train"][-1]
        for name in ("often", "seldom")
    )
    assert often == seldom


def test_patience_does_not_cut_pretraining_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where no validation is better than the one before."""
    rising = iter(range(100))
    monkeypatch.setattr(Trainer, "validate", lambda self: {"loss": float(next(rising))})
    steps: list[int] = []
    options = TRAINING | {"save_every": 1, "patience": 2}
    fit(build(), DATA, on_save=lambda model, step: steps.append(step), **options)
    # The first score of the second stage is the best so far, two more are not better.
    assert steps[-1] == PRETRAINING + 3


@pytest.mark.parametrize("averaged", [None, 1])
def test_a_run_keeps_the_names_of_actions_that_were_learnt_without(
    tmp_path: Path, averaged: int | None
) -> None:
    model = build(
        action_labels="latent",
        transition=TransitionOptions(node_dim=8, edge_hidden=4, edges="expected"),
    )
    fit(model, DATA, out=tmp_path / "run", **TRAINING, weight_averaging=averaged)
    steps = transitions(DATA)
    rows = steps.pairs["validation"]
    kept: Any = load_run(tmp_path / "run").model
    again: Any = load_run(tmp_path / "run").model
    again.places.copy_(again.places.flip(0))
    again.match(*steps.batch(rows))
    assert torch.equal(kept.places, again.places)
    told = kept.retrieve(*steps.batch(rows)[:2]).argmax(1) == rows[:, 2]
    kept.places.copy_(torch.arange(len(kept.actions)))
    unnamed = kept.retrieve(*steps.batch(rows)[:2]).argmax(1) == rows[:, 2]
    assert told.mean() >= unnamed.mean()
    assert not torch.equal(again.places, kept.places), "or the test would prove nothing"


def test_actions_are_kept_with_the_images_they_were_learnt_of() -> None:
    """An average over all updates would mix in autoencoders of before."""
    options = TRAINING | {"weight_averaging": 100}
    model = fit(build(), DATA, **options)
    plain = fit(build(), DATA, **TRAINING)
    for own, kept in zip(plain.mcq_vae.parameters(), model.mcq_vae.parameters(), strict=True):
        torch.testing.assert_close(own, kept, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("factors", [("colour", "size"), ("size",)])
def test_actions_of_other_names_or_in_another_order_are_refused(factors: Any) -> None:
    others = DATA.with_transitions(factors=factors)
    with pytest.raises(
        UsageError, match=r"\+size -size \+colour -colour, but those of the data set are .*for_data"
    ):
        fit(build(), others, **TRAINING)


@pytest.mark.parametrize(("from_step", "told"), [(8, False), (9, True)])
def test_a_training_that_ends_before_rows_of_actions_says_so(
    from_step: int, told: bool, capsys: Any
) -> None:
    fit(build(rollout=Rollout(length=2, from_step=from_step)), DATA, **TRAINING)
    warning = f"training.steps=9 is not more than model.rollout.from_step={from_step}"
    assert (warning in capsys.readouterr().err) == told


def test_a_training_that_ends_before_actions_are_learnt_says_so(capsys: Any) -> None:
    for steps in (PRETRAINING, PRETRAINING + 1):
        fit(build(), DATA, **TRAINING | {"steps": steps})
        told = "training.steps=4 is not more than model.pretrain_steps=4" in capsys.readouterr().err
        assert told == (steps == PRETRAINING)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "joint": True,
            "autoencoder": QuantizerOptions(
                codebook_size=8, code_dim=4, channels=8, codebook_update="ema"
            ),
        },
        {"rollout": Rollout(length=3, from_step=5), "readout": "expectation"},
        {"rollout": Rollout(length=2), "joint": True},
    ],
    ids=str,
)
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
