"""A training that begins with the weights of a finished one."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from disentwine.errors import Interrupted, UsageError
from disentwine.models import VAE, BetaVAE, FactorVAE, LadderVAE
from disentwine.runs.checkpoint import checkpoint_path, load_checkpoint
from disentwine.runs.fit import fit
from disentwine.runs.init_weights import reset_inactive
from disentwine.runs.run import load_run
from disentwine.testing import small_grid


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, train: Any) -> Path:
    out = tmp_path_factory.mktemp("finished") / "run"
    train(out, weight_averaging=4)
    return out


@pytest.mark.parametrize("averaged", [None, 4])
def test_it_begins_with_what_the_other_kept(
    averaged: int | None, tmp_path: Path, train: Any, finished: Path
) -> None:
    begun: dict[int, Any] = {}

    def on_save(model: Any, step: int) -> None:
        begun.setdefault(step, {n: value.clone() for n, value in model.state_dict().items()})

    train(tmp_path / "run", init_from=finished, weight_averaging=averaged, on_save=on_save)
    for name, value in load_run(finished).checkpoint.weights.items():
        assert torch.equal(begun[0][name], value)
    assert load_run(tmp_path / "run").recipe.training["init_from"] == str(finished)


def test_it_is_resumed_where_it_was_even_if_the_other_is_gone(
    tmp_path: Path, train: Any, finished: Path, after_update: Any, fingerprint: Any
) -> None:
    whole = shutil.copytree(finished, tmp_path / "start")
    train(tmp_path / "whole", init_from=whole)
    after_update({6: lambda: os.kill(os.getpid(), signal.SIGTERM)})
    with pytest.raises(Interrupted):
        train(tmp_path / "stopped", init_from=whole)
    shutil.rmtree(whole)
    train(tmp_path / "stopped", init_from=whole)
    assert fingerprint(tmp_path / "stopped") == fingerprint(tmp_path / "whole")


def test_a_start_that_is_not_finished_or_does_not_fit_is_told(
    tmp_path: Path, train: Any, pictures: Any, finished: Path, stopped: Path
) -> None:
    for start, said in ((stopped, "not finished"), (tmp_path, "not a run folder")):
        with pytest.raises(UsageError, match=said):
            train(tmp_path / "run", init_from=start)
    other = VAE.for_data(pictures, latent=3)
    with pytest.raises(UsageError, match=r"training\.init_from: .*, got a VAE$"):
        train(tmp_path / "run", init_from=other)
    with pytest.raises(UsageError, match=r"both are vae, but model\.latent was 2, is 3 "):
        train(tmp_path / "run", model=other, init_from=finished)
    related = BetaVAE.for_data(pictures, latent=3, start_beta=9.0, warm_up_steps=3)
    with pytest.raises(UsageError, match=r"this is a beta-vae; model\.latent was 2, is 3 \("):
        train(tmp_path / "run", model=related, init_from=finished)
    deeper = LadderVAE.for_data(pictures, layers=(4, 2), hidden=(8, 8))
    with pytest.raises(UsageError, match="it holds a vae, this is a ladder-vae") as caught:
        train(tmp_path / "run", model=deeper, init_from=finished)
    assert re.search(r"; and \d+ more\)", str(caught.value))
    assert len(str(caught.value)) < 500 + len(str(finished))
    assert not (tmp_path / "run").exists()


def test_nothing_but_the_weights_is_taken_over(tmp_path: Path, train: Any, finished: Path) -> None:
    train(tmp_path / "run", init_from=finished, save_every=1)
    kept = load_checkpoint(checkpoint_path(tmp_path / "run" / "checkpoints", 13))
    assert kept.step == 13
    assert {int(v) for n, v in kept.training.items() if n.endswith(".step")} == {13}


@pytest.fixture(scope="session")
def speaking(tmp_path_factory: pytest.TempPathFactory, train: Any, build: Any) -> Any:
    """Finished runs of two units, each of which varies so much more than at first."""

    def speaking(*louder: float) -> Path:
        out = tmp_path_factory.mktemp("speaking") / "run"
        model = build()
        with torch.no_grad():
            model.encoder[-1].weight[:2] *= torch.tensor(louder)[:, None]
        train(out, model=model, learning_rate=1e-12)
        return out

    return speaking


def test_units_that_a_start_does_not_use_are_made_anew(
    tmp_path: Path, train: Any, pictures: Any, speaking: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    start = speaking(100.0, 0.0)
    before = load_run(start).model.represent(pictures.images)
    train(
        tmp_path / "run",
        init_from=start,
        reset_inactive_latents=True,
        learning_rate=1e-12,
        progress=None,
    )
    assert "inactive latents re-initialised: 1\n" in capsys.readouterr().err
    after = load_run(tmp_path / "run").model.represent(pictures.images)
    assert before.var(0)[0] > 0.01 > 1e-6 > before.var(0)[1]
    assert after.var(0)[1] == pytest.approx(1, rel=0.5)
    assert after[:, 0] == pytest.approx(before[:, 0], abs=1e-5)


@pytest.mark.parametrize(
    ("reset_inactive_latents", "units"), [(1, "0"), (2, "0, 1"), (9, "0, 1"), (True, "0, 1")]
)
def test_so_many_are_made_anew_as_asked_for(
    tmp_path: Path,
    train: Any,
    speaking: Any,
    capsys: pytest.CaptureFixture[str],
    reset_inactive_latents: bool | int,
    units: str,
) -> None:
    start = speaking(0.0, 0.0)
    train(
        tmp_path / "run",
        init_from=start,
        reset_inactive_latents=reset_inactive_latents,
        learning_rate=1e-12,
        progress=None,
    )
    assert f"inactive latents re-initialised: {units}\n" in capsys.readouterr().err
    kept = load_run(tmp_path / "run").recipe.training["reset_inactive_latents"]
    assert (type(kept), kept) == (type(reset_inactive_latents), reset_inactive_latents)


def test_they_are_made_anew_once_however_often_it_is_resumed(
    tmp_path: Path, train: Any, speaking: Any, after_update: Any, fingerprint: Any
) -> None:
    start = speaking(100.0, 0.0)
    train(tmp_path / "whole", init_from=start, reset_inactive_latents=True)
    after_update({6: lambda: os.kill(os.getpid(), signal.SIGTERM)})
    with pytest.raises(Interrupted):
        train(tmp_path / "stopped", init_from=start, reset_inactive_latents=True)
    train(tmp_path / "stopped", init_from=start, reset_inactive_latents=True)
    assert fingerprint(tmp_path / "stopped") == fingerprint(tmp_path / "whole")


def test_what_cannot_be_revived_is_told(
    tmp_path: Path, train: Any, pictures: Any, speaking: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        UsageError, match=r"training\.reset_inactive_latents: needs training\.init_from"
    ):
        train(tmp_path / "run", reset_inactive_latents=True)
    start = speaking(100.0, 100.0)
    deeper = LadderVAE.for_data(pictures, layers=(4, 2), hidden=(8, 8))
    with pytest.raises(UsageError, match="a LadderVAE has no latents that can be re-initialised"):
        train(tmp_path / "run", model=deeper, init_from=start, reset_inactive_latents=True)
    assert not (tmp_path / "run").exists()
    train(tmp_path / "run", init_from=start, reset_inactive_latents=True)
    assert "all latents of the run are active" in capsys.readouterr().err


def test_what_no_weight_depends_on_is_not_called_the_reason(tmp_path: Path) -> None:
    made, wanted = (small_grid((size, size, 1)) for size in (16, 32))
    options: Any = {"steps": 2, "threads": 1, "batch_size": 4, "progress": False}
    fit(FactorVAE.for_data(made, gamma=35.0), made, out=tmp_path / "start", **options)
    model = FactorVAE.for_data(wanted, gamma=10.0, discriminator_learning_rate=1e-5)
    with pytest.raises(UsageError, match="of other images") as refused:
        fit(model, wanted, init_from=tmp_path / "start", **options)
    assert "gamma" not in str(refused.value)
    assert "learning_rate" not in str(refused.value)


def test_what_the_model_refuses_is_told_with_the_option(
    pictures: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise UsageError("all images are alike")

    monkeypatch.setattr(VAE, "reset_inactive_latents", refuse)
    with pytest.raises(
        UsageError, match=r"^training\.reset_inactive_latents: all images are alike; "
    ):
        reset_inactive(build(), pictures, seed=0)
