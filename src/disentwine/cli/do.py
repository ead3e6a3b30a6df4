"""disentwine do: the picture that would have been."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def do(
    run: Annotated[Path, typer.Argument(help="A run folder of a model with concepts.")],
    image: Annotated[Path, typer.Argument(help="A PNG or JPEG picture.")],
    values: Annotated[list[str], typer.Argument(help="Concepts to set, such as light_angle=60.")],
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("counterfactual.png"),
) -> None:
    """Draw what a picture would have been, had concepts been different."""
    from disentwine.cli.tables import print_table
    from disentwine.contracts.model import Intervenes
    from disentwine.data.pictures import read_picture, write_picture
    from disentwine.errors import UsageError
    from disentwine.training.options import parse_options
    from disentwine.training.run import load_run

    model = load_run(run).model
    if not isinstance(model, Intervenes):
        raise UsageError(f"{run} holds a model without concepts, so nothing can be set")
    wanted = parse_options(values)
    for name, value in wanted.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise UsageError(f"{name}: give a number, got {value!r}")
    if out.exists():
        raise UsageError(f"{out} exists already; choose another --out")
    height, width, channels = model.image_shape
    if height != width:
        raise UsageError(f"{run} was trained on {height}x{width} images, which are not square")
    picture = read_picture(image, size=height, channels=channels)
    after = model.do(picture, wanted)
    write_picture(out, after)
    rows = [
        (name, f"{before:.4g}", f"{wanted[name]:.4g}" if name in wanted else "")
        for name, before in zip(model.concept_names, model.concepts(picture), strict=True)
    ]
    print_table(str(image), ("concept", ">in the picture", ">set to"), rows)
    print(f"picture: {out}")
