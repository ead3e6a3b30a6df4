"""CausalVAE against its equations, and its do-operation against what causality asks."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from disentwine import CausalVAE
from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.causal.graph import Graph
from disentwine.causal.notears import discover_notears
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.models.causal.causal_vae import CausalLatents, GraphLossWeights
from disentwine.nn.concept_layers import LinearSCM, MaskLayer
from disentwine.nn.encoders import DiagonalGaussian

NAMES = ("ball", "height", "hole", "flow")
EDGES = (("ball", "height"), ("height", "flow"), ("hole", "flow"))


def build(edges: Any = EDGES, **options: Any) -> CausalVAE:
    """Flow's graph with weights that are neither 0 nor 1, and networks that are not trained."""
    torch.manual_seed(0)
    graph = Graph.from_edges(NAMES, edges)
    weights = graph.weights * np.linspace(0.4, 1.3, 16).reshape(4, 4)
    return CausalVAE(
        image_shape=(16, 16, 3),
        concept_spec=ConceptSpec(
            tuple(
                Concept(name, mean=mean, std=std)
                for name, mean, std in zip(
                    NAMES, (1.0, 5.0, 3.0, 2.0), (0.5, 2.0, 1.0, 0.25), strict=True
                )
            )
        ),
        graph=Graph(NAMES, weights),
        **options,
    ).eval()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def move(model: CausalVAE, x: torch.Tensor, **values: float) -> tuple[CausalLatents, CausalLatents]:
    with torch.no_grad():
        before = model.abduct(x)
        moved = {NAMES.index(n): torch.full((len(x),), v) for n, v in values.items()}
        return before, model.propagate(before, moved)


def test_the_causal_layer_solves_its_equation() -> None:
    model = build()
    epsilon = torch.randn(5, 4, 3)
    z = model.scm(epsilon)
    torch.testing.assert_close(z, torch.einsum("ji,njd->nid", model.scm.A, z) + epsilon)


def test_an_absent_edge_has_no_weight_and_learns_none() -> None:
    scm = LinearSCM(torch.tensor([[0.0, 0.7], [0.0, 0.0]]))
    scm(torch.randn(4, 2, 1)).square().sum().backward()
    assert scm.weights.shape == (1,)
    assert scm.weights.grad is not None
    assert scm.weights.grad.all()
    assert scm.A.count_nonzero() == 1


def test_an_effect_depends_on_its_causes_alone() -> None:
    """The mask layer's Jacobian is zero where the graph has no edge."""
    model = build()
    z = torch.randn(1, 4, 4, requires_grad=True)
    for i, name in enumerate(NAMES):
        row = model.mask(z, model.scm.A)[0, i].sum()
        (gradient,) = (
            torch.autograd.grad(row, z, allow_unused=True) if row.requires_grad else (None,)
        )
        felt = torch.zeros(4) if gradient is None else gradient[0].abs().sum(-1)
        causes = {NAMES[j] for j in range(4) if felt[j] > 0}
        assert causes == set(model.initial_graph.parents(name))


def test_what_is_not_caused_does_not_move(x: torch.Tensor) -> None:
    model = build()
    for name in NAMES:
        before, after = move(model, x, **{name: 1.7})
        follows = {name, *model.initial_graph.descendants(name)}
        for i, other in enumerate(NAMES):
            same = torch.equal(before.z_hat[:, i], after.z_hat[:, i])
            assert same == (other not in follows), (name, other)


def test_a_moved_concept_has_the_value_asked_for(x: torch.Tensor) -> None:
    model = build()
    _, after = move(model, x, height=-0.3, hole=0.8)
    values = model.values(after)
    torch.testing.assert_close(values[:, 1], torch.full((6,), -0.3))
    torch.testing.assert_close(values[:, 2], torch.full((6,), 0.8))


def test_effects_of_effects_follow(x: torch.Tensor) -> None:
    """Ball moves flow through the height of the water, unless that height is held."""
    model = build()
    before, after = move(model, x, ball=2.0)
    assert not torch.allclose(before.z_hat[:, 3], after.z_hat[:, 3])
    held = float(model.values(before)[0, 1])
    before, after = move(model, x[:1], ball=2.0, height=held)
    torch.testing.assert_close(before.z_hat[:, 3], after.z_hat[:, 3], atol=1e-6, rtol=0)


def test_doing_what_was_already_so_gives_the_reconstruction(x: torch.Tensor) -> None:
    model = build()
    old = model.concepts(x)
    for i, name in enumerate(NAMES):
        same = model.do(x, {name: old[:, i].numpy()})
        torch.testing.assert_close(same, model.reconstruct(x), atol=1e-6, rtol=0)


def test_values_may_be_numbers_arrays_functions_and_keywords(x: torch.Tensor) -> None:
    model = build()
    by_number = model.do(x, {"height": 7.0})
    assert torch.equal(by_number, model.do(x, height=7.0))
    assert torch.equal(by_number, model.do(x, height=np.full(6, 7.0)))
    assert torch.equal(by_number, model.do(x, height=lambda old: 0 * old + 7.0))
    assert not torch.equal(by_number, model.do(x, height=lambda old: old + 7.0))
    picture = np.zeros((16, 16, 3), np.uint8)
    assert model.do(picture, height=7.0).shape == picture.shape
    stack = np.random.default_rng(0).integers(0, 256, (300, 16, 16, 3), dtype=np.uint8)
    wanted = np.linspace(3, 7, 300)
    one_by_one = model.do(stack[299], height=wanted[299])
    whole = model.do(stack, height=wanted)[299]
    assert np.abs(whole.astype(int) - one_by_one.astype(int)).max() <= 1


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ({"hight": 1.0}, "Did you mean 'height'"),
        ({"height": float("nan")}, "finite"),
        ({"height": np.zeros(3)}, "one per image"),
    ],
)
def test_wrong_interventions_are_refused(x: torch.Tensor, values: Any, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        build().do(x, values)


def test_a_cycle_is_refused() -> None:
    with pytest.raises(UsageError, match="cycle"):
        build(edges=(*EDGES, ("flow", "ball")))


@pytest.mark.parametrize("deviation", [1.0, 0.1])
def test_the_divergence_from_the_label_prior_is_exact(x: torch.Tensor, deviation: float) -> None:
    """Against torch's multivariate normals, with the full covariance of z = C epsilon."""
    model = build(dimensions=1, label_std=deviation).double()
    u = torch.randn(6, 4, dtype=torch.float64)
    with torch.no_grad():
        q = model.posterior(x.double())
        C = model.scm.C
        covariance = C @ torch.diag_embed(q.log_variance.exp()) @ C.T
        z = MultivariateNormal(q.mean @ C.T, covariance)
        prior = MultivariateNormal(u, deviation**2 * torch.eye(4, dtype=torch.float64))
        got = model._kl_from_labels(q, C, u, torch.ones_like(u))
    torch.testing.assert_close(got, kl_divergence(z, prior))


def test_missing_labels_are_not_learnt_from(x: torch.Tensor) -> None:
    model = build(label_dropout=0.0)
    u = torch.randn(6, 4)
    u[0] = torch.nan
    u[1, 2] = torch.nan
    with fixed_noise(0):
        losses = model.loss(Batch(x, u))
    assert all(term.isfinite().all() for term in losses.terms.values())
    assert losses.terms["kl_z"][0] == 0
    assert losses.terms["l_u"][0] == 0
    assert losses.terms["kl_z"][1] > 0


def test_the_encoder_looks_at_labels_only_where_they_are_given(x: torch.Tensor) -> None:
    model = build()
    u = torch.randn(6, 4)
    blank = model.posterior(x).mean
    assert torch.equal(model.posterior(x, u, torch.zeros(6, 4)).mean, blank)
    assert not torch.equal(model.posterior(x, u, torch.ones(6, 4)).mean, blank)


def test_every_weight_of_eq_14_counts(x: torch.Tensor) -> None:
    model = build(graph_loss=GraphLossWeights(acyclicity=2.0, l_u=3.0, l_m=5.0))
    with fixed_noise(0):
        losses = model.loss(Batch(x, torch.randn(6, 4)))
    t = {name: term.mean() for name, term in losses.terms.items()}
    expected = (
        t["reconstruction"]
        + t["kl_epsilon"]
        + t["kl_z"]
        + 2 * t["acyclicity"]
        + 3 * t["l_u"]
        + 5 * t["l_m"]
    )
    torch.testing.assert_close(losses.total, expected)
    assert t["acyclicity"] == 0


def test_mask_layer_adds_nothing_to_a_concept_without_causes() -> None:
    A = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    layer = MaskLayer(A, dimensions=3)
    out = layer(torch.randn(4, 2, 3), A)
    assert (out[:, 0] == 0).all()
    assert (out[:, 1] != 0).any()


def test_the_graph_may_be_learnt_by_the_papers_least_squares() -> None:
    """Of standardised linear labels; weights then start where the augmented Lagrangian left them."""
    rng = np.random.default_rng(0)
    cause, noise = rng.uniform(-1, 1, size=(2, 400))
    labels = np.stack([cause, 3 * cause + noise], axis=1)
    images = np.zeros((400, 16, 16, 1), dtype=np.uint8)
    data = Arrays(images=images, factors=labels, names=["cause", "effect"])
    model = CausalVAE.for_data(data, discovery="least-squares")
    wanted = discover_notears(labels[data.split["train"]], data.names)
    assert model.graph.edges == wanted.edges
    np.testing.assert_allclose(model.graph.weights, wanted.weights, rtol=1e-6)
    with pytest.raises(UsageError, match="give either"):
        CausalVAE.for_data(data, discovery="least-squares", edges=(("cause", "effect"),))


@torch.no_grad()
def test_the_divergence_from_some_labels_is_that_of_their_marginal() -> None:
    """One label of each image is missing; the reference is torch's, of the block that is left."""
    model = build().double()
    q = DiagonalGaussian(*torch.randn(2, 5, 4 * model.dimensions, dtype=torch.double))
    u, known = torch.randn(5, 4, dtype=torch.double), 1 - torch.eye(5, 4, dtype=torch.double)
    found = model._kl_from_labels(q, model.scm.C, u, known)
    means = model.scm(model.by_concept(q.mean))
    for n in range(5):
        kept, total = known[n].bool(), 0.0
        for d in range(model.dimensions):
            variance = model.by_concept(q.log_variance)[n, :, d].exp()
            covariance = (model.scm.C * variance @ model.scm.C.T)[kept][:, kept]
            prior = MultivariateNormal(
                u[n, kept], model.label_std**2 * torch.eye(int(kept.sum())).double()
            )
            total += kl_divergence(MultivariateNormal(means[n, kept, d], covariance), prior)
        assert found[n].item() == pytest.approx(float(total), rel=1e-9)


def test_a_label_without_its_causes_is_not_explained_by_them() -> None:
    model = build()
    u = torch.randn(1, 4)
    z = torch.zeros(1, 4, model.dimensions)
    without_height = torch.tensor([[1.0, 0, 1, 1]])
    assert model.graph_terms(z, u, without_height, mask=model.mask)["l_u"].item() == 0
    assert model.graph_terms(z, u, torch.ones(1, 4), mask=model.mask)["l_u"].item() > 0
