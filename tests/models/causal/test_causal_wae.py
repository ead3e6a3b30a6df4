"""CausalWAE against its equations, its do-operation, and what its public code loses."""

from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.causal.graph import Graph
from disentwine.core.capabilities import Adversarial
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.losses.kernels import hsic, mmd
from disentwine.models import CausalWAE
from disentwine.models.causal.causal_vae import GraphLossWeights
from disentwine.models.causal.causal_wae import WAELatents

NAMES = ("ball", "height", "hole", "flow", "colour")
EDGES = (("ball", "height"), ("height", "flow"), ("hole", "flow"))
ROOTS, EFFECTS, LONE = ("ball", "hole"), ("height", "flow"), "colour"


def build(**options: Any) -> CausalWAE:
    """Flow's graph and a concept that nothing is known of; networks that are not trained."""
    torch.manual_seed(0)
    return CausalWAE(
        image_shape=(16, 16, 1),
        concept_spec=ConceptSpec(
            tuple(
                Concept(name, mean=mean, std=std)
                for name, mean, std in zip(
                    NAMES, (1.0, 5.0, 3.0, 2.0, 0.0), (0.5, 2.0, 1.0, 0.25, 1.0), strict=True
                )
            )
        ),
        graph=Graph.from_edges(NAMES, EDGES),
        **({"dimensions": 3, "discriminator_units": 8} | options),
    ).eval()


@pytest.fixture
def batch() -> Batch:
    generator = torch.Generator().manual_seed(1)
    return Batch(
        torch.rand(6, 1, 16, 16, generator=generator), torch.randn(6, 5, generator=generator)
    )


def move(model: CausalWAE, x: Tensor, **values: float) -> tuple[WAELatents, WAELatents]:
    with torch.no_grad():
        before = model.abduct(x)
        moved = {NAMES.index(n): torch.full((len(x),), v) for n, v in values.items()}
        return before, model.propagate(before, moved)


def moves(before: Tensor, after: Tensor) -> set[str]:
    """The concepts whose codes are not the same to the bit."""
    return {n for i, n in enumerate(NAMES) if not torch.equal(before[:, i], after[:, i])}


def test_the_latents_are_those_of_the_definition() -> None:
    model = build(decode_roots=False)
    epsilon, u = torch.randn(4, 15), torch.randn(4, 5)
    found = model.latents(epsilon, u)
    A, e = model.scm.A, epsilon.view(4, 5, 3)
    codes = torch.stack([model.g_1.embed(i, u[:, i]) for i in range(5)], dim=1)
    solved = torch.linalg.inv(torch.eye(5) - A.T)
    torch.testing.assert_close(found.z_1, torch.einsum("ij,njd->nid", solved, e) + codes)
    for i, name in enumerate(NAMES):
        expected = e[:, i]
        if name in EFFECTS:
            causes = (A[:, i, None] * found.z_1).flatten(1)
            expected = expected + model.g_2.g[str(i)](causes)
        if name == LONE:
            expected = expected + codes[:, i]
        torch.testing.assert_close(found.z_2[:, i], expected)


def test_a_code_depends_on_its_own_concept_alone() -> None:
    g_1 = build().g_1
    u = torch.randn(4, 5)
    codes = g_1(u)
    for i in range(5):
        torch.testing.assert_close(codes[:, i], g_1.embed(i, u[:, i]))
        other = u + torch.randn(4, 5)
        other[:, i] = u[:, i]
        assert torch.equal(g_1(other)[:, i], codes[:, i])
        assert not torch.allclose(g_1(u + 1)[:, i], codes[:, i])


def test_roots_are_painted_from_their_own_codes() -> None:
    epsilon, u = torch.zeros(2, 15), torch.randn(2, 5)
    found = build().latents(epsilon, u)
    for name in (*ROOTS, LONE):
        i = NAMES.index(name)
        assert torch.equal(found.z_2[:, i], found.z_1[:, i])


@pytest.mark.parametrize("divergence", ["mmd", "gan"])
def test_the_loss_is_eq_8_with_eqs_2_to_4(batch: Batch, divergence: Any) -> None:
    weights = {"lambda_1": 2.0, "lambda_2": 3.0, "lambda_u": 5.0}
    graph_loss = GraphLossWeights(l_u=7.0, acyclicity=11.0, l_m=13.0)
    model = build(divergence=divergence, label_dropout=0.0, graph_loss=graph_loss, **weights)
    with fixed_noise(2):
        losses = model.loss(batch)
    u = model.standardise(batch.u)
    found = model.f(batch.x, u, torch.ones_like(u))
    latents = model.latents(found.epsilon, u)
    painted = model.g_3(latents.z_2.flatten(1))
    error = (batch.x - painted).square().sum((1, 2, 3)).mean()
    with fixed_noise(2):
        torch.rand(6, 1)  # which labels are hidden: none
        prior = torch.randn(6, 15)
    if divergence == "mmd":
        distance = mmd(found.epsilon, prior)
    else:
        assert model.discriminator is not None
        distance = -model.discriminator(found.epsilon)[:, 0].sigmoid().log().mean()
    A, caused = model.scm.A, [1, 3]
    l_u = (u - u @ A)[:, caused].square().sum(1).mean()
    l_m = (latents.z_1 - model.g_2(latents.z_1, A))[:, caused].square().sum((1, 2)).mean()
    read = (found.predicted - u).square().sum(1).mean()
    expected = (
        error + 2 * distance + 3 * hsic(found.epsilon, u) + 5 * read + 7 * l_u + 13 * l_m
    )  # A is acyclic: eq. 3 is 0
    torch.testing.assert_close(losses.total, expected)


@pytest.mark.parametrize("divergence", ["mmd", "gan"])
@pytest.mark.parametrize("decode_roots", [False, True])
def test_every_parameter_of_the_paper_learns_and_is_saved(
    batch: Batch, divergence: Any, decode_roots: bool
) -> None:
    """The public code keeps g_1 in a plain list: it is neither trained nor saved."""
    model = build(divergence=divergence, decode_roots=decode_roots).train()
    model.loss(batch).total.backward()
    named = dict(model.named_parameters())
    parts = {name: [n for n in named if n.startswith(f"{name}.")] for name in ("g_1", "g_2", "g_3")}
    assert len(parts["g_1"]) == 4  # two layers of all concepts, each with weights and biases
    assert len(parts["g_2"]) == 2 * 6
    assert len(parts["g_3"]) == len(list(model.g_3.parameters())) > 0
    saved = safetensors.torch.load(safetensors.torch.save(dict(model.state_dict())))
    for name in (*parts["g_1"], *parts["g_2"], *parts["g_3"], "scm.weights"):
        gradient = named[name].grad
        assert gradient is not None, name
        assert gradient.any(), name
        if name.startswith("g_1."):
            assert all(of_concept.any() for of_concept in gradient), name
        assert torch.equal(saved[name], named[name]), name
    assert named["scm.weights"].shape == (3,)
    assert named["scm.weights"].grad.all()


def test_only_the_gan_plays_against_an_discriminator(batch: Batch) -> None:
    assert not isinstance(build(), Adversarial)
    model = build(divergence="gan", label_dropout=0.0)
    assert isinstance(model, Adversarial)
    with fixed_noise(3):
        loss = model.discriminator_loss(batch).total
    with fixed_noise(3):
        torch.rand(6, 1)
        drawn = torch.randn(6, 15)
    assert model.discriminator is not None
    codes = model.exogenous(batch.x, batch.u)
    D, D_code = (model.discriminator(z)[:, 0].sigmoid() for z in (drawn, codes))
    torch.testing.assert_close(loss, -0.5 * (D.log() + (1 - D_code).log()).mean())


@pytest.mark.parametrize("decode_roots", [False, True])
def test_an_intervention_moves_what_it_should(batch: Batch, decode_roots: bool) -> None:
    model = build(decode_roots=decode_roots)
    for name in NAMES:
        before, after = move(model, batch.x, **{name: 1.7})
        follows = {name, *model.initial_graph.descendants(name)}
        assert moves(before.u, after.u) == follows
        assert moves(before.z_1, after.z_1) == follows
        # What is left of a root behind the mask layer is epsilon, which no label moves.
        hidden = {name} & set(ROOTS) if not decode_roots else set()
        assert moves(before.z_2, after.z_2) == follows - hidden
        assert torch.equal(before.epsilon, after.epsilon)
        assert (after.u[:, NAMES.index(name)] == 1.7).all()


def test_moving_a_label_is_as_though_it_had_been_seen(batch: Batch) -> None:
    """For a cause: latents as they would be, had it been read so, its effects aside."""
    model = build()
    before, after = move(model, batch.x, ball=1.7)
    u = before.u.clone()
    u[:, 0] = 1.7
    with torch.no_grad():
        seen = model.latents(before.epsilon.flatten(1), u)
    torch.testing.assert_close(after.z_1[:, 0], seen.z_1[:, 0])
    torch.testing.assert_close(after.z_2[:, 1], seen.z_2[:, 1])


def test_effects_of_effects_follow_unless_they_are_held(batch: Batch) -> None:
    model = build()
    before, after = move(model, batch.x, ball=2.0)
    assert not torch.allclose(before.z_2[:, 3], after.z_2[:, 3])
    held = float(before.u[0, 1])
    before, after = move(model, batch.x[:1], ball=2.0, height=held)
    assert torch.equal(before.z_2[:, 3], after.z_2[:, 3])


def test_labels_are_read_where_none_are_given(batch: Batch) -> None:
    model = build()
    u = model.standardise(batch.u)
    given = torch.zeros_like(u)
    given[:, 2] = 1
    found = model.f(batch.x, u, given)
    assert torch.equal(found.u[:, 2], u[:, 2])
    assert torch.equal(found.u[:, :2], found.predicted[:, :2])
    torch.testing.assert_close(model.f(batch.x).u, found.predicted)
    assert not torch.allclose(model.f(batch.x).epsilon, found.epsilon)


def test_the_decoder_cuts_nothing_off(batch: Batch) -> None:
    model = build()
    assert not any(isinstance(layer, nn.ReLU) for layer in model.g_3)
    slopes = model.injectivity(batch.x)
    assert slopes.shape == (6,)
    assert (slopes > 0).all()
