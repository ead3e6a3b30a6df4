"""Make the picture that README shows, from the run that `disentwine demo` leaves:

python docs/pictures.py runs/demo
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from disentwine import load_run
from disentwine.figures import labelled_rows, save_figure

HERE = Path(__file__).parent / "images"
SWEEPS = {
    "light_angle": np.linspace(62, 124, 7),
    "shadow_position": np.linspace(4, 16, 7),
}


def interventions(run: Path) -> None:
    """One test image, and what the model and the simulator say it would have been."""
    opened = load_run(run)
    model, pendulum = opened.model, opened.dataset
    test = pendulum.split["test"]
    chosen = np.abs(pendulum.factors[test][:, :2] - (8, 100)).sum(axis=1).argmin()
    index = test[[chosen]]
    rows, labels = [], []
    for name, values in SWEEPS.items():
        images, factors = (
            np.repeat(a[index], 7, axis=0) for a in (pendulum.images, pendulum.factors)
        )
        original = pendulum.images[index]
        made = model.do(images, {name: values}), pendulum.simulate(factors, {name: values}).images
        rows += [np.concatenate([original, pictures]) for pictures in made]
        spoken, to = name.replace("_", " "), f"{values[0]:g} to {values[-1]:g}"
        labels += [f"do({spoken})\n{to}", "the simulator's"]
    columns = ("the picture", *[""] * 7)
    print(save_figure(labelled_rows(np.stack(rows), labels, columns), HERE / "interventions.png"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    HERE.mkdir(exist_ok=True)
    interventions(Path(sys.argv[1]))
