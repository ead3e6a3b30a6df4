"""What is known of a graph beforehand, given to a model in Python, in a recipe and as an override."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from disentwine import fit, load_run
from disentwine.causal import Knowledge
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.models import MODELS, CausalVAE
from disentwine.runs.recipe import parse_recipe, read_recipe

NAMES = ("light", "shadow", "other")
CAUSAL = ("causal-vae", "causal-vae/layered")
RECIPE = "data: {name: pendulum, size: 32}\nmodel:\n  name: causal-vae\n"


@pytest.fixture(scope="module")
def pictures() -> Arrays:
    """Light causes the shadow; the other factor has nothing to do with either."""
    rng = np.random.default_rng(0)
    light, other = rng.uniform(-1, 1, (2, 300))
    shadow = np.exp(light) + 0.2 * rng.normal(size=300)
    images = rng.integers(0, 256, (300, 16, 16, 1), dtype=np.uint8)
    return Arrays(images=images, factors=np.stack([light, shadow, other], axis=1), names=NAMES)


def edges(name: str, pictures: Arrays, **knowledge: Any) -> set[tuple[str, str]]:
    model: Any = MODELS[name].for_data(pictures, knowledge=Knowledge(**knowledge))
    return set(model.graph.edges)


@pytest.mark.parametrize("name", CAUSAL)
def test_the_graph_follows_what_is_known(name: str, pictures: Arrays) -> None:
    known = ("light", "shadow")
    assert edges(name, pictures) == {known}
    assert edges(name, pictures, required=(("other", "light"),)) == {known, ("other", "light")}
    assert known not in edges(name, pictures, forbidden=(known,))
    assert known not in edges(name, pictures, tiers=(("shadow",), ("light", "other")))


def test_resamples_change_the_confidence(pictures: Arrays) -> None:
    once, often = (
        CausalVAE.for_data(pictures, knowledge=Knowledge(bootstrap=count)).graph.confidence
        for count in (0, 3)
    )
    assert once is not None
    assert often is not None
    assert not np.array_equal(once, often)


@pytest.mark.parametrize(
    ("knowledge", "hint"),
    [
        ({"required": (("lihgt", "shadow"),)}, "Did you mean 'light'"),
        ({"forbidden": (("light", "shadw"),)}, "Did you mean 'shadow'"),
        ({"tiers": (("light",), ("shado",))}, "Did you mean 'shadow'"),
        ({"required": (("light", "shadow"), ("shadow", "light"))}, "cycle"),
    ],
)
def test_wrong_knowledge_is_refused(knowledge: dict[str, Any], hint: str, pictures: Arrays) -> None:
    with pytest.raises(UsageError, match=hint):
        CausalVAE.for_data(pictures, knowledge=Knowledge(**knowledge))


def test_all_edges_leave_nothing_to_know(pictures: Arrays) -> None:
    with pytest.raises(UsageError, match="give edges or knowledge"):
        CausalVAE.for_data(pictures, edges=(), knowledge=Knowledge(bootstrap=3))


def test_knowledge_may_be_given_as_a_recipe_has_it(pictures: Arrays) -> None:
    given = {"required": (("light", "shadow"),), "bootstrap": 2}
    graphs = [
        CausalVAE.for_data(pictures, knowledge=knowledge).graph
        for knowledge in (given, Knowledge(**given))
    ]
    assert graphs[0] == graphs[1]
    assert ("light", "shadow") in graphs[0].edges
    with pytest.raises(UsageError, match="knowledge"):
        CausalVAE.for_data(pictures, knowledge={"bootstraps": 3})


def test_a_recipe_and_an_override_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "bare.yaml").write_text(RECIPE)
    known = "  knowledge: {forbidden: [[light_angle, shadow_length]], bootstrap: 2}\n"
    (tmp_path / "full.yaml").write_text(RECIPE + known)
    words = [
        "model.knowledge.forbidden=[[light_angle, shadow_length]]",
        "model.knowledge.bootstrap=2",
    ]
    recipe = read_recipe(tmp_path / "bare.yaml", words)
    assert recipe == read_recipe(tmp_path / "full.yaml")
    assert recipe.model["knowledge"] == {
        "required": [],
        "forbidden": [["light_angle", "shadow_length"]],
        "tiers": [],
        "bootstrap": 2,
    }
    written = yaml.safe_load(recipe.to_yaml())
    assert parse_recipe(written, source="again") == recipe
    assert read_recipe(tmp_path / "full.yaml", ["model.knowledge.bootstrap=5"]).model[
        "knowledge"
    ] == recipe.model["knowledge"] | {"bootstrap": 5}


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("model.knowledge.forbiden=[]", "model.knowledge.forbiden: unknown key. Did you mean 'for"),
        ("model.knowledge.bootstrap=-1", "model.knowledge.bootstrap: .* got -1"),
        ("model.knowledge.tiers=[light_angle]", "model.knowledge.tiers: "),
        ("model.knowledge.required=[[a, b, c]]", "model.knowledge.required: "),
        ("model.knowledge=5", "model.knowledge: .* got 5"),
        ("model.knowlege.tiers=[]", "model.knowlege: unknown key. Did you mean 'knowledge'"),
    ],
)
def test_a_wrong_key_is_answered_with_the_right_one(word: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(RECIPE)
    with pytest.raises(UsageError, match=line):
        read_recipe(tmp_path / "r.yaml", [word])


@pytest.mark.parametrize("name", CAUSAL)
def test_a_run_comes_back_with_what_was_known(name: str, pictures: Arrays, tmp_path: Path) -> None:
    knowledge = Knowledge(tiers=(("light", "other"), ("shadow",)), forbidden=(("other", "shadow"),))
    model: Any = MODELS[name].for_data(pictures, knowledge=knowledge)
    fit(model, pictures, steps=1, batch_size=8, threads=1, out=tmp_path / "run")
    twin: Any = load_run(tmp_path / "run").model
    assert twin.knowledge == knowledge
    assert twin.graph == model.graph
    assert np.array_equal(twin.concepts(pictures.images[:3]), model.concepts(pictures.images[:3]))
