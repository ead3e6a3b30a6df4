"""Runs that are opened: data sets are shared and let go, and what is missing is told with its reason."""

import gc
import json
import shutil
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

from disentwine import VAE, data, fit
from disentwine.core.model import Batch, Losses, Model
from disentwine.models import VQVAE
from disentwine.runs.run import Run
from disentwine.serve import explore
from disentwine.serve.app import create_app
from disentwine.serve.loaded_run import LoadedRun
from disentwine.serve.run_registry import DatasetCache, ServedRun


def test_data_sets_are_shared_and_go_with_the_last_run(runs: Path) -> None:
    datasets = DatasetCache()
    entries = [ServedRun(runs / name, datasets) for name in ("causal", "plain")]
    shared = {id(served.load().dataset) for served in entries}
    assert len(shared) == 1
    dataset = weakref.ref(entries[0].load().dataset)
    del entries[0]
    gc.collect()
    assert dataset() is not None
    entries.clear()
    gc.collect()
    assert dataset() is None


def test_more_data_sets_than_a_few_are_still_shared(runs: Path, tmp_path: Path) -> None:
    datasets, held = DatasetCache(), []
    for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
        path = tmp_path / str(share)
        shutil.copytree(runs / "plain", path)
        recipe = (path / "recipe.yaml").read_text()
        (path / "recipe.yaml").write_text(recipe.replace("data:", f"data:\n  labelled: {share}"))
        held.append(datasets.find(Run(path)))
    assert len(set(map(id, held))) == 6
    assert datasets.find(Run(tmp_path / "0.1")) is held[0]


def test_why_data_are_missing_is_told_once_on_the_terminal_and_in_the_answer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos of ann"
    photos.mkdir()
    for i in range(20):
        Image.fromarray(np.full((32, 32, 3), 10 * i, np.uint8)).save(photos / f"{i}.png")
    own = data.Folder(path=str(photos), size=32, table="")
    options: dict[str, Any] = {"steps": 1, "batch_size": 4, "threads": 1, "progress": False}
    fit(VAE.for_data(own, latent=2), own, out=tmp_path / "run", **options)
    shutil.rmtree(photos)
    capfd.readouterr()
    with TestClient(create_app([tmp_path / "run"]), base_url="http://127.0.0.1") as client:
        where = f"/api/runs/{client.get('/api/runs').json()[0]['id']}"
        refused = [client.get(f"{where}/images/t-{i}") for i in range(2)]
        details = client.get(where).json()
    assert all(answer.status_code == 404 for answer in refused)
    assert "there is no such folder" in refused[0].json()["detail"]
    assert "upload an image" in refused[0].json()["detail"]
    assert details["examples"] == 0
    assert details["unavailable"].startswith("photos of ann: there is no such folder")
    assert "path: photos of ann" in details["recipe"]
    assert str(tmp_path) not in json.dumps([details, refused[0].json()])
    said = capfd.readouterr().err
    assert said.count("there is no such folder") == 1
    assert "warning: run" in said


def test_a_run_that_cannot_be_read_leaves_the_others_in_the_list(
    runs: Path, tmp_path: Path
) -> None:
    for name in ("damaged", "whole"):
        shutil.copytree(runs / "plain", tmp_path / name)
    (tmp_path / "damaged" / "status.json").unlink()
    (tmp_path / "damaged" / "status.json").mkdir()
    app = create_app([tmp_path / "damaged", tmp_path / "whole"])
    with TestClient(app, base_url="http://127.0.0.1") as client:
        listed = client.get("/api/runs")
    assert listed.status_code == 200
    assert [(run["name"], run["finished"]) for run in listed.json()] == [
        ("damaged", False),
        ("whole", True),
    ]


def test_a_run_that_is_trained_anew_in_its_folder_is_served_anew(tmp_path: Path) -> None:
    pendulum = data.Pendulum(size=32)
    options: dict[str, Any] = {"steps": 1, "batch_size": 4, "threads": 1, "progress": False}
    fit(VAE.for_data(pendulum, latent=3), pendulum, out=tmp_path / "run", **options)
    served = ServedRun(tmp_path / "run", DatasetCache())
    before = served.load()
    assert not served.stale
    shutil.rmtree(tmp_path / "run")
    assert not served.stale
    assert served.load() is before, "what is gone is served as long as nothing else is there"
    quantized = VQVAE.for_data(pendulum, codebook_size=8, channels=8)
    fit(quantized, pendulum, out=tmp_path / "run", **options)
    assert served.summary().model == "vq-vae"
    assert "quantizes" in served.summary().capabilities
    assert served.stale
    assert isinstance(served.load().model, VQVAE)
    assert not served.stale


def test_a_run_that_comes_while_another_is_read_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pendulum = data.Pendulum(size=32)
    options: dict[str, Any] = {"steps": 1, "batch_size": 4, "threads": 1, "progress": False}
    for name in ("run", "next"):
        fit(VAE.for_data(pendulum, latent=len(name)), pendulum, out=tmp_path / name, **options)
    served = ServedRun(tmp_path / "run", DatasetCache())
    find = DatasetCache.find

    def replaced_meanwhile(datasets: DatasetCache, run: Run) -> Any:
        monkeypatch.undo()
        shutil.rmtree(tmp_path / "run")
        (tmp_path / "next").rename(tmp_path / "run")
        assert served.stale
        return find(datasets, run)

    monkeypatch.setattr(DatasetCache, "find", replaced_meanwhile)
    assert served.load().latent_count == len("run")
    assert served.stale
    assert served.load().latent_count == len("next")


def test_weights_in_memory_outlive_the_folder_of_an_unfinished_run(tmp_path: Path) -> None:
    pendulum = data.Pendulum(size=32)
    options: dict[str, Any] = {"batch_size": 4, "threads": 1, "progress": False}
    fit(VAE.for_data(pendulum, latent=2), pendulum, out=tmp_path / "run", steps=1, **options)
    (tmp_path / "run" / "status.json").unlink()
    served = ServedRun(tmp_path / "run", DatasetCache())
    before = served.load()
    shutil.rmtree(tmp_path / "run")
    assert served.load() is before


def test_a_run_whose_folder_is_gone_says_so_and_not_where_it_was(
    runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs / "plain", tmp_path / "run")
    with TestClient(create_app([tmp_path / "run"]), base_url="http://127.0.0.1") as client:
        where = f"/api/runs/{client.get('/api/runs').json()[0]['id']}"
        (tmp_path / "run" / "recipe.yaml").rename(tmp_path / "recipe.yaml")
        unlike = client.get(f"{where}/training")
        shutil.rmtree(tmp_path / "run")
        gone = [client.get(f"{where}{route}") for route in ("", "/training")]
    assert unlike.status_code == 400
    assert unlike.json()["detail"].startswith("run is not a run folder")
    for answer in gone:
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith("run: its folder is gone")


class Dice(Model):
    """Draws grey squares, and waits before it does for what another thread might do."""

    image_shape = (4, 4, 1)

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.begun, self.disturbed = threading.Event(), threading.Event()

    def loss(self, batch: Batch) -> Losses:
        return Losses({"nothing": self.weight.sum()})

    def represent(self, x: Any) -> Any:
        return x

    def reconstruct(self, x: Any) -> Any:
        return x

    def sample(self, n: int) -> Any:
        self.begun.set()
        self.disturbed.wait(timeout=1)
        return torch.rand(n, 1, 1, 1).expand(n, 1, 4, 4)


def test_a_seed_draws_the_same_while_another_thread_opens_a_run(runs: Path) -> None:
    dice = Dice()
    loaded_run = LoadedRun(dice, None, 1)
    expected = explore.sample(loaded_run, 8, {}, seed=3)
    for work in (lambda served: served.load(), lambda served: served.summary()):
        dice.begun.clear()
        dice.disturbed.clear()

        def open_another(work: Any = work) -> None:
            dice.begun.wait(timeout=60)
            work(ServedRun(runs / "plain", DatasetCache()))
            dice.disturbed.set()

        other = threading.Thread(target=open_another)
        other.start()
        found = explore.sample(loaded_run, 8, {}, seed=3)
        other.join()
        assert found == expected
