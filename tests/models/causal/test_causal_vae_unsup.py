"""CausalVAE-unsup: CausalVAE's causal layer, and nothing learnt from labels."""

from typing import Any

import numpy as np
import pytest
import torch

from disentwine.core.capabilities import Decodes, EstimatesLikelihood, Generates, Intervenes
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models import UnsupervisedCausalVAE
from disentwine.nn.concept_layers import acyclicity
from disentwine.runs.recipe import recipe_of


def build(**options: Any) -> UnsupervisedCausalVAE:
    torch.manual_seed(0)
    return UnsupervisedCausalVAE(image_shape=(16, 16, 1), factors=3, **options)


def with_edges(model: UnsupervisedCausalVAE) -> UnsupervisedCausalVAE:
    """An A that is neither empty nor acyclic."""
    with torch.no_grad():
        model.scm.weights.copy_(torch.linspace(-0.6, 0.7, 6))
    return model


@pytest.fixture
def x() -> torch.Tensor:
    return torch.rand(5, 1, 16, 16, generator=torch.Generator().manual_seed(1))


def test_the_graph_starts_empty_and_is_learnt_everywhere(x: torch.Tensor) -> None:
    model = build()
    assert not model.scm.A.any()
    model.loss(Batch(x, torch.zeros(5, 0))).total.backward()
    assert model.scm.weights.grad is not None
    assert model.scm.weights.grad.count_nonzero() == 6
    assert not with_edges(model).scm.A.diagonal().any()
    assert model.scm.A.count_nonzero() == 6


def test_labels_are_never_looked_at(x: torch.Tensor) -> None:
    model = with_edges(build())
    totals = []
    for u in (torch.zeros(5, 3), torch.randn(5, 3), torch.full((5, 3), torch.nan), x.new(5, 0)):
        with fixed_noise(0):
            totals.append(model.loss(Batch(x, u)).total)
    assert all(torch.equal(total, totals[0]) for total in totals)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 16, 16, 1), dtype=np.uint8)
    models = []
    for factors in (rng.normal(size=(20, 2)), rng.random((20, 2)) + 9):
        torch.manual_seed(0)
        models.append(
            UnsupervisedCausalVAE.for_data(Arrays(images=images, factors=factors)).represent(images)
        )
    assert np.array_equal(*models)


def test_the_loss_is_the_bound_and_the_acyclicity(x: torch.Tensor) -> None:
    model = with_edges(build(alpha=3.0))
    with fixed_noise(0):
        losses = model.loss(Batch(x, torch.zeros(5, 0)))
    q = model.posterior(x)
    H = acyclicity(model.scm.A)
    assert H > 0.01
    torch.testing.assert_close(losses.terms["acyclicity"], H)
    torch.testing.assert_close(
        losses.terms["kl"], kl_to_standard_normal(q.mean, q.log_variance).sum(1)
    )
    t = {name: term.mean() for name, term in losses.terms.items()}
    torch.testing.assert_close(losses.total, t["reconstruction"] + t["kl"] + 3 * H)


def test_images_are_decoded_from_endogenous_terms(x: torch.Tensor) -> None:
    """z = A^T z + epsilon, and the mean of its numbers is the code."""
    model = with_edges(build()).eval()
    with torch.no_grad():
        epsilon = model.posterior(x).mean
        z = model.causal_layer(epsilon)
        solved = torch.einsum("ji,njd->nid", model.scm.A, z) + epsilon.view(5, 3, 4)
        torch.testing.assert_close(z, solved)
        torch.testing.assert_close(model.represent(x), z.mean(-1))
        torch.testing.assert_close(model.reconstruct(x), model.decoder(z.flatten(1)).sigmoid())
        same = z.mean(-1, keepdim=True).expand(-1, -1, 4).flatten(1)
        torch.testing.assert_close(model.decode(model.represent(x)), model.decoder(same).sigmoid())


def test_with_one_number_a_concept_codes_are_all_there_is(x: torch.Tensor) -> None:
    model = with_edges(build(dimensions=1)).eval()
    torch.testing.assert_close(model.decode(model.represent(x)), model.reconstruct(x))


def test_the_likelihood_is_that_of_the_causal_layer_too(x: torch.Tensor) -> None:
    """Importance weights average to the same p(x) whether A or the decoder mixes the terms."""
    model, plain = with_edges(build()).eval().double(), build().eval().double()
    mixing = torch.kron(model.scm.C.detach().contiguous(), torch.eye(4, dtype=torch.float64))
    first = plain.decoder[0]
    assert isinstance(first, torch.nn.Linear)
    with torch.no_grad():
        first.weight.copy_(first.weight @ mixing)
    with fixed_noise(0):
        a = model.log_weights(x.double(), samples=3)
    with fixed_noise(0):
        b = plain.log_weights(x.double(), samples=3)
    torch.testing.assert_close(a, b)


def test_capabilities() -> None:
    model = build()
    assert isinstance(model, Decodes)
    assert isinstance(model, Generates)
    assert isinstance(model, EstimatesLikelihood)
    assert not isinstance(model, Intervenes)
    assert model.sample(2).shape == (2, 1, 16, 16)


def test_the_number_of_concepts_is_that_of_the_factors_or_given() -> None:
    images = np.zeros((20, 16, 16, 1), np.uint8)
    bare = Arrays(images=images)
    with pytest.raises(UsageError, match="concept_count"):
        UnsupervisedCausalVAE.for_data(bare)
    model = UnsupervisedCausalVAE.for_data(bare, concept_count=5, dimensions=2)
    assert model.represent(images).shape == (20, 5)
    labelled = Arrays(images=images, factors=np.arange(40.0).reshape(20, 2))
    model = UnsupervisedCausalVAE.for_data(labelled)
    assert model.represent(images).shape == (20, 2)
    # A recipe writes every default out, and must not hide the data set's number behind it.
    recipe = recipe_of(model, labelled, training={}, seed=0)
    assert recipe.model["concept_count"] is None
    assert recipe.build_model(labelled).represent(images).shape == (20, 2)
