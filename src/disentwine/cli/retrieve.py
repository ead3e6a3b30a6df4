"""disentwine retrieve: which action made one picture of another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from disentwine.cli.images import IMAGE_HELP, named_image


def retrieve(
    run: Annotated[Path, typer.Argument(help="A run folder of a model with actions.")],
    before: Annotated[Path, typer.Argument(help=IMAGE_HELP)],
    after: Annotated[Path, typer.Argument(help="The picture that an action made of it.")],
) -> None:
    """Tell which action made one picture of another, with the probability of each.

    That one of them did is taken for granted: of any other two pictures the answer says nothing.
    """
    import numpy as np

    from disentwine.cli.tables import print_table
    from disentwine.contracts.capabilities import Transits
    from disentwine.errors import UsageError
    from disentwine.training.run import load_run

    loaded = load_run(run)
    model: Any = loaded.model
    if not isinstance(model, Transits):
        raise UsageError(f"{run} holds a model without actions: nothing can be retrieved")
    (x, note), (y, other_note) = (named_image(name, loaded) for name in (before, after))
    probabilities = np.asarray(model.retrieve(x, y), dtype=np.float64)
    likeliest_first = np.argsort(-probabilities)
    rows = [(model.actions[i], f"{probabilities[i]:.1%}") for i in likeliest_first]
    print_table(f"{before} to {after}", ("action", ">probability"), rows)
    for told in filter(None, dict.fromkeys((note, other_note))):
        print(f"note: {told}")
