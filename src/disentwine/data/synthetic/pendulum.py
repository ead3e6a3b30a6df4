"""Pendulum simulator: pendulum angle and light angle determine a shadow."""

from __future__ import annotations

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

PIVOT = (10.0, 10.5)
ROD, BALL, LIGHT = 8.0, 1.5, 3.0  # length of the rod, radii of the two discs
SKY, GROUND = 20.5, -0.5
SHORTEST_SHADOW = 3.0
BLACK, FIREBRICK, ORANGE = (0, 0, 0), (178, 34, 34), (255, 165, 0)

GRAPH = nx.freeze(
    nx.DiGraph(
        (cause, effect)
        for cause in ("pendulum_angle", "light_angle")
        for effect in ("shadow_length", "shadow_position")
    )
)


def project_ray(
    x: FloatArray | float, y: FloatArray | float, angle: FloatArray, base: float
) -> FloatArray:
    r"""Project a light ray through (x, y) onto the height `base`: $x + (base - y) / \tan \phi$."""
    phi = np.radians(angle)
    sine = np.sin(phi)
    return x + (base - y) * np.cos(phi) / np.where(np.abs(sine) < 1e-6, 1e-6, sine)


def shadow_ends(x: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Both ends of the shadow: projections of the pivot and of the far side of the ball."""
    theta, light = np.radians(x["pendulum_angle"]), x["light_angle"]
    tip = ROD + BALL
    far_side = PIVOT[0] + tip * np.sin(theta), PIVOT[1] - tip * np.cos(theta)
    return project_ray(*PIVOT, light, GROUND), project_ray(*far_side, light, GROUND)


def shadow_length(x: Mapping[str, FloatArray]) -> FloatArray:
    """Mechanism of the shadow length: the distance of both ends, at least 3."""
    a, b = shadow_ends(x)
    return np.maximum(SHORTEST_SHADOW, np.abs(a - b))


def shadow_position(x: Mapping[str, FloatArray]) -> FloatArray:
    """Mechanism of the shadow position: the midpoint of both ends."""
    a, b = shadow_ends(x)
    return (a + b) / 2


MECHANISMS: dict[str, Mechanism] = {
    "shadow_length": shadow_length,
    "shadow_position": shadow_position,
}


class Pendulum(RenderedDataset):
    """All 7,308 images of 84 pendulum angles and 87 light angles.

    Images are rendered on first use.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021.

    Arguments:
        size: height and width of the images in pixels, a multiple of 4 from 32 up.
        seed: of the split.
        pixel_snapping: whether the ends of the shadow snap to whole pixels, as in matplotlib and in
            the authors' images; otherwise edges are anti-aliased and show every length exactly.

    >>> pendulum = Pendulum(size=32)
    >>> pendulum
    Pendulum(7,308 images of 32x32x3; pendulum_angle, light_angle, shadow_length, shadow_position)
    >>> pendulum.simulate(pendulum.factors[:1], do={"light_angle": 60}).factors.round(2)
    array([[-36.  ,  60.  ,   3.  ,   3.08]])
    """

    about: ClassVar[str] = "a pendulum, a light and the pendulum's shadow; 7,308 rendered images"
    graph = GRAPH
    spec = (
        Factor("pendulum_angle", unit="degrees"),
        Factor("light_angle", unit="degrees"),
        Factor("shadow_length", unit="scene units"),
        Factor("shadow_position", unit="scene units"),
    )

    def __init__(self, *, size: int = 96, seed: int = 0, pixel_snapping: bool = False) -> None:
        check_rendering(size, pixel_snapping)
        self.size = size
        self.seed = seed
        self.pixel_snapping = pixel_snapping
        i, j = np.arange(-40.0, 44.0), np.setdiff1d(np.arange(60.0, 148.0), 100.0)
        pendulum, light = (v.ravel() for v in np.meshgrid(0.9 * i, 0.9 * j, indexing="ij"))
        angles = {"pendulum_angle": pendulum, "light_angle": light}
        shadow = [shadow_length(angles), shadow_position(angles)]
        self.factors = np.stack([pendulum, light, *shadow], axis=1)
        self.rendering = Rendering(
            (len(self.factors), size, size, 3),
            partial(render, self.factors.copy(), size, pixel_snapping=pixel_snapping),
        )
        self.split = random_split(len(self.factors), test=1826, validation=548, seed=seed)

    def simulate(
        self, factors: FloatArray, do: Do | None = None, *, noise: FloatArray | None = None
    ) -> Simulation:
        """Render the scenes of `factors` (n, 4) after an intervention; there is no other noise.

        An intervention on the shadow changes the shadow alone.
        """
        table = factor_table(factors, self.names)
        after = counterfactual(table, self.spec, GRAPH, MECHANISMS, do)
        return Simulation(render(after, self.size, pixel_snapping=self.pixel_snapping), after)


def render(factors: FloatArray, size: int, *, pixel_snapping: bool = False) -> UInt8Array:
    """Render a table of factors (n, 4) as images (n, size, size, 3)."""

    def render_rows(canvas: Canvas, rows: slice) -> None:
        pendulum, light, length, position = factors[rows].T
        theta = np.radians(pendulum)
        ball = PIVOT[0] + ROD * np.sin(theta), PIVOT[1] - ROD * np.cos(theta)
        half = np.maximum(length, 0) / 2
        canvas.line(PIVOT, ball, width=3, color=BLACK)
        canvas.disc(ball, BALL, color=FIREBRICK)
        canvas.disc((project_ray(*PIVOT, light, SKY), SKY), LIGHT, color=ORANGE)
        shadow = (position - half, GROUND), (position + half, GROUND)
        canvas.line(*shadow, width=3, color=BLACK)

    return render_in_chunks(
        len(factors), size, render_rows, xlim=(0, 20), ylim=(-1, 21), pixel_snapping=pixel_snapping
    )
