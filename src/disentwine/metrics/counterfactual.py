"""How far counterfactual images are from what a simulator would have drawn."""

from __future__ import annotations

from disentwine.contracts.dataset import UInt8Array
from disentwine.contracts.score import Score
from disentwine.errors import UsageError
from disentwine.metrics.reconstruction import over, squared_error


def counterfactual_scores(
    concept: str,
    *,
    predicted: UInt8Array,
    truth: UInt8Array,
    factual: UInt8Array,
    reconstructed: UInt8Array,
) -> tuple[Score, Score]:
    r"""The error of do-images, as a ratio to that of reconstructions and as a share of doing nothing.

    With $e = \overline{(\hat x_{do} - x_{do})^2}$ of a pixel: the ratio is
    $e \,/\, \overline{(\hat x - x)^2}$, where 1 is perfect, but flatters a model that reconstructs
    badly; the share is $e \,/\, \overline{(x - x_{do})^2}$, where 0 is perfect and 1 is as good as
    handing back the image unchanged. Always look at both. A ratio to no error at all is NaN.

    Arguments:
        concept: the one that was set.
        predicted: (n, height, width, channels) the model's do-images.
        truth: the simulator's.
        factual: the images before the intervention.
        reconstructed: the model's reconstructions of them.

    >>> import numpy as np
    >>> black, white = np.zeros((1, 2, 2, 1), np.uint8), np.full((1, 2, 2, 1), 255, np.uint8)
    >>> ratio, share = counterfactual_scores(
    ...     "light", predicted=white, truth=white, factual=black, reconstructed=white // 5)
    >>> ratio.value, share.value
    (0.0, 0.0)
    """
    stacks = {"predicted": predicted, "truth": truth, "reconstructed": reconstructed}
    for name, stack in stacks.items():
        if stack.shape != factual.shape or stack.size == 0:
            raise UsageError(f"{name} has shape {stack.shape}, factual has {factual.shape}")
    error, own = squared_error(predicted, truth), squared_error(reconstructed, factual)
    nothing = squared_error(factual, truth)
    details = {"error": error, "reconstruction_error": own, "doing_nothing": nothing}
    n = len(factual)
    return (
        Score(f"counterfactual-ratio:{concept}", over(error, own), n, details=details),
        Score(f"counterfactual-share:{concept}", over(error, nothing), n, details=details),
    )
