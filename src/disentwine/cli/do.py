"""Commands `do` and `retrieve`; images named on the command line."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from disentwine.core.capabilities import AppliesActions, Intervenes
    from disentwine.core.types import UInt8Array
    from disentwine.runs.run import Run

IMAGE_HELP = (
    "A PNG or JPEG file, or a test image of the data: t-0, t-1, ..., in the order of the explorer."
)


def do(
    run: Annotated[Path, typer.Argument(help="A run folder of a model with concepts or actions.")],
    image: Annotated[Path, typer.Argument(help=IMAGE_HELP)],
    values: Annotated[
        list[str],
        typer.Argument(
            help="Concepts to set, such as light_angle=60 or colour=red, or to shift, as "
            "light_angle+=10; or actions, one after the other: +x +x -scale."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The image file to write; by default counterfactual.png, then counterfactual-2.png, ..."
        ),
    ] = None,
) -> None:
    """Generate a counterfactual image under an intervention on concepts, or apply actions."""
    from disentwine.core.capabilities import AppliesActions, Intervenes
    from disentwine.errors import UsageError
    from disentwine.runs.run import load_run

    loaded = load_run(run)
    model: Any = loaded.model
    if not loaded.finished:
        step, steps = loaded.checkpoint.step, loaded.recipe.training["steps"]
        print(f"note: training has not finished; these are the weights of step {step} of {steps}")
    if isinstance(model, Intervenes):
        _intervene(loaded, model, image, values, out)
    elif isinstance(model, AppliesActions):
        _apply(loaded, model, image, values, out)
    else:
        raise UsageError(
            f"{run}: its model has neither concepts nor actions; 'disentwine serve' explores its latents"
        )


def _intervene(
    loaded: Run, model: Intervenes, image: Path, words: list[str], out: Path | None
) -> None:
    from disentwine.causal.concepts import concept_spec_of, counterfactual_of
    from disentwine.cli._tables import print_table
    from disentwine.core.interventions import Intervention

    spec = concept_spec_of(model)
    intervention = Intervention.parse(words, spec.concepts)
    target = _target(out)
    x, resized = named_image(image, loaded)
    found = counterfactual_of(model, x, intervention)
    _write(target, found.images)
    role = dict.fromkeys(found.affected, "affected") | dict.fromkeys(intervention.names, "set")
    rows = [
        (
            concept.name,
            concept.unit,
            concept.format_value(before),
            concept.format_value(after),
            role.get(concept.name, ""),
        )
        for concept, before, after in zip(spec.concepts, found.before, found.after, strict=True)
    ]
    print_table(str(image), ("concept", "unit", ">inferred", ">counterfactual", ""), rows)
    for value in found.beyond:
        print(f"note: {value}: outside the training range, so the image is an extrapolation")
    _print_end(target, resized)


def _apply(
    loaded: Run, model: AppliesActions, image: Path, actions: list[str], out: Path | None
) -> None:
    target = _target(out)
    x, resized = named_image(image, loaded)
    _write(target, model.apply(x, actions))
    print(f"{image} after {', '.join(actions)}")
    index = _test_index(image, loaded)
    if index is not None:
        from disentwine.data.factor_grid import FactorGrid

        row = loaded.dataset.factors[index]
        valid = len(FactorGrid(loaded.dataset).rows_after(row, actions))
        if valid < len(actions):
            print(
                f"note: {actions[valid]} leads beyond the last value of its factor, so from action "
                f"{valid + 1} on the image is an extrapolation"
            )
    _print_end(target, resized)


def _target(out: Path | None) -> Path:
    """The file to write, which must not exist."""
    if out is not None and out.exists():
        from disentwine.errors import UsageError

        raise UsageError(f"{out} exists already; choose another --out")
    names = (Path(f"counterfactual{'' if i == 1 else f'-{i}'}.png") for i in count(1))
    return out or next(name for name in names if not name.exists())


def _write(target: Path, image: UInt8Array) -> None:
    from disentwine.data.images import write_image

    write_image(target, image)


def _print_end(target: Path, resized: str) -> None:
    if resized:
        print(f"note: {resized}")
    print(f"image: {target}")


def retrieve(
    run: Annotated[Path, typer.Argument(help="A run folder of a model with actions.")],
    before: Annotated[Path, typer.Argument(help=IMAGE_HELP)],
    after: Annotated[Path, typer.Argument(help="The image after the action.")],
) -> None:
    """Infer which action turns one image into another, with the probability of each.

    The probabilities assume that one of the actions does; otherwise they are meaningless.
    """
    import numpy as np

    from disentwine.cli._tables import print_table
    from disentwine.core.capabilities import AppliesActions
    from disentwine.errors import UsageError
    from disentwine.runs.run import load_run

    loaded = load_run(run)
    model: Any = loaded.model
    if not isinstance(model, AppliesActions):
        raise UsageError(f"{run}: its model has no actions; choose a run of a model such as ct-vae")
    (x, resized), (y, also_resized) = (named_image(name, loaded) for name in (before, after))
    probabilities = np.asarray(model.retrieve(x, y), dtype=np.float64)
    most_probable_first = np.argsort(-probabilities)
    rows = [(model.actions[i], f"{probabilities[i]:.1%}") for i in most_probable_first]
    print_table(f"{before} to {after}", ("action", ">probability"), rows)
    for note in filter(None, dict.fromkeys((resized, also_resized))):
        print(f"note: {note}")


def named_image(name: Path, run: Run) -> tuple[UInt8Array, str]:
    """An image as the run's model takes it, and how it was resized, if it was.

    Arguments:
        name: a file, or "t-0" and so on for a test image.
        run: whose model it is for, and whose data the test images are from.
    """
    from disentwine.data.images import read_image
    from disentwine.errors import UsageError

    index = _test_index(name, run)
    if index is not None:
        image: UInt8Array = run.dataset.images[index]
        return image, ""
    model: Any = run.model
    height, width, channels = model.image_shape
    if height != width:
        raise UsageError(
            f"{run.path} was trained on {height}x{width} images, which are not square, so files "
            "cannot be resized to them; name a test image, such as t-0"
        )
    whole = read_image(name, channels=channels).shape
    image = read_image(name, size=height, channels=channels)
    resized = f"the centre square of {whole[1]}x{whole[0]} pixels was resized to {width}x{height}"
    return image, resized if whole[:2] != (height, width) else ""


def _test_index(name: Path, run: Run) -> int | None:
    """Index of the test image that "t-0" and so on name, as on the page; None for any other name."""
    number = re.fullmatch(r"t-(\d+)", str(name))
    if number is None or name.exists():
        return None
    from disentwine.core.dataset import display_order
    from disentwine.errors import UsageError

    held_out = display_order(run.dataset.split)
    if int(number[1]) >= len(held_out):
        raise UsageError(
            f"there is no test image {name}: {len(held_out):,} are available, from t-0 on"
        )
    return int(held_out[int(number[1])])
