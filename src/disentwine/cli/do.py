"""Do; retrieve."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from disentwine.cli._images import IMAGE_HELP, data_of, index_of, named_image

if TYPE_CHECKING:
    from disentwine.core.capabilities import Intervenes
    from disentwine.core.dataset import Dataset
    from disentwine.core.types import Do, FloatArray, UInt8Array


Value = float | Callable[[Any], Any]

SIGNS = {"": 1, "+": 1, "-": -1}


def do(
    run: Annotated[Path, typer.Argument(help="A run folder of a model with concepts or actions.")],
    image: Annotated[Path, typer.Argument(help=IMAGE_HELP)],
    values: Annotated[
        list[str],
        typer.Argument(
            help="Concepts to set, such as light_angle=60 or colour=red, or to move, as "
            "light_angle+=10; or actions, one after the other: +x +x -scale."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Where the picture goes; by default counterfactual.png, or -2, -3, ..."),
    ] = None,
) -> None:
    """Draw what a picture would have been, had concepts been different; or is after actions."""
    from disentwine.core.capabilities import AppliesActions, Intervenes
    from disentwine.data.images import write_image
    from disentwine.errors import UsageError
    from disentwine.runs.run import load_run

    loaded = load_run(run)
    model: Any = loaded.model
    if not isinstance(model, Intervenes | AppliesActions):
        raise UsageError(f"{run} holds a model without concepts or actions: nothing can be done")
    wanted = {}
    if isinstance(model, Intervenes):
        names = categories_of(model, data_of(loaded))
        wanted = read_values(values, model.concept_names, names)
    if out is not None and out.exists():
        raise UsageError(f"{out} exists already; choose another --out")
    picture, fitted = named_image(image, loaded)
    if isinstance(model, Intervenes):
        after, values_after = _what_would_be(model, picture, wanted)
    else:
        after = model.apply(picture, values)
    target = out or _free_name()
    write_image(target, after)
    if isinstance(model, Intervenes):
        _print_concepts(str(image), model, data_of(loaded), picture, wanted, values_after)
    else:
        print(f"{image} after {', '.join(values)}")
        place = index_of(image, loaded)
        if place is not None and (last := _leading_on(loaded.dataset, place, values)) < len(values):
            print(
                f"note: {values[last]} leads beyond the last value that there is, so that from action "
                f"{last + 1} on the picture is a guess"
            )
    if fitted:
        print(f"note: {fitted}")
    print(f"picture: {target}")


def _leading_on(dataset: Dataset, place: int, actions: Sequence[str]) -> int:
    """How many of some actions on an image lead to values that occur, one upon the other."""
    from disentwine.data.factor_grid import FactorGrid

    steps, row = FactorGrid(dataset), dataset.factors[place]
    for done, action in enumerate(actions):
        after = steps.step(row, dataset.names.index(action[1:]), SIGNS[action[:1]])
        if after is None:
            return done
        row = after
    return len(actions)


def _print_concepts(
    title: str,
    model: Intervenes,
    dataset: Dataset | None,
    picture: UInt8Array,
    wanted: Mapping[str, Value],
    values_after: FloatArray,
) -> None:
    """What each concept was and is, and where training says nothing of it."""
    from disentwine.cli._tables import print_table

    categories = categories_of(model, dataset)

    def in_words(name: str, value: float) -> str:
        names = {float(i): each for i, each in enumerate(categories.get(name, ()))}
        return names.get(round(float(value), 4), f"{value:.4g}")

    units = {factor.name: factor.unit for factor in dataset.spec} if dataset else {}
    follows = set(model.graph.affected_by(wanted))
    told = zip(model.concept_names, model.concepts(picture), values_after, strict=True)
    rows = [
        (
            name,
            units.get(name, ""),
            in_words(name, old),
            in_words(name, new),
            "set" if name in wanted else "follows" if name in follows else "",
        )
        for name, old, new in told
    ]
    print_table(title, ("concept", "unit", ">in the picture", ">in the new picture", ""), rows)
    painted = {
        name: float(values_after[model.concept_names.index(name)]) if callable(value) else value
        for name, value in wanted.items()
    }
    for warning in _beyond_training(model, dataset, painted):
        print(f"note: {warning}")


def _what_would_be(
    model: Intervenes, picture: UInt8Array, wanted: Do
) -> tuple[UInt8Array, FloatArray]:
    """The new picture, and the value of each concept in it: as it was painted, where the model tells.

    Read from the picture it could be another one: networks that read have never seen an effect away from
    where its causes put it.
    """
    import numpy as np
    import torch

    from disentwine.core.capabilities import Abducts
    from disentwine.nn.images import to_uint8, to_unit_range

    if not isinstance(model, Abducts):
        after = model.do(picture, wanted)
        return after, np.asarray(model.concepts(after))
    with torch.no_grad():
        latents = model.abduct(to_unit_range(torch.from_numpy(picture)[None]))
        moved = model.intervene(latents, wanted)
        return to_uint8(model.paint(moved))[0].numpy(), model.read(moved)[0].numpy()


def categories_of(model: Intervenes, dataset: Dataset | None) -> dict[str, tuple[str, ...]]:
    """The names that values of a concept have, by concept: as the model keeps them, or its data."""
    from disentwine.causal.interventions import category_names

    kept = zip(model.concept_names, getattr(model, "label_values", ()), strict=False)
    known = dict(kept) or {
        factor.name: factor.values for factor in (dataset.spec if dataset else ())
    }
    return {name: names for name, values in known.items() if (names := category_names(values))}


def read_values(
    words: Sequence[str],
    names: Sequence[str],
    categories: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> dict[str, Value]:
    """What concepts are set to, by their names, from words such as `light_angle=60`.

    A move by so much is a function of the old value, a category its number.

    >>> read_values(["colour=red"], ["colour"], {"colour": ("blue", "red")})
    {'colour': 1.0}
    >>> wanted = read_values(["light_angle=60", "shadow_length-=2"], ["light_angle", "shadow_length"])
    >>> wanted["light_angle"], wanted["shadow_length"](5.0)
    (60.0, 3.0)
    """
    from disentwine.errors import UsageError, did_you_mean

    wanted: dict[str, Value] = {}
    for word in words:
        left, equals, text = word.rpartition("=") if "=" in word else (word, "", "")
        name = left if left in names else left.rstrip("+-")
        sign = left[len(name) :]
        if name not in names or sign not in SIGNS:
            near = did_you_mean(name.rstrip("*/^%"), names)
            raise UsageError(
                f"there is no concept '{left}'. {near} Values are set by =, moved by += or -="
            )
        if name in wanted:
            raise UsageError(f"{name}: is given twice; give it once")
        if name in categories:
            wanted[name] = _category(name, text, sign, categories[name])
            continue
        try:
            number = float(text)
        except ValueError:
            got = f"got '{text}'" if text else "got nothing" if equals else "it has none"
            raise UsageError(f"{name}: give a number, as in {name}=1.5; {got}") from None
        wanted[name] = partial(operator.add, SIGNS[sign] * number) if sign else number
    return wanted


def _category(name: str, text: str, sign: str, names: tuple[str, ...]) -> float:
    """The number of a category, by its name or that number."""
    from disentwine.errors import UsageError

    numbers = {str(i): float(i) for i in range(len(names))}
    numbers |= {each: float(i) for i, each in enumerate(names)}
    if sign or text not in numbers:
        got = f"'{sign}='" if sign else f"'{text}'" if text else "nothing"
        raise UsageError(
            f"{name}: is one of {', '.join(names)}, as in {name}={names[0]}; got {got}"
        )
    return numbers[text]


def _free_name() -> Path:
    names = (Path(f"counterfactual{'' if i == 1 else f'-{i}'}.png") for i in count(1))
    return next(name for name in names if not name.exists())


def _beyond_training(
    model: Intervenes, dataset: Dataset | None, painted: Mapping[str, float]
) -> list[str]:
    from disentwine.causal.interventions import training_range

    ranges = {name: training_range(model, dataset, name) for name in painted}
    what = "what training saw" if dataset is not None else "most of what training saw"
    return [
        f"{name}={painted[name]:g} is outside of {what}, {low:.4g} to {high:.4g}: the picture is a guess"
        for name, (low, high) in ranges.items()
        if not low <= painted[name] <= high
    ]


def retrieve(
    run: Annotated[Path, typer.Argument(help="A run folder of a model with actions.")],
    before: Annotated[Path, typer.Argument(help=IMAGE_HELP)],
    after: Annotated[Path, typer.Argument(help="The picture that an action made of it.")],
) -> None:
    """Tell which action made one picture of another, with the probability of each.

    That one of them did is taken for granted: of any other two pictures the answer says nothing.
    """
    import numpy as np

    from disentwine.cli._tables import print_table
    from disentwine.core.capabilities import AppliesActions
    from disentwine.errors import UsageError
    from disentwine.runs.run import load_run

    loaded = load_run(run)
    model: Any = loaded.model
    if not isinstance(model, AppliesActions):
        raise UsageError(f"{run} holds a model without actions: nothing can be retrieved")
    (x, note), (y, other_note) = (named_image(name, loaded) for name in (before, after))
    probabilities = np.asarray(model.retrieve(x, y), dtype=np.float64)
    likeliest_first = np.argsort(-probabilities)
    rows = [(model.actions[i], f"{probabilities[i]:.1%}") for i in likeliest_first]
    print_table(f"{before} to {after}", ("action", ">probability"), rows)
    for told in filter(None, dict.fromkeys((note, other_note))):
        print(f"note: {told}")
