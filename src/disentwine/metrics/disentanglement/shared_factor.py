"""Z-diff and the FactorVAE metric: classifiers of the factor that images share."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.metrics._inputs import (
    ValueIndex,
    check_choice,
    check_counts,
    checked,
    noise_floor,
    varying,
)

Protocol = Literal["common", "paper"]
POINTS_AT_ONCE = 500
NUMBERS_AT_ONCE = 1 << 23
"""Latents of pairs held in memory at once: fewer points where each pixel is a latent."""


def z_diff(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    discrete_codes: bool = False,
    protocol: Protocol = "common",
    pairs: int = 64,
    train: int = 10_000,
    test: int = 5_000,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""Accuracy of a linear classifier of the factor that pairs of images share.

    A point is $\frac1L \sum_{l=1}^L |z_{1,l} - z_{2,l}|$ over L pairs that share the value of a factor
    y drawn at random; the score is the accuracy with which y is predicted from it. Details have the
    confusion matrix of the test points: true factors by predicted ones.

    Reference: beta-VAE: Learning Basic Visual Concepts with a Constrained Variational Framework,
    I. Higgins et al., 2017, section 3.

    Arguments:
        latents: (n, d), each image encoded once.
        factors: (n, k); pairs are found by their values.
        discrete_codes: whether the latents are codes of a quantizer: |z_1 - z_2| is 1 where they differ.
        protocol: "common" classifies by logistic regression, as later studies do; "paper" by a
            one-vs-rest linear SVM with C = .01, as Kumar et al., 2018.
        pairs: L, the pairs of a point.
        train: points to learn the classifier from.
        test: points to measure its accuracy on.
        seed: of the pairs.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    >>> v = np.array([[a, b] for a in range(8) for b in range(8)], float)
    >>> z_diff(v, v, train=400, test=200).value
    1.0
    """
    z, v = checked(latents, factors)
    check_counts(pairs=pairs, train=train, test=test)
    check_choice("protocol", protocol, get_args(Protocol))

    def confusion(z: FloatArray, v: FloatArray) -> NDArray[np.int64]:
        rng = np.random.default_rng([seed, 0])
        index = ValueIndex(v)
        points, y = _points(
            z, index, n=train + test, pairs=pairs, discrete_codes=discrete_codes, rng=rng
        )
        predicted = y[train:]
        if v.shape[1] > 1:
            classifier = _classifier(protocol).fit(points[:train], y[:train])
            predicted = classifier.predict(points[train:])
        counts = np.zeros((v.shape[1], v.shape[1]), dtype=np.int64)
        np.add.at(counts, (y[train:], predicted), 1)
        return counts

    def estimate(z: FloatArray, v: FloatArray) -> float:
        return _accuracy(confusion(z, v))

    found = confusion(z, v)
    return Score(
        "z-diff",
        _accuracy(found),
        n=len(z),
        noise_floor=noise_floor(estimate, z, v, seed=seed) if floor else None,
        details={
            "protocol": protocol,
            "pairs": pairs,
            "train": train,
            "test": test,
            "confusion": found.tolist(),
        },
    )


def _accuracy(confusion: NDArray[np.int64]) -> float:
    return float(np.trace(confusion) / confusion.sum())


def _points(
    z: FloatArray,
    index: ValueIndex,
    *,
    n: int,
    pairs: int,
    discrete_codes: bool,
    rng: np.random.Generator,
) -> tuple[FloatArray, NDArray[np.int64]]:
    y = rng.integers(index.k, size=n)
    points = np.empty((n, z.shape[1]))
    at_once = min(POINTS_AT_ONCE, max(1, NUMBERS_AT_ONCE // (pairs * z.shape[1])))
    for factor in range(index.k):
        rows = np.flatnonzero(y == factor)
        for some in np.array_split(rows, max(1, len(rows) // at_once)):
            first = rng.integers(index.n, size=(len(some), pairs))
            second = index.like(first, factor, rng)
            apart = z[first] != z[second] if discrete_codes else np.abs(z[first] - z[second])
            points[some] = apart.mean(axis=1)
    return points, y


def _classifier(protocol: Protocol) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    if protocol == "paper":
        return LinearSVC(C=0.01, loss="hinge", random_state=0, max_iter=10_000)
    return LogisticRegression(max_iter=1000)


def factor_vae(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    batch: int = 64,
    train: int = 10_000,
    test: int = 5_000,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""Accuracy of predicting the factor that images share from the latent that varies least.

    A vote is $\arg\min_i \frac{\mathrm{Var}(z_i \text{ over the set})}{\mathrm{Var}(z_i)}$; the score
    is the accuracy of the majority-vote classifier from votes to factors.

    Reference: Disentangling by Factorising, H. Kim and A. Mnih, 2018, section 4.

    Arguments:
        latents: (n, d), each image encoded once.
        factors: (n, k); sets are found by their values.
        batch: images of a set.
        train: votes to learn the classifier from.
        test: votes to measure its accuracy on.
        seed: of the sets.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    >>> v = np.array([[a, b] for a in range(8) for b in range(8)], float)
    >>> factor_vae(v, v, train=400, test=200).value
    1.0
    """
    z, v = checked(latents, factors)

    def estimate(z: FloatArray, v: FloatArray) -> float:
        rng = np.random.default_rng([seed, 0])
        index = ValueIndex(v)
        votes, y = _votes(z, index, n=train + test, batch=batch, rng=rng)
        table = np.zeros((z.shape[1], index.k))
        np.add.at(table, (votes[:train], y[:train]), 1)
        majority = table.argmax(axis=1)
        return float((majority[votes[train:]] == y[train:]).mean())

    return Score(
        "factor-vae",
        estimate(z, v),
        n=len(z),
        noise_floor=noise_floor(estimate, z, v, seed=seed) if floor else None,
        details={"batch": batch, "train": train, "test": test},
    )


def _votes(
    z: FloatArray, index: ValueIndex, *, n: int, batch: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    y = rng.integers(index.k, size=n)
    variance, active = z.var(axis=0, ddof=1), varying(z)
    votes = np.zeros(n, dtype=np.int64)
    if not active.any():
        return votes, y
    for factor in range(index.k):
        rows = np.flatnonzero(y == factor)
        for some in np.array_split(rows, max(1, len(rows) // 500)):
            anchor = rng.integers(index.n, size=(len(some), 1))
            sets = index.like(np.repeat(anchor, batch, axis=1), factor, rng)
            within = z[sets].var(axis=1, ddof=1)
            votes[some] = np.where(active, within / np.where(active, variance, 1), np.inf).argmin(1)
    return votes, y
