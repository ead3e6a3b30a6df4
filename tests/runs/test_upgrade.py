"""Runs of format 1 are read, resumed and never rewritten."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from torch import Tensor

from disentwine.core.schema import schema_of
from disentwine.data import DATASETS
from disentwine.errors import CheckpointError, UsageError
from disentwine.evaluation.evaluate import evaluate
from disentwine.models import MODELS
from disentwine.runs.checkpoint import checkpoint_path, load_checkpoint, load_newest
from disentwine.runs.fit import train_recipe
from disentwine.runs.recipe import read_recipe, ready_recipes
from disentwine.runs.run import load_run
from disentwine.runs.upgrade import (
    FORMAT,
    LOGGED,
    RECIPE_KEYS,
    TENSORS,
    Rule,
    new_name,
    rename_all,
    renamed,
    upgrade_mapping,
    upgrade_recipe,
    upgrade_training_tensors,
)
from disentwine.serve.app import create_app

FOLDER = Path(__file__).parent / "format_1"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())["runs"]
FINISHED = [name for name in EXPECTED if name.endswith("-finished")]
UNFINISHED = [name for name in EXPECTED if name.endswith("-unfinished")]

Unpack = Callable[[str], Path]


@pytest.fixture
def unpack(tmp_path: Path) -> Unpack:
    """A copy of a run of format 1."""

    def unpack(name: str) -> Path:
        with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path / name

    return unpack


def described(tensor: Tensor) -> str:
    """Type, shape and digest, as `expected.json` has them."""
    array = tensor.detach().cpu().contiguous().numpy()
    shape = "x".join(map(str, array.shape)) or "scalar"
    return f"{array.dtype} {shape} {hashlib.sha256(array.tobytes()).hexdigest()}"


def without_digests(descriptions: dict[str, str]) -> dict[str, str]:
    return {name: text.rpartition(" ")[0] for name, text in descriptions.items()}


def contents(folder: Path) -> dict[str, str]:
    """A digest of each file."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("name", [*FINISHED, *UNFINISHED])
def test_the_weights_of_format_1_are_read_under_their_new_names(name: str, unpack: Unpack) -> None:
    out, expected = unpack(name), EXPECTED[name]
    before = contents(out)
    run = load_run(out)
    assert run.recipe.model["name"] == expected["model"]
    assert run.checkpoint.state["format"] == FORMAT
    assert run.checkpoint.step == expected["best_step"]
    found = {name: described(value) for name, value in run.model.state_dict().items()}
    assert found == rename_all(expected["weights"], TENSORS)
    assert contents(out) == before


@pytest.mark.parametrize("name", FINISHED)
def test_a_model_of_format_1_answers_as_it_did(name: str, unpack: Unpack) -> None:
    expected, run = EXPECTED[name], load_run(unpack(name))
    assert run.finished
    images = run.dataset.images[run.dataset.split["test"][:4]]
    x = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    codes, decoded = run.model.represent(x), run.model.reconstruct(x)
    some = {"represent": codes[:, :3], "reconstruct": decoded[:, 0, ::13, 16]}
    for method, values in some.items():
        np.testing.assert_allclose(values, expected[method]["some"], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["vae-finished", "causal-vae-finished"])
def test_a_run_of_format_1_is_evaluated(name: str, unpack: Unpack) -> None:
    run = load_run(unpack(name))
    scores = evaluate(run.model, run.dataset, "none").scores
    assert len(scores) > 1
    assert all(np.isfinite(score.value) for score in scores)


@pytest.mark.parametrize(
    ("name", "view", "question"),
    [
        ("causal-vae-finished", "do", {"do": {"light_angle": 80.0}}),
        ("causal-vae-layered-finished", "do", {"do": {"light_angle": 80.0}}),
        ("vae-finished", "traverse", {"latents": {"0": 1.0}}),
        ("ct-vae-finished", "apply", {"actions": ["+x"]}),
    ],
)
def test_a_run_of_format_1_is_served(
    name: str, view: str, question: dict[str, Any], unpack: Unpack
) -> None:
    out = unpack(name)
    with TestClient(create_app([out]), base_url="http://127.0.0.1") as client:
        address = f"/api/runs/{client.get('/api/runs').json()[0]['id']}"
        details = client.get(address)
        assert details.status_code == 200, details.text
        answer = client.post(f"{address}/{view}", json={"image": "t-0", **question})
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", UNFINISHED)
def test_an_unfinished_run_of_format_1_is_resumed(name: str, unpack: Unpack) -> None:
    out, expected = unpack(name), EXPECTED[name]["resumed"]
    before = contents(out)
    run = train_recipe(load_run(out).recipe, out, progress=False)
    assert run.finished
    newest = load_checkpoint(out / "checkpoints" / expected["newest"])
    assert newest.state["best"]["step"] == expected["best_step"]
    state = json.loads((out / "checkpoints" / expected["newest"] / "state.json").read_bytes())
    assert state["format"] == FORMAT
    weights = {name: described(value) for name, value in newest.weights.items()}
    training = {name: described(value) for name, value in newest.training.items()}
    assert without_digests(weights) == without_digests(rename_all(expected["weights"], TENSORS))
    assert without_digests(training) == without_digests(
        upgrade_training_tensors(expected["training"])
    )
    # Digests hold on one machine only.
    sums = {name: float(value.double().sum()) for name, value in newest.weights.items()}
    for tensor, total in rename_all(expected["sums"], TENSORS).items():
        assert sums[tensor] == pytest.approx(total, rel=1e-3, abs=1e-3), tensor
    kept = {path: digest for path, digest in contents(out).items() if path in before}
    changed = {Path(path).name for path, digest in kept.items() if digest != before[path]}
    assert changed <= {"metrics.jsonl", "status.json"}
    assert (out / "recipe.yaml").as_posix() in kept
    *_, first, last = [record for record in run.metrics if record["kind"] == "validation"]
    assert set(first) == set(last)
    assert all(rename_all(record, LOGGED) == record for record in run.metrics)


def test_a_run_of_format_1_with_another_recipe_is_not_resumed(unpack: Unpack) -> None:
    out = unpack("factor-vae-unfinished")
    recipe = load_run(out).recipe
    other = replace(recipe, model={**recipe.model, "discriminator_units": 99})
    with pytest.raises(UsageError, match=r"model\.discriminator_units was 8, is 99"):
        train_recipe(other, out, progress=False)


def test_a_damaged_run_of_format_1_is_refused(unpack: Unpack) -> None:
    out = unpack("vae-unfinished")
    folder = out / "checkpoints"
    path = checkpoint_path(folder, 10) / "weights.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CheckpointError, match="damaged"):
        load_newest(folder)


def test_recipes_of_today_are_not_changed_by_the_upgrade() -> None:
    for name in ready_recipes():
        sections = asdict(read_recipe(name))
        assert upgrade_recipe(sections) == sections


def test_no_option_of_today_has_an_old_name() -> None:
    tables = {"data": DATASETS, "model": MODELS}
    for section, table in tables.items():
        for name, cls in table.items():
            options = dict.fromkeys(schema_of(cls).model_fields, 0)
            assert upgrade_mapping(options, RECIPE_KEYS[section], name=name) == options, name


def test_old_keys_move_into_groups_and_out_of_them() -> None:
    rules = [
        renamed("codes", "autoencoder.size"),
        renamed("weights.kl", "beta"),
        renamed("outcome", "readout", values={"likeliest": "argmax"}),
        Rule(("rivals",), "", of=("other",)),
        Rule(
            ("repeats", "repeats_from"),
            "rollout",
            build=lambda found: (
                {"length": found["repeats"], "from_step": found.get("repeats_from")}
                if found.get("repeats")
                else None
            ),
        ),
    ]
    old = {"codes": 8, "weights": {"kl": 2}, "outcome": "likeliest", "rivals": 3, "repeats": 5}
    new = upgrade_mapping(old, rules, name="ct-vae")
    assert new == {
        "rivals": 3,
        "autoencoder": {"size": 8},
        "beta": 2,
        "readout": "argmax",
        "rollout": {"length": 5, "from_step": None},
    }
    assert upgrade_mapping(new, rules, name="ct-vae") == new
    assert "rivals" not in upgrade_mapping(old, rules, name="other")
    assert upgrade_mapping({"repeats": None}, rules) == {"rollout": None}
    assert old["weights"] == {"kl": 2}


def test_options_of_ct_vae_move_into_groups() -> None:
    old = {
        "name": "ct-vae",
        "pretraining": 5,
        "labels": "known",
        "two_way": True,
        "rivals": 2,
        "compared": 1.0,
        "repeats": 5,
        "repeats_from": None,
        "repeats_weight": 4.0,
        "codes": 8,
        "beta": 0.5,
        "messages": "neighbours",
        "rounds": 2,
        "outcome": "likeliest",
    }
    new = {
        "name": "ct-vae",
        "pretrain_steps": 5,
        "action_labels": "known",
        "bidirectional": True,
        "contrast": {"negatives": 2, "fraction": 1.0},
        "rollout": {"length": 5, "weight": 4.0},
        "autoencoder": {"codebook_size": 8, "commitment_weight": 0.5},
        "transition": {"message_passing": "grid", "num_layers": 2},
        "readout": "argmax",
    }
    assert upgrade_recipe({"model": old}) == {"model": new}
    off = {"rivals": None, "compared": 1, "repeats": None, "repeats_from": None}
    assert upgrade_recipe({"model": {"name": "ct-vae"} | off})["model"] == {
        "name": "ct-vae",
        "contrast": None,
        "rollout": None,
    }
    some = upgrade_recipe({"model": {"name": "ct-vae", "compared": 0.5}})["model"]
    assert some["contrast"] == {"negatives": None, "fraction": 0.5}
    flat = upgrade_recipe({"model": {"name": "vq-vae", "codes": 8, "reduction": 4}})["model"]
    assert flat == {"name": "vq-vae", "codebook_size": 8, "downsampling": 4}


def test_names_of_tensors_are_upgraded_also_beside_an_average() -> None:
    names = dict.fromkeys(["weights.opponent.0.bias", "opponent_adam.0.step", "adam.0.step"], 0)
    assert list(upgrade_training_tensors(names)) == [
        "weights.discriminator.0.bias",
        "discriminator_adam.0.step",
        "adam.0.step",
    ]
    assert new_name("encoder.opponent.bias", TENSORS) == "encoder.opponent.bias"
