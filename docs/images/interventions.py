"""Make the figure of README from the run that `disentwine demo` leaves:

python docs/images/interventions.py runs/demo
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from disentwine import load_run
from disentwine.figures import labelled_rows, save_figure

HERE = Path(__file__).parent
SWEEPS = {
    "light_angle": np.linspace(62, 124, 7),
    "shadow_position": np.linspace(4, 16, 7),
}


def interventions(run: Path) -> None:
    """One test image, its counterfactuals, and the simulator's ground truth."""
    loaded = load_run(run)
    model, pendulum = loaded.model, loaded.dataset
    test = pendulum.split["test"]
    chosen = np.abs(pendulum.factors[test][:, :2] - (8, 100)).sum(axis=1).argmin()
    index = test[[chosen]]
    rows, labels = [], []
    for name, values in SWEEPS.items():
        images, factors = (
            np.repeat(a[index], 7, axis=0) for a in (pendulum.images, pendulum.factors)
        )
        original = pendulum.images[index]
        both = model.do(images, {name: values}), pendulum.simulate(factors, {name: values}).images
        rows += [np.concatenate([original, each]) for each in both]
        labels += [row_label(name, values), "ground truth"]
    save(np.stack(rows), labels)


def row_label(name: str, values: np.ndarray) -> str:
    """Such as "do(light angle)", and its range below."""
    return f"do({name.replace('_', ' ')})\n{values[0]:g} to {values[-1]:g}"


def save(rows: np.ndarray, labels: list[str]) -> None:
    """Write rows of images, (rows, columns, height, width, channels), with their labels."""
    columns = ("input", *[""] * (rows.shape[1] - 1))
    print(save_figure(labelled_rows(rows, labels, columns), HERE / "interventions.png"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    interventions(Path(sys.argv[1]))
