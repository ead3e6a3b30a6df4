"""Z-diff of constructed latents of dSprites, by the way in which they encode shape and orientation.

One latent each encodes x, y and scale (or the area, which depends on the shape as well). Squares look alike
after a quarter turn, ellipses after half a turn, hearts after a whole one. Latents of the orientation are
shared by the shapes, or each shape has its own, which are 0 for the others. Nothing is trained.

For runs: how much each active latent changes with the orientation of each shape, in standard deviations.

    python benchmarks/turns.py runs/disentangling/dsprites-grid-beta-vae-*woken* --out results/turns.json
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from disentwine import load_run
from disentwine.core.dataset import evenly_spaced
from disentwine.metrics import active_units, z_diff
from disentwine.runs.checkpoint import versions
from disentwine.runs.storage import write_atomically

SIZES = {"shape": 3, "scale": 6, "orientation": 10, "x": 16, "y": 16}
"""Values of each factor in the grid of dSprites that studies use."""

STEP = 2 * np.pi * 4 / 39
"""Step of its orientation: every fourth of forty angles, of which the last is a whole turn."""

FIGURES = ("square", "ellipse", "heart")
REPEATS = np.array([4, 2, 1])
"""Symmetry: how often each shape looks alike in a whole turn."""

PAIRS = (64, 200)

FIGURE = np.array([-0.5, 0.0, 0.5])
"""Offsets of the shapes in the latent of the scale of trained models, in standard deviations."""

IMAGES = 4_000
"""Validation images over which the mean of a latent at each orientation is taken."""

Codes = NDArray[np.float64]


def latents_of_turns(shape: NDArray[np.intp], angle: Codes) -> dict[str, Codes]:
    """The latents of shape and orientation, by name."""
    turned = REPEATS[shape] * angle
    circle = np.stack([np.cos(turned), np.sin(turned)], axis=1)
    own = [circle * (shape == figure)[:, None] for figure in range(len(REPEATS))]
    radii = np.array([0.5, 1.0, 0.75])[shape][:, None]
    return {
        "nothing": np.zeros((len(shape), 0)),
        "one unit, of the ellipse's turn": own[1][:, :1],
        "two units, of the ellipse's turn": own[1],
        "two units of the ellipse's turn, one of which figure it is": np.column_stack(
            [own[1], shape == 1]
        ),
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
    angle = STEP * factors[:, column("orientation")]
    place = standard[:, [column("x"), column("y")]]
    size = standard[:, column("scale")]
    area = np.sqrt(1 - np.square(FIGURE).mean()) * size + FIGURE[shape]
    rows = []
    for name, said in latents_of_turns(shape, angle).items():
        row: dict[str, object] = {"turn": name}
        for unit, values in (("size", size), ("area", area)):
            codes = np.column_stack([place, values, said])
            for pairs in PAIRS:
                row[f"{unit}-{pairs}-pairs"] = z_diff(
                    codes, factors, pairs=pairs, floor=False
                ).value
        rows.append(row)
    return rows


def of_run(path: Path) -> list[dict[str, Any]]:
    """For each active latent, its mean for each shape, and the spread of its mean over orientations."""
    run = load_run(path)
    dataset = run.dataset
    indices = evenly_spaced(dataset.split["validation"], IMAGES)
    codes = run.model.represent(dataset.images[indices])
    figure, turn = (
        np.unique(dataset.column(name)[indices], return_inverse=True)[1]
        for name in ("shape", "orientation")
    )
    alive = np.flatnonzero(active_units(codes).details["active"])
    rows = []
    for unit in alive:
        moves = [
            float(np.std([codes[(figure == f) & (turn == t), unit].mean() for t in set(turn)]))
            for f in range(len(REPEATS))
        ]
        means = [float(codes[figure == f, unit].mean()) for f in range(len(REPEATS))]
        deviation, middle = float(codes[:, unit].std()), float(codes[:, unit].mean())
        rows.append(
            {
                "unit": int(unit),
                "turning": [move / deviation for move in moves],
                "figures": [(mean - middle) / deviation for mean in means],
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, nargs="*", help="run folders on a data set of 2D shapes")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    arguments = parser.parse_args()
    rows = measure()
    table = Table(
        "latents of shape and orientation",
        *(f"{unit}, {pairs} pairs" for unit in ("size", "area") for pairs in PAIRS),
        title="Z-diff",
    )
    for row in rows:
        name, *values = row.values()
        table.add_row(str(name), *(f"{value:.1%}" for value in values))
    Console().print(table)
    runs = {path.name: of_run(path) for path in arguments.run}
    for name, units in runs.items():
        table = Table(
            "unit",
            *(f"{figure} turns" for figure in FIGURES),
            *(f"mean of {figure}s" for figure in FIGURES),
            title=name,
        )
        for row in units:
            moves = (f"{move:.2f}" for move in (*row["turning"], *row["figures"]))
            table.add_row(str(row["unit"]), *moves)
        Console().print(table)
    if arguments.out:
        command = f"python benchmarks/{Path(sys.argv[0]).name} {shlex.join(sys.argv[1:])}"
        content = {"command": command, "versions": versions(), "rows": rows, "runs": runs}
        write_atomically(arguments.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
