"""The report of a run as one HTML page; figures while training."""

from __future__ import annotations

from pathlib import Path

from disentwine import figures
from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.model import Model
from disentwine.evaluation.evaluate import Evaluation, evaluate_run
from disentwine.report.context import ReportContext
from disentwine.report.html import write_page
from disentwine.report.sections.overview import SECTIONS
from disentwine.runs.run import Run, keep_scores
from disentwine.runs.storage import write_atomically
from disentwine.training.callbacks import Callback


def write_report(
    run: Run,
    *,
    dataset: Dataset | None = None,
    found: Evaluation | None = None,
    effects: bool = False,
) -> Path:
    """Write `report.html` into a run folder, a page that needs no other file, and return its path.

    Its figures are also written to the run's folder `figures`, and its scores are kept for the
    explorer. The run may still be training.

    Arguments:
        run: a run folder with at least one checkpoint.
        dataset: where images come from; by default the data set of the run's recipe.
        found: the result of `evaluate_run`, if it is known already.
        effects: also probe concepts in counterfactual images, as in `evaluate_run`.
    """
    chosen = dataset if dataset is not None else run.dataset
    found = found or evaluate_run(run, dataset=chosen, effects=effects)
    keep_scores(run, found.scores)
    context = ReportContext(run, chosen, found)
    sections = [section for make in SECTIONS if (section := make(context)) is not None]
    for section in sections:
        if section.image is not None:
            write_atomically(run.figures / f"{section.image.name}.png", section.image.png)
    page = run.path / "report.html"
    html = write_page(
        title=context.title, badge=context.badge, summary=context.summary, sections=sections
    )
    write_atomically(page, html)
    return page


PAIRS = 8


class FiguresWhileTraining(Callback):
    """Draws `reconstructions.png` and `losses.png` of a run after every checkpoint but the first.

    Images are from the validation split; the report shows the test split of the finished run.

    Arguments:
        path: the run folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_begin(self, model: Model, dataset: Dataset) -> None:
        self.dataset = dataset

    def on_save(self, model: Model, step: int) -> None:
        if step == 0:
            return
        run, dataset = Run(self.path), self.dataset
        originals = dataset.images[evenly_spaced(dataset.split["validation"], PAIRS)]
        drawn = {
            "reconstructions": figures.image_pairs(originals, model.reconstruct(originals)),
            "losses": figures.loss_curves(run.metrics),
        }
        for name, figure in drawn.items():
            write_atomically(run.figures / f"{name}.png", figures.to_png_bytes(figure))
