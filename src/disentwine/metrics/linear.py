"""How much of each factor a linear model reads off a code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from disentwine.contracts.dataset import FloatArray, IndexArray, Kind
from disentwine.metrics.inputs import features_of

FITTED = 2 / 3
"""The share of samples that models are fitted to; they are measured on the others."""


def explained(
    codes: FloatArray,
    factors: FloatArray,
    kinds: Sequence[Kind],
    *,
    discrete_codes: bool = False,
    seed: int = 0,
) -> float:
    r"""$\frac1K \sum_k \big(1 - \frac{\ell_k(z)}{\ell_k(\emptyset)}\big)$: the loss of a linear model of the
    code over that of one that sees nothing, both on samples that neither was fitted to.

    The loss is the log loss of classes, and the squared error of numbers; a model that is worse
    than none removes nothing.

    Arguments:
        codes: (n, d).
        factors: (n, k).
        kinds: of the factors.
        discrete_codes: codes are names, each of which has a weight.
        seed: of the samples that are held out.

    >>> z = np.random.default_rng(0).normal(size=(300, 3))
    >>> round(explained(z, z @ np.ones((3, 1)), ["continuous"]), 3)
    1.0
    """
    order = np.random.default_rng([seed, 2]).permutation(len(codes))
    fitted, held_out = np.split(order, [round(FITTED * len(order))])
    features = features_of(codes, fitted, discrete_codes=discrete_codes)
    shares = [
        (_of_classes if kind in ("binary", "categorical") else _of_numbers)(
            features, column, fitted, held_out
        )
        for column, kind in zip(factors.T, kinds, strict=True)
    ]
    return float(np.clip(shares, 0, 1).mean())


def _of_classes(
    features: Any, column: FloatArray, fitted: IndexArray, held_out: IndexArray
) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    known, counts = np.unique(column[fitted], return_counts=True)
    held_out = held_out[np.isin(column[held_out], known)]
    if len(known) < 2 or len(held_out) == 0:
        return 0.0
    y = np.searchsorted(known, column)
    model = LogisticRegression(C=100, max_iter=2000).fit(features[fitted], y[fitted])
    share = np.broadcast_to(counts / counts.sum(), (len(held_out), len(known)))
    loss, blind = (
        log_loss(y[held_out], p, labels=range(len(known)))
        for p in (model.predict_proba(features[held_out]), share)
    )
    return float(1 - loss / blind)


def _of_numbers(
    features: Any, column: FloatArray, fitted: IndexArray, held_out: IndexArray
) -> float:
    from sklearn.linear_model import Ridge

    # A penalty as light as one more sample, without which many names would fit anything.
    model = Ridge(alpha=1.0).fit(features[fitted], column[fitted])
    blind = np.square(column[held_out] - column[fitted].mean()).mean()
    loss = np.square(column[held_out] - model.predict(features[held_out])).mean()
    return float(1 - loss / blind) if blind > 0 else 0.0
