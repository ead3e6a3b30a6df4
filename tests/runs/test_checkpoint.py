"""One's own folder that was edited since the training: the split is another one, which is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from disentwine.core.random import fixed_noise
from disentwine.data import Folder, Pendulum
from disentwine.errors import DataError
from disentwine.models import VAE
from disentwine.runs.checkpoint import STATE, canonical_json, sha256
from disentwine.runs.fit import fit
from disentwine.runs.run import Run, load_run

Train = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "pictures"
    path.mkdir()
    rng = np.random.default_rng(0)
    for i in range(20):
        noise = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(noise).save(path / f"{i:02}.png")
    rows = [f"{i:02}.png,{i * 7 % 20}.5" for i in range(20)]
    (path / "concepts.csv").write_text("\n".join(["file,height", *rows]) + "\n")
    return path


@pytest.fixture
def train(folder: Path, tmp_path: Path) -> Train:
    def train(**options: Any) -> None:
        data = Folder(path=folder, size=16)
        with fixed_noise(0):
            model = VAE.for_data(data, latent=2, network="mlp")
        fit(
            model,
            data,
            out=tmp_path / "run",
            steps=3,
            batch_size=4,
            save_every=1,
            threads=1,
            progress=False,
            **options,
        )

    return train


@pytest.fixture
def begun(train: Train, tmp_path: Path) -> Path:
    def stop(model: Any, step: int) -> None:
        if step == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(on_save=stop)
    return tmp_path / "run"


def sort_rows(folder: Path) -> None:
    head, *rows = (folder / "concepts.csv").read_text().splitlines()
    rows.sort(key=lambda row: float(row.split(",")[1]))
    (folder / "concepts.csv").write_text("\n".join([head, *rows]) + "\n")


def remove_a_row(folder: Path) -> None:
    lines = (folder / "concepts.csv").read_text().splitlines()
    (folder / "concepts.csv").write_text("\n".join(lines[:-1]) + "\n")


def split_by_hand(folder: Path) -> None:
    head, *rows = (folder / "concepts.csv").read_text().splitlines()
    parts = ["test", "validation", *["train"] * (len(rows) - 2)]
    told = [f"{row},{part}" for row, part in zip(rows, parts, strict=True)]
    (folder / "concepts.csv").write_text("\n".join([f"{head},split", *told]) + "\n")


def forget_the_data(run: Path) -> None:
    """As checkpoints were before they knew of their data."""
    for file in run.glob(f"checkpoints/*/{STATE}"):
        state = json.loads(file.read_bytes())
        del state["digest"], state["data"]
        file.write_bytes(canonical_json({**state, "digest": sha256(canonical_json(state))}))


@pytest.mark.parametrize("edit", [sort_rows, remove_a_row, split_by_hand])
def test_a_changed_table_is_not_gone_on_with(
    edit: Callable[[Path], None], begun: Path, folder: Path, train: Train
) -> None:
    before = (folder / "concepts.csv").read_text()
    edit(folder)
    with pytest.raises(
        DataError, match=r"not those that .*step-00000001 was trained on.* restore"
    ) as e:
        train()
    assert "\n" not in str(e.value)
    (folder / "concepts.csv").write_text(before)
    train()
    assert load_run(begun).finished


def test_a_changed_table_is_told_to_whoever_looks_at_the_run(
    begun: Path, folder: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    train()
    assert len(load_run(begun).dataset) == 20
    assert capsys.readouterr().err == ""
    sort_rows(folder)
    run = load_run(begun)
    assert run.dataset is run.dataset
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "test images may be among its training images" in told


def test_runs_from_before_go_on(
    begun: Path, folder: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_the_data(begun)
    assert "data" not in Run(begun).checkpoint.state
    sort_rows(folder)
    train()
    run = Run(begun, which="last")
    assert "data" in run.checkpoint.state
    assert len(run.dataset) == 20
    assert capsys.readouterr().err == ""


def test_only_data_that_users_edit_are_checked(begun: Path) -> None:
    assert "data" in Run(begun).checkpoint.state
    assert Folder.editable
    assert not Pendulum.editable
