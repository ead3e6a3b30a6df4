"""The report of a hierarchy: what each layer carries, and traversals of every layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from disentwine import figures
from disentwine.contracts.score import Score
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.models import VAE, LadderVAE
from disentwine.report.evaluation import Evaluation, evaluate
from disentwine.report.layers import layers
from disentwine.report.sections import traversals
from disentwine.report.subject import Subject
from disentwine.training.fit import fit
from disentwine.training.run import load_run


@pytest.fixture(scope="module")
def pictures() -> Arrays:
    rng = np.random.default_rng(0)
    return Arrays(images=rng.integers(0, 256, (40, 16, 16, 1), dtype=np.uint8))


@pytest.fixture(scope="module")
def subject(pictures: Arrays, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    out = tmp_path_factory.mktemp("runs") / "ladder"
    model = LadderVAE.for_data(pictures, layers=(4, 2), hidden=(16, 8))
    fit(model, pictures, steps=1, batch_size=8, device="cpu", threads=1, out=out)
    run = load_run(out)
    return Subject(run, pictures, evaluate(run.model, pictures, "none"))


def with_activity(subject: Subject, kl: list[float], alive: list[bool]) -> Subject:
    found = subject.found
    scores = [Score("active-units", float(sum(alive)), n=1, details={"alive": alive})]
    changed = Evaluation(found.split, found.indices, scores, found.codes, np.array(kl))
    return Subject(subject.run, subject.dataset, changed)


def test_every_unit_has_a_divergence_and_every_layer_is_shown(subject: Subject) -> None:
    assert subject.found.unit_kl is not None
    assert subject.found.unit_kl.shape == (6,)
    section = layers(subject)
    assert section is not None
    assert section.picture is not None


def test_units_of_every_layer_take_turns(subject: Subject) -> None:
    kl, alive = [5.0, 4.0, 3.0, 0.0, 0.2, 0.1], [True] * 3 + [False] + [True] * 2
    changed = with_activity(subject, kl, alive)
    assert changed.busiest == [4, 0, 5, 1, 2]
    assert changed.unit_name(4) == "layer 2, z4"
    assert traversals(changed) is not None


def test_models_without_layers_have_no_such_section(
    subject: Subject, pictures: Arrays, tmp_path: Path
) -> None:
    fit(VAE.for_data(pictures, latent=3), pictures, steps=1, device="cpu", out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    plain = Subject(run, pictures, evaluate(run.model, pictures, "none"))
    assert layers(plain) is None
    assert plain.unit_name(2) == "z2"
    found = with_activity(plain, [0.5, 2.0, 1.0], [True, True, False])
    assert found.busiest == [1, 0]


def test_a_hierarchy_without_units_is_refused() -> None:
    for nothing in ([], [[]]):
        with pytest.raises(UsageError, match="at least one"):
            figures.layer_activity(nothing)
