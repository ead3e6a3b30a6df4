"""Error of counterfactuals by concept combination: near training combinations, and others.

A layered model decodes a group of concepts together, so it can know only combinations of the group
that are in the training data. Counterfactuals whose groups are all near such a combination are separated
from those with one that is far from all. The same is measured with the labels given in place of the
inferred concepts: what is left is the error of mechanisms and component decoders.

With `pixel_snapping=True` Flow's water ends at a whole pixel, so that images show its height only
roughly. The cost of that under do(ball size) is measured with an oracle that knows everything except
the height between two pixels.

    python benchmarks/support.py runs/causalvae/{pendulum,flow,flow-snapped}-causal-vae-layered-[012]-*
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.neighbors import NearestNeighbors

from disentwine import LayeredCausalVAE, load_run
from disentwine.core.types import Do
from disentwine.evaluation.counterfactuals import draw_interventions

NEAR = 0.05
"""Standard deviations of the labels."""


def measure(path: Path) -> list[dict[str, object]]:
    run = load_run(path)
    model, data = run.model, run.dataset
    interventions = draw_interventions(
        model.concept_names, data, data.split["test"], seed=run.recipe.seed
    )
    images, factors = data.images[interventions.indices], data.factors[interventions.indices]
    noise = None if getattr(data, "noise", None) is None else data.noise[interventions.indices]
    train = data.factors[data.split["train"]]
    scale = train.std(axis=0)
    own = squared_error(model.reconstruct(images), images).mean()
    seen = [
        (list(group), NearestNeighbors(n_neighbors=1).fit((train / scale)[:, list(group)]))
        for group in model.composition.concept_groups
    ]
    rows = []
    for name, values in interventions.values.items():
        truth = data.simulate(factors, {name: values}, noise=noise)
        error = squared_error(model.do(images, {name: values}), truth.images)
        from_labels = squared_error(do_from_labels(model, factors, {name: values}), truth.images)
        nothing = squared_error(images, truth.images)
        asked = truth.factors / scale
        near = np.all([near_any(asked[:, g], known) for g, known in seen], axis=0)
        for kind, chosen in (("near", near), ("far", ~near)):
            if chosen.any():
                rows.append(
                    {
                        "concept": name,
                        "combinations": kind,
                        "images": int(chosen.sum()),
                        "ratio": float(error[chosen].mean() / own),
                        "share": float(error[chosen].mean() / nothing[chosen].mean()),
                        "error": float(error[chosen].mean()),
                        "error_from_labels": float(from_labels[chosen].mean()),
                        "part_of_error": float(error[chosen].sum() / error.sum()),
                    }
                )
    return rows


@torch.no_grad()
def do_from_labels(model: LayeredCausalVAE, factors: np.ndarray, do: Do) -> np.ndarray:
    """Counterfactual images with the labels in place of the inferred concepts."""
    z = model.standardise(torch.tensor(factors, dtype=torch.float32))
    decoded = model.decode_latents(model.intervene(z, do)).permute(0, 2, 3, 1).clamp(0, 1)
    return (255 * decoded).round().to(torch.uint8).numpy()


def whole_pixels(path: Path) -> dict[str, float]:
    """Error of do(ball size) by the model, and by an oracle that knows the water height up to a pixel."""
    run = load_run(path)
    data, height = run.dataset, run.dataset.names.index("water_height")
    interventions = draw_interventions(data.names, data, data.split["test"], seed=run.recipe.seed)
    rows, values = interventions.indices, interventions.values["ball_size"]
    varies = data.images.std(axis=(0, 3)).sum(axis=0)
    beside_the_ball = data.images[:, :, int(np.argmax(varies > varies.max() / 2))]
    levels = np.unique(beside_the_ball.reshape(len(data), -1), axis=0, return_inverse=True)[1]
    known = np.bincount(levels.ravel(), weights=data.column("water_height"))
    known = (known / np.bincount(levels.ravel()))[levels.ravel()]
    truth = data.simulate(data.factors[rows], {"ball_size": values}, noise=data.noise[rows])
    guessed = truth.factors[:, height] + (known - data.column("water_height"))[rows]
    oracle = data.simulate(truth.factors, {"water_height": guessed}, noise=data.noise[rows])
    predicted = run.model.do(data.images[rows], {"ball_size": values})
    return {
        "levels": float(levels.max() + 1),
        "height_error": float(np.sqrt(np.mean((known - data.column("water_height")) ** 2))),
        "oracle": float(squared_error(oracle.images, truth.images).mean()),
        "model": float(squared_error(predicted, truth.images).mean()),
    }


def near_any(asked: np.ndarray, known: NearestNeighbors) -> np.ndarray:
    return known.kneighbors(asked)[0][:, 0] <= NEAR


def squared_error(images: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(n,) mean squared error of the pixels of each image, on a scale from 0 to 1."""
    difference = images.astype(np.float64) / 255 - others.astype(np.float64) / 255
    return np.square(difference).mean(axis=(1, 2, 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, nargs="+", help="run folders of causal-vae/layered")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    arguments = parser.parse_args()
    found = {path.name: measure(path) for path in arguments.run}
    for name, rows in found.items():
        table = Table(*rows[0], title=name)
        for row in rows:
            table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
        Console().print(table)
    levels = {path.name: whole_pixels(path) for path in arguments.run if "flow" in path.name}
    for name, row in levels.items():
        print(name, ", ".join(f"{key} {value:.3g}" for key, value in row.items()))
    if arguments.out:
        record = {"combinations": found, "whole_pixels": levels}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
