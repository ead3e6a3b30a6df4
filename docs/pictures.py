"""Make the pictures that README shows: python docs/pictures.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from disentwine import data
from disentwine.figures import labelled_rows, save_figure

HERE = Path(__file__).parent / "images"


def interventions() -> None:
    """One scene, and what it would have been had one thing been different."""
    pendulum = data.Pendulum(size=96)
    scene = pendulum.factors[[4400]]
    sweeps = {
        "pendulum_angle": np.linspace(-34, 36, 7),
        "light_angle": np.linspace(58, 128, 7),
        "shadow_length": np.linspace(3, 10, 7),
        "shadow_position": np.linspace(3, 17, 7),
    }
    rows = [
        np.concatenate([pendulum.simulate(scene, do={name: v}).images for v in values])
        for name, values in sweeps.items()
    ]
    labels = [f"do({name.replace('_', ' ')})" for name in sweeps]
    figure = labelled_rows(np.stack(rows), labels)
    print(save_figure(figure, HERE / "interventions.png"))


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    interventions()
