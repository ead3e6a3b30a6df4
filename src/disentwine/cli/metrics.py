"""Which scores a user asks for by name."""

from __future__ import annotations

from disentwine.errors import UsageError, did_you_mean

LIKELIHOOD = "log-likelihood"
"""A score of a model, not of its codes; measured only when asked for, since it takes long."""


def read_metrics(words: str) -> tuple[list[str], bool]:
    """The metrics of codes that were named, and whether the likelihood was.

    >>> read_metrics("mig,sap,log-likelihood")
    (['mig', 'sap'], True)
    """
    from disentwine.metrics.registry import METRICS
    from disentwine.report.scoring import MEASURED_TOGETHER, chosen_metrics

    names = [name for name in map(str.strip, words.split(",")) if name not in ("", "none")]
    known = {*METRICS, *MEASURED_TOGETHER, LIKELIHOOD, "all"}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no metric '{name}'. {did_you_mean(name, known)}")
    of_codes = [name for name in names if name != LIKELIHOOD]
    return chosen_metrics("all" if "all" in of_codes else of_codes), LIKELIHOOD in names
