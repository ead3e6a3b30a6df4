"""Data sets of which only a share carries labels."""

import numpy as np
import pytest

from disentwine import data
from disentwine.errors import UsageError
from disentwine.runs.recipe import read_recipe, recipe_of


def labelled(dataset, split):
    return np.isfinite(dataset.factors[dataset.split[split]]).all(axis=1)


def test_a_share_keeps_labels_and_test_images_keep_all():
    whole = data.Pendulum(size=32)
    some, fewer = whole.with_labels(0.5), whole.with_labels(0.1)
    assert labelled(some, "train").mean() == pytest.approx(0.5, abs=1e-3)
    assert labelled(fewer, "validation").mean() == pytest.approx(0.1, abs=1e-2)
    assert labelled(fewer, "test").all()
    assert np.isfinite(whole.factors).all()
    assert (labelled(some, "train") >= labelled(fewer, "train")).all()


def test_a_recipe_remembers_the_share():
    recipe = read_recipe("demo", ["data.labelled_fraction=0.25"])
    dataset = recipe.build_dataset()
    assert dataset.labelled_fraction == 0.25
    model = recipe.build_model(dataset)
    assert recipe_of(model, dataset, training={}, seed=0).data == recipe.data
    assert "labelled_fraction" not in read_recipe("demo").data


@pytest.mark.parametrize("share", ["0", "2", "many", "true"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(UsageError, match=r"data\.labelled_fraction"):
        read_recipe("demo", [f"data.labelled_fraction={share}"])


def test_at_least_one_image_keeps_its_labels():
    assert labelled(data.Pendulum(size=32).with_labels(1e-9), "train").sum() == 1
    with pytest.raises(UsageError, match="labelled_fraction"):
        data.Pendulum(size=32).with_labels(0)
