"""The log-likelihood of images under a model, by importance sampling in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np
import torch

from disentwine.core.capabilities import EstimatesLikelihood
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.core.types import FloatArray, IndexArray
from disentwine.data.splits import evenly_spaced
from disentwine.errors import UsageError
from disentwine.evaluation.evaluate import Evaluation
from disentwine.metrics.likelihood import importance_log_likelihood
from disentwine.progress import ProgressBar
from disentwine.runs.run import Run
from disentwine.training.trainer import BatchSource

AT_ONCE = 4096
"""Draws that pass through a decoder at once, over all images of a batch."""

BATCH = 64

LIMIT = 1_000
"""Images of a split that are scored where only a number is asked for: enough for a mean."""


def log_likelihood(
    model: Model,
    dataset: Dataset,
    indices: IndexArray,
    *,
    samples: int = 5000,
    seed: int = 0,
    progress: bool | None = None,
) -> Score:
    r"""$\frac1n \sum_i \log \frac1K \sum_k \frac{p(x_i, z_k)}{q(z_k|x_i)}$ over images of a data set.

    Arguments:
        model: one that *scores* (has `log_weights`).
        dataset: where images come from.
        indices: which images.
        samples: K, draws of z an image.
        seed: of the draws.
        progress: show a bar; by default on a terminal.

    Details are those of `metrics.importance_log_likelihood`.

    >>> from disentwine import VAE, data
    >>> pictures = data.Pendulum(size=32)
    >>> model = VAE.for_data(pictures, latent=3)
    >>> log_likelihood(model, pictures, np.arange(4), samples=10).n
    4
    """
    if not isinstance(model, EstimatesLikelihood):
        raise UsageError(f"{type(model).__name__} has no log_weights, so it gives no likelihood")
    scores: EstimatesLikelihood = model
    source = BatchSource.like(model, dataset)
    model.eval()

    def chunks(batch: IndexArray) -> Iterator[FloatArray]:
        x = source.take(batch).x
        at_once = max(1, AT_ONCE // len(batch))
        for start in range(0, samples, at_once):
            weights = scores.log_weights(x, samples=min(at_once, samples - start))
            yield weights.double().cpu().numpy()

    bounds: list[FloatArray] = []
    effective: list[FloatArray] = []
    starts = range(0, len(indices), BATCH)
    bar = ProgressBar("log-likelihood", total=len(starts), show=progress)
    with torch.no_grad(), fixed_noise(seed), bar:
        for start in starts:
            part = importance_log_likelihood(chunks(indices[start : start + BATCH]))
            bounds.append(part.details["per_image"])
            effective.append(part.details["effective_samples"])
            bar.advance()
    # A bound of one sample is the bound itself: the whole is scored as the parts were.
    whole = importance_log_likelihood(np.concatenate(bounds)[None])
    details = {**whole.details, "effective_samples": np.concatenate(effective), "samples": samples}
    return replace(whole, details=details)


def with_likelihood(found: Evaluation, run: Run, *, samples: int = 100) -> Evaluation:
    """An evaluation with the log-likelihood of the images that it saw, or why there is none.

    Arguments:
        found: of the run; of its images at most a thousand are scored.
        run: whose model it is.
        samples: draws of z an image.
    """
    name = "log-likelihood"
    if not isinstance(run.model, EstimatesLikelihood):
        reason = f"{run.recipe.model['name']} cannot tell how likely an image is"
        return replace(found, skipped={**found.skipped, name: reason})
    start = perf_counter()
    score = log_likelihood(
        run.model,
        run.dataset,
        evenly_spaced(found.indices, LIMIT),
        samples=samples,
        seed=run.recipe.seed,
        progress=False,
    )
    details = {
        **score.details,
        "about": "how likely are images of the split, at least?",
        "split": found.split,
        "seconds": perf_counter() - start,
    }
    return replace(found, scores=[*found.scores, replace(score, details=details)])
