"""Where discovery names a wrong direction with confidence, as docs/causal.md warns, and what mends it.

Should a test of the former fail one day, the page can promise more.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from disentwine.causal import discover

NAMES = ("cause", "effect")


def growing(seed: int, *, spread: float = 0.3) -> np.ndarray:
    """effect = exp(cause) exp(noise): the larger the effect, the larger its noise."""
    rng = np.random.default_rng(seed)
    cause = rng.uniform(-1, 1, 2000)
    return np.stack([cause, np.exp(cause + spread * rng.normal(size=2000))], axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_noise_that_grows_with_a_label_misleads_and_its_logarithm_does_not(seed: int) -> None:
    labels = growing(seed)
    with threadpool_limits(limits=1):
        misled = discover(labels, NAMES)
        assert misled.edges == (("effect", "cause"),)
        assert misled.confidence is not None
        assert misled.confidence[1, 0] > 0.8
        mended = discover(np.stack([labels[:, 0], np.log(labels[:, 1])], axis=1), NAMES)
    assert mended.edges == (("cause", "effect"),)
    assert mended.confidence is not None
    assert mended.confidence[0, 1] > 0.9


def test_what_is_known_mends_it_too() -> None:
    with threadpool_limits(limits=1):
        graph = discover(growing(0), NAMES, tiers=[["cause"], ["effect"]])
    assert graph.edges == (("cause", "effect"),)


def test_a_relation_without_noise_is_told_either_way() -> None:
    """Radius and volume: the data have no direction, yet each is named, at times surely."""
    told = set()
    for seed in range(4):
        radius = np.random.default_rng(seed).lognormal(0, 0.3, 2000)
        with threadpool_limits(limits=1):
            graph = discover(np.stack([radius, radius**3], axis=1), NAMES)
        assert graph.confidence is not None
        told |= {edge for edge in graph.edges if graph.confidence.max() > 0.8}
    assert told
