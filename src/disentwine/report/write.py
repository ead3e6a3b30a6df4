"""Figures while training; write_report."""

from __future__ import annotations

from pathlib import Path

from disentwine import figures
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.data.splits import evenly_spaced
from disentwine.evaluation.evaluate import Evaluation, evaluate_run
from disentwine.report.context import ReportContext
from disentwine.report.html import write_page
from disentwine.report.sections.overview import SECTIONS
from disentwine.runs.fit import OnSave
from disentwine.runs.run import Run, keep_scores
from disentwine.runs.storage import write_atomically


def write_report(
    run: Run,
    *,
    dataset: Dataset | None = None,
    found: Evaluation | None = None,
    effects: bool = False,
) -> Path:
    """Write `report.html` into a run folder, a page that needs no other file, and return its path.

    Its pictures are also kept one by one in the run's `figures`, and its scores for the explorer. A
    run that is still training can be reported on as well.

    Arguments:
        run: a run folder with at least one checkpoint.
        dataset: where images come from; by default the one the run was trained on, built anew.
        found: what `evaluate_run` found, when that was done already.
        effects: also read concepts back from do-images, as in `evaluate_run`.
    """
    chosen = dataset if dataset is not None else run.dataset
    found = found or evaluate_run(run, dataset=chosen, effects=effects)
    keep_scores(run, found.scores)
    subject = ReportContext(run, chosen, found)
    sections = [section for make in SECTIONS if (section := make(subject)) is not None]
    for section in sections:
        if section.picture is not None:
            write_atomically(run.figures / f"{section.picture.name}.png", section.picture.png)
    page = run.path / "report.html"
    html = write_page(
        title=subject.title, badge=subject.badge, summary=subject.summary, sections=sections
    )
    write_atomically(page, html)
    return page


PAIRS = 8


def figures_while_training(path: Path, dataset: Dataset) -> OnSave:
    """A hook for `fit` that redraws `reconstructions.png` and `losses.png` in the run's figures.

    Images are of the validation split; the report shows the test split when training is done.
    """
    originals = dataset.images[evenly_spaced(dataset.split["validation"], PAIRS)]

    def draw(model: Model, step: int) -> None:
        run = Run(path)
        pictures = {
            "reconstructions": figures.image_pairs(originals, model.reconstruct(originals)),
            "losses": figures.loss_curves(run.metrics),
        }
        for name, figure in pictures.items():
            write_atomically(run.figures / f"{name}.png", figures.to_png_bytes(figure))

    return draw
