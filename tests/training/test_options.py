"""The options of a training are declared once."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from disentwine.core.schema import schema_of
from disentwine.errors import UsageError
from disentwine.runs.recipe import parse_recipe
from disentwine.training.options import Changes, TrainingOptions


def test_keywords_of_fit_are_the_options() -> None:
    options, changes = (
        get_type_hints(cls, include_extras=True) for cls in (TrainingOptions, Changes)
    )
    assert list(options.items()) == list(changes.items())


def test_a_recipe_has_the_options_and_their_defaults() -> None:
    recipe = parse_recipe({"data": "pendulum", "model": "vae"}, source="test")
    assert recipe.training == schema_of(TrainingOptions)().model_dump(mode="json")
    assert TrainingOptions(**recipe.training) == TrainingOptions()


def test_every_option_is_documented_where_it_is_declared() -> None:
    documented = str(TrainingOptions.__doc__)
    assert all(f"\n        {name}: " in documented for name in get_type_hints(TrainingOptions))


def test_options_and_changes_are_checked_together(train: Any, build: Any, pictures: Any) -> None:
    from disentwine.runs.fit import fit

    with pytest.raises(UsageError) as refused:
        fit(build(), pictures, TrainingOptions(steps=0), batch_sise=3, seed=-1)  # type: ignore[call-arg]
    for part in (
        "training.steps",
        "training.batch_sise: unknown key. Did you mean 'batch_size'",
        "seed",
    ):
        assert part in str(refused.value)


def test_changes_replace_single_options(build: Any, pictures: Any) -> None:
    from disentwine.runs.fit import fit

    steps: list[int] = []
    options = TrainingOptions(steps=9, save_every=2, threads=1)
    fit(
        build(),
        pictures,
        options,
        steps=4,
        progress=False,
        on_save=lambda model, step: steps.append(step),
    )
    assert steps == [0, 2, 4]
