"""Steps on the grid lead where they should, and a model that knows them all scores perfectly."""

from copy import copy

import numpy as np
import pytest

from disentwine.data import Shapes3D
from disentwine.data.factor_grid import FactorGrid
from disentwine.data.transitions import transitions
from disentwine.evaluation.actions import action_scores, off_target_scores, rollout_scores
from disentwine.evaluation.probes import ConceptProbe
from disentwine.report.sections import actions as action_figures
from disentwine.report.sections.actions import real_rows, rollout_rows
from disentwine.testing import small_grid

DATA = small_grid((8, 8, 1))
PAIRS = transitions(DATA)


class Oracle:
    """Knows every image of the data set."""

    image_shape = (8, 8, 1)
    actions = PAIRS.actions

    def __init__(self, wrong=0):
        self.wrong = wrong

    def _where(self, image):
        return int(np.flatnonzero((DATA.images == image).all(axis=(1, 2, 3)))[0])

    def reconstruct(self, x):
        return np.clip(x.astype(int) + 3, 0, 255).astype(np.uint8)

    def apply(self, x, action, *, times=1):
        if x.ndim == 3:
            return self.apply(x[None], action, times=times)[0]
        several = [action] if isinstance(action, int) else action
        steps = FactorGrid(DATA)
        places = np.array([self._where(image) for image in x])
        for a in list(several) * times:
            factor = int(PAIRS.factor_of_action[a])
            there = steps.neighbours(places, factor, PAIRS.direction_of_action[a])
            places = np.where(there >= 0, there, places)
        return np.clip(DATA.images[places].astype(int) + self.wrong, 0, 255).astype(np.uint8)

    def retrieve(self, x, y):
        right = [
            [np.array_equal(self.apply(a, i), b) for i in range(4)]
            for a, b in zip(x, y, strict=True)
        ]
        return np.array(right, dtype=float)


def test_steps_lead_to_the_image_with_one_factor_moved():
    steps = FactorGrid(DATA)
    images = np.arange(len(DATA))
    for factor in (0, 1):
        for by in (-2, 1):
            found = steps.neighbours(images, factor, by)
            there = found >= 0
            expected = DATA.factors[images[there]].copy()
            expected[:, factor] += by
            assert np.array_equal(DATA.factors[found[there]], expected)
            level = DATA.factors[~there, factor] + by
            assert ((level < 0) | (level > 7)).all()


def test_steps_go_round_where_the_pairs_do():
    hues = Shapes3D(hues=3, scales=2, orientations=2)
    last = np.array([len(hues) - 1])
    for cyclic, there in ((True, True), (False, False)):
        steps = FactorGrid(transitions(hues, cyclic=cyclic).dataset)
        assert (steps.neighbours(last, 0, 1)[0] >= 0) == there


def test_one_who_knows_everything_scores_perfectly():
    scores = {score.name: score.value for score in action_scores(Oracle(), PAIRS, most=40)}
    assert scores["action-accuracy"] == scores["factor-accuracy"] == 1
    assert scores["intervention-error"] == scores["intervention-share"] == 0


def test_five_actions_are_compared_with_the_image_they_lead_to():
    (score,) = rollout_scores(Oracle(wrong=10), PAIRS)
    assert score.n == 2 * min(40, len(DATA.split["test"]))
    assert score.value == pytest.approx(1, abs=0.05)


def test_factors_that_do_not_move_are_told_from_those_that_do():
    def read(images):
        where = [np.abs(DATA.images.astype(int) - i).sum((1, 2, 3)).argmin() for i in images]
        return DATA.factors[np.array(where)]

    class Known(ConceptProbe):
        def __call__(self, images):
            return read(images)

    reader = Known(None, DATA.names, np.zeros(2), np.ones(2), np.zeros(2))
    found = off_target_scores(Oracle(), reader, PAIRS, most=20)
    names = [
        "off-target-change",
        "action-error",
        "off-target-change-after-5",
        "action-error-after-5",
    ]
    assert [score.name for score in found] == names
    assert all(score.value == score.noise_floor == 0 for score in found)

    class Drifting(Oracle):
        def apply(self, x, action, *, times=1):
            others = [(a + 2) % 4 for a in action[1:]] if isinstance(action, list) else []
            return super().apply(x, [*action, *others] if others else action, times=times)

    changes = {s.name: s.value for s in off_target_scores(Drifting(), reader, PAIRS, most=20)}
    assert changes["off-target-change"] == changes["action-error-after-5"] == 0
    assert changes["off-target-change-after-5"] > 1
    blind = Known(None, DATA.names, np.zeros(2), np.ones(2), np.array([0.9, 0.0]))
    found = off_target_scores(Oracle(), blind, PAIRS, most=20)
    acted = PAIRS.factor_of_action[PAIRS.pairs["test"][:20, 2]]
    counts = {"off-target-change": (acted == 0).sum(), "action-error": (acted == 1).sum()}
    after_one = {score.name: score.n for score in found if "after" not in score.name}
    assert after_one == {k: n for k, n in counts.items() if n}
    blind = Known(None, DATA.names, np.zeros(2), np.ones(2), np.ones(2))
    assert off_target_scores(Oracle(), blind, PAIRS, most=20) == []


def test_models_without_these_actions_are_not_measured():
    other = Oracle()
    other.actions = ("+a", "-a")
    for measured in (action_scores, rollout_scores):
        assert measured(other, PAIRS) == []
        assert measured(object(), PAIRS) == []


def test_repeated_actions_are_drawn_beside_the_image():
    rows = rollout_rows(Oracle(), DATA.images[0], [2, 0, 1, 0], times=2)
    assert rows.shape == (4, 4, 8, 8, 1)
    assert np.array_equal(rows[0, 3], DATA.images[16])
    assert np.array_equal(rows[2, 2], DATA.images[1])
    assert (rows[1, 2:] == 255).all(), "nothing is beyond the end"
    assert (rows[2, 3] == 255).all()


def test_the_image_with_most_room_is_drawn(monkeypatch):
    drawn = []

    def keep(rows, labels, columns, *, group):
        assert group == 2
        drawn.append((rows, labels, columns))
        return "figure"

    monkeypatch.setattr(action_figures, "labelled_rows", keep)
    found = action_figures.rollout_figure(Oracle(), DATA, np.array([0, 7, 36]), times=3)
    assert found == "figure"
    rows, labels, columns = drawn[0]
    assert np.array_equal(rows[0, 0], DATA.images[36])  # in the fifth row and column of eight
    assert labels[0] == "+size"
    assert columns == [
        "image, reconstruction",
        "1 step: predicted, real",
        "2 steps",
        "3 steps",
    ]
    for made, real, there in ((2, 3, 44), (4, 5, 52), (6, 7, 60)):
        assert np.array_equal(rows[0, made], DATA.images[there])
        assert np.array_equal(rows[0, real], DATA.images[there])
    assert np.array_equal(rows[3, 3], DATA.images[35])
    assert rows.shape[:2] == (4, 8)


def test_no_more_is_drawn_than_there_is(monkeypatch):
    drawn = []
    monkeypatch.setattr(action_figures, "labelled_rows", lambda rows, *_, group: drawn.append(rows))
    action_figures.rollout_figure(Oracle(), DATA, np.array([0]), times=30)
    assert drawn[0].shape[:2] == (4, 2 + 2 * 7), "eight values of each factor are seven steps"


def test_a_picture_that_differs_in_more_is_not_called_real():
    free = DATA.with_transitions(factors=(DATA.names[1],))
    rows = real_rows(free, FactorGrid(free), 19, times=1)  # in the third row and the fourth column
    blank_or_real = [(row[0] == 255).all() for row in rows]
    assert len(rows) == 2
    assert all(blank_or_real), "the first image with that column is of another row"


def test_images_without_labels_are_not_drawn():
    dataset = copy(DATA)
    dataset.factors = DATA.factors.copy()
    dataset.factors[36] = np.nan
    assert action_figures.rollout_figure(Oracle(), dataset, np.array([0, 36]), times=1) is not None
    assert action_figures.rollout_figure(Oracle(), dataset, np.array([36]), times=1) is None


def test_what_the_data_do_not_have_is_left_blank():
    rows = real_rows(DATA, FactorGrid(DATA), 6, times=2)
    assert np.array_equal(rows[0, 1], DATA.images[22])
    assert np.array_equal(rows[2, 0], DATA.images[7])
    assert (rows[2, 1] == 255).all()
    assert (rows[1] == 255).all()
