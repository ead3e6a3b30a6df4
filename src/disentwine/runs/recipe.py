"""Recipes: read from YAML, checked, turned into objects and back."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from disentwine.core.dataset import ActionSpec, Dataset
from disentwine.core.model import Model
from disentwine.core.schema import check, non_defaults, schema_of
from disentwine.data import DATASETS
from disentwine.errors import UsageError, did_you_mean
from disentwine.models import MODELS
from disentwine.training.options import TrainingOptions


def parse_options(words: Sequence[str]) -> dict[str, Any]:
    """Values by dotted key, read as YAML.

    >>> parse_options(["model.beta=4", "data.size=64"])
    {'model.beta': 4, 'data.size': 64}
    """
    options: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"'{word}' is not of the form key=value, such as model.beta=4")
        try:
            options[key] = parse_yaml(value)
        except ValueError as error:
            raise UsageError(f"'{word}': the value is not valid YAML: {error}") from error
    return options


def parse_yaml(text: str) -> Any:
    """The values of a YAML text; raises `ValueError` with one line that says what is wrong.

    >>> parse_yaml("latent: 4\\nbeta: 2\\nlatent: 8")
    Traceback (most recent call last):
    ValueError: line 3: 'latent' is given twice, in line 1 already; remove one of them
    """
    try:
        return _OnceEach(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error


class _OnceEach(yaml.SafeLoader):
    """Refuses a key that is given twice: the first value would be lost silently."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line, name = key.start_mark.line + 1, f"{key.value}"
            if name in lines:
                raise ValueError(
                    f"line {line}: '{name}' is given twice, in line {lines[name]} already; "
                    f"remove one of them"
                )
            lines[name] = line
        return super().construct_mapping(node, deep=deep)


SECTIONS = ("data", "model", "training", "seed")

ARRAYS = "in-memory"
"""Name of a data set in memory, which a recipe cannot build."""

LABELLED = "labelled_fraction"
"""Key of every data section: the share of images whose labels training sees, if not all."""

TRANSITIONS = "transitions"
"""Key of every data section: which actions there are, if not all; see `Dataset.with_transitions`."""


@dataclass(frozen=True)
class Recipe:
    """A data set, a model and a training; every default is written out.

    Arguments:
        data: `name` and constructor arguments of the data set.
        model: `name` and constructor arguments of the model.
        training: values of `TrainingOptions`.
        seed: decides the initial weights, the batches and all noise.
    """

    data: dict[str, Any]
    model: dict[str, Any]
    training: dict[str, Any]
    seed: int = 0

    def build_dataset(self) -> Dataset:
        name, options = _split_name(self.data)
        if name == ARRAYS:
            raise UsageError(
                "this run was trained on arrays in memory; build the data set yourself"
            )
        labelled, actions = options.pop(LABELLED, 1.0), options.pop(TRANSITIONS, None)
        dataset = DATASETS[name](**options)
        if actions is not None:
            dataset = dataset.with_transitions(**dict(schema_of(ActionSpec)(**actions)))
        return dataset if labelled == 1 else dataset.with_labels(labelled)

    def build_model(self, data: Dataset | Mapping[str, Any]) -> Model:
        """The model, untrained, for a data set or from what a data set decided."""
        name, options = _split_name(self.model)
        cls = MODELS[name]
        # JSON and YAML know no tuples: what was one becomes one again.
        options = dict(schema_of(cls, without=cls.fixed_by_data)(**options))
        if isinstance(data, Dataset):
            return cls.for_data(data, **options)
        return cls(**dict(schema_of(cls)(**(options | dict(data)))))

    def to_yaml(self) -> str:
        return yaml.safe_dump(asdict(self), sort_keys=False, allow_unicode=True)

    def non_defaults(self) -> dict[str, Any]:
        """The sections with only the keys that differ from their defaults, and the seed.

        An option that is added later, with a default, leaves this as it is: trials of studies are
        identified by it.
        """
        found: dict[str, Any] = {"seed": self.seed}
        for label, section, table in (("data", self.data, DATASETS), ("model", self.model, MODELS)):
            name, options = _split_name(section)
            if name in table:
                cls = table[name]
                options = non_defaults(schema_of(cls, without=_fixed(cls)), options)
                if label == "data" and TRANSITIONS in options:
                    options[TRANSITIONS] = non_defaults(schema_of(ActionSpec), options[TRANSITIONS])
            found[label] = {"name": name, **options}
        return found | {"training": non_defaults(schema_of(TrainingOptions), self.training)}


def parse_recipe(content: Mapping[str, Any], *, source: str) -> Recipe:
    """Check a recipe against the constructors' signatures; all problems come in one error."""
    problems = [
        f"{key}: unknown section. {_nearest_section(str(key), content)}"
        for key in content
        if key not in SECTIONS
    ]
    data, wrong = _named(content.get("data"), DATASETS, "data")
    problems += wrong
    model, wrong = _named(content.get("model"), MODELS, "model")
    problems += wrong
    options = content.get("training", {})
    if not isinstance(options, Mapping):
        options, wrong = {}, ["training: expected a list of key: value pairs"]
        problems += wrong
    training, wrong = check(schema_of(TrainingOptions), options, section="training")
    problems += wrong
    seed = content.get("seed", 0)
    problems += seed_problems(seed)
    if problems:
        raise UsageError(f"{source}:\n  " + "\n  ".join(problems))
    return Recipe(data, model, training, int(seed))


def _nearest_section(key: str, content: Mapping[str, Any]) -> str:
    """The section that a key belongs to, or the nearest section."""
    places: dict[str, Any] = {"training": TrainingOptions}
    for label, table in (("model", MODELS), ("data", DATASETS)):
        section = content.get(label)
        name = section.get("name") if isinstance(section, Mapping) else section
        if isinstance(name, str) and name in table:
            places[label] = table[name]
    for label, described in places.items():
        if key in inspect.signature(described).parameters:
            return f"Did you mean '{label}.{key}'?"
    return did_you_mean(key, SECTIONS)


def seed_problems(seed: Any) -> list[str]:
    """What is wrong with a seed: torch and NumPy accept different ranges."""
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and 0 <= seed < 2**63:
        return []
    return [f"seed: expected a whole number from 0 to 2**63 - 1, got {seed!r}"]


def read_recipe(name: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe from a file, or a ready one by its name, and apply `key=value` overrides."""
    content = read_sections(name)
    options = parse_options(overrides)
    # Another model or data set has other arguments: its name comes first, and clears the section.
    for key in sorted(options, key=lambda key: not key.endswith(".name")):
        _override(content, key, options[key])
    return parse_recipe(content, source=str(name))


def read_sections(name: str | Path) -> dict[str, Any]:
    """The sections of a recipe file, or of a ready recipe, unchecked."""
    path = Path(name)
    ready = ready_recipes()
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ready.get(str(name))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as text: {error}") from error
    if text is None and path.suffix in (".yaml", ".yml"):
        raise UsageError(
            f"there is no file {path}; 'disentwine train --list' shows the ready recipes"
        )
    if text is None:
        raise UsageError(
            f"there is no recipe file or ready recipe '{name}'. {did_you_mean(str(name), ready)}"
        )
    try:
        content = parse_yaml(text)
    except ValueError as error:
        raise UsageError(f"{name} is not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise UsageError(f"{name}: a recipe is a list of sections: {', '.join(SECTIONS)}")
    return content


def ready_recipes() -> dict[str, str]:
    """The recipes inside the package, by name."""
    folder = resources.files("disentwine") / "recipes"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {f.name[:-5]: f.read_text(encoding="utf-8") for f in files if f.name.endswith(".yaml")}


def recipe_of(model: Model, dataset: Dataset, *, training: dict[str, Any], seed: int) -> Recipe:
    """The recipe of these objects, read from their attributes."""
    names = {cls: name for name, cls in MODELS.items()}
    if type(model) not in names:
        cls = type(model).__name__
        raise UsageError(
            f"{cls} has no name, so its run could not be loaded again: add it to the table with "
            f'disentwine.models.MODELS["my-name"] = {cls}, or leave out= away'
        )
    data_names = {cls: name for name, cls in DATASETS.items()}
    partly: dict[str, Any] = (
        {} if dataset.labelled_fraction == 1 else {LABELLED: dataset.labelled_fraction}
    )
    if dataset.action_spec != ActionSpec():
        partly[TRANSITIONS] = schema_of(ActionSpec)(**asdict(dataset.action_spec)).model_dump(
            mode="json"
        )
    return Recipe(
        data={"name": data_names[type(dataset)], **arguments_of(dataset), **partly}
        if type(dataset) in data_names
        else {"name": ARRAYS, "sha256": _digest(dataset)},
        model={"name": names[type(model)], **arguments_of(model)},
        training=training,
        seed=int(seed),
    )


def check_options(model: Model) -> None:
    """Refuse a model of `MODELS` whose options a recipe would refuse."""
    if type(model) in MODELS.values():
        arguments_of(model)


def _digest(dataset: Dataset) -> str:
    """A digest of a data set in memory, so that a run is not resumed on another one."""
    edges = None if dataset.graph is None else sorted(dataset.graph.edges)
    about = (dataset.image_shape, dataset.spec, edges, dataset.stochastic)
    digest = hashlib.sha256(repr(about).encode())
    for part in sorted(dataset.split):
        digest.update(np.ascontiguousarray(dataset.split[part]).data)
    for start in range(0, len(dataset), 4096):
        rows = slice(start, start + 4096)
        digest.update(np.ascontiguousarray(dataset.images[rows]).data)
        digest.update(np.ascontiguousarray(dataset.factors[rows]).data)
    return digest.hexdigest()


def arguments_of(thing: Dataset | Model) -> dict[str, Any]:
    """The constructor arguments that rebuild it, as a recipe has them."""
    without = _fixed(type(thing))
    names = [name for name in inspect.signature(type(thing)).parameters if name not in without]
    kept = {name: getattr(thing, name) for name in names}
    section = type(thing).__name__
    values, problems = check(schema_of(type(thing), without=without), kept, section=section)
    if problems:
        raise UsageError("; ".join(problems))
    return values


def _fixed(cls: type) -> tuple[str, ...]:
    """Constructor arguments that a recipe does not set."""
    return cls.fixed_by_data if issubclass(cls, Model) else ()


def _split_name(section: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return section["name"], {key: value for key, value in section.items() if key != "name"}


def _named(section: Any, table: Mapping[str, Any], label: str) -> tuple[dict[str, Any], list[str]]:
    if isinstance(section, str):
        section = {"name": section}
    if not isinstance(section, Mapping) or "name" not in section:
        return {}, [f"{label}.name: missing; choose from: {', '.join(sorted(table))}"]
    name, options = _split_name(section)
    if name == ARRAYS and label == "data":
        return dict(section), []
    if not isinstance(name, str) or name not in table:
        return {}, [f"{label}.name: unknown name '{name}'. {did_you_mean(str(name), table)}"]
    views, wrong = _views(options) if label == "data" else ({}, [])
    values, problems = check(
        schema_of(table[name], without=_fixed(table[name])),
        options,
        section=label,
        also=(LABELLED, TRANSITIONS) if label == "data" else (),
    )
    return {"name": name, **values, **views}, problems + wrong


def _views(options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The keys of every data section, taken out of the options, where they differ from the default."""
    views: dict[str, Any] = {}
    problems = []
    labelled, actions = options.pop(LABELLED, 1.0), options.pop(TRANSITIONS, {})
    if isinstance(labelled, bool) or not isinstance(labelled, int | float) or not 0 < labelled <= 1:
        problems.append(f"data.{LABELLED}: expected a share above 0, at most 1, got {labelled!r}")
    elif labelled != 1:
        views[LABELLED] = labelled
    if not isinstance(actions, Mapping):
        return views, [*problems, f"data.{TRANSITIONS}: expected a list of key: value pairs"]
    action_spec, wrong = check(schema_of(ActionSpec), actions, section=f"data.{TRANSITIONS}")
    if not wrong and action_spec != asdict(ActionSpec()):
        views[TRANSITIONS] = action_spec
    return views, problems + wrong


def _override(content: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    place: Any = content
    for parent in parents:
        if isinstance(place.get(parent), str):
            place[parent] = {"name": place[parent]}
        if place.get(parent) is None:  # a group of options that is off
            place[parent] = {}
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise UsageError(f"{key}: '{parent}' holds a single value, not keys")
    if last == "name" and place.get("name") != value:
        place.clear()
    place[last] = value
