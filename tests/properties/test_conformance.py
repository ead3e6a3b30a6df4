"""Conformance: every registered model keeps the contract with every option of its constructor."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, Literal

import numpy as np
import pytest

from disentwine.data import Arrays, Pendulum
from disentwine.errors import UsageError
from disentwine.models import MODELS, VAE
from disentwine.testing import check_model, small_grid

NAMES = ("cause", "effect", "outcome", "other")
SHAPES = [(16, 16, 1), (20, 24, 3)]
FURTHER: dict[str, list[dict[str, Any]]] = {
    "dip-vae-ii": [{"lambda_3": 200.0}],
    "dc-ign": [{"dimensions": 2}],
    "vae": [{"warm_up_steps": 5}],
    "causal-vae/layered": [{"edges": (("cause", "effect"),)}, {"edges": ()}],
    "causal-vae": [{"edges": (("cause", "effect"), ("effect", "outcome"))}, {"edges": ()}],
    "causal-vae-unsup": [{"concept_count": 1}, {"concept_count": 7, "dimensions": 1}],
    "condition-vae": [{"dimensions": 1, "label_dropout": 0.0}],
    "hierarchical-vae": [{"batch_norm": True}, {"layers": (4,)}, {"importance_samples": 3}],
    "ladder-vae": [{"batch_norm": False}, {"layers": (4,)}, {"importance_samples": 3}],
    "infogan": [{"classes": 3}],
    "causal-gan": [{"edges": ()}],
    "causal-wae": [{"decode_roots": False}, {"edges": ()}],
    "beta-vae": [{"capacity": 5.0, "warm_up_steps": 5}, {"beta": 0.0}],
}
"""Choices beyond the literal arguments of a constructor."""

SMALL: dict[str, dict[str, Any]] = {
    name: {"layers": (4, 3), "hidden": (12, 8)} for name in ("hierarchical-vae", "ladder-vae")
}
SMALL["causal-gan"] = {"edges": (("cause", "effect"), ("effect", "outcome"))}
SMALL["causal-wae/layered"] = SMALL["causal-gan"] | {"discriminator_units": 16}
SMALL["causal-wae"] = SMALL["causal-wae/layered"] | {"dimensions": 2}
SMALL["vq-vae"] = {"codebook_size": 8, "code_dim": 4, "channels": 8}
SMALL["mcq-vae"] = SMALL["vq-vae"]
SMALL["ct-vae"] = {
    "autoencoder": SMALL["vq-vae"],
    "transition": {"node_dim": 8, "edge_hidden": 4},
}
"""Options that make large models small, or give the graph that would be learnt."""

FURTHER["ct-vae"] = [{"joint": True, "bidirectional": True}]

QUANTIZED = ("reconstruction", "commitment", "codebook")
TRANSITION = ("l_x", "l_id_y", "l_id_m", "l_y", "l_a", "kl", "l_m", "l_dep")

SPARED = {"causal-wae": ("network",), "causal-wae/layered": ("network",)}
"""Arguments whose options are checked with another model, built of the same parts."""


def estimated(name: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Terms whose gradient is a straight-through estimate, or stops at a code."""
    if not name.endswith(("vq-vae", "mcq-vae", "ct-vae")):
        return ()
    averaged = options.get("codebook_update") == "ema"
    own = QUANTIZED[:2] if averaged else QUANTIZED
    if name != "ct-vae":
        return own
    return own + TRANSITION if options.get("joint") else TRANSITION


def choices(name: str) -> list[dict[str, Any]]:
    """The defaults, each option of a literal argument, and those listed above."""
    return [{}, *literal_choices(name), *FURTHER.get(name, [])]


def literal_choices(name: str) -> list[dict[str, Any]]:
    """Each further option of a model's literal arguments."""
    spared = set(SPARED.get(name, ()))
    return [one for one in literal_options(MODELS[name]) if spared.isdisjoint(one)]


def literal_options(cls: Any) -> Iterator[dict[str, Any]]:
    """Each further option of the literal arguments of a class, and of its groups of options."""
    for argument, parameter in inspect.signature(cls, eval_str=True).parameters.items():
        if getattr(parameter.annotation, "__origin__", None) is Literal:
            others = [one for one in parameter.annotation.__args__ if one != parameter.default]
            yield from ({argument: option} for option in others)
        elif is_dataclass(parameter.annotation):
            yield from ({argument: group} for group in literal_options(parameter.annotation))


def with_small(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options, groups included, beside those that make a model small."""
    small = SMALL.get(name, {})
    groups = {n: small.get(n, {}) | v for n, v in options.items() if isinstance(v, dict)}
    return small | options | groups


CASES = [
    pytest.param(
        name,
        options,
        shape,
        marks=pytest.mark.slow if options in literal_choices(name) else (),
    )
    for name in MODELS
    for options in choices(name)
    for shape in (SHAPES if not options else SHAPES[-1:])
]
"""Every model on every shape, and each of its further choices on one."""

LITERAL = [(name, options) for name in MODELS for options in literal_choices(name)]


def random_images(image_shape: tuple[int, int, int]) -> Arrays:
    """A dataset that determines everything a model may take from one."""
    rng = np.random.default_rng(0)
    return Arrays(
        images=rng.integers(0, 256, (60, *image_shape), dtype=np.uint8),
        factors=rng.normal(size=(60, len(NAMES))),
        names=NAMES,
        edges=[(NAMES[0], NAMES[1]), (NAMES[1], NAMES[2])],
    )


def check(
    name: str,
    options: dict[str, Any],
    image_shape: tuple[int, int, int],
    *,
    finite_differences: bool = True,
) -> None:
    acts = "actions" in MODELS[name].fixed_by_data
    dataset = small_grid(image_shape) if acts else random_images(image_shape)
    check_model(
        lambda: MODELS[name].for_data(dataset, **with_small(name, options)),
        image_shape=image_shape,
        factors=len(NAMES),
        estimated=estimated(name, options),
        finite_differences=finite_differences,
    )


@pytest.mark.parametrize(("name", "options", "image_shape"), CASES, ids=str)
def test_the_contract_is_kept(
    name: str, options: dict[str, Any], image_shape: tuple[int, int, int]
) -> None:
    check(name, options, image_shape)


@pytest.mark.parametrize(("name", "options"), LITERAL, ids=str)
def test_every_literal_option_keeps_the_contract(name: str, options: dict[str, Any]) -> None:
    """All but its gradients against finite differences, which `make prove` compares."""
    check(name, options, SHAPES[-1], finite_differences=False)


def test_the_choices_are_found() -> None:
    for choice in ({}, {"network": "mlp"}, {"likelihood": "gaussian"}, {"warm_up_steps": 5}):
        assert choice in choices("vae")
    assert {"transition": {"message_passing": "grid"}} in choices("ct-vae")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"latnet": 3}, "Did you mean 'latent'"),
        ({"latent": -1}, "latent"),
        ({"likelihood": "gauss"}, "bernoulli"),
        ({"network": "foo", "latent": 0}, r"latent.*network"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_built(
    options: dict[str, Any], hint: str
) -> None:
    with pytest.raises(UsageError, match=hint):
        VAE.for_data(Pendulum(size=32), **options)
