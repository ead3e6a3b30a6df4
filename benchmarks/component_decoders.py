"""Error of component decoders on concept combinations that are not in the training data.

Layered decoders are trained to decode images from their true labels, with one of several component
decoders for the concepts of a group. Then an effect of validation images is set to values on and off
the grid of the data, and the image is decoded. Printed are errors against the simulator, for
combinations near training combinations and for others.

    python benchmarks/component_decoders.py --out results/component-decoders.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.neighbors import NearestNeighbors

from disentwine import LayeredCausalVAE, data
from disentwine.evaluation.counterfactuals import draw_interventions
from disentwine.nn.layered_decoder import (
    ComponentKinds,
    EdgeDecoder,
    FieldDecoder,
    LayeredDecoder,
    PixelwiseDecoder,
)
from disentwine.training.loop import keep_freed_memory

KINDS: dict[str, ComponentKinds] = {
    "sum and edges": (PixelwiseDecoder, EdgeDecoder),
    "edges": (EdgeDecoder,),
    "field": (FieldDecoder,),
    "edges and field": (EdgeDecoder, FieldDecoder),
}
EFFECTS = {"pendulum": ("shadow_length", "shadow_position"), "flow": ("flow",)}
BATCH, RATES, NOISE = 64, (0.003, 0.00002), 0.001
NEAR = 0.05
"""Standard deviations of the labels."""


def train(model: LayeredCausalVAE, dataset: data.Dataset, kind: ComponentKinds, steps: int) -> None:
    """Train a new decoder for the model, with component decoders of these kinds for groups of concepts."""
    torch.manual_seed(0)
    start = model.decoder
    decoder = LayeredDecoder(
        model.composition.concept_groups,
        image_shape=model.image_shape,
        group_boxes=model.composition.group_boxes,
        joint=kind,
    )
    with torch.no_grad():
        decoder.background.copy_(start.background)
        decoder.group_masks.copy_(start.group_masks)
    model.decoder = decoder
    optimizer = torch.optim.Adam(decoder.parameters(), lr=RATES[0], fused=True)
    images = torch.from_numpy(dataset.images)
    labels = model.standardise(torch.tensor(dataset.factors, dtype=torch.float32))
    rng = np.random.default_rng(0)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = float(np.interp(step, (0, steps), RATES))
        chosen = torch.from_numpy(rng.choice(dataset.split["train"], BATCH))
        x = images[chosen].permute(0, 3, 1, 2) / 255
        z = labels[chosen]
        loss = (decoder(z + NOISE * torch.randn_like(z)) - x).square().sum() / BATCH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def errors(model: LayeredCausalVAE, dataset: data.Dataset, effect: str) -> dict[str, float]:
    """Mean squared error of a pixel, of factual images and of counterfactual ones."""
    interventions = draw_interventions([effect], dataset, dataset.split["validation"], seed=0)
    factors = dataset.factors[interventions.indices]
    noise = getattr(dataset, "noise", None)
    own = {} if noise is None else {"noise": noise[interventions.indices]}
    truth = dataset.simulate(factors, {effect: interventions.values[effect]}, **own)

    def error(labels: np.ndarray, images: np.ndarray) -> np.ndarray:
        decoded = model.decode_latents(model.standardise(torch.tensor(labels, dtype=torch.float32)))
        difference = decoded.permute(0, 2, 3, 1).numpy() - images / 255
        return np.square(difference).mean(axis=(1, 2, 3))

    train = dataset.factors[dataset.split["train"]]
    group = list(
        next(g for g in model.composition.concept_groups if dataset.names.index(effect) in g)
    )
    seen = NearestNeighbors(n_neighbors=1).fit((train / train.std(axis=0))[:, group])
    asked = (truth.factors / train.std(axis=0))[:, group]
    near = seen.kneighbors(asked)[0][:, 0] <= NEAR
    after = error(truth.factors, truth.images)
    return {
        "as_it_is": float(error(factors, dataset.images[interventions.indices]).mean()),
        "near": float(after[near].mean()),
        "far": float(after[~near].mean()),
        "far_images": int((~near).sum()),
        "images": len(near),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    rows = []
    for name, effects in EFFECTS.items():
        dataset = {"pendulum": data.Pendulum, "flow": data.Flow}[name](size=64)
        model = LayeredCausalVAE.for_data(dataset)
        for kind, components in KINDS.items():
            start = time.process_time()
            train(model, dataset, components, arguments.steps)
            seconds = time.process_time() - start
            rows += [
                {
                    "data": name,
                    "decoders": kind,
                    "effect": effect,
                    **errors(model, dataset, effect),
                    "seconds": round(seconds),
                }
                for effect in effects
            ]
    table = Table(*rows[0], title=f"{arguments.steps} updates, decoded from true labels")
    for row in rows:
        table.add_row(*(f"{v:.1e}" if isinstance(v, float) else str(v) for v in row.values()))
    Console().print(table)
    if arguments.out:
        arguments.out.write_text(
            json.dumps({"steps": arguments.steps, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
