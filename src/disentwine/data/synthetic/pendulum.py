"""Pendulum: the angles of a pendulum and a light decide where a shadow falls and how far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import networkx as nx
import numpy as np

from disentwine.core.dataset import Dataset, Factor, Simulation
from disentwine.core.types import Do, FloatArray, UInt8Array
from disentwine.data.simulation import Mechanism, counterfactual
from disentwine.data.splits import random_split
from disentwine.data.synthetic.canvas import Canvas, draw_in_chunks, factor_table

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


def cast(
    x: FloatArray | float, y: FloatArray | float, angle: FloatArray, base: float
) -> FloatArray:
    r"""Where the ray through (x, y) meets the height `base`: $x + (base - y) / \tan \phi$."""
    phi = np.radians(angle)
    sine = np.sin(phi)
    return x + (base - y) * np.cos(phi) / np.where(np.abs(sine) < 1e-6, 1e-6, sine)


def shadow_ends(x: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Where the pivot and the far side of the ball throw their shadows."""
    theta, light = np.radians(x["pendulum_angle"]), x["light_angle"]
    tip = ROD + BALL
    far_side = PIVOT[0] + tip * np.sin(theta), PIVOT[1] - tip * np.cos(theta)
    return cast(*PIVOT, light, GROUND), cast(*far_side, light, GROUND)


def shadow_length(x: Mapping[str, FloatArray]) -> FloatArray:
    """The distance of both ends, though never less than 3."""
    a, b = shadow_ends(x)
    return np.maximum(SHORTEST_SHADOW, np.abs(a - b))


def shadow_position(x: Mapping[str, FloatArray]) -> FloatArray:
    """The middle of the shadow."""
    a, b = shadow_ends(x)
    return (a + b) / 2


MECHANISMS: dict[str, Mechanism] = {
    "shadow_length": shadow_length,
    "shadow_position": shadow_position,
}


class Pendulum(Dataset):
    """All 7,308 pictures of 84 pendulum angles and 87 light angles.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021.

    Arguments:
        size: height and width of the images in pixels, a multiple of 4 from 32 up.
        seed: decides which images are in train, validation and test.
        pixel_snapping: whether the shadow ends at whole pixels, as matplotlib draws it and so the
            authors' images
            have it; otherwise pixels are covered in part, and show every length and position exactly.

    >>> pendulum = Pendulum(size=32)
    >>> pendulum
    Pendulum(7,308 images of 32x32x3; pendulum_angle, light_angle, shadow_length, shadow_position)
    >>> pendulum.simulate(pendulum.factors[:1], do={"light_angle": 60}).factors.round(2)
    array([[-36.  ,  60.  ,   3.  ,   3.08]])
    """

    about: ClassVar[str] = "a pendulum, a light and the shadow they throw; 7,308 drawn images"
    graph = GRAPH
    spec = (
        Factor("pendulum_angle", unit="degrees"),
        Factor("light_angle", unit="degrees"),
        Factor("shadow_length", unit="scene units"),
        Factor("shadow_position", unit="scene units"),
    )

    def __init__(self, *, size: int = 96, seed: int = 0, pixel_snapping: bool = False) -> None:
        self.size = size
        self.seed = seed
        self.pixel_snapping = pixel_snapping
        i, j = np.arange(-40.0, 44.0), np.setdiff1d(np.arange(60.0, 148.0), 100.0)
        pendulum, light = (v.ravel() for v in np.meshgrid(0.9 * i, 0.9 * j, indexing="ij"))
        angles = {"pendulum_angle": pendulum, "light_angle": light}
        shadow = [shadow_length(angles), shadow_position(angles)]
        self.factors = np.stack([pendulum, light, *shadow], axis=1)
        self.images = draw(self.factors, size, pixel_snapping=pixel_snapping)
        self.split = random_split(len(self.factors), test=1826, validation=548, seed=seed)

    def simulate(
        self, factors: FloatArray, do: Do | None = None, *, noise: FloatArray | None = None
    ) -> Simulation:
        """Redraw the scenes of `factors` (n, 4) after an intervention; there is no other noise.

        An intervention on the shadow moves nothing but the shadow.
        """
        table = factor_table(factors, self.names)
        after = counterfactual(table, self.names, GRAPH, MECHANISMS, do)
        return Simulation(draw(after, self.size, pixel_snapping=self.pixel_snapping), after)


def draw(factors: FloatArray, size: int, *, pixel_snapping: bool = False) -> UInt8Array:
    """Images (n, size, size, 3) of the scenes in the table's rows."""

    def paint(canvas: Canvas, rows: slice) -> None:
        pendulum, light, length, position = factors[rows].T
        theta = np.radians(pendulum)
        ball = PIVOT[0] + ROD * np.sin(theta), PIVOT[1] - ROD * np.cos(theta)
        half = np.maximum(length, 0) / 2
        canvas.line(PIVOT, ball, width=3, color=BLACK)
        canvas.disc(ball, BALL, color=FIREBRICK)
        canvas.disc((cast(*PIVOT, light, SKY), SKY), LIGHT, color=ORANGE)
        shadow = (position - half, GROUND), (position + half, GROUND)
        canvas.line(*shadow, width=3, color=BLACK)

    return draw_in_chunks(
        len(factors), size, paint, xlim=(0, 20), ylim=(-1, 21), pixel_snapping=pixel_snapping
    )
