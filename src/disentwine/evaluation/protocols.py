"""Opt-in evaluators: the variants of scores that studies and papers report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from disentwine.core.capabilities import Quantizes
from disentwine.core.dataset import Dataset, Factor, Transitions, evenly_spaced
from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.core.types import ACTIVE_NATS, ACTIVE_VARIANCE, FloatArray, IndexArray
from disentwine.data.samplers.shuffled import validation_batches
from disentwine.data.transitions import seen_in_training, transitions
from disentwine.errors import DataError, UsageError
from disentwine.evaluation.actions import MOST_PAIRS, action_scores, off_target_scores
from disentwine.evaluation.held_out import HeldOut, reconstruction
from disentwine.metrics.attributes import attribute_accuracy
from disentwine.metrics.disentanglement.gaps import mig, sap
from disentwine.metrics.disentanglement.info_mec import info_mec
from disentwine.metrics.disentanglement.mic_tic import mine
from disentwine.metrics.disentanglement.shared_factor import z_diff
from disentwine.nn.images import evaluation_mode
from disentwine.training.trainer import BatchSource

LIMIT = 10_000
"""Most images of a split."""

POINTS, FEW_POINTS = (10_000, 5_000), (2_000, 1_000)
"""Points to train and test the classifier of Z-diff on: for latents, and for thousands of pixels."""

MANY_PAIRS = 200
"""Z-diff is also reported for 200 pairs a point instead of 64: neither paper states its number."""

SMALL_SAMPLE, SUBSETS = 100, 20
"""Images that the CausalVAE paper's chance level of 20 to 35 % suggests; see `metrics.mine`."""


def counterfactual_errors(held: HeldOut) -> list[Score]:
    """The mean squared error of counterfactual images, for every concept."""
    return [
        Score(score.name.replace("share", "error"), score.details["error"], score.n)
        for score in held.scores
        if score.name.startswith("counterfactual-share:")
    ]


def mean_counterfactuals(held: HeldOut) -> list[Score]:
    """The means over concepts of the ratio and the share of counterfactual errors."""
    found = []
    for name in ("counterfactual-ratio", "counterfactual-share"):
        same = [score for score in held.scores if score.name.startswith(f"{name}:")]
        if same:
            mean = float(np.mean([score.value for score in same]))
            found.append(Score(name, mean, n=same[0].n))
    return found


def small_samples(held: HeldOut, *, images: int = SMALL_SAMPLE) -> list[Score]:
    """MIC and TIC on few images, the mean over random choices of them."""
    latents, factors = _labelled(held)
    if len(latents) <= images or factors.shape[1] == 0 or isinstance(held.model, Quantizes):
        return []
    rng = np.random.default_rng(held.seed)
    found = []
    for _ in range(SUBSETS):
        some = rng.permutation(len(latents))[:images]
        found.append(mine(latents[some], factors[some], seed=held.seed, floor_permutations=1))
    return [
        Score(
            same[0].name,
            float(np.mean([score.value for score in same])),
            n=images,
            noise_floor=float(np.mean([score.noise_floor for score in same])),
        )
        for same in zip(*found, strict=True)
    ]


def published_protocols(
    held: HeldOut, *, points: tuple[int, int] = POINTS, floor: bool = True
) -> list[Score]:
    """`protocol_scores` of the model's latents; none of quantized codes or without labels."""
    latents, factors = _labelled(held)
    if isinstance(held.model, Quantizes) or factors.shape[1] == 0 or len(latents) < 2:
        return []
    return protocol_scores(
        latents,
        factors,
        held.dataset.spec,
        points=points,
        inactive=ACTIVE_VARIANCE,
        floor=floor,
    )


def protocol_scores(
    latents: NDArray[np.floating[Any]],
    factors: FloatArray,
    spec: Sequence[Factor],
    *,
    points: tuple[int, int],
    inactive: float = 0.0,
    floor: bool = True,
) -> list[Score]:
    """Z-diff of all factors and without the shape, by logistic regression and by an SVM as in Kumar et
    al. (2018), SAP of active latents and of all, and MIG."""
    names, kinds = [factor.name for factor in spec], [factor.kind for factor in spec]
    columns = {"": list(range(len(names)))}
    if "shape" in names:
        columns["-no-shape"] = [i for i, name in enumerate(names) if name != "shape"]
    train, test = points if latents.shape[1] <= 100 else FEW_POINTS
    options: dict[str, Any] = {"train": train, "test": test}
    scores = []
    for suffix, kept in columns.items():
        by_svm = z_diff(latents, factors[:, kept], protocol="paper", floor=False, **options)
        common = z_diff(latents, factors[:, kept], floor=floor, **options)
        scores.append(replace(common, name=f"z-diff{suffix}"))
        scores.append(replace(by_svm, name=f"z-diff{suffix}-svm"))
    more_pairs = z_diff(latents, factors, pairs=MANY_PAIRS, floor=False, **options)
    scores.append(replace(more_pairs, name=f"z-diff-{MANY_PAIRS}-pairs"))
    found = sap(latents, factors, kinds=kinds, inactive=inactive, floor=floor)
    all_latents = replace(sap(latents, factors, kinds=kinds, floor=False), name="sap-all-units")
    scores += [found, all_latents, mig(latents, factors, floor=floor)]
    if "orientation" in names:
        # It is cyclic, and squares and ellipses are symmetric: no linear score can follow it.
        gaps = np.delete(found.details["gaps"], names.index("orientation"))
        scores.append(Score("sap-no-orientation", float(gaps.mean()), n=found.n))
    return scores


def attribute_scores(held: HeldOut, *, limit: int = LIMIT) -> list[Score]:
    """The accuracy of attribute vectors, where all factors are binary."""
    model, dataset = held.model, held.dataset
    factors = held.factors
    if held.latents is None or {factor.kind for factor in dataset.spec} != {"binary"}:
        return []
    train = evenly_spaced(dataset.split["train"], limit)
    latents, labels = model.represent(dataset.images[train]), dataset.factors[train]
    if not (np.isfinite(labels).all() and np.isfinite(factors).all()):
        return []
    found = attribute_accuracy(latents, labels, held.latents, factors)
    each = zip(dataset.names, found.details["per_attribute"], strict=True)
    return [found, *(Score(f"{found.name}:{name}", value, n=found.n) for name, value in each)]


def validation_scores(
    held: HeldOut, *, points: tuple[int, int] = POINTS, limit: int = LIMIT
) -> list[Score]:
    """Published protocols and reconstruction error on the validation split, to choose settings by."""
    indices = evenly_spaced(held.dataset.split["validation"], limit)
    if not len(indices):
        return []
    latents = np.asarray(held.model.represent(held.dataset.images[indices]))
    other = HeldOut(held.model, held.dataset, "validation", indices, given=latents)
    found = [
        *published_protocols(other, points=points, floor=False),
        *reconstruction(other, at_once=True),
    ]
    return [replace(score, name=f"validation:{score.name}", details={}) for score in found]


def elbo(held: HeldOut) -> list[Score]:
    """The evidence lower bound of one sample: not the loss, which may be that of several samples."""
    terms = {
        name: value
        for name, value in held.forward.losses.items()
        if name == "reconstruction" or name.startswith("kl_")
    }
    return [Score("elbo", -sum(terms.values()), n=len(held.indices))] if terms else []


def latents_per_layer(held: HeldOut) -> list[Score]:
    """How many latents carry more than 0.01 nats: in all, and of each layer."""
    kl = mean_latent_kl(held.model, held.dataset, held.indices)
    return active_per_layer(held.model, kl, n=len(held.indices))


def active_per_layer(model: Any, kl: FloatArray, *, n: int) -> list[Score]:
    """The number of active latents of a hierarchy, "active-units", and of each layer.

    Arguments:
        model: a hierarchy.
        kl: (d,) mean KL divergence of each latent in nats.
        n: images that it is the mean of.
    """
    of = np.array(model.latent_layers)
    return [
        Score("active-units", float((kl > ACTIVE_NATS).sum()), n=n, details={"kl": kl}),
        *(
            Score(f"active-units:{i}", float((kl[of == i] > ACTIVE_NATS).sum()), n=n)
            for i in range(1, of.max() + 1)
        ),
    ]


def mean_latent_kl(model: Any, dataset: Dataset, indices: IndexArray) -> FloatArray:
    """(d,) the mean KL divergence of each latent over images, in nats, along fixed noise."""
    source = BatchSource.like(model, dataset)
    with evaluation_mode(model), fixed_noise(0):
        found = [model.kl_per_latent(source.take(batch).x) for batch in validation_batches(indices)]
    mean: FloatArray = torch.cat(found).double().mean(0).cpu().numpy()
    return mean


def off_target_changes(held: HeldOut, *, most: int = MOST_PAIRS) -> list[Score]:
    """How far actions move other factors, and the same error without an action, by a concept probe."""
    pairs = _pairs(held)
    if pairs is None:
        return []
    return with_chance_levels(off_target_scores(held.model, held.probe, pairs, most=most))


def with_chance_levels(scores: Sequence[Score]) -> list[Score]:
    """Each score, and the level of an unchanged image as a score of its own, "<name>-floor"."""
    return [
        each
        for score in scores
        for each in (score, Score(f"{score.name}-floor", score.noise_floor or 0.0, score.n))
    ]


def unseen_pairs(held: HeldOut, *, most: int = MOST_PAIRS) -> list[Score]:
    """The accuracy of retrieved actions on pairs whose images are both new to training."""
    pairs = _pairs(held)
    if pairs is None or not len(pairs.pairs["test"]):
        return []
    found = action_scores(held.model, pairs, most=most, unseen=unseen(pairs, most=most))
    return [score for score in found if score.name.endswith("-unseen")]


def unseen(pairs: Transitions, *, most: int) -> NDArray[np.bool_]:
    """(n,) of the first test pairs, whether training had neither image, nor one that is equal."""
    images = pairs.pairs["test"][:most, :2]
    seen = seen_in_training(pairs.dataset, images.reshape(-1)).reshape(images.shape)
    return np.asarray(~seen.any(axis=1), dtype=bool)


def quantized_information(held: HeldOut) -> list[Score]:
    """`information_scores` of a quantizer's codes."""
    codes, factors = _labelled(held)
    if len(codes) < 2 or factors.shape[1] == 0:
        return []
    return information_scores(codes, factors, held.dataset.spec)


def information_scores(codes: Any, factors: FloatArray, spec: Sequence[Factor]) -> list[Score]:
    """InfoMEC of quantized codes (Disentanglement via Latent Quantization, K. Hsu et al., 2023)."""
    kinds = [factor.kind for factor in spec]
    found = info_mec(np.asarray(codes), factors, discrete_codes=True, kinds=kinds)
    return [
        Score(name.replace("_", "-"), float(found.details[name]), found.n, noise_floor=floor)
        for name, floor in found.details["floors"].items()
    ]


def _labelled(held: HeldOut) -> tuple[NDArray[np.floating], FloatArray]:
    """Latents and factors of the images that carry all labels."""
    factors = held.factors
    if held.latents is None:
        return np.zeros((0, 0)), factors[:0]
    known = np.isfinite(factors).all(axis=1)
    return held.latents[known], factors[known]


def _pairs(held: HeldOut) -> Transitions | None:
    """Pairs of images and actions, where the data set has some."""
    try:
        return transitions(held.dataset)
    except (DataError, UsageError):
        return None
