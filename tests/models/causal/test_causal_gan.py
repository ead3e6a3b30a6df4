"""CausalGAN: a game over images, and interventions that follow the controller's graph."""

from typing import Any

import pytest
import torch
from torch.distributions import Normal
from torch.nn.functional import softplus

from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.causal.graph import Graph
from disentwine.core.capabilities import Intervenes
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.data import Pendulum
from disentwine.models import CausalGAN
from disentwine.models.causal.causal_gan import MIN_LABEL_STD, CausalGANLatents
from disentwine.training.optimizers import discriminator_parameters, frozen

NAMES = ("angle", "light", "length", "position")
EDGES = tuple((cause, effect) for cause in NAMES[:2] for effect in NAMES[2:])


def build(**options: Any) -> CausalGAN:
    torch.manual_seed(0)
    return CausalGAN(
        image_shape=(16, 16, 3),
        concept_spec=ConceptSpec(
            tuple(
                Concept(name, mean=mean, std=std)
                for name, mean, std in zip(
                    NAMES, (0.0, 90.0, 5.0, 10.0), (20.0, 20.0, 2.0, 3.0), strict=True
                )
            )
        ),
        graph=Graph.from_edges(NAMES, EDGES),
        **options,
    ).eval()


@pytest.fixture
def batch() -> Batch:
    with fixed_noise(1):
        x, u = torch.rand(5, 3, 16, 16), torch.randn(5, 4)
    return Batch(x, u * torch.tensor([20.0, 20.0, 2.0, 3.0]) + torch.tensor([0.0, 90.0, 5.0, 10.0]))


def test_it_intervenes() -> None:
    assert isinstance(build(), Intervenes)


def test_what_is_not_caused_does_not_move(batch: Batch) -> None:
    model = build()
    with torch.no_grad():
        before = model.abduct(batch.x)
        for i, name in enumerate(NAMES):
            after = model.propagate(before, {i: torch.full((5,), 1.3)})
            follows = {name, *model.graph.descendants(name)}
            for j, other in enumerate(NAMES):
                same = torch.equal(before.concepts[:, j], after.concepts[:, j])
                assert same == (other not in follows)
            assert torch.equal(before.noise, after.noise)


def test_doing_what_was_already_so_gives_the_reconstruction(batch: Batch) -> None:
    model = build()
    old = model.concepts(batch.x)
    for i, name in enumerate(NAMES):
        same = model.do(batch.x, {name: old[:, i].numpy()})
        torch.testing.assert_close(same, model.reconstruct(batch.x), atol=1e-6, rtol=0)


def test_the_generator_plays_against_the_anti_labeler_and_with_the_labeler(batch: Batch) -> None:
    """G's loss with the probabilities of D, L and A written out; constants of L and A cancel."""
    model = build(label_weight=0.7)
    with fixed_noise(0):
        losses = model.loss(batch)
    with fixed_noise(0):
        z = model.prior(5).noise
    l = model.standardise(batch.u)  # noqa: E741 the paper's symbol
    seen = model.discriminator(model.decode_latents(CausalGANLatents(l, z)))
    D = seen.logit.sigmoid()
    log_L, log_A = (
        Normal(labels, softplus(scale) + MIN_LABEL_STD).log_prob(l).sum(1)
        for labels, scale in (
            (seen.labels, model.discriminator.label_scale),
            (seen.anti_labels, model.discriminator.anti_label_scale),
        )
    )
    game = ((1 - D) / D).log() + 0.7 * (log_A - log_L)
    others = losses.terms["mechanisms"] + losses.terms["noise"]
    torch.testing.assert_close(losses.total, (game + others).mean())


def test_labelers_that_agree_cancel(batch: Batch) -> None:
    model = build()
    with torch.no_grad():
        weight, bias = model.discriminator.heads.weight, model.discriminator.heads.bias
        weight[5:9], bias[5:9] = weight[1:5], bias[1:5]
    terms = model.loss(batch).terms
    torch.testing.assert_close(terms["labeler"], terms["anti_labeler"])


def test_the_labeler_learns_from_true_images_and_the_anti_labeler_from_painted_ones(
    batch: Batch,
) -> None:
    """Of the heads' rows, a term about true images moves the labeler's only, and the other way round."""
    model = build()
    for term, rows in (("labeler", range(1, 5)), ("anti_labeler", range(5, 9))):
        model.zero_grad()
        model.discriminator_loss(batch).terms[term].sum().backward()
        gradient = model.discriminator.heads.weight.grad
        assert gradient is not None
        assert torch.nonzero(gradient.abs().sum(1))[:, 0].tolist() == list(rows)
    other = batch._replace(x=batch.x.flip(0))
    terms = []
    for shown in (batch, other):
        with fixed_noise(2):
            terms.append(model.discriminator_loss(shown).terms)
    assert not torch.equal(terms[0]["labeler"], terms[1]["labeler"])
    assert torch.equal(terms[0]["anti_labeler"], terms[1]["anti_labeler"])


def test_the_controller_does_not_learn_from_images(batch: Batch) -> None:
    model = build()
    with frozen(discriminator_parameters(model)):
        terms = model.loss(batch).terms
        (terms["generator"] + terms["labeler"] - terms["anti_labeler"]).sum().backward()
    assert all(p.grad is None for p in model.controller.parameters())
    assert all(p.grad is not None for p in model.generator.parameters())


def test_images_without_labels_are_played_with_all_the_same(batch: Batch) -> None:
    model = build()
    blank = batch._replace(u=torch.full((5, 4), torch.nan))
    terms = {**model.loss(blank).terms}
    for name in ("mechanisms", "noise"):
        assert (terms.pop(name) == 0).all()
    watching = {**model.discriminator_loss(blank).terms}
    for name in ("labeler", "concepts"):
        assert (watching.pop(name) == 0).all()
    for term in (*terms.values(), *watching.values()):
        assert term.isfinite().all()
        assert term.any()


def test_samples_follow_interventions() -> None:
    model = build()
    with fixed_noise(0):
        drawn = model.prior(6)
    with fixed_noise(0):
        images = model.sample(6, light=100.0)
    moved = model.propagate(drawn, {1: torch.full((6,), 0.5)})
    assert isinstance(moved, CausalGANLatents)
    with torch.no_grad():
        torch.testing.assert_close(images, model.decode_latents(moved))


def test_the_graph_is_learnt_unless_it_is_given() -> None:
    pendulum = Pendulum(size=32)
    learnt = CausalGAN.for_data(pendulum)
    assert set(learnt.graph.edges) == set(pendulum.graph.edges)
    given = CausalGAN.for_data(pendulum, edges=(("light_angle", "shadow_length"),))
    assert given.graph.edges == (("light_angle", "shadow_length"),)
    assert len(given.controller.f) == 1
    # What is painted at first is close to the median image, here a white ground.
    ground = learnt.background.detach().sigmoid()
    assert (ground > 0.98).float().mean() > 0.7
