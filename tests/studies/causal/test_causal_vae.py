"""What pages of the causal studies say of the drawings that their models learn from."""

import pytest

from disentwine.studies.causal.causal_vae import RENDERING
from disentwine.studies.causal.causal_wae import CAUSALWAE
from disentwine.studies.causal.label_fraction import LABELS
from disentwine.studies.study import Study


@pytest.mark.parametrize("study", [CAUSALWAE, LABELS], ids=lambda study: study.name)
def test_the_drawings_are_those_that_the_page_says(study: Study) -> None:
    assert RENDERING in study.notes
    recipes = [trial.read_recipe() for trial in study.trials("paper", [0])]
    assert {recipe.data["pixel_snapping"] for recipe in recipes} == {False}
