"""Registry of disentanglement metrics and their invariances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from disentwine.core.score import Score
from disentwine.metrics.disentanglement.dci import dci
from disentwine.metrics.disentanglement.gaps import mig, sap
from disentwine.metrics.disentanglement.info_mec import info_mec
from disentwine.metrics.disentanglement.irs import irs
from disentwine.metrics.disentanglement.mic_tic import mine
from disentwine.metrics.disentanglement.modularity import explicitness, modularity
from disentwine.metrics.disentanglement.shared_factor import factor_vae, z_diff

Invariance = Literal["latent order", "latent sign", "common scale", "latent scale", "latent shift"]
"""Transformations of the latents that leave the score unchanged; "common scale" scales all alike,
"latent scale" each by its own factor. The order of samples never matters."""

ANY = frozenset[Invariance](get_args(Invariance))


@dataclass(frozen=True)
class Metric:
    """A function of latents and factors, and its properties.

    Arguments:
        function: (latents, factors, *, seed) -> Score, or several at once.
        about: what it measures, in a few words.
        invariant_to: transformations of the latents that leave the score unchanged.
        takes_kinds: whether it has an option for the kinds of factors.
        takes_inactive: whether it has an option for the variance of inactive latents.
        takes_codes: whether latents may be codes of a quantizer (`discrete_codes`).
        seeded: whether the value depends on the seed (of a sampled estimate).
    """

    function: Callable[..., Score | tuple[Score, ...]]
    about: str
    invariant_to: frozenset[Invariance] = ANY
    takes_kinds: bool = False
    takes_inactive: bool = False
    takes_codes: bool = False
    seeded: bool = False


METRICS: dict[str, Metric] = {
    "z-diff": Metric(
        z_diff,
        "accuracy of a linear classifier of the factor that pairs share",
        ANY - {"common scale", "latent scale"},
        takes_codes=True,
        seeded=True,
    ),
    "factor-vae": Metric(
        factor_vae,
        "accuracy of the factor that images share, from their least varying latent",
        seeded=True,
    ),
    "sap": Metric(
        sap,
        "score gap between the two most predictive latents (Kumar 2018)",
        takes_kinds=True,
        takes_inactive=True,
    ),
    "mig": Metric(
        mig, "gap in mutual information between the two most informative latents", takes_codes=True
    ),
    "dci": Metric(
        dci,
        "disentanglement by importances of latents in boosted trees",
        takes_kinds=True,
        takes_codes=True,
        seeded=True,
    ),
    "modularity": Metric(
        modularity, "information of each latent on one factor at most", takes_codes=True
    ),
    "explicitness": Metric(
        explicitness,
        "AUC of linear classifiers of each factor, chance is 0",
        takes_kinds=True,
        takes_codes=True,
        seeded=True,
    ),
    "info-mec": Metric(
        info_mec,
        "modularity of normalised mutual information (InfoM)",
        ANY - {"latent scale"},
        takes_kinds=True,
        takes_codes=True,
        seeded=True,
    ),
    "irs": Metric(
        irs,
        "robustness of latents to changes of other factors",
        ANY - {"latent scale"},
    ),
    "mic-tic": Metric(mine, "dependence of each factor on its most informative latent"),
}
