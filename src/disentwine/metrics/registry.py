"""Every score of codes and factors, with what it promises; one test holds each to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from disentwine.core.score import Score
from disentwine.metrics.disentanglement.dci import dci
from disentwine.metrics.disentanglement.factor_vae import factor_vae
from disentwine.metrics.disentanglement.info_mec import info_mec
from disentwine.metrics.disentanglement.irs import irs
from disentwine.metrics.disentanglement.mic_tic import mine
from disentwine.metrics.disentanglement.mig import mig
from disentwine.metrics.disentanglement.modularity import explicitness, modularity
from disentwine.metrics.disentanglement.sap import sap
from disentwine.metrics.disentanglement.z_diff import z_diff

Invariance = Literal["code order", "code sign", "common scale", "code scale", "code shift"]
"""What may be done to the codes without changing the score: scaling all of them alike, or each by its
own factor. The order of samples never matters."""

ANY = frozenset[Invariance](get_args(Invariance))


@dataclass(frozen=True)
class Metric:
    """A function of codes and factors, and its promises.

    Arguments:
        function: (codes, factors, *, seed) -> Score, or several at once.
        question: what it asks, in a few words.
        invariant_to: what may be done to the codes without changing the score.
        takes_kinds: whether it wants to know which factors are categories.
        takes_inactive: whether it may be told below which variance a code counts as constant.
        takes_names: whether codes may be names (`discrete_codes`) instead of quantities.
        seeded: whether another seed gives another value (of a sampled estimate).
    """

    function: Callable[..., Score | tuple[Score, ...]]
    question: str
    invariant_to: frozenset[Invariance] = ANY
    takes_kinds: bool = False
    takes_inactive: bool = False
    takes_names: bool = False
    seeded: bool = False


METRICS: dict[str, Metric] = {
    "z-diff": Metric(
        z_diff,
        "can the factor that two sets of images share be told linearly?",
        ANY - {"common scale", "code scale"},
        takes_names=True,
        seeded=True,
    ),
    "factor-vae": Metric(
        factor_vae, "does the steadiest code tell which factor a set shares?", seeded=True
    ),
    "sap": Metric(
        sap, "how far ahead is each factor's best code?", takes_kinds=True, takes_inactive=True
    ),
    "mig": Metric(mig, "how much more does each factor's best code know?", takes_names=True),
    "dci": Metric(
        dci,
        "does each code matter for one factor only?",
        takes_kinds=True,
        takes_names=True,
        seeded=True,
    ),
    "modularity": Metric(
        modularity, "does each code know of one factor at most?", takes_names=True
    ),
    "explicitness": Metric(
        explicitness,
        "can each factor be read off the code linearly?",
        takes_kinds=True,
        takes_names=True,
        seeded=True,
    ),
    "info-mec": Metric(
        info_mec,
        "is information modular, explicit, compact?",
        ANY - {"code scale"},
        takes_kinds=True,
        takes_names=True,
        seeded=True,
    ),
    "irs": Metric(
        irs,
        "does each code stay while other factors change?",
        ANY - {"code scale"},
    ),
    "mic-tic": Metric(mine, "how strongly does each factor depend on its best code?"),
}
