"""Action and factor accuracy of retrieval; image errors after an action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from disentwine.core.score import Score
from disentwine.core.types import UInt8Array
from disentwine.errors import UsageError
from disentwine.metrics.images import over, squared_error


def action_accuracy(predicted: ArrayLike, actions: ArrayLike) -> Score:
    """Share of image pairs whose action is retrieved; the floor is always predicting the most frequent
    action.

    Arguments:
        predicted: (n,) actions, or (n, actions) probabilities; the largest counts.
        actions: (n,) true actions.

    >>> action_accuracy([0, 1, 2, 2], [0, 1, 2, 3]).value
    0.75
    """
    guess, truth = _actions(predicted, "predicted"), _actions(actions, "actions")
    if len(guess) != len(truth) or len(truth) == 0:
        raise UsageError(
            f"predicted has {len(guess)} rows and actions has {len(truth)}; give a row a pair"
        )
    _, counts = np.unique(truth, return_counts=True)
    return Score(
        "action-accuracy",
        float((guess == truth).mean()),
        n=len(truth),
        noise_floor=float(counts.max() / len(truth)),
    )


def factor_accuracy(
    predicted: ArrayLike, actions: ArrayLike, *, factor_of: Sequence[int] | None = None
) -> Score:
    """Share of image pairs whose factor is retrieved, whatever the direction of the action.

    Arguments:
        predicted: (n,) actions, or (n, actions) probabilities; the largest counts.
        actions: (n,) true actions.
        factor_of: the factor of each action; by default actions 2i and 2i + 1 change factor i.

    >>> factor_accuracy([0, 1, 2, 2], [1, 1, 2, 3]).value
    1.0
    """
    guess, truth = _actions(predicted, "predicted"), _actions(actions, "actions")
    most = int(max(guess.max(initial=0), truth.max(initial=0)))
    table = np.arange(most + 1) // 2 if factor_of is None else np.asarray(factor_of, dtype=np.int64)
    if len(table) <= most:
        raise UsageError(f"factor_of names {len(table)} actions; there is an action {most}")
    score = action_accuracy(table[guess], table[truth])
    return Score("factor-accuracy", score.value, n=score.n, noise_floor=score.noise_floor)


def _actions(values: ArrayLike, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    table = np.asarray(values)
    if table.ndim == 2:
        if not np.isfinite(table).all():
            raise UsageError(f"{name} holds NaN or infinity")
        table = table.argmax(axis=1)
    if table.ndim != 1 or not np.issubdtype(table.dtype, np.integer) or (table < 0).any():
        raise UsageError(f"{name} must be whole numbers from 0 up, or a table of probabilities")
    return table.astype(np.int64)


def retrieval_scores(
    probabilities: ArrayLike,
    actions: ArrayLike,
    *,
    names: Sequence[str],
    factors: Sequence[int],
    unseen: ArrayLike | None = None,
) -> list[Score]:
    """Action and factor accuracy, with the confusion matrix of actions among the details.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, Table 1.

    Arguments:
        probabilities: (n, actions) for each pair of images, or scores in the same order.
        actions: (n,) true actions.
        names: of the actions.
        factors: (actions,) the factor that each action changes.
        unseen: (n,) whether neither image of a pair is in the training images, not even as a duplicate.
            If there are such pairs, the same two scores for these pairs follow.

    >>> q = [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.1, 0.2, 0.7]]
    >>> action, factor = retrieval_scores(q, [0, 1, 2], names=["+x", "-x", "+y"], factors=[0, 0, 1])
    >>> round(action.value, 3), factor.value
    (0.667, 1.0)
    """
    q, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(actions, dtype=np.int64)
    if q.shape != (len(truth), len(names)) or len(truth) == 0:
        raise UsageError(
            f"probabilities {q.shape} do not fit {len(truth)} pairs and {len(names)} actions"
        )
    confusion = np.zeros((len(names), len(names)), np.int64)
    np.add.at(confusion, (truth, q.argmax(axis=1)), 1)
    action, factor = action_accuracy(q, truth), factor_accuracy(q, truth, factor_of=factors)
    scores = [
        replace(
            action,
            details={
                "about": "share of pairs whose action was retrieved",
                "names": list(names),
                "confusion": confusion.tolist(),
            },
        ),
        replace(factor, details={"about": "share of pairs whose factor was retrieved"}),
    ]
    if unseen is not None and np.any(unseen):
        some = np.asarray(unseen, dtype=bool)
        scores += [
            replace(
                score,
                name=f"{score.name}-unseen",
                details={"about": "the same for pairs without training images"},
            )
            for score in retrieval_scores(q[some], truth[some], names=names, factors=factors)
        ]
    return scores


def intervention_scores(
    *, predicted: UInt8Array, truth: UInt8Array, before: UInt8Array, reconstructed: UInt8Array
) -> tuple[Score, Score, Score]:
    r"""Image error after an action: absolute, relative to the reconstruction error, and relative to the
    unchanged image.

    With the mean squared pixel error $e = \overline{(\hat y - y)^2}$, these are e,
    $e \,/\, \overline{(\tilde y - y)^2}$ for the reconstruction $\tilde y$ of the real image, and
    $e \,/\, \overline{(x - y)^2}$; NaN where the denominator is 0.

    Arguments:
        predicted: (n, height, width, channels) the model's images after the action on x.
        truth: y, the real images after the action.
        before: x, the images before the action.
        reconstructed: the model's reconstructions of y.

    >>> black, white = np.zeros((1, 2, 2, 1), np.uint8), np.full((1, 2, 2, 1), 255, np.uint8)
    >>> [score.value for score in intervention_scores(
    ...     predicted=white, truth=white, before=black, reconstructed=black)]
    [0.0, 0.0, 0.0]
    """
    for stack in (predicted, before, reconstructed):
        if stack.shape != truth.shape or stack.size == 0:
            raise UsageError(f"images of shape {stack.shape} cannot be compared to {truth.shape}")
    error, own = squared_error(predicted, truth), squared_error(reconstructed, truth)
    nothing = squared_error(before, truth)
    n = len(truth)
    return (
        Score(
            "intervention-error",
            error,
            n,
            details={"about": "squared pixel error after an action, against the real image"},
        ),
        Score(
            "intervention-ratio",
            over(error, own),
            n,
            details={"about": "the same relative to the reconstruction error of the real image"},
        ),
        Score(
            "intervention-share",
            over(error, nothing),
            n,
            details={"about": "the same relative to the error of the unchanged image"},
        ),
    )
