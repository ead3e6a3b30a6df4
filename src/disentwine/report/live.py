"""Pictures of a run while it trains."""

from __future__ import annotations

from pathlib import Path

from disentwine import figures
from disentwine.contracts.dataset import Dataset
from disentwine.contracts.model import Model
from disentwine.data.splits import spread
from disentwine.training.fit import OnSave
from disentwine.training.run import Run
from disentwine.training.storage import write_atomically

PAIRS = 8


def live_figures(path: Path, dataset: Dataset) -> OnSave:
    """A hook for `fit` that redraws `reconstructions.png` and `losses.png` in the run's figures.

    Images are of the validation split; the report shows the test split when training is done.
    """
    originals = dataset.images[spread(dataset.split["validation"], PAIRS)]

    def draw(model: Model, step: int) -> None:
        run = Run(path)
        pictures = {
            "reconstructions": figures.image_pairs(originals, model.reconstruct(originals)),
            "losses": figures.loss_curves(run.metrics),
        }
        for name, figure in pictures.items():
            write_atomically(run.figures / f"{name}.png", figures.to_png_bytes(figure))

    return draw
