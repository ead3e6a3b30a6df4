"""Counterfactual errors mean what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from disentwine.data import Flow, Pendulum
from disentwine.errors import UsageError
from disentwine.evaluation.counterfactuals import score_counterfactuals
from disentwine.metrics import counterfactual_scores, effect_matrix


def grey(level: int) -> np.ndarray:
    return np.full((3, 4, 4, 1), level, np.uint8)


def test_ratio_and_share_by_hand() -> None:
    ratio, share = counterfactual_scores(
        "light", predicted=grey(30), truth=grey(50), factual=grey(10), reconstructed=grey(20)
    )
    assert ratio.name == "counterfactual-ratio:light"
    assert ratio.value == pytest.approx(20**2 / 10**2)
    assert share.value == pytest.approx(20**2 / 40**2)
    with pytest.raises(UsageError, match="truth"):
        counterfactual_scores(
            "light", predicted=grey(1), truth=grey(1)[:1], factual=grey(1), reconstructed=grey(1)
        )


class Oracle:
    """A model that knows the simulator, or does nothing at all."""

    def __init__(self, pendulum: Pendulum, *, knows: bool) -> None:
        self.pendulum, self.knows = pendulum, knows
        self.image_shape, self.concept_names = pendulum.image_shape, pendulum.names
        self.graph = None
        self.seen = {image.tobytes(): row for row, image in enumerate(pendulum.images)}

    def concepts(self, x: np.ndarray) -> np.ndarray:
        return self.pendulum.factors[[self.seen[image.tobytes()] for image in x]]

    def reconstruct(self, x: np.ndarray) -> np.ndarray:
        return x

    def do(self, x: np.ndarray, do: dict[str, np.ndarray]) -> np.ndarray:
        return self.pendulum.simulate(self.concepts(x), do).images if self.knows else x


def test_knowing_the_truth_costs_nothing_and_doing_nothing_costs_all() -> None:
    pendulum = Pendulum(size=48)
    test = pendulum.split["test"][:100]
    for knows, expected in ((True, 0.0), (False, 1.0)):
        scores = score_counterfactuals(Oracle(pendulum, knows=knows), pendulum, test)
        shares = [s.value for s in scores if "share" in s.name]
        assert len(shares) == 4
        assert shares == pytest.approx([expected] * 4)


def test_knowing_the_truth_costs_nothing_where_images_have_noise_of_their_own() -> None:
    flow = Flow(size=48)

    class Knows(Oracle):
        def do(self, x: np.ndarray, do: dict[str, np.ndarray]) -> np.ndarray:
            own = flow.noise[[self.seen[image.tobytes()] for image in x]]
            return flow.simulate(self.concepts(x), do, noise=own).images

    scores = score_counterfactuals(Knows(flow, knows=True), flow, flow.split["test"][:100])  # type: ignore[arg-type]
    assert [s.value for s in scores if "share" in s.name] == [0.0] * 4


NAMES = ("light", "angle", "shadow")

SCALE = np.array([2.0, 10.0, 0.5])

rng = np.random.default_rng(0)

FACTUAL = rng.normal(size=(50, 3)) * SCALE

SET_LIGHT, SET_SHADOW = FACTUAL.copy(), FACTUAL.copy()


SET_LIGHT[:, [0, 2]] += SCALE[[0, 2]]  # the shadow is an effect of the light


SET_SHADOW[:, 2] -= 2 * SCALE[2]


EXPECTED = np.stack([SET_LIGHT, SET_SHADOW])


def scores(predicted: Any = EXPECTED, **changes: Any) -> dict[str, Any]:
    arguments = {
        "predicted": predicted,
        "expected": EXPECTED,
        "factual": FACTUAL,
        "predicted_reconstruction": FACTUAL,
        "predicted_factual": FACTUAL,
        "scale": SCALE,
        "predicted_truth": EXPECTED,
    }
    found = effect_matrix(("light", "shadow"), NAMES, **(arguments | changes))
    return {score.name: score for score in found}


def test_what_is_perfect_has_no_error_and_no_leak() -> None:
    found = scores()
    assert list(found) == [
        "effect-error:light",
        "effect-error:shadow",
        "off-target-effect",
        "off-target-effect-causes",
    ]
    assert all(score.value == 0 == score.noise_floor for score in found.values())
    details = found["off-target-effect"].details
    np.testing.assert_allclose(details["expected_movement"], [[1, 0, 1], [0, 0, 2]], atol=1e-12)
    np.testing.assert_allclose(details["actual_movement"], details["expected_movement"])
    assert np.isnan(details["off_target"]).tolist() == [[True, False, True], [False, False, True]]


def test_errors_are_in_deviations_of_the_label_and_rows_are_their_root_mean_square() -> None:
    off = EXPECTED + np.array([[0.3], [0.0]])[..., None] * SCALE * [1, 0, 2]
    found = scores(off)
    np.testing.assert_allclose(
        found["off-target-effect"].details["error"], [[0.3, 0, 0.6], [0, 0, 0]]
    )
    assert found["effect-error:light"].value == pytest.approx(np.sqrt((0.3**2 + 0.6**2) / 3))
    assert found["effect-error:shadow"].value == 0
    assert found["effect-error:light"].details["error"].tolist() == pytest.approx([0.3, 0, 0.6])


def test_a_moved_cause_and_a_moved_bystander_are_told_apart() -> None:
    cause, bystander = EXPECTED.copy(), EXPECTED.copy()
    cause[1, :, 0] += 0.5 * SCALE[0]
    bystander[1, :, 1] -= 0.4 * SCALE[1]
    found = scores(cause)
    for name in ("off-target-effect", "off-target-effect-causes"):
        assert found[name].value == pytest.approx(0.5)
        assert found[name].details["where"] == "do(shadow) moves light"
    found = scores(bystander)
    assert found["off-target-effect"].value == pytest.approx(0.4)
    assert found["off-target-effect"].details["where"] == "do(shadow) moves angle"
    assert found["off-target-effect-causes"].value == 0


def test_a_leak_is_what_changes_from_the_reconstruction_not_from_the_label() -> None:
    blurred = FACTUAL + SCALE  # a model that paints everything one deviation too far
    found = scores(EXPECTED + SCALE, predicted_reconstruction=blurred)
    assert found["off-target-effect"].value == pytest.approx(0, abs=1e-12)
    assert found["effect-error:light"].value == pytest.approx(1)


def test_the_leak_furthest_above_what_the_reader_itself_sees_is_told() -> None:
    reader = EXPECTED.copy()
    reader[1, :, 1] += 0.6 * SCALE[1]  # the reader takes a moved shadow for a moved angle
    model = reader.copy()
    model[1, :, 0] += 0.2 * SCALE[0]
    found = scores(model, predicted_truth=reader)
    assert found["off-target-effect"].details["where"] == "do(shadow) moves light"
    assert found["off-target-effect"].value == pytest.approx(0.2)
    assert found["off-target-effect"].noise_floor == pytest.approx(0)
    assert found["effect-error:shadow"].noise_floor == pytest.approx(0.6 / np.sqrt(3))
    same = scores(reader, predicted_truth=reader)["off-target-effect"]
    assert same.value == same.noise_floor


def test_what_nobody_knows_is_left_out() -> None:
    unknown = EXPECTED.copy()
    unknown[0, :, 2] = np.nan
    off = EXPECTED + np.array([[0.1], [0.0]])[..., None] * SCALE
    found = scores(off, expected=unknown, predicted_truth=None)
    assert found["effect-error:light"].value == pytest.approx(0.1)
    assert found["effect-error:light"].noise_floor is None
    assert found["off-target-effect"].details["where"] == "do(light) moves angle"
    assert found["off-target-effect-causes"].value == 0


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(UsageError, match="predicted has shape"):
        scores(EXPECTED[:1])
    with pytest.raises(UsageError, match="factual has shape"):
        scores(factual=FACTUAL[:3])
    with pytest.raises(UsageError, match="no factor 'lihgt'"):
        effect_matrix(
            ("lihgt",),
            NAMES,
            predicted=EXPECTED[:1],
            expected=EXPECTED[:1],
            factual=FACTUAL,
            predicted_reconstruction=FACTUAL,
            predicted_factual=FACTUAL,
            scale=SCALE,
        )
