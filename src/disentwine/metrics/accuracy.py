"""Accuracies: of attributes read off a code, and of actions told from two images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from disentwine.contracts.dataset import FloatArray
from disentwine.contracts.score import Score
from disentwine.errors import UsageError
from disentwine.metrics.inputs import as_table


def attribute_accuracy(
    codes: ArrayLike, attributes: ArrayLike, test_codes: ArrayLike, test_attributes: ArrayLike
) -> Score:
    r"""Can binary attributes be read off a code along the difference of class means?

    $w^k = \overline{\mu(x)}_{y^k = 1} - \overline{\mu(x)}_{y^k = 0}$ on the training set; a bias for
    the projections on $w^k$ minimises the hinge loss; the score is the mean accuracy on the test set.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar, P. Sattigeri and A. Balakrishnan, 2018, table 2.

    Arguments:
        codes: (n, d) of the training images.
        attributes: (n, k) two values each; the larger is "yes".
        test_codes: (m, d).
        test_attributes: (m, k).

    Details: the accuracy `per_attribute`, and the `majority` share, which is the floor.

    >>> z = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> attribute_accuracy(z, z > 0.5, z, z > 0.5).value
    1.0
    """
    z, y = as_table(codes, "codes"), as_table(attributes, "attributes")
    test_z, test_y = (
        as_table(test_codes, "test_codes"),
        as_table(test_attributes, "test_attributes"),
    )
    if len(z) != len(y) or len(test_z) != len(test_y):
        raise UsageError("codes and attributes must have the same number of rows")
    accuracies, majorities = [], []
    for k, column in enumerate(y.T):
        values = np.unique(column)
        if len(values) != 2:
            raise UsageError(f"attributes: column {k} has {len(values)} values; it must have two")
        yes, test_yes = column == values[1], test_y[:, k] == values[1]
        w = z[yes].mean(axis=0) - z[~yes].mean(axis=0)
        scale = np.linalg.norm(w)
        w = w / scale if scale > 0 else w
        bias = _hinge_bias(z @ w, np.where(yes, 1.0, -1.0))
        accuracies.append(float(((test_z @ w + bias > 0) == test_yes).mean()))
        majorities.append(float(max(test_yes.mean(), 1 - test_yes.mean())))
    return Score(
        "attribute-accuracy",
        float(np.mean(accuracies)),
        n=len(test_z),
        noise_floor=float(np.mean(majorities)),
        details={"per_attribute": accuracies, "majority": majorities},
    )


def _hinge_bias(projections: FloatArray, sign: FloatArray) -> float:
    """The bias b that minimises the mean of max(0, 1 - sign (projection + b)), exactly.

    The loss is convex and piecewise linear in b, with a corner at each sign - projection.
    """
    corners = np.sort(sign - projections)
    # Slope right of the i-th corner: a positive sample stops pulling up at its corner, a negative
    # one begins to push down at its own; each corner raises the slope by one.
    slopes = np.arange(1, len(corners) + 1) - (sign > 0).sum()
    flat = np.flatnonzero(slopes >= 0)
    first = int(flat[0])
    if slopes[first] == 0 and first + 1 < len(corners):
        return float((corners[first] + corners[first + 1]) / 2)
    return float(corners[first])


def action_accuracy(predicted: ArrayLike, actions: ArrayLike) -> Score:
    """The share of pairs of images whose action was told rightly; the floor is the commonest action.

    Arguments:
        predicted: (n,) actions, or (n, actions) probabilities whose largest counts.
        actions: (n,) the true ones.

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
    """The same when only the factor that an action moves counts, not whether up or down.

    Arguments:
        predicted: (n,) actions, or (n, actions) probabilities whose largest counts.
        actions: (n,) the true ones.
        factor_of: the factor of each action; by default actions 2i and 2i + 1 move factor i.

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
