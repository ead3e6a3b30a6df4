"""Rendering time of Pendulum and Flow, and difference of the renderings from the authors' images.

    python benchmarks/drawing.py

The differences need the authors' files in the folder of DISENTWINE_DATA. They are means over all
pixels, channels and images, on a scale of 0 to 255: by default, and with `pixel_snapping=True`.

Pendulum's images follow from its angles, so images are compared one by one. Flow's published labels
are truncated to integers and leave out the jet's noise e, so that several scenes share a label:
for each published image we render every filling of the cup that has its labels, at each e on a grid
from its smallest value 0.01 in steps of 0.002 to 0.036, and take the nearest image. The columns
of the cup are also compared alone, since e affects only the columns to their right.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TypeVar

import numpy as np

from disentwine.core.types import UInt8Array
from disentwine.data.synthetic.flow import Flow, render
from disentwine.data.synthetic.pendulum import Pendulum

Rendered = TypeVar("Rendered", Pendulum, Flow)

NOISE = np.arange(0.010, 0.037, 0.002)
EVERY = 10
"""A tenth of the published Flow images: each is compared with dozens of renderings."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--every", type=int, default=EVERY, help="every n-th Flow image")
    every = parser.parse_args().every
    pendulum, flow = timed(Pendulum), timed(Flow)
    folder = Path(os.environ.get("DISENTWINE_DATA", "")) / "causalvae"
    if not folder.is_dir():
        print("set DISENTWINE_DATA to compare with the authors' images")
        return
    with np.load(folder / "pendulum_96x96.npz", allow_pickle=False) as authors:
        theirs = authors["images"]
    with np.load(folder / "flow_noise_96x96.npz", allow_pickle=False) as authors:
        published, labels = authors["images"][::every], authors["labels"][::every]
    cup = slice(0, 46)
    for snapped in (False, True):
        ours = Pendulum(pixel_snapping=True) if snapped else pendulum
        nearest = nearest_renderings(flow, published, labels, snapped=snapped)
        alone = difference(nearest[:, :, cup], published[:, :, cup])
        how = "pixel_snapping" if snapped else "default"
        print(f"Pendulum, {how}, mean difference: {difference(ours.images[:], theirs):.4f}")
        print(
            f"Flow, {how}, mean difference: {difference(nearest, published):.4f} "
            f"({len(published)} images), in the columns of the cup: {alone:.4f}"
        )


def timed(dataset: type[Rendered]) -> Rendered:
    """Render a data set three times at 96 x 96 and print the least and the most seconds."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        rendered = dataset()
        seconds.append(time.perf_counter() - start)
    print(
        f"{dataset.__name__}, seconds to render {len(rendered):,} images: "
        f"{min(seconds):.2f} to {max(seconds):.2f}"
    )
    return rendered


def difference(ours: UInt8Array, theirs: UInt8Array) -> float:
    """Mean absolute difference."""
    chunks = (slice(i, i + 512) for i in range(0, len(ours), 512))
    return float(sum(_distance(ours[c], theirs[c]).sum() for c in chunks) / ours.size)


def nearest_renderings(
    flow: Flow, published: UInt8Array, labels: np.ndarray, *, snapped: bool
) -> UInt8Array:
    """For each published image the nearest of our renderings with its labels."""
    r, h, hole, reach = flow.factors.T
    ours = np.stack([r * 30 + 0.5, h, reach * 10, hole * 3 + 0.5], axis=1).astype(int)
    nearest = np.empty_like(published)
    for k, (image, label) in enumerate(zip(published, labels, strict=True)):
        candidates = flow.factors[(ours == label).all(axis=1)]
        scenes = np.repeat(candidates, len(NOISE), axis=0)
        rendered = render(
            scenes, np.tile(NOISE, len(candidates)), image.shape[0], pixel_snapping=snapped
        )
        nearest[k] = rendered[_distance(rendered, image).sum(axis=(1, 2, 3)).argmin()]
    return nearest


def _distance(a: UInt8Array, b: UInt8Array) -> UInt8Array:
    return np.maximum(a, b) - np.minimum(a, b)


if __name__ == "__main__":
    main()
