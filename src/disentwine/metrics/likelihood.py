"""The importance-weighted bound on the log-likelihood."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.errors import UsageError


def importance_log_likelihood(log_weights: FloatArray | Iterable[FloatArray]) -> Score:
    r"""$\frac1n \sum_i \log \frac1K \sum_{k=1}^K w_{ki}$, with $w_{ki} = \frac{p(x_i, z_k)}{q(z_k|x_i)}$.

    Sums are computed in the log domain, so no weight underflows. Samples may come in chunks that fit
    into memory.

    Reference: Importance Weighted Autoencoders, Y. Burda, R. Grosse and R. Salakhutdinov, 2016, eq. 8.

    Arguments:
        log_weights: $\log w$, a table (samples, images), or an iterable of such tables over the same
            images.

    Details: the bound `per_image`, its `standard_error` over images, and for each image the
    `effective_samples`, $(\sum_k w_k)^2 / \sum_k w_k^2$; with few of them the bound is loose.

    >>> importance_log_likelihood(np.log([[0.5, 0.1], [0.1, 0.3]])).details["per_image"]
    array([-1.2039728 , -1.60943791])
    """
    chunks = [log_weights] if isinstance(log_weights, np.ndarray) else log_weights
    total = squares = None
    samples = 0
    for chunk in chunks:
        table = np.asarray(chunk, dtype=np.float64)
        if table.ndim != 2 or table.size == 0:
            raise UsageError(f"log_weights must be tables (samples, images); got {table.shape}")
        if np.isnan(table).any() or (table == math.inf).any():
            raise UsageError("log_weights holds NaN or positive infinity")
        if total is not None and table.shape[1] != len(total):
            raise UsageError("log_weights: every chunk must cover the same images")
        samples += len(table)
        sums = np.logaddexp.reduce(table, axis=0)
        sums_of_squares = np.logaddexp.reduce(2 * table, axis=0)
        total = sums if total is None else np.logaddexp(total, sums)
        squares = sums_of_squares if squares is None else np.logaddexp(squares, sums_of_squares)
    if total is None or squares is None:
        raise UsageError("log_weights is empty; give at least one sample")
    bound = total - math.log(samples)
    n = len(bound)
    return Score(
        "log-likelihood",
        float(bound.mean()),
        n=n,
        details={
            "per_image": bound,
            "standard_error": float(bound.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan,
            "effective_samples": np.exp(2 * total - squares),
            "samples": samples,
        },
    )
