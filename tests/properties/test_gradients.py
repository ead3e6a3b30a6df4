"""Every term that a model may minimise has the slope that finite differences have, in float64."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import disentwine.losses
from disentwine.losses.adversarial import (
    discriminator_loss,
    generator_loss,
    gradient_penalty,
    lazy_gradient_penalty,
)
from disentwine.losses.dip import (
    covariance_of_latents,
    covariance_of_means,
    diagonal_penalty,
    off_diagonal_penalty,
    third_moment_penalty,
    third_moments,
)
from disentwine.losses.elbo import (
    bernoulli_log_likelihood,
    gaussian_log_density,
    gaussian_log_likelihood,
    importance_weighted_bound,
    kl_between_gaussians,
    kl_to_standard_normal,
)
from disentwine.losses.kernels import gaussian, hsic, inverse_multiquadratic, mmd, squared_distances
from disentwine.losses.quantile import quantile_loss
from disentwine.losses.total_correlation import decompose_kl
from disentwine.losses.transition import (
    distance_from_identity,
    edge_count,
    edge_divergence,
    negative_log_likelihood,
    orphan_penalty,
    unlabelled_likelihood,
)
from disentwine.nn.concept_layers import acyclicity

Inputs = tuple[Tensor, ...]

NO_SLOPE = {
    "independence_test": "a p-value by permutations",
    "permute_dimensions": "draws codes to judge, never minimised",
    "log_batch_weights": "of counts alone",
    "quantile_levels": "of counts alone",
    "linear": "of the step alone",
}


def draws(*shapes: tuple[int, ...]) -> Inputs:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(s, dtype=torch.float64, generator=generator) for s in shapes)


def shares(*shapes: tuple[int, ...]) -> Inputs:
    return tuple(torch.sigmoid(x) for x in draws(*shapes))


def slopes_of_a_judge(penalty: Callable[..., Tensor], W: Tensor) -> Tensor:
    """A penalty of true samples is for the weights of their judge; the samples are what they are."""
    return penalty(lambda x: torch.tanh(x @ W).square().sum(1), draws((5, 3))[0])


codes, pairs, posterior = (5, 3), ((5, 3), (5, 3)), ((5, 3), (5, 3), (5, 3))

TERMS: dict[str, tuple[Callable[..., Tensor | tuple[Tensor, ...]], Inputs]] = {
    "acyclicity": (acyclicity, draws((4, 4))),
    "bernoulli_log_likelihood": (bernoulli_log_likelihood, (*shares((3, 7)), *draws((3, 7)))),
    "gaussian_log_likelihood": (
        lambda x, mean, scale: gaussian_log_likelihood(x, mean, scale=scale),
        (*draws((3, 2, 4), (3, 2, 4)), *shares(())),
    ),
    "kl_to_standard_normal": (kl_to_standard_normal, draws(*pairs)),
    "gaussian_log_density": (gaussian_log_density, draws(*posterior)),
    "kl_between_gaussians": (kl_between_gaussians, draws(*pairs, *pairs)),
    "importance_weighted_bound": (importance_weighted_bound, draws((4, 5))),
    "covariance_of_means": (covariance_of_means, draws(codes)),
    "covariance_of_latents": (covariance_of_latents, draws(*pairs)),
    "off_diagonal_penalty": (lambda m: off_diagonal_penalty(covariance_of_means(m)), draws(codes)),
    "off_diagonal_penalty, II": (
        lambda m, v: off_diagonal_penalty(covariance_of_latents(m, v)),
        draws(*pairs),
    ),
    "diagonal_penalty": (lambda m: diagonal_penalty(covariance_of_means(m)), draws(codes)),
    "diagonal_penalty, II": (
        lambda m, v: diagonal_penalty(covariance_of_latents(m, v)),
        draws(*pairs),
    ),
    "third_moments": (third_moments, draws(*pairs)),
    "third_moment_penalty": (third_moment_penalty, draws(*pairs)),
    "decompose_kl": (partial(decompose_kl, dataset_size=40), draws(*posterior)),
    "decompose_kl, weighted": (
        partial(decompose_kl, dataset_size=40, estimator="weighted"),
        draws(*posterior),
    ),
    "discriminator_loss": (discriminator_loss, draws((6,), (6,))),
    "generator_loss": (generator_loss, draws((6,))),
    "gradient_penalty": (partial(slopes_of_a_judge, gradient_penalty), draws((3, 4))),
    "lazy_gradient_penalty": (
        partial(slopes_of_a_judge, partial(lazy_gradient_penalty, step=0)),
        draws((3, 4)),
    ),
    "squared_distances": (squared_distances, draws(*pairs)),
    "inverse_multiquadratic": (inverse_multiquadratic, draws(*pairs)),
    "gaussian": (gaussian, draws(*pairs)),
    "mmd": (mmd, draws(*pairs)),
    "hsic": (hsic, draws(*pairs)),
    "quantile_loss": (quantile_loss, draws((5, 3), (3, 4))),
    "negative_log_likelihood": (
        lambda log_p, y: negative_log_likelihood(log_p.log_softmax(-1), y.softmax(-1)),
        draws((2, 4, 3), (2, 4, 3)),
    ),
    "distance_from_identity": (distance_from_identity, shares((2, 4, 4))),
    "edge_count": (edge_count, shares((2, 4, 4))),
    "edge_divergence": (edge_divergence, shares((2, 4, 4))),
    "orphan_penalty": (lambda x: orphan_penalty(-x.exp()), draws((2, 4))),
    "unlabelled_likelihood": (unlabelled_likelihood, draws((5, 3))),
}


@pytest.mark.parametrize("name", TERMS)
def test_slopes_are_those_of_finite_differences(name: str) -> None:
    term, inputs = TERMS[name]
    assert gradcheck(term, tuple(x.clone().requires_grad_() for x in inputs))


def test_no_term_is_left_out() -> None:
    modules = pkgutil.iter_modules(disentwine.losses.__path__, "disentwine.losses.")
    public = {
        name
        for module in modules
        for name, made in inspect.getmembers(importlib.import_module(module.name))
        if inspect.isfunction(made) and made.__module__ == module.name and name[0] != "_"
    }
    public.add("acyclicity")  # of A, beside the layer that has it
    assert {name.partition(",")[0] for name in TERMS} | NO_SLOPE.keys() == public
