"""disentwine do: the picture that would have been."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from disentwine.cli.images import IMAGE_HELP, data_of, named_image

if TYPE_CHECKING:
    from disentwine.contracts.capabilities import Intervenes
    from disentwine.contracts.dataset import Dataset, Do, FloatArray, UInt8Array

Value = float | Callable[[Any], Any]
SIGNS = {"": 1, "+": 1, "-": -1}


def do(
    run: Annotated[Path, typer.Argument(help="A run folder of a model with concepts or actions.")],
    image: Annotated[Path, typer.Argument(help=IMAGE_HELP)],
    values: Annotated[
        list[str],
        typer.Argument(
            help="Concepts to set, such as light_angle=60, or to move, as light_angle+=10; "
            "or actions, one after the other: +x +x -scale."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Where the picture goes; by default counterfactual.png, or -2, -3, ..."),
    ] = None,
) -> None:
    """Draw what a picture would have been, had concepts been different; or is after actions."""
    from disentwine.contracts.capabilities import Intervenes, Transits
    from disentwine.data.pictures import write_picture
    from disentwine.errors import UsageError
    from disentwine.training.run import load_run

    loaded = load_run(run)
    model: Any = loaded.model
    if not isinstance(model, Intervenes | Transits):
        raise UsageError(f"{run} holds a model without concepts or actions: nothing can be done")
    wanted = read_values(values, model.concept_names) if isinstance(model, Intervenes) else {}
    if out is not None and out.exists():
        raise UsageError(f"{out} exists already; choose another --out")
    picture, fitted = named_image(image, loaded)
    if isinstance(model, Intervenes):
        after, values_after = _what_would_be(model, picture, wanted)
    else:
        after = model.apply(picture, values)
    target = out or _free_name()
    write_picture(target, after)
    if isinstance(model, Intervenes):
        _print_concepts(str(image), model, data_of(loaded), picture, wanted, values_after)
    else:
        print(f"{image} after {', '.join(values)}")
    if fitted:
        print(f"note: {fitted}")
    print(f"picture: {target}")


def _print_concepts(
    title: str,
    model: Intervenes,
    dataset: Dataset | None,
    picture: UInt8Array,
    wanted: Mapping[str, Value],
    values_after: FloatArray,
) -> None:
    """What each concept was and is, and where training says nothing of it."""
    from disentwine.cli.tables import print_table

    units = {factor.name: factor.unit for factor in dataset.spec} if dataset else {}
    follows = set(model.graph.following(wanted))
    told = zip(model.concept_names, model.concepts(picture), values_after, strict=True)
    rows = [
        (
            name,
            units.get(name, ""),
            f"{old:.4g}",
            f"{new:.4g}",
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

    from disentwine.contracts.capabilities import Abducts
    from disentwine.nn.pictures import to_unit_range

    after = model.do(picture, wanted)
    if not isinstance(model, Abducts):
        return after, np.asarray(model.concepts(after))
    with torch.no_grad():
        latents = model.abduct(to_unit_range(torch.from_numpy(picture)[None]))
        values = model.read(model.intervene(latents, wanted))
    return after, values[0].numpy()


def read_values(words: Sequence[str], names: Sequence[str]) -> dict[str, Value]:
    """What concepts are set to, by their names, from words such as `light_angle=60`.

    A move by so much is a function of the old value.

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
        try:
            number = float(text)
        except ValueError:
            got = f"got '{text}'" if text else "got nothing" if equals else "it has none"
            raise UsageError(f"{name}: give a number, as in {name}=1.5; {got}") from None
        wanted[name] = partial(operator.add, SIGNS[sign] * number) if sign else number
    return wanted


def _free_name() -> Path:
    names = (Path(f"counterfactual{'' if i == 1 else f'-{i}'}.png") for i in count(1))
    return next(name for name in names if not name.exists())


def _beyond_training(
    model: Intervenes, dataset: Dataset | None, painted: Mapping[str, float]
) -> list[str]:
    from disentwine.report.ranges import training_range

    ranges = {name: training_range(model, dataset, name) for name in painted}
    what = "what training saw" if dataset is not None else "most of what training saw"
    return [
        f"{name}={painted[name]:g} is outside of {what}, {low:.4g} to {high:.4g}: the picture is a guess"
        for name, (low, high) in ranges.items()
        if not low <= painted[name] <= high
    ]
