"""Training plans: stages, and what starts again where scores are of another loss."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.core.plan import Stage
from disentwine.core.schema import schema_of
from disentwine.data.samplers.shuffled import Shuffled
from disentwine.models import MODELS, VAE
from disentwine.training.options import TrainingOptions
from disentwine.training.trainer import Trainer


class ThreeStages(VAE):
    """Scores of the first stage compare with no others."""

    def training_plan(self, dataset: Any, *, steps: int, batch_size: int) -> tuple[Stage, ...]:
        train, validation = Shuffled(dataset.split["train"]), dataset.split["validation"]
        scored = (("warm-up", 0, "a"), ("main", 4, "b"), ("fine", 7, "b"))
        return tuple(
            Stage(name, start, train, validation, scored_as) for name, start, scored_as in scored
        )


@pytest.fixture
def trainer(pictures: Any) -> Trainer:
    options = TrainingOptions(steps=10, batch_size=8, device="cpu", patience=2)
    with torch.random.fork_rng():
        return Trainer(ThreeStages.for_data(pictures, latent=2), pictures, options, seed=0)


def test_a_step_belongs_to_the_stage_of_its_last_update(trainer: Trainer) -> None:
    found = []
    for step in range(9):
        trainer.step = step
        found.append((trainer.stage.name, trainer.comparable_since, trainer.ends_stage))
    assert found[:5] == [("warm-up", 0, False)] * 4 + [("warm-up", 0, True)]
    assert found[5:] == [("main", 4, False)] * 2 + [("main", 4, True), ("fine", 4, False)]


def test_the_best_score_starts_again_with_another_loss_only(trainer: Trainer) -> None:
    best = []
    for step, score in ((0, 1.0), (2, 2.0), (4, 3.0), (5, 9.0), (7, 10.0), (8, 11.0)):
        trainer.step = step
        trainer.note_score(score)
        best.append((trainer.best or {})["step"])
        assert trainer.out_of_patience == (step == 8), "only the last stages count"
    assert best == [0, 0, 0, 5, 5, 5]


@pytest.mark.parametrize("name", MODELS)
def test_what_no_weight_depends_on_is_an_option(name: str) -> None:
    cls = MODELS[name]
    options = schema_of(cls, without=cls.fixed_by_data).model_json_schema()
    paths = set(options["properties"])
    for key, option in options["properties"].items():
        for found in re.findall(r"#/\$defs/(\w+)", json.dumps(option)):
            paths |= {f"{key}.{inner}" for inner in options["$defs"][found].get("properties", ())}
    assert set(cls.not_in_weights) <= paths


def test_shuffled_rows_may_be_a_table() -> None:
    rows = np.arange(12).reshape(6, 2)
    batch = Shuffled(rows).batch(step=0, batch_size=4, seed=0)
    assert batch.shape == (4, 2)
