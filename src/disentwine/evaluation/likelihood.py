"""The log-likelihood of images under a model, by importance sampling in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np
import torch

from disentwine.core.capabilities import EstimatesLikelihood
from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.core.types import FloatArray, IndexArray
from disentwine.errors import UsageError
from disentwine.evaluation.held_out import HeldOut
from disentwine.metrics.likelihood import importance_log_likelihood
from disentwine.progress import ProgressBar
from disentwine.training.trainer import BatchSource

LIKELIHOOD = "log-likelihood"

AT_ONCE = 4096
"""Samples that pass through a decoder at once, over all images of a batch."""

BATCH = 64

LIMIT = 1_000
"""Images of a split that `disentwine evaluate` scores: enough for a mean."""


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
        model: one that estimates the likelihood (has `log_weights`).
        dataset: where images come from.
        indices: which images.
        samples: K, samples of z an image.
        seed: of the samples.
        progress: show a bar; by default on a terminal.

    Details are those of `metrics.importance_log_likelihood`.

    >>> from disentwine import VAE, data
    >>> pendulum = data.Pendulum(size=32)
    >>> model = VAE.for_data(pendulum, latent=3)
    >>> log_likelihood(model, pendulum, np.arange(4), samples=10).n
    4
    """
    if not isinstance(model, EstimatesLikelihood):
        raise UsageError(
            f"{type(model).__name__} has no log_weights, so it cannot estimate the likelihood"
        )
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
    # The bound of one sample is the sample itself: the whole is aggregated as the parts were.
    whole = importance_log_likelihood(np.concatenate(bounds)[None])
    details = {**whole.details, "effective_samples": np.concatenate(effective), "samples": samples}
    return replace(whole, details=details)


def corrected_log_likelihood(
    model: Model,
    dataset: Dataset,
    images: IndexArray,
    corrected: IndexArray,
    *,
    samples: int,
    few: int,
    seed: int,
) -> Score:
    r"""The importance-weighted bound with many samples, from few samples of all images and many of some:
    $\overline{L_{few}} + \overline{(L_{many} - L_{few})}$, the second mean over some of the images.

    The difference varies far less from image to image than the bound does, so some images are enough
    for it. Where all images are corrected, it is the bound with many samples itself.

    Arguments:
        model: one that estimates the likelihood.
        dataset: where images come from.
        images: which images.
        corrected: those of them that get many samples, sorted as `images` is.
        samples, few: numbers of samples an image.
        seed: of the samples.
    """
    bound = partial(log_likelihood, model, dataset, seed=seed, progress=False)
    many = bound(corrected, samples=samples)
    details: dict[str, float] = {"samples": samples, "corrected_on": len(corrected)}
    details |= {"standard_error": many.details["standard_error"], "error_of_correction": 0.0}
    if len(corrected) == len(images):
        return replace(many, details=details)
    loose = bound(images, samples=few)
    per_image = loose.details["per_image"]
    gap = many.details["per_image"] - per_image[np.searchsorted(images, corrected)]
    details["error_of_correction"] = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    details["standard_error"] = loose.details["standard_error"]
    return Score(LIKELIHOOD, float(loose.value + gap.mean()), n=len(images), details=details)


def likelihood_score(
    held: HeldOut,
    *,
    samples: int = 100,
    few: int = 100,
    images: IndexArray | None = None,
    corrected: IndexArray | None = None,
) -> list[Score]:
    """The log-likelihood of held-out images, at most a thousand of them.

    Arguments:
        held: a model and images.
        samples, few, corrected: as for `corrected_log_likelihood`, where `corrected` is given.
        images: other images than `held` has.
    """
    chosen = evenly_spaced(held.indices, LIMIT) if images is None else images
    if corrected is not None:
        return [
            corrected_log_likelihood(
                held.model,
                held.dataset,
                chosen,
                corrected,
                samples=samples,
                few=few,
                seed=held.seed,
            )
        ]
    start = perf_counter()
    score = log_likelihood(
        held.model, held.dataset, chosen, samples=samples, seed=held.seed, progress=False
    )
    details = {
        **score.details,
        "about": "how likely are images of the split, at least?",
        "split": held.split,
        "seconds": perf_counter() - start,
    }
    return [replace(score, details=details)]


def likelihood_errors(held: HeldOut) -> list[Score]:
    """The standard error of the log-likelihood over images, and that of its correction."""
    bounds = [score for score in held.scores if score.name == LIKELIHOOD]
    return [
        Score(name.replace("_", "-"), bound.details.get(name, 0.0), n=bound.n)
        for bound in bounds
        for name in ("standard_error", "error_of_correction")
    ]
