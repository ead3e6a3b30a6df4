"""Accuracy of attribute vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.errors import UsageError
from disentwine.metrics._inputs import as_table


def attribute_accuracy(
    latents: ArrayLike, attributes: ArrayLike, test_latents: ArrayLike, test_attributes: ArrayLike
) -> Score:
    r"""Accuracy of binary attributes predicted along the difference of class means.

    $w^k = \overline{\mu(x)}_{y^k = 1} - \overline{\mu(x)}_{y^k = 0}$ on the training set; a bias for
    the projections on $w^k$ minimises the hinge loss; the score is the mean accuracy on the test set.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar, P. Sattigeri and A. Balakrishnan, 2018, table 2.

    Arguments:
        latents: (n, d) of the training images.
        attributes: (n, k) two values each; the larger is "yes".
        test_latents: (m, d).
        test_attributes: (m, k).

    Details: the accuracy `per_attribute`, and the `majority` share, which is the chance level.

    >>> z = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> attribute_accuracy(z, z > 0.5, z, z > 0.5).value
    1.0
    """
    z, y = as_table(latents, "latents"), as_table(attributes, "attributes")
    test_z, test_y = (
        as_table(test_latents, "test_latents"),
        as_table(test_attributes, "test_attributes"),
    )
    if len(z) != len(y) or len(test_z) != len(test_y):
        raise UsageError("latents and attributes must have the same number of rows")
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
