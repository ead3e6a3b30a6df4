"""What Z-diff says of ideal codes of a turning figure: five factors, one unit for each of place and size.

Squares look alike after a quarter turn, ellipses after half a one, hearts after a whole one. Codes of these
turns may be shared by the figures, so that a unit tells of the turn whichever figure it is, or each figure
may have units of its own, which are 0 for the others. Nothing is trained here.

    python benchmarks/turns.py --out results/turns.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from disentwine.metrics import z_diff
from disentwine.training.storage import write_atomically
from disentwine.training.versions import versions

SIZES = {"shape": 3, "scale": 6, "orientation": 10, "x": 16, "y": 16}
"""Of the grid of dSprites that studies take."""

REPEATS = np.array([4, 2, 1])
"""How often square, ellipse and heart look alike in a whole turn."""

PAIRS = (64, 200)

Codes = NDArray[np.float64]


def codes_of_turns(shape: NDArray[np.intp], angle: Codes) -> dict[str, Codes]:
    """What the units beside those of place and size say."""
    turned = REPEATS[shape] * angle
    circle = np.stack([np.cos(turned), np.sin(turned)], axis=1)
    own = [circle * (shape == figure)[:, None] for figure in range(len(REPEATS))]
    radii = np.array([0.5, 1.0, 0.75])[shape][:, None]
    return {
        "nothing": np.zeros((len(shape), 0)),
        "one unit, of the ellipse's turn": own[1][:, :1],
        "two units, of the ellipse's turn": own[1],
        "six units, two for each figure": np.hstack(own),
        "two units, shared by all figures": circle,
        "two units, shared by all figures on circles of three sizes": radii * circle,
        "one unit, shared by all figures": circle[:, :1],
        "three units, one of the figure and two of the angle": np.stack(
            [shape - 1.0, np.cos(angle), np.sin(angle)], axis=1
        ),
    }


def measure() -> list[dict[str, object]]:
    axes = np.meshgrid(*(np.arange(size) for size in SIZES.values()), indexing="ij")
    factors = np.stack([axis.ravel() for axis in axes], axis=1)
    standard = (factors - factors.mean(axis=0)) / factors.std(axis=0)
    column = list(SIZES).index
    shape = factors[:, column("shape")]
    angle = 2 * np.pi * factors[:, column("orientation")] / SIZES["orientation"]
    plain = standard[:, [column(name) for name in ("scale", "x", "y")]]
    rows = []
    for name, said in codes_of_turns(shape, angle).items():
        codes = np.hstack([plain, said])
        found = {pairs: z_diff(codes, factors, pairs=pairs, floor=False).value for pairs in PAIRS}
        rows.append({"turn": name, **{f"z-diff-{pairs}-pairs": v for pairs, v in found.items()}})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    arguments = parser.parse_args()
    rows = measure()
    table = Table("shape and turn are told by", *(f"Z-diff, {pairs} pairs" for pairs in PAIRS))
    for row in rows:
        name, *values = row.values()
        table.add_row(str(name), *(f"{value:.1%}" for value in values))
    Console().print(table)
    if arguments.out:
        content = {"command": "python benchmarks/turns.py", "versions": versions(), "rows": rows}
        write_atomically(arguments.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
