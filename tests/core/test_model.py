"""Losses, and the constructors, `for_data` and `dir` of all models as editors show them."""

import inspect

import pytest
import torch

import disentwine
from disentwine import VAE, CausalVAE
from disentwine.core.model import Losses
from disentwine.models import MODELS

KINDS = inspect.Parameter


def test_the_total_weighs_the_means_of_terms():
    per_image, scalar = torch.tensor([1.0, 3.0], requires_grad=True), torch.tensor(5.0)
    losses = Losses(
        {"error": per_image, "size": scalar, "watched": scalar}, {"size": 2, "watched": 0}
    )
    assert losses.total.item() == 2 + 2 * 5
    losses.total.backward()
    assert per_image.grad.tolist() == [0.5, 0.5]


def test_means_are_unweighted_and_carry_no_gradient():
    error = torch.tensor([1.0, 3.0], requires_grad=True)
    means = Losses({"error": error}, {"error": 4.0}).means()
    assert {name: value.item() for name, value in means.items()} == {"loss": 8.0, "error": 2.0}
    assert next(iter(means)) == "loss"
    assert not any(value.requires_grad for value in means.values())


@pytest.mark.parametrize("name", MODELS)
def test_what_the_data_decide_comes_first_and_options_by_keyword(name):
    cls = MODELS[name]
    parameters = inspect.signature(cls).parameters
    positional = [n for n, p in parameters.items() if p.kind is KINDS.POSITIONAL_OR_KEYWORD]
    assert positional[0] == "image_shape"
    assert positional == list(cls.fixed_by_data)


@pytest.mark.parametrize("name", MODELS)
def test_for_data_shows_every_option(name):
    cls = MODELS[name]
    options = inspect.signature(cls).parameters
    first, *shown = inspect.signature(cls.for_data).parameters.values()
    assert first.name == "dataset"
    assert [p.name for p in shown] == [n for n in options if n not in cls.fixed_by_data]
    assert all(p == options[p.name] for p in shown)


@pytest.mark.parametrize("name", MODELS)
def test_every_argument_has_a_help_text(name):
    cls = MODELS[name]
    text = inspect.getdoc(cls)
    arguments = text.split("Arguments:")[1]
    assert [n for n in inspect.signature(cls).parameters if n not in arguments] == []
    assert inspect.cleandoc(text) in inspect.getdoc(cls.for_data)


def test_for_data_of_an_object_builds_its_class():
    pendulum = disentwine.data.Pendulum(size=32)
    model = VAE.for_data(pendulum, latent=2)
    assert type(model.for_data(pendulum, latent=3)) is VAE


def test_dir_of_a_model_lists_what_users_call():
    model = CausalVAE.for_data(disentwine.data.Pendulum(size=32), edges=())
    names = dir(model)
    for name in (
        "do",
        "graph",
        "concepts",
        "represent",
        "reconstruct",
        "sample",
        "graph_loss",
        "to",
    ):
        assert name in names
    assert all(hasattr(model, name) for name in names)
    assert not [name for name in names if name.startswith("_")]
    assert "register_full_backward_pre_hook" not in names
    assert len(names) < 70
