"""The sections of a report on models that act: what actions do, and which are taken for which."""

from __future__ import annotations

from typing import Any

from disentwine import figures
from disentwine.contracts.capabilities import Transits
from disentwine.data.splits import spread
from disentwine.figures.actions import confusion_matrix
from disentwine.report.action_figures import graphs_of, repeated_figure
from disentwine.report.page import Picture, Section
from disentwine.report.subject import Subject, number

REPEATS = 5
MEAN_OF = 64
"""Images that masks and graphs are a mean of."""


def actions(subject: Subject) -> Section | None:
    """One image under every action, again and again."""
    model: Any = subject.model
    if not isinstance(model, Transits):
        return None
    figure = repeated_figure(model, subject.dataset, subject.found.indices, times=REPEATS)
    if figure is None:
        return None
    text = (
        f"One test image, its reconstruction, and what {REPEATS} actions make of it, one by one, each beside "
        "the real image, as far as factors go and the data have it."
    )
    share = subject.found.score("intervention-share")
    if share is not None:
        less = number(round(share.value, 3))
        text += f" The error of a pixel after one is {less} of that of doing nothing."
    return Section(
        "What actions do",
        text,
        Picture(
            "actions",
            f"Images under {', '.join(model.actions)}",
            figures.to_png_bytes(figure),
        ),
    )


def confusions(subject: Subject) -> Section | None:
    """Which action is taken for which."""
    score = subject.found.score("action-accuracy")
    factor = subject.found.score("factor-accuracy")
    if score is None or factor is None or "confusion" not in score.details:
        return None
    text = (
        f"Of {score.n:,} pairs of images the action is retrieved in {score.value:.1%}, its factor in "
        f"{factor.value:.1%}; always answering the commonest would be right in "
        f"{score.noise_floor or 0:.1%} and {factor.noise_floor or 0:.1%}."
    )
    figure = confusion_matrix(score.details["confusion"], score.details["names"])
    return Section(
        "Which action it was",
        text,
        Picture(
            "confusion",
            "Heat map of true actions by retrieved ones",
            figures.to_png_bytes(figure),
        ),
    )


def touched(subject: Subject) -> Section | None:
    """Where each action is felt, and which codes depend on which."""
    model: Any = subject.model
    if not isinstance(model, Transits) or not hasattr(model, "graphs"):
        return None
    images = subject.dataset.images[spread(subject.found.indices, MEAN_OF)]
    return Section(
        "What each action touches",
        "Above, how likely an action changes the codes of each place of the picture; below, how likely a "
        f"code after it (row) depends on a code before it (column). Means of {len(images)} images, the "
        "darker the likelier; to do nothing should touch nothing, and leave every code to itself.",
        Picture(
            "touched",
            "Maps of where each action is felt, and matrices of which codes depend on which",
            figures.to_png_bytes(graphs_of(model, images)),
        ),
    )
