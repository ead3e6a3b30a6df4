"""Where concepts are painted: what cannot be told is said."""

import numpy as np
import pytest

from disentwine.causal import Graph
from disentwine.data import Arrays
from disentwine.errors import DataError
from disentwine.models import MODELS, LayeredCausalVAE
from disentwine.models.regions import learn_regions

LAYERED = ("causal-vae/layered", "causal-wae/layered")


def squares(labels: np.ndarray, names: tuple[str, ...], contrast: tuple[float, ...]) -> Arrays:
    """A square for each label, whose grey is the label at some contrast."""
    images = np.full((len(labels), 16, 16, 1), 128.0)
    for i, strength in enumerate(contrast):
        images[:, 6 * i : 6 * i + 4, 4:12] += strength * labels[:, i, None, None, None]
    return Arrays(images=images.round().astype(np.uint8), factors=labels, names=names)


def test_a_concept_that_shows_too_faintly_is_told_of_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    model = LayeredCausalVAE.for_data(squares(labels, ("bright", "faint"), (100, 4)), edges=())
    said = capsys.readouterr().err
    assert said.count("warning") == 1
    assert "do(faint=...) will change nothing" in said
    assert "0.2% of the variance" in said
    assert model.decoder.regions.sum((1, 2))[1] == 0


def test_a_cause_that_shows_through_its_effect_is_not_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(0)
    cause = rng.normal(size=600)
    effect = np.clip(cause + rng.normal(size=600), -1, 1)
    pictures = squares(np.stack([cause, effect], axis=1), ("cause", "effect"), (0, 100))
    learn_regions(pictures, Graph.from_edges(("cause", "effect"), [("cause", "effect")]))
    assert capsys.readouterr().err == ""
    learn_regions(pictures, Graph.from_edges(("cause", "effect"), []))
    assert "do(cause=...) will change nothing" in capsys.readouterr().err


def test_a_rare_label_that_is_seen_often_enough_has_its_pixels_and_no_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(0)
    labels = np.stack([rng.uniform(-1, 1, 6000), np.arange(6000) % 100 == 0], axis=1)
    pictures = squares(labels, ("common", "rare"), (100, 100))
    _, regions = learn_regions(pictures, Graph.from_edges(pictures.names, []))
    assert capsys.readouterr().err == ""
    assert regions[0, :4, 4:12].all()
    assert regions[1, 6:10, 4:12].all()
    assert not regions[1, :4].any()


def test_a_label_of_three_images_takes_no_pixels_of_others() -> None:
    labels = np.stack([np.linspace(-1, 1, 6000), np.arange(6000) % 2000 == 7], axis=1)
    pictures = squares(labels, ("common", "rare"), (100, 100))
    _, regions = learn_regions(pictures, Graph.from_edges(pictures.names, []))
    assert regions[0, :4, 4:12].all()
    assert not regions[1, :4].any()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_images_that_never_change_are_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.random.default_rng(0).normal(size=(200, 2))
    LayeredCausalVAE.for_data(squares(labels, ("a", "b"), (0, 0)), edges=())
    said = capsys.readouterr().err
    assert "do(a=...)" in said
    assert "do(b=...)" in said


@pytest.mark.parametrize("name", ["causal-vae", *LAYERED])
def test_too_few_complete_labels_are_counted_among_all_images(name: str) -> None:
    rng = np.random.default_rng(0)
    labels = rng.normal(size=(200, 2))
    images = rng.integers(0, 256, (200, 16, 16, 1), dtype=np.uint8)
    whole = Arrays(images=images, factors=labels, names=("a", "b"))
    labels[whole.split["train"][7:], 1] = np.nan
    sparse = Arrays(images=images, factors=labels, names=("a", "b"), allow_missing=True)
    assert len(sparse.split["train"]) == 140
    with pytest.raises(DataError, match=r"7 of 140 training images .* or give .* `edges`"):
        MODELS[name].for_data(sparse)
    if name in LAYERED:
        with pytest.raises(
            DataError, match=r"7 of 140 .* which concept; label more .* completely$"
        ):
            MODELS[name].for_data(sparse, edges=())
    else:
        MODELS[name].for_data(sparse, edges=())
