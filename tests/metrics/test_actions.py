"""Accuracy of retrieved actions, and errors of the images they make, on cases counted by hand."""

import numpy as np
import pytest

from disentwine.errors import UsageError
from disentwine.metrics.actions import intervention_scores, retrieval_scores

NAMES, FACTORS = ("+x", "-x", "+y", "-y"), (0, 0, 1, 1)


def test_actions_and_factors_are_counted():
    truth = np.array([0, 0, 0, 1, 2])
    found = np.array([0, 1, 2, 1, 3])
    action, factor = retrieval_scores(np.eye(4)[found], truth, names=NAMES, factors=FACTORS)
    assert action.value == pytest.approx(2 / 5)
    assert factor.value == pytest.approx(4 / 5)
    assert action.noise_floor == pytest.approx(3 / 5)
    assert factor.noise_floor == pytest.approx(4 / 5)
    confusion = np.array(action.details["confusion"])
    assert confusion[0].tolist() == [1, 1, 1, 0]
    assert confusion.sum() == 5


def test_pairs_of_unseen_pictures_are_counted_by_themselves():
    truth, found = np.array([0, 0, 1, 2]), np.array([0, 1, 3, 2])
    unseen = np.array([False, True, True, True])
    options = {"names": NAMES, "factors": FACTORS}
    scores = retrieval_scores(np.eye(4)[found], truth, unseen=unseen, **options)
    values = {score.name: (score.value, score.n) for score in scores}
    assert values["action-accuracy"] == (pytest.approx(2 / 4), 4)
    assert values["action-accuracy-unseen"] == (pytest.approx(1 / 3), 3)
    assert values["factor-accuracy-unseen"] == (pytest.approx(2 / 3), 3)
    assert len(retrieval_scores(np.eye(4)[found], truth, unseen=~unseen[[1] * 4], **options)) == 2


def test_chance_is_chance():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=4000)
    action, factor = retrieval_scores(rng.random((4000, 4)), truth, names=NAMES, factors=FACTORS)
    assert action.value == pytest.approx(1 / 4, abs=5 * np.sqrt(3 / 16 / 4000))
    assert factor.value == pytest.approx(1 / 2, abs=5 * np.sqrt(1 / 4 / 4000))


def test_errors_of_images_are_those_of_pixels():
    shape = (2, 4, 4, 1)
    truth, before = np.full(shape, 100, np.uint8), np.full(shape, 60, np.uint8)
    predicted, rebuilt = np.full(shape, 80, np.uint8), np.full(shape, 90, np.uint8)
    error, ratio, share = intervention_scores(
        predicted=predicted, truth=truth, before=before, reconstructed=rebuilt
    )
    assert error.value == pytest.approx((20 / 255) ** 2)
    assert (ratio.value, share.value) == (pytest.approx(4), pytest.approx(1 / 4))


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="do not fit"):
        retrieval_scores(np.eye(3), [0, 1, 2], names=NAMES, factors=FACTORS)
    image = np.zeros((1, 2, 2, 1), np.uint8)
    with pytest.raises(UsageError, match="compared"):
        intervention_scores(predicted=image, truth=image, before=image[:, :1], reconstructed=image)
