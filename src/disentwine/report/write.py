"""Writing a run's report."""

from __future__ import annotations

from pathlib import Path

from disentwine.contracts.dataset import Dataset
from disentwine.report.evaluation import Evaluation, evaluate_run
from disentwine.report.kept import keep_scores
from disentwine.report.page import write_page
from disentwine.report.sections import SECTIONS
from disentwine.report.subject import Subject
from disentwine.training.run import Run
from disentwine.training.storage import write_atomically


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
    subject = Subject(run, chosen, found)
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
