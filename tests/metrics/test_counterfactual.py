"""Counterfactual errors mean what they say."""

import numpy as np
import pytest

from disentwine.data import Flow, Pendulum
from disentwine.errors import UsageError
from disentwine.metrics import counterfactual_scores
from disentwine.report.counterfactuals import score_counterfactuals


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
