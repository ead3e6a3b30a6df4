"""Flow simulator: a ball raises water in a cup; height and hole determine the jet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import networkx as nx
import numpy as np

from disentwine.core.dataset import Factor, Simulation, random_split
from disentwine.core.types import Do, FloatArray, UInt8Array
from disentwine.data.simulation import Mechanism, RenderedDataset, Rendering, counterfactual
from disentwine.data.synthetic.canvas import (
    Canvas,
    check_rendering,
    factor_table,
    render_in_chunks,
)
from disentwine.errors import UsageError

CUP_LEFT, CUP_RIGHT, CUP_TOP = 3.0, 8.0, 19.0
FILLED, HOLE, FLOOR, GROUND = 5.0, 0.4, 0.5, 0.2
GRAVITY = 0.98
BLACK, FIREBRICK, SKYBLUE = (0, 0, 0), (178, 34, 34), (135, 206, 250)
# The mean of .01 max(|N(0, 1)|, 1).
MEAN_NOISE = 0.01 * (math.erf(math.sqrt(0.5)) + math.sqrt(2 / math.pi / math.e))

GRAPH = nx.freeze(
    nx.DiGraph([("ball_size", "water_height"), ("water_height", "flow"), ("hole", "flow")])
)


def displaced(x: Mapping[str, FloatArray]) -> FloatArray:
    """The rise of the water due to the ball: the cube of its radius."""
    raised: FloatArray = x["ball_size"] ** 3
    return raised


def flow(x: Mapping[str, FloatArray]) -> FloatArray:
    r"""Mechanism of the flow: the reach of the jet, $\sqrt{2 g h (d - .5)}$, 0 without water or fall."""
    height, fall = np.maximum(x["water_height"], 0), np.maximum(x["hole"] - FLOOR, 0)
    return np.sqrt(2 * GRAVITY * height * fall)


MECHANISMS: dict[str, Mechanism] = {"water_height": displaced, "flow": flow}


class Flow(RenderedDataset):
    r"""All 8,100 images of 30 ball sizes, 30 water levels and 9 heights of the hole.

    Images are rendered on first use. Factors are exact and no image is missing; the published files
    truncate labels to integers and lack images whose truncated labels coincide.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021.

    Arguments:
        size: height and width of the images in pixels, a multiple of 4 from 32 up.
        seed: of the split and of the jets' noise.
        pixel_snapping: whether water and hole snap to whole pixels, as in matplotlib and in the
            authors' images; otherwise edges are anti-aliased and show every height exactly.

    Attributes:
        noise: (n,) the deviation of gravity in each image, $.01 \max(|N(0, 1)|, 1)$; it changes the
            jet but not the label.

    >>> cups = Flow(size=32)
    >>> cups
    Flow(8,100 images of 32x32x3; ball_size, water_height, hole, flow)
    >>> cups.simulate(cups.factors[:1], do={"ball_size": 1.0}).factors.round(2)
    array([[1.  , 2.  , 2.  , 2.42]])
    """

    about: ClassVar[str] = "a ball, the water in a cup, a hole and the jet; 8,100 rendered images"
    graph = GRAPH
    spec = tuple(
        Factor(name, unit="scene units") for name in ("ball_size", "water_height", "hole", "flow")
    )

    def __init__(self, *, size: int = 96, seed: int = 0, pixel_snapping: bool = False) -> None:
        check_rendering(size, pixel_snapping)
        self.size = size
        self.seed = seed
        self.pixel_snapping = pixel_snapping
        grid = np.meshgrid(np.arange(5, 35), np.arange(10, 40), np.arange(6, 15), indexing="ij")
        r, h_raw, hole = (v.ravel() for v in grid)
        causes = {"ball_size": r / 30, "hole": hole / 3}
        causes["water_height"] = displaced(causes) + h_raw / 10
        self.factors = np.stack(
            [causes["ball_size"], causes["water_height"], causes["hole"], flow(causes)], axis=1
        )
        n = len(self.factors)
        self.split = random_split(n, test=round(0.2 * n), validation=round(0.08 * n), seed=seed)
        # A separate random stream: an image's noise is independent of the split.
        spread = np.abs(np.random.default_rng([seed, 1]).standard_normal(n))
        self.noise: FloatArray = 0.01 * np.maximum(spread, 1)
        factors, noise = self.factors.copy(), self.noise.copy()
        self.rendering = Rendering(
            (n, size, size, 3), partial(render, factors, noise, size, pixel_snapping=pixel_snapping)
        )

    def simulate(
        self, factors: FloatArray, do: Do | None = None, *, noise: FloatArray | None = None
    ) -> Simulation:
        """Render the scenes of `factors` (n, 4) after an intervention.

        An intervention on the flow changes the jet alone. Shapes of negative size are left out;
        shapes beyond the axes are clipped.

        Arguments:
            factors: (n, 4) ball size, water height, hole, flow.
            do: the intervention.
            noise: (n,) as in the attribute `noise`, or its mean when omitted.
        """
        table = factor_table(factors, self.names)
        if noise is None:
            noise = np.full(len(table), MEAN_NOISE)
        noise = np.asarray(noise, dtype=np.float64)
        if noise.shape != (len(table),) or not np.isfinite(noise).all():
            raise UsageError(
                f"noise: give one finite number for each of the {len(table)} images, "
                f"got shape {noise.shape}"
            )
        after = counterfactual(table, self.spec, GRAPH, MECHANISMS, do)
        return Simulation(
            render(after, noise, self.size, pixel_snapping=self.pixel_snapping), after
        )


def render(
    factors: FloatArray, noise: FloatArray, size: int, *, pixel_snapping: bool = False
) -> UInt8Array:
    """Render a table of factors (n, 4) and the noise (n,) of the jets as images (n, size, size, 3)."""

    def render_rows(canvas: Canvas, rows: slice) -> None:
        ball, height, hole, flow = factors[rows].T
        reach = flow * np.sqrt(np.maximum(GRAVITY + noise[rows], 0) / GRAVITY)
        edge = np.clip(hole, 0, CUP_TOP - HOLE)
        canvas.rectangle((CUP_LEFT, 0.0), (CUP_RIGHT, FILLED + height), color=SKYBLUE)
        middle = (CUP_LEFT + CUP_RIGHT) / 2
        canvas.disc((middle, ball + FLOOR), ball, color=FIREBRICK)
        canvas.line((CUP_LEFT, 0.0), (CUP_LEFT, CUP_TOP), width=2, color=BLACK)
        canvas.line((CUP_RIGHT, 0.0), (CUP_RIGHT, edge), width=2, color=BLACK)
        canvas.line((CUP_RIGHT, edge + HOLE), (CUP_RIGHT, CUP_TOP), width=2, color=BLACK)
        canvas.falling_arc((CUP_RIGHT, hole), reach, hole - FLOOR, width=2, color=SKYBLUE)
        canvas.line((-1.0, GROUND), (21.0, GROUND), width=2, color=BLACK)

    return render_in_chunks(
        len(factors), size, render_rows, xlim=(0, 20), ylim=(0, 20), pixel_snapping=pixel_snapping
    )
