"""Effect matrix: what interventions change, intended and off-target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from disentwine.core.dataset import column_index
from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.errors import UsageError


def effect_matrix(
    concepts: Sequence[str],
    names: Sequence[str],
    *,
    predicted: ArrayLike,
    expected: ArrayLike,
    factual: ArrayLike,
    predicted_reconstruction: ArrayLike,
    predicted_factual: ArrayLike,
    scale: ArrayLike,
    predicted_truth: ArrayLike | None = None,
) -> list[Score]:
    r"""Errors and off-target effects on every concept j under interventions on every concept i.

    With $v$ the value predicted from the counterfactual image and $v^*$ the expected one (the value
    asked for where j is i, the simulator's where j is an effect of i, else the factual one), in
    standard deviations of the label:

    $$E_{ij} = \sqrt{\overline{(v_{ij} - v^*_{ij})^2}},\quad
    L_{ij} = \sqrt{\overline{(v_{ij} - v_j)^2}}$$

    where $v_j$ is predicted from the reconstruction. "effect-error:i" is the root mean square of row
    i of E. "off-target-effect" is the $L_{ij}$ of a concept that should not change that exceeds its
    chance level most; "off-target-effect-causes" is the same for causes under an intervention on
    their effect. The chance level of each is measured on the simulator's images: the probe's error.

    Arguments:
        concepts: (c) those intervened on.
        names: (k) those predicted.
        predicted: (c, n, k) predicted from counterfactual images.
        expected: (c, n, k) the expected values; NaN where they are unknown.
        factual: (n, k) the labels before the intervention.
        predicted_reconstruction: (n, k) predicted from reconstructions.
        predicted_factual: (n, k) predicted from the images themselves.
        scale: (k,) standard deviation of each label.
        predicted_truth: (c, n, k) predicted from the simulator's counterfactuals, where there is one.

    >>> asked, before = np.array([[[1.0, 5.0]]]), np.array([[0.0, 5.0]])
    >>> error, off_target = effect_matrix(
    ...     ["light"], ["light", "angle"], predicted=asked + [0.1, 2.0], expected=asked,
    ...     factual=before, predicted_reconstruction=before, predicted_factual=before,
    ...     predicted_truth=asked, scale=[1.0, 2.0])
    >>> off_target.value, off_target.details["where"]
    (1.0, 'do(light) moves angle')
    """
    shape = np.shape(predicted)
    if len(shape) != 3 or (shape[0], shape[2]) != (len(concepts), len(names)) or 0 in shape:
        raise UsageError(
            f"predicted has shape {shape} for {len(concepts)} concepts, {len(names)} names"
        )
    sigma = _table(scale, (shape[2],), "scale")
    v, target = (
        _table(predicted, shape, "predicted") / sigma,
        _table(expected, shape, "expected") / sigma,
    )
    before, rebuilt, own = (
        _table(array, shape[1:], name) / sigma
        for array, name in (
            (factual, "factual"),
            (predicted_reconstruction, "predicted_reconstruction"),
            (predicted_factual, "predicted_factual"),
        )
    )
    still = (target == before).all(axis=1)
    matrices: dict[str, Any] = {
        "error": _rms(v - target),
        "off_target": np.where(still, _rms(v - rebuilt), np.nan),
        "expected_movement": np.abs(target - before).mean(axis=1),
        "actual_movement": np.abs(v - rebuilt).mean(axis=1),
    }
    if predicted_truth is not None:
        truth = _table(predicted_truth, shape, "predicted_truth") / sigma
        matrices["error_floor"] = _rms(truth - target)
        matrices["off_target_floor"] = np.where(still, _rms(truth - own), np.nan)
    n = shape[1]
    scores = []
    for i, concept in enumerate(concepts):
        row = {key: matrix[i] for key, matrix in matrices.items()}
        floor = None if predicted_truth is None else _over_known(row["error_floor"])
        details = {**row, "factors": list(names)}
        scores.append(
            Score(f"effect-error:{concept}", _over_known(row["error"]), n, floor, details)
        )
    places = [column_index(tuple(names), concept) for concept in concepts]
    moves = np.zeros((len(names), len(names)), dtype=bool)
    moves[places] = ~still
    causes = moves.T[places]
    excess = matrices["off_target"] ** 2 - matrices.get("off_target_floor", 0) ** 2
    about = {"concepts": list(concepts), "factors": list(names), **matrices}
    for name, pairs in (("off-target-effect", still), ("off-target-effect-causes", still & causes)):
        if pairs.any():
            i, j = divmod(int(np.argmax(np.where(pairs, excess, -np.inf))), len(names))
            floor = None if predicted_truth is None else float(matrices["off_target_floor"][i, j])
            where = {"where": f"do({concepts[i]}) moves {names[j]}"}
            scores.append(
                Score(name, float(matrices["off_target"][i, j]), n, floor, {**where, **about})
            )
    return scores


def _table(values: ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    table = np.asarray(values, dtype=np.float64)
    if table.shape != shape:
        raise UsageError(f"{name} has shape {table.shape}; it must be {shape}")
    return table


def _rms(difference: FloatArray) -> FloatArray:
    """Over images, (c, n, k) to (c, k)."""
    return np.asarray(np.sqrt(np.square(difference).mean(axis=1)))


def _over_known(row: FloatArray) -> float:
    """Root mean square over the concepts whose expected value is known."""
    return float(np.sqrt(np.nanmean(np.square(row))))
