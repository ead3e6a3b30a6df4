"""Recipes: every mistake in one report, every default written out, every object rebuilt."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import yaml
from PIL import Image

from disentwine.core.model import Model
from disentwine.data import DATASETS, Arrays, Flow, Folder, Pendulum, Shapes2D, transitions
from disentwine.errors import DataError, UsageError
from disentwine.models import MODELS, VAE
from disentwine.runs.fit import fit
from disentwine.runs.recipe import (
    Recipe,
    arguments_of,
    parse_recipe,
    read_recipe,
    ready_recipes,
    recipe_of,
)
from disentwine.testing import small_grid

SMALL = {"data": {"name": "pendulum", "size": 32}, "model": {"name": "vae", "latent": 2}}


def problems(content: dict[Any, Any]) -> list[str]:
    with pytest.raises(UsageError) as caught:
        parse_recipe(content, source="here.yaml")
    first, *lines = str(caught.value).splitlines()
    assert first == "here.yaml:"
    return [line.strip() for line in lines]


def test_every_mistake_is_in_one_report_with_a_suggestion() -> None:
    lines = problems(
        {
            "dta": {},
            "data": {"name": "pendulum", "sise": 32},
            "model": {"name": "vae", "latnet": 4, "warm_up_steps": "soon"},
            "training": {"step": 5, "batch_size": 0, "learning_rate": -1, "precision": "8-bit"},
            "seed": "lucky",
        }
    )
    expected = [
        ("dta: unknown section", "'data'"),
        ("data.sise: unknown key", "'size'"),
        ("model.latnet: unknown key", "'latent'"),
        ("model.warm_up_steps:", "'soon'"),
        ("training.step: unknown key", "'steps'"),
        ("training.batch_size:", "got 0"),
        ("training.learning_rate:", "got -1"),
        ("training.precision:", "'8-bit'"),
        ("seed:", "'lucky'"),
    ]
    assert len(lines) == len(expected)
    for start, part in expected:
        assert any(line.startswith(start) and part in line for line in lines), start


def test_actions_are_chosen_in_the_data_section() -> None:
    chosen = ("data.transitions.factors=[x, scale]", "data.transitions.cyclic=false")
    identity = read_recipe("ct-vae-shapes2d", chosen).non_defaults()
    assert identity["data"]["transitions"] == {"factors": ["x", "scale"], "cyclic": False}
    holding = read_recipe("ct-vae-shapes2d", (*chosen, "data.transitions.fixed=[shape]"))
    assert holding.build_dataset().action_spec.fixed == ("shape",)
    plain, recipe = read_recipe("ct-vae-shapes2d"), read_recipe("ct-vae-shapes2d", chosen)
    assert "transitions" not in plain.data, "or runs of earlier recipes would not be found again"
    usual = ("data.transitions.cyclic=true",)
    assert read_recipe("ct-vae-shapes2d", usual).to_yaml() == plain.to_yaml()
    dataset = recipe.build_dataset()
    steps = transitions(dataset)
    assert steps.actions == ("+x", "-x", "+scale", "-scale")
    model: Any = recipe.build_model(dataset)
    assert model.actions == steps.actions
    again = recipe_of(model, dataset, training=recipe.training, seed=recipe.seed)
    assert again.to_yaml() == recipe.to_yaml()
    lines = problems(SMALL | {"data": {"name": "shapes2d", "transitions": {"factor": ["x"]}}})
    assert lines == ["data.transitions.factor: unknown key. Did you mean 'factors'?"]
    lines = problems(SMALL | {"data": {"name": "shapes2d", "transitions": "x"}})
    assert lines == ["data.transitions: expected a list of key: value pairs"]
    lines = problems(SMALL | {"data": {"name": "shapes2d", "transition": {"factors": ["x"]}}})
    assert lines == ["data.transition: unknown key. Did you mean 'transitions'?"]
    with pytest.raises(UsageError, match="Did you mean 'scale'"):
        read_recipe("ct-vae-shapes2d", ("data.transitions.factors=[scales]",)).build_dataset()


@pytest.mark.parametrize(
    ("change", "start"),
    [
        ({"data": None}, "data.name: missing"),
        ({"data": 5}, "data.name: missing"),
        ({"data": {"size": 32}}, "data.name: missing"),
        ({"data": {"name": "pendulam"}}, "data.name: unknown name 'pendulam'. Did you mean"),
        ({"data": {"name": ["pendulum"]}}, "data.name: unknown name"),
        ({"data": {"name": {}}}, "data.name: unknown name"),
        ({"data": {"name": None}}, "data.name: unknown name"),
        ({"model": "vea"}, "model.name: unknown name 'vea'. Did you mean 'vae'?"),
        ({"model": {"name": "vae", "image_shape": [8, 8, 1]}}, "model.image_shape: unknown key"),
        ({"model": {"name": "vae", 5: 6}}, "model: keys must be text"),
        ({"model": {"name": "vae", "latent": 2.5}}, "model.latent:"),
        ({"model": {"name": "vae", "latent": []}}, "model.latent:"),
        ({"model": {"name": "vae", "network": "deep"}}, "model.network:"),
        ({"model": {"name": "beta-vae", "beta": float("nan")}}, "model.beta:"),
        ({"model": {"name": "beta-vae", "beta": float("inf")}}, "model.beta:"),
        ({"training": 5}, "training: expected"),
        ({"training": {"steps": 0}}, "training.steps:"),
        ({"training": {"steps": None}}, "training.steps:"),
        ({"training": {"out": "/etc"}}, "training.out: unknown key"),
        ({"training": {"seed": 1}}, "training.seed: unknown key"),
        ({"training": {"clip_norm": 0}}, "training.clip_norm:"),
        ({"training": {"threads": -1}}, "training.threads:"),
        ({"seed": -1}, "seed:"),
        ({"seed": 1.5}, "seed:"),
        ({"seed": True}, "seed:"),
        ({"seed": None}, "seed:"),
        ({"seed": 2**64}, "seed:"),
        ({7: 8}, "7: unknown section"),
    ],
)
def test_one_mistake_is_one_line(change: dict[Any, Any], start: str) -> None:
    (line,) = problems(SMALL | change)
    assert line.startswith(start)


def test_every_default_is_written_out() -> None:
    recipe = parse_recipe({"data": "pendulum", "model": "vae"}, source="here")
    assert recipe.data == {"name": "pendulum", "size": 96, "seed": 0, "pixel_snapping": False}
    assert set(recipe.model) == {"name", *inspect.signature(VAE).parameters} - {"image_shape"}
    assert recipe.training["steps"] == 3000
    assert recipe.seed == 0


@pytest.mark.parametrize("text", ["", "[]", "5", "just text", "- data"])
def test_a_file_that_is_no_recipe(text: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"r\.yaml: a recipe is a list of sections"):
        read_recipe(tmp_path / "r.yaml")


@pytest.mark.parametrize(
    "content",
    [b"a: [", b"\xff\xfe\x00", b"a: \x00", b"a: *missing", b"\tb", b"[" * 20000, b"d: 2024-99-99"],
    ids=lambda content: repr(content[:12]),
)
def test_a_file_that_is_no_yaml(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_bytes(content)
    with pytest.raises(UsageError, match=r"r\.yaml"):
        read_recipe(tmp_path / "r.yaml")


def test_a_recipe_that_is_not_there_suggests_a_ready_one() -> None:
    with pytest.raises(UsageError, match="Did you mean 'demo'"):
        read_recipe("demmo")


@pytest.mark.parametrize("name", ready_recipes())
def test_the_ready_recipes_are_valid(name: str) -> None:
    recipe = read_recipe(name)
    assert parse_recipe(yaml.safe_load(recipe.to_yaml()), source=name) == recipe


def test_overrides(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("data: pendulum\nmodel: {name: vae, latent: 3}\n")
    words = ["data.size=32", "model.latent=5", "training.steps=7", "training.clip_norm=null"]
    recipe = read_recipe(tmp_path / "r.yaml", [*words, "seed=3", "training.learning_rate=1e-2"])
    assert recipe.data["size"] == 32
    assert recipe.model["latent"] == 5
    assert recipe.training["steps"] == 7
    assert recipe.training["clip_norm"] is None
    assert recipe.training["learning_rate"] == 0.01
    assert recipe.seed == 3
    assert read_recipe(tmp_path / "r.yaml", ["data=flow"]).data["name"] == "flow"
    assert (
        read_recipe(tmp_path / "r.yaml", ["model.name=beta-vae", "model.beta=2"]).model["beta"] == 2
    )


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("steps", "not of the form key=value"),
        ("=5", "not of the form key=value"),
        ("training.steps=[", "not valid YAML"),
        ("training.steps.more=5", "training.steps"),
        ("seed.more=5", "single value"),
        ("training.stps=5", "Did you mean 'steps'"),
        ("trainig.steps=5", "Did you mean 'training'"),
        (".=5", "unknown section"),
        ("model..=5", "model"),
    ],
)
def test_a_wrong_override(word: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("data: pendulum\nmodel: vae\ntraining: {steps: 5}\nseed: 1\n")
    with pytest.raises(UsageError, match=reason):
        read_recipe(tmp_path / "r.yaml", [word])


def buildable(tmp_path: Path) -> list[Any]:
    names = []
    for i in range(12):
        picture = np.full((16, 16, 3), i, np.uint8)
        Image.fromarray(picture).save(tmp_path / f"{i}.png")
        names.append(f"{i}.png,{i}")
    (tmp_path / "labels.csv").write_text("\n".join(["file,size", *names]) + "\n")
    return [
        Pendulum(size=32, seed=3),
        Flow(size=32),
        Shapes2D(),
        Folder(path=str(tmp_path), table="labels.csv"),
    ]


def options_of(cls: type[Model]) -> list[dict[str, Any]]:
    """The defaults, and each choice that a constructor's literal types leave."""
    hints = {k: v.annotation for k, v in inspect.signature(cls, eval_str=True).parameters.items()}
    choices = [
        {name: choice}
        for name, hint in hints.items()
        if getattr(hint, "__origin__", None) is Literal
        for choice in hint.__args__
    ]
    return [{}, *choices]


def round_trip(recipe: Recipe) -> Recipe:
    return parse_recipe(yaml.safe_load(recipe.to_yaml()), source="round trip")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_rebuilt_from_its_recipe(name: str, pictures: Arrays) -> None:
    acts = "actions" in MODELS[name].fixed_by_data
    dataset = small_grid((16, 16, 1)) if acts else pictures
    for options in options_of(MODELS[name]):
        model = MODELS[name].for_data(dataset, **options)
        recipe = recipe_of(model, dataset, training={}, seed=1)
        assert recipe.model["name"] == name
        assert round_trip(recipe).model == recipe.model
        twin = round_trip(recipe).build_model(json.loads(json.dumps(model.fixed_arguments())))
        for argument in inspect.signature(MODELS[name]).parameters:
            assert getattr(twin, argument) == getattr(model, argument)
            assert type(getattr(twin, argument)) is type(getattr(model, argument))


def test_a_data_set_is_rebuilt_from_its_recipe(tmp_path: Path, build: Any) -> None:
    for dataset in buildable(tmp_path):
        recipe = recipe_of(build(), dataset, training={"steps": 4}, seed=2)
        assert DATASETS[recipe.data["name"]] is type(dataset)
        again = round_trip(recipe)
        assert again.data == recipe.data
        assert again.training["steps"] == 4
        twin = again.build_dataset()
        assert twin.names == dataset.names
        assert np.array_equal(twin.images[:3], dataset.images[:3])
        assert all(np.array_equal(twin.split[k], dataset.split[k]) for k in dataset.split)


def test_arrays_in_memory_cannot_be_rebuilt(pictures: Arrays, build: Any) -> None:
    recipe = recipe_of(build(), pictures, training={}, seed=0)
    with pytest.raises(UsageError, match="arrays in memory"):
        round_trip(recipe).build_dataset()


def test_a_model_without_a_name_is_told_how_to_get_one(pictures: Arrays, tmp_path: Path) -> None:
    class Mine(VAE):
        pass

    with pytest.raises(UsageError, match=r'MODELS\["my-name"\] = Mine'):
        fit(Mine.for_data(pictures), pictures, out=tmp_path / "run", steps=1)
    assert not (tmp_path / "run").exists()


def test_a_model_with_arguments_out_of_range_has_no_recipe(pictures: Arrays, build: Any) -> None:
    model = build()
    model.warm_up_steps = -1
    with pytest.raises(UsageError, match=r"VAE\.warm_up_steps: .* got -1"):
        recipe_of(model, pictures, training={}, seed=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"clip_norm": -1.0},
        {"log_every": 0},
        {"save_every": 0},
        {"patience": 0},
        {"precision": "8-bit"},
        {"device": "abacus"},
        {"threads": 0},
        {"seed": -1},
        {"seed": 2**64},
    ],
    ids=str,
)
def test_fit_refuses_what_a_recipe_refuses(
    wrong: dict[str, Any], tmp_path: Path, train: Any
) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=name):
        train(tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_numbers_of_numpy_are_numbers(tmp_path: Path, train: Any) -> None:
    train(tmp_path / "run", steps=np.int64(3), learning_rate=np.float64(1e-3))
    recipe = yaml.safe_load((tmp_path / "run" / "recipe.yaml").read_text())
    assert recipe["training"]["steps"] == 3


def test_an_empty_split_is_told(build: Any, pictures: Arrays) -> None:
    images = np.zeros((10, 16, 16, 1), np.uint8)
    with pytest.raises(DataError, match="the validation split is empty"):
        fit(build(), Arrays(images=images, validation=0.0), steps=1)


def test_only_what_differs_from_the_defaults_identifies_a_recipe() -> None:
    """Studies find their records by it: an option that is added later must leave it as it is."""
    written = SMALL | {
        "model": {"name": "ct-vae", "contrast": {"negatives": 2}, "weights": {"kl": 0.5}}
    }
    recipe = parse_recipe(written, source="here.yaml")
    assert recipe.model.keys() > {"name", "contrast", "weights", "rollout"}
    assert recipe.non_defaults() == {
        "data": {"name": "pendulum", "size": 32},
        "model": {"name": "ct-vae", "contrast": {"negatives": 2}, "weights": {"kl": 0.5}},
        "training": {},
        "seed": 0,
    }
    assert parse_recipe(yaml.safe_load(recipe.to_yaml()), source="here.yaml") == recipe


@pytest.mark.parametrize("kept", [False, True])
def test_options_are_checked_before_a_training_whether_it_is_kept_or_not(tmp_path, kept):
    pictures = small_grid((16, 16, 1))
    model = VAE(image_shape=(16, 16, 1), likelihood="poisson")
    with pytest.raises(UsageError, match=r"VAE.likelihood.*'poisson'"):
        fit(model, pictures, steps=1, out=tmp_path / "run" if kept else None)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_keeps_its_options_as_its_recipe_has_them(name: str) -> None:
    """Otherwise a run would be written under another recipe, and not be resumed by its own."""
    pictures = {"name": "shapes2d"} if name == "ct-vae" else {"name": "pendulum", "size": 32}
    recipe = parse_recipe({"data": pictures, "model": {"name": name}}, source="test")
    model = recipe.build_model(recipe.build_dataset())
    assert {"name": name, **arguments_of(model)} == recipe.model


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("model: {name: vae, latent: 2, latent: 4}", "line 1: 'latent' is given twice, in line 1"),
        ("data: mnist\nmodel: vae\ndata: pendulum", "line 3: 'data' is given twice, in line 1"),
    ],
)
def test_a_key_that_is_given_twice_is_refused(text: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text(text)
    with pytest.raises(UsageError, match=rf"twice\.yaml.*{place} already; remove one"):
        read_recipe(tmp_path / "twice.yaml")


@pytest.mark.parametrize(
    "options",
    [
        {"steps": "2", "batch_size": 8.0, "threads": "1", "save_every": "1", "log_every": "1"},
        {"steps": np.int64(2), "batch_size": np.int32(8), "seed": np.int64(3)},
        {"steps": 2, "patience": "1", "learning_rate": "1e-3", "clip_norm": np.float32(1)},
    ],
)
@pytest.mark.parametrize("kept", [True, False])
def test_fit_goes_on_with_numbers_as_they_were_checked(
    options: dict[str, Any], kept: bool, tmp_path: Path, pictures: Arrays
) -> None:
    model = VAE.for_data(pictures, latent="2", warm_up_steps=np.int64(1))
    assert (model.latent, type(model.latent), type(model.warm_up_steps)) == (2, int, int)
    out = tmp_path / "run" if kept else None
    fit(model, pictures, out=out, progress=False, **({"batch_size": 8} | options))
    if out is not None:
        recipe = read_recipe(out / "recipe.yaml")
        assert recipe.training["steps"] == 2
        assert recipe.seed == options.get("seed", 0)


@pytest.mark.parametrize("word", ["training.steps", "training.learning_rate", "model.latent"])
@pytest.mark.parametrize("value", ["true", "[true]"])
def test_a_truth_value_is_no_number(word: str, value: str) -> None:
    with pytest.raises(UsageError, match=rf"{word}: .*, got \[?True"):
        read_recipe("demo", ["model.name=vae", f"{word}={value}"])


def test_a_truth_value_among_numbers_is_none_of_them() -> None:
    words = ["model.layers=[true,8]"]
    with pytest.raises(UsageError, match=r"model\.layers: expected a number, got \[True, 8\]"):
        read_recipe("ladder-vae-mnist", words)


def test_fit_takes_no_truth_value_for_a_number(pictures: Arrays, build: Any) -> None:
    for wrong in ({"steps": True}, {"steps": np.True_}, {"seed": True}):
        with pytest.raises(UsageError, match=r"expected a .*number.*, got (np\.)?True"):
            fit(build(), pictures, **wrong)
