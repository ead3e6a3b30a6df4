"""Number of active latents, by variance over images or by KL divergence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disentwine.core.score import Score
from disentwine.core.types import ACTIVE_NATS, ACTIVE_VARIANCE
from disentwine.errors import UsageError


def active_units(latents: NDArray[np.floating], *, discrete_codes: bool = False) -> Score:
    r"""The number of latents $i$ with $\mathrm{Var}_x\big(\mathbb{E}[z_i|x]\big) > 0.01$.

    For quantized codes, it is the variance of their one-hot vectors, $1 - \sum_k p_k^2$.

    Reference: Importance Weighted Autoencoders, Y. Burda, R. Grosse and R. Salakhutdinov, 2016,
    section 5.2.

    Arguments:
        latents: (n, d), the posterior mean of each image.
        discrete_codes: whether the latents are codes of a quantizer.

    >>> latents = np.stack([np.linspace(-1, 1, 9), np.zeros(9)], axis=1)
    >>> active_units(latents).value, active_units(latents).details["active"]
    (1.0, [True, False])
    """
    if latents.ndim != 2 or len(latents) == 0:
        raise UsageError(
            f"latents must be a table (n, d) with at least one row; got {latents.shape}"
        )
    variance = (
        np.array([_impurity(column) for column in latents.T])
        if discrete_codes
        else latents.var(axis=0, dtype=np.float64)
    )
    about = f"of {latents.shape[1]}: latents that vary by more than {ACTIVE_VARIANCE} over images"
    return _count(variance > ACTIVE_VARIANCE, n=len(latents), about=about)


def active_by_kl(kl: NDArray[np.floating], *, n: int) -> Score:
    """The number of latents of a hierarchy whose KL divergence is above 0.01 nats.

    It replaces `active_units` where the prior of a latent depends on the layer above.

    Arguments:
        kl: (d,) mean KL divergence of each latent from its prior, in nats.
        n: images that it is the mean of.

    >>> active_by_kl(np.array([0.5, 0.001]), n=100).details["active"]
    [True, False]
    """
    about = f"of {len(kl)}: latents whose KL divergence from their prior exceeds {ACTIVE_NATS} nats"
    return _count(kl > ACTIVE_NATS, n=n, about=about)


def _count(active: NDArray[np.bool_], *, n: int, about: str) -> Score:
    details = {"about": about, "active": active.tolist()}
    return Score("active-units", float(active.sum()), n=n, details=details)


def _impurity(codes: NDArray[np.floating]) -> float:
    share = np.unique(codes, return_counts=True)[1] / len(codes)
    return float(1 - np.square(share).sum())
