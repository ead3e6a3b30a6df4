"""The report of a hierarchy: what each layer carries, and traversals of every layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from disentwine import figures
from disentwine.core.score import Score
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.evaluation.evaluate import Evaluation, evaluate
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models import VAE, LadderVAE
from disentwine.nn.images import to_unit_range
from disentwine.report.context import ReportContext
from disentwine.report.sections import latents as unit_sections
from disentwine.report.sections.latents import knowledge, layers, traversals
from disentwine.runs.fit import fit
from disentwine.runs.run import load_run


@pytest.fixture(scope="module")
def pictures() -> Arrays:
    rng = np.random.default_rng(0)
    return Arrays(images=rng.integers(0, 256, (40, 16, 16, 1), dtype=np.uint8))


@pytest.fixture(scope="module")
def subject(pictures: Arrays, tmp_path_factory: pytest.TempPathFactory) -> ReportContext:
    out = tmp_path_factory.mktemp("runs") / "ladder"
    model = LadderVAE.for_data(pictures, layers=(4, 2), hidden=(16, 8))
    fit(model, pictures, steps=1, batch_size=8, device="cpu", threads=1, out=out)
    run = load_run(out)
    return ReportContext(run, pictures, evaluate(run.model, pictures, "none"))


def with_activity(subject: ReportContext, kl: list[float], active: list[bool]) -> ReportContext:
    found = subject.found
    scores = [Score("active-units", float(sum(active)), n=1, details={"active": active})]
    changed = Evaluation(found.split, found.indices, scores, found.latents, np.array(kl))
    return ReportContext(subject.run, subject.dataset, changed)


def test_every_unit_has_a_divergence_and_every_layer_is_shown(subject: ReportContext) -> None:
    assert subject.found.latent_kl is not None
    assert subject.found.latent_kl.shape == (6,)
    section = layers(subject)
    assert section is not None
    assert section.picture is not None


def test_sums_of_layers_are_the_terms_of_the_loss(subject: ReportContext) -> None:
    kl, model = subject.found.latent_kl, subject.model
    assert isinstance(model, LadderVAE)
    assert kl is not None
    for i in (1, 2):
        term = subject.found.score(f"kl_{i}")
        assert term is not None
        assert kl[np.array(model.unit_layers) == i].sum() == pytest.approx(term.value, rel=1e-4)
    again = evaluate(model, subject.dataset, "none").latent_kl
    assert again is not None
    assert again.tolist() == kl.tolist()
    # Along means, where divergences were once taken, they are others.
    x = to_unit_range(torch.from_numpy(subject.dataset.images[subject.found.indices]))
    with torch.no_grad():
        q = model.posterior(x)
    along_means = kl_to_standard_normal(q.mean, q.log_variance).mean(0).numpy()
    assert not np.allclose(along_means, kl, rtol=1e-3)


def test_a_hierarchy_s_units_are_counted_as_its_picture_counts_them(subject: ReportContext) -> None:
    score, kl = subject.found.score("active-units"), subject.found.latent_kl
    assert score is not None
    assert kl is not None
    assert score.details["active"] == (kl > 0.01).tolist()
    assert score.value == (kl > 0.01).sum()
    assert "nats" in score.details["about"]


def test_every_layer_has_its_share_from_the_top_down(subject: ReportContext) -> None:
    kl, active = [5.0, 4.0, 3.0, 0.0, 0.1, 0.2], [True] * 3 + [False] + [True] * 2
    changed = with_activity(subject, kl, active)
    assert changed.most_informative == [0, 1, 2, 5, 4]
    assert changed.shown(12) == [5, 4, 0, 1, 2]
    assert changed.shown(3) == [5, 4, 0]
    assert changed.latent_name(4) == "layer 2, z4"
    section = traversals(changed)
    assert section is not None
    assert "2 of 2 in layer 2, 3 of 3 in layer 1" in section.text
    assert "busiest units come first" not in section.text


def test_what_units_know_is_shown_of_those_that_carry_most(
    subject: ReportContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    kl, active = [0.1, 4.0, 3.0, 0.0, 0.0, 0.2], [True] * 3 + [False] * 2 + [True]
    changed = with_activity(subject, kl, active)
    matrix = np.arange(6.0)[:, None] / 10
    knows = Score("mig", 0.5, n=9, details={"matrix": matrix, "factors": ["digit"]})
    changed.found.scores.append(knows)
    drawn = []
    real = figures.score_matrix
    monkeypatch.setattr(
        figures, "score_matrix", lambda m, **k: drawn.append((m, k)) or real(m, **k)
    )
    monkeypatch.setattr(unit_sections, "MOST_KNOWING", 3)
    section = knowledge(changed)
    assert section is not None
    assert "1 of 1 in layer 2, 2 of 3 in layer 1" in section.text
    [(shown, names)] = drawn
    assert shown[:, 0].tolist() == [0.5, 0.1, 0.2]
    assert names["rows"] == ["layer 2, z5", "layer 1, z1", "layer 1, z2"]
    nothing = with_activity(subject, kl, [False] * 6)
    nothing.found.scores.append(knows)
    assert knowledge(nothing) is None


def test_models_without_layers_have_no_such_section(
    subject: ReportContext, pictures: Arrays, tmp_path: Path
) -> None:
    fit(VAE.for_data(pictures, latent=3), pictures, steps=1, device="cpu", out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    plain = ReportContext(run, pictures, evaluate(run.model, pictures, "none"))
    assert layers(plain) is None
    assert plain.latent_name(2) == "z2"
    found = with_activity(plain, [0.5, 2.0, 1.0], [True, True, False])
    assert found.most_informative == [1, 0]


def test_a_hierarchy_without_units_is_refused() -> None:
    for nothing in ([], [[]]):
        with pytest.raises(UsageError, match="at least one"):
            figures.layer_activity(nothing)
