"""What a report says of a model with actions."""

from pathlib import Path
from typing import Any

import pytest

from disentwine import CTVAE, VAE, fit, load_run
from disentwine.evaluation.evaluate import evaluate
from disentwine.models.quantized.mcq_vae import QuantizerOptions
from disentwine.report.context import ReportContext
from disentwine.report.sections.actions import action_graphs, action_rollouts
from disentwine.testing import small_grid

DATA = small_grid((16, 16, 1))


def subject_of(kind: type, folder: Path, **options: Any) -> ReportContext:
    model = kind.for_data(DATA, **options)
    fit(model, DATA, out=folder, steps=2, batch_size=4, threads=1, progress=False)
    run = load_run(folder)
    return ReportContext(run, DATA, evaluate(run.model, DATA, "none"))


@pytest.fixture(scope="module")
def acting(tmp_path_factory: pytest.TempPathFactory) -> ReportContext:
    options = {
        "pretrain_steps": 1,
        "autoencoder": QuantizerOptions(codebook_size=8, code_dim=2, channels=8),
    }
    return subject_of(CTVAE, tmp_path_factory.mktemp("runs") / "acting", **options)


def test_what_actions_do_and_touch_is_drawn(acting: ReportContext, tmp_path: Path) -> None:
    for section, name in ((action_rollouts, "actions"), (action_graphs, "action-graphs")):
        made = section(acting)
        assert made is not None
        assert made.image is not None
        assert made.image.name == name
        assert made.image.png.startswith(b"\x89PNG")
    plain = subject_of(VAE, tmp_path / "plain", latent=2)
    assert action_rollouts(plain) is action_graphs(plain) is None


def test_scores_tell_of_rows_of_actions_and_of_which_loss(acting: ReportContext) -> None:
    assert acting.found.score("rollout-ratio") is not None
    loss = acting.found.score("loss")
    assert loss is not None
    assert loss.details["about"].endswith("minimises while it learns images")
