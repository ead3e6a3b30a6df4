"""Actions can be applied, repeated and retrieved; every loss of the paper reaches what it should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.core.capabilities import AppliesActions, capabilities
from disentwine.core.model import Batch
from disentwine.data import Arrays
from disentwine.data.transitions import transitions
from disentwine.errors import UsageError
from disentwine.evaluation.actions import action_scores, rollout_scores
from disentwine.models import CTVAE, MCQVAE
from disentwine.models.quantized.mcq_vae import QuantizerOptions
from disentwine.models.quantized.transition_losses import (
    Contrast,
    Rollout,
    TransitionWeights,
    opposites,
    with_negatives,
)
from disentwine.nn.transition import TransitionOptions
from disentwine.runs.fit import fit
from disentwine.testing import check_model

ACTIONS = ("+x", "-x", "+y", "-y")
Builder = Callable[..., CTVAE]


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (3, 16, 16, 1), dtype=np.uint8)


def test_it_declares_what_it_can_do(small: Builder, images: np.ndarray) -> None:
    model = small()
    assert isinstance(model, AppliesActions)
    assert {"transitions", "decodes", "matches actions", "updates itself"} <= set(
        capabilities(model)
    )
    assert "transitions" not in capabilities(model.mcq_vae)


def acting(model: CTVAE) -> CTVAE:
    """The same with actions that change codes, as those of a layer without training do not."""
    with torch.no_grad():
        model.layer.leave.mul_(300)
    return model


def test_actions_go_by_name_or_number_and_repeat(small: Builder, images: np.ndarray) -> None:
    model = acting(small())
    moved = model.apply(images, "-x")
    assert not np.array_equal(moved, model.reconstruct(images))
    assert not np.array_equal(moved, model.apply(images, "+y"))
    assert moved.shape == images.shape
    assert moved.dtype == np.uint8
    assert np.array_equal(moved, model.apply(images, 1))
    assert np.array_equal(moved[0], model.apply(images[0], np.int64(1)))
    twice = model.apply(images, ["-x", "+y"])
    tensors = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    vectors = model.look_up(model.eval().indices(tensors))
    for number in (1, 2):
        log_p = model.layer(vectors, model.table, torch.full((3, 1), number))[0]
        codes = log_p[:, 0].argmax(-1)
        vectors = model.look_up(codes)
    decoded = (255 * model.decode(codes.float()).permute(0, 2, 3, 1)).round().byte().numpy()
    assert np.abs(twice.astype(int) - decoded).max() <= 1
    assert np.array_equal(model.apply(images, 2, times=2), model.apply(images, ["+y", "+y"]))
    assert np.array_equal(model.apply(images, [], times=5), model.reconstruct(images))


def test_codes_of_pictures_decode_to_their_reconstructions(
    small: Builder, images: np.ndarray
) -> None:
    model = small()
    codes = model.represent(images)
    assert isinstance(codes, np.ndarray)
    decoded = (255 * model.decode(codes).permute(0, 2, 3, 1)).round().byte().numpy()
    assert np.array_equal(decoded, model.reconstruct(images))
    with pytest.raises(UsageError, match="as `represent` of this model does"):
        model.decode(codes[:, 1:])


def test_wrong_actions_are_told(small: Builder, images: np.ndarray) -> None:
    with pytest.raises(UsageError, match="'latent' needs contrast=null, rollout=null: "):
        small(
            contrast=Contrast(negatives=2, fraction=0.5),
            rollout=Rollout(length=2),
            action_labels="latent",
        )
    with pytest.raises(UsageError, match="'latent' needs contrast=null: "):
        small(contrast=Contrast(fraction=0.5), action_labels="latent")
    with pytest.raises(UsageError, match="known names need no match"):
        small().match(images[:1], images[:1], ["+x"])
    for unsigned in ("x", "x=2", "x+=1"):
        with pytest.raises(UsageError, match=r"Did you mean \+x or -x\?"):
            small().apply(images, unsigned)
    with pytest.raises(UsageError, match=r"no action '\+z'"):
        small().apply(images, "+z")
    with pytest.raises(UsageError, match=r"transition\.node_dim=8 must be a multiple of"):
        small(transition={"heads": 3})
    for wrong in (4, -1, 1.5, None):
        with pytest.raises(UsageError, match="numbers from 0 to 3"):
            small().apply(images, wrong)
        with pytest.raises(UsageError, match="numbers from 0 to 3"):
            small(action_labels="latent").match(images[:1], images[:1], [wrong])
    for times in (0, 1.5):
        with pytest.raises(UsageError, match="once or more"):
            small().apply(images, "+x", times=times)


def test_what_are_no_pairs_of_images_is_told(small: Builder, images: np.ndarray) -> None:
    with pytest.raises(UsageError, match="pairs"):
        small().retrieve(images, images[:2])
    with pytest.raises(UsageError, match="both arrays or both tensors"):
        small().retrieve(torch.from_numpy(images), images)
    with pytest.raises(UsageError, match=r"must be 16 x 16 x 1 .* got 8 x 8 x 1"):
        small().retrieve(images[:, :8, :8], images[:, :8, :8])


def test_latent_actions_are_matched_by_name_or_number(small: Builder, images: np.ndarray) -> None:
    one, other = (small(action_labels="latent") for _ in range(2))
    one.match(images, images[::-1].copy(), [2, 0, 1])
    other.match(images, images[::-1].copy(), ["+y", "+x", "-x"])
    assert torch.equal(one.places, other.places)
    assert not torch.equal(one.places, torch.arange(4))


def test_graphs_are_those_that_are_expected_also_while_it_learns(small: Builder) -> None:
    model, pixels = small(transition={"edges": "sampled"}).train(), torch.rand(2, 1, 16, 16)
    assert torch.equal(model.graphs(pixels).edges, model.graphs(pixels).edges)
    assert model.training


def test_retrieved_probabilities_are_those_of_the_likelihoods(
    small: Builder, images: np.ndarray
) -> None:
    model = small().eval()
    x, y = images, images[::-1].copy()
    q = model.retrieve(x, y)
    assert q.shape == (3, 4)
    assert np.allclose(q.sum(1), 1, atol=1e-5)
    tensors = [torch.from_numpy(z).permute(0, 3, 1, 2) / 255 for z in (x, y)]
    assert np.allclose(q, model.retrieve(*tensors).numpy(), atol=1e-5)
    assert np.allclose(q[0], model.retrieve(x[0], y[0]), atol=1e-5)
    a, b = (model.indices(z) for z in tensors)
    for action in range(4):
        log_p = model.layer(model.look_up(a), model.table, torch.full((3, 1), action))[0][:, 0]
        alone = log_p.gather(-1, b[..., None]).sum((1, 2))
        log_q = np.log(q[:, action]) - np.log(q[:, 0])
        first = model.layer(model.look_up(a), model.table, torch.zeros(3, 1, dtype=torch.int64))[0][
            :, 0
        ]
        against = alone - first.gather(-1, b[..., None]).sum((1, 2))
        assert np.allclose(log_q, against.detach().numpy(), atol=1e-3)


def test_both_ways_are_the_mean_of_an_action_and_of_its_opposite(
    small: Builder, images: np.ndarray
) -> None:
    one, two = small(), small(bidirectional=True)
    x, y = images, images[::-1].copy()
    forth, back = np.log(one.retrieve(x, y)), np.log(one.retrieve(y, x))[:, [1, 0, 3, 2]]
    mean = 0.5 * (forth + back)
    expected = np.exp(mean - np.logaddexp.reduce(mean, axis=1, keepdims=True))
    assert np.allclose(two.retrieve(x, y), expected, atol=1e-4)


@pytest.mark.parametrize("term", [*TransitionWeights.__dataclass_fields__, "l_rollout"])
def test_every_loss_reaches_the_layer_and_only_the_layer(small: Builder, term: str) -> None:
    model = small(transition={"edges": "sampled"}).train()
    x, y, z = torch.rand(3, 3, 1, 16, 16)
    action = torch.tensor([0, 1, 3])
    losses = model.loss(Batch(x, torch.zeros(3, 0), 0, y, action, ((z, action),)))
    losses.terms[term].mean().backward()
    reached = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert reached, "no gradient"
    assert all(name.startswith("layer.") for name in reached)
    about_edges = term in ("l_id_m", "kl", "l_m", "l_dep")
    assert ("layer.leave" in reached) != about_edges
    assert ("layer.pairs.w" in reached) == (term != "l_id_y"), "l_id_y is given its graph"


@pytest.mark.parametrize("readout", ["argmax", "expectation"])
def test_later_actions_are_learnt_from_what_the_layer_itself_made(
    small: Builder, readout: str
) -> None:
    model = small(transition={"edges": "expected"}, readout=readout).eval()
    x, *after = torch.randint(0, 8, (4, 3, 8))
    actions = torch.tensor([[0, 1, 3], [2, 2, 1], [3, 0, 0]])
    later = tuple(zip(after[1:], actions[1:], strict=True))
    losses = model.loss(Batch(x, torch.zeros(3, 0), 0, after[0], actions[0], later))
    vectors, expected = model.look_up(x), torch.zeros(3)
    for step in range(3):
        log_p = model.layer(vectors, model.table, actions[step][:, None])[0][:, 0]
        if step:
            expected -= log_p.gather(-1, after[step][..., None]).sum((1, 2)).detach() / 2
        vectors = model.act(vectors, actions[step])
    assert torch.allclose(losses.terms["l_rollout"], expected, atol=1e-4)
    assert losses.weights["l_rollout"] == 1


def test_weights_weigh_their_terms(small: Builder) -> None:
    weights = replace(TransitionWeights(), l_a=3.0, kl=0.0, l_y=2.0)
    model = small(weights=weights, rollout=Rollout(length=2, weight=4.0))
    x, y, z = torch.rand(3, 3, 1, 16, 16)
    action = torch.tensor([0, 1, 3])
    losses = model.loss(Batch(x, torch.zeros(3, 0), 0, y, action, ((z, action),)))
    assert losses.weights["l_a"] == 3
    assert losses.weights["kl"] == 0
    assert (losses.weights["l_y"], losses.weights["l_rollout"]) == (2, 8)
    alone = model.loss(Batch(x, torch.zeros(3, 0)))
    weighed = {*TransitionWeights.__dataclass_fields__, "l_rollout"}
    assert set(losses.terms) - set(alone.terms) == weighed
    own: MCQVAE = model.mcq_vae
    assert torch.allclose(own.loss(Batch(x, torch.zeros(3, 0))).total, alone.total)


def test_negatives_are_the_opposite_and_others_at_random() -> None:
    action = torch.tensor([0, 1, 2, 3] * 50)
    tried = with_negatives(action, negatives=2, opposites=opposites(ACTIONS))
    assert torch.equal(tried[:, 0], action)
    assert torch.equal(tried[:, 1], torch.tensor([1, 0, 3, 2] * 50))
    assert {tuple(pair) for pair in tried[:, [0, 2]].tolist()} == {
        (a, b) for a in range(4) for b in range(4) if a // 2 != b // 2
    }
    assert (tried[:, 3] == 4).all()
    everyone = with_negatives(action, negatives=9, opposites=opposites(ACTIONS))
    assert (everyone.sort().values == torch.arange(5)).all(), "no more than there are"


def test_what_is_measured_is_measured_on_all_actions(small: Builder) -> None:
    few = small(transition={"edges": "expected"}, contrast=Contrast(negatives=1, fraction=0.5))
    everything = small(transition={"edges": "expected"})
    x, y = torch.randint(0, 8, (2, 5, 8))
    action = torch.tensor([0, 1, 2, 3, 0])
    found, expected = (
        m.eval().transition_terms(m.look_up(x), x, y, action)[0] for m in (few, everything)
    )
    assert torch.equal(found["l_a"], expected["l_a"])


def test_what_is_measured_is_tried_on_few_pairs_at_a_time(
    small: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small().eval()
    torch.manual_seed(0)
    x, y = torch.randint(0, model.codebook_size, (2, 70, model.mcq_vae.nodes))
    action = torch.arange(70) % len(ACTIONS)
    tried: list[int] = []
    graph = model.layer.graph
    monkeypatch.setattr(model.layer, "graph", lambda x, *s: tried.append(len(x)) or graph(x, *s))
    measured, made = model.transition_terms(model.look_up(x), x, y, action)
    assert tried == [32, 32, 6]
    monkeypatch.setattr("disentwine.models.quantized.ct_vae.PAIRS_AT_ONCE", 70)
    at_once, made_at_once = model.transition_terms(model.look_up(x), x, y, action)
    assert torch.allclose(made, made_at_once, atol=1e-5)
    assert measured.keys() == at_once.keys()
    for name, values in at_once.items():
        assert torch.allclose(measured[name], values, rtol=1e-5, atol=1e-5), name


def test_with_negatives_losses_are_those_of_the_same_actions_among_all(small: Builder) -> None:
    everything = small(transition={"edges": "expected"}).train()
    few = small(transition={"edges": "expected"}, contrast=Contrast(negatives=2)).train()
    for model in (everything, few):
        model.layer.network.noise_value.weight.data.zero_()
    x, y = torch.randint(0, 8, (2, 5, 8))
    action = torch.tensor([0, 1, 2, 3, 0])
    torch.manual_seed(1)
    tried = with_negatives(action, negatives=2, opposites=opposites(ACTIONS))
    torch.manual_seed(1)
    found, made = few.transition_terms(few.look_up(x), x, y, action)
    expected, _ = everything.transition_terms(everything.look_up(x), x, y, action)
    for name in set(expected) - {"l_a"}:
        assert torch.allclose(found[name], expected[name], atol=1e-4), name
    log_p = everything.layer(everything.look_up(x), everything.table)[0]
    fit = log_p.gather(3, y[:, None, :, None].expand(-1, 5, -1, -1))[..., 0].sum(2)
    among = fit.gather(1, tried[:, :-1]).log_softmax(1)
    assert torch.allclose(found["l_a"], -among[:, 0], atol=1e-4)
    assert torch.allclose(made, log_p[torch.arange(5), action], atol=1e-4)


def test_pairs_that_are_not_compared_learn_what_their_own_action_makes(small: Builder) -> None:
    everything = small(transition={"edges": "expected"}, contrast=Contrast(negatives=2)).train()
    some = small(
        transition={"edges": "expected"}, contrast=Contrast(negatives=2, fraction=0.3)
    ).train()
    for model in (everything, some):
        model.layer.network.noise_value.weight.data.zero_()
    x, y = torch.randint(0, 8, (2, 5, 8))
    action = torch.tensor([0, 1, 2, 3, 0])
    (found, made), (expected, all_made) = (
        m.transition_terms(m.look_up(x), x, y, action) for m in (some, everything)
    )
    assert torch.allclose(made, all_made, atol=1e-4)
    for name in set(expected) - {"l_a"}:
        assert torch.allclose(found[name], expected[name][: len(found[name])], atol=1e-4), name
    assert {name: len(term) for name, term in found.items() if len(term) < 5} == dict.fromkeys(
        ("l_x", "l_id_y", "l_id_m", "l_a"), 2
    )


def test_an_expected_outcome_is_the_mean_of_all_that_may_come(
    small: Builder, images: np.ndarray
) -> None:
    model = small(readout="expectation").eval()
    tensors = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    vectors = model.look_up(model.indices(tensors))
    p = model.layer(vectors, model.table, torch.full((3, 1), 1))[0][:, 0].exp()
    expected = torch.stack(
        [
            sum(p[:, book * 4 + place, k, None] * model.table[book, k] for k in range(8))
            for book in range(2)
            for place in range(4)
        ],
        dim=1,
    ).view_as(vectors)
    assert torch.allclose(model.act(vectors, torch.full((3,), 1)), expected, atol=1e-5)


def test_joint_training_reaches_the_encoder_through_both_images(small: Builder) -> None:
    model = small(joint=True, transition={"edges": "expected"}).train()
    x, y = torch.rand(2, 3, 1, 16, 16)
    batch = Batch(x, torch.zeros(3, 0), 0, y.requires_grad_(), torch.tensor([0, 1, 3]))
    model.loss(batch).terms["l_a"].mean().backward()
    assert batch.y is not None
    assert batch.y.grad is not None
    assert batch.y.grad.any()
    assert all(p.grad is not None and p.grad.any() for p in model.mcq_vae.encoder.parameters())


def test_matching_does_not_ask_for_opposites_before_there_are_names(
    small: Builder, images: np.ndarray
) -> None:
    """In two ways too, the names are those of one way, and graphs come in their order."""
    one, two = (
        small(action_labels="latent", transition={"edges": "expected"}, bidirectional=bidirectional)
        for bidirectional in (False, True)
    )
    x, y = images, images[::-1].copy()
    named = np.array([2, 0, 1])
    for model in (one, two):
        model.match(x, y, named)
    assert torch.equal(one.places, two.places)
    assert two.bidirectional
    pixels = torch.rand(2, 1, 16, 16)
    found = one.graphs(pixels)
    one.places.copy_(torch.arange(4))
    unnamed = one.graphs(pixels)
    assert torch.equal(found.mask[:, :4], unnamed.mask[:, two.places])
    assert torch.equal(found.mask[:, 4], unnamed.mask[:, 4])


def test_matching_gives_latent_actions_their_names(small: Builder, images: np.ndarray) -> None:
    model = acting(small(action_labels="latent"))
    x = np.random.default_rng(1).integers(0, 256, (40, 16, 16, 1), dtype=np.uint8)
    y = x[::-1].copy()
    found = model.retrieve(x, y).argmax(1)
    names = np.array([2, 0, 3, 1])  # what each latent action is really called
    model.match(x, y, names[found])
    after = model.retrieve(x, y).argmax(1)
    assert np.array_equal(after, names[found])
    latent = int(found[0])
    by_name = model.apply(images, int(names[latent]))
    with pytest.raises(UsageError, match="the action of each pair: 40 pairs"):
        model.match(x, y, [0])
    with pytest.raises(UsageError):
        model.match(x[:, 1:], y[:, 1:], names[found])
    assert np.array_equal(by_name, model.apply(images, int(names[latent]))), "names were lost"
    model.places.copy_(torch.arange(4))
    assert np.array_equal(by_name, model.apply(images, latent))
    assert not np.array_equal(by_name, model.apply(images, int(names[latent])))


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "sine"])
def test_without_samples_every_gradient_is_a_slope(small: Builder, activation: Any) -> None:
    transition = {"edges": "expected", "activation": activation}
    options = {"transition": transition, "autoencoder": {"codebook_update": "ema"}}
    check_model(lambda: small(**options), image_shape=(16, 16, 1))


def moving_square() -> Arrays:
    grid = np.stack([axis.ravel() for axis in np.mgrid[:6, :6, :3]], axis=1)
    images = np.zeros((len(grid), 16, 16, 1), np.uint8)
    for image, (row, column, grey) in zip(images, grid, strict=True):
        image[2 * row : 2 * row + 5, 2 * column : 2 * column + 5] = 85 * (grey + 1)
    kinds = dict.fromkeys(("y", "x", "grey"), "ordinal")
    return Arrays(images=images, factors=grid, names=tuple(kinds), kinds=kinds)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("message_passing", "share"), [("grid", 0.1), ("attention", 1.0)])
def test_actions_are_learnt(message_passing: Any, share: float) -> None:
    """From ninety images, of which attention tells actions apart, but hardly paints what it has not seen."""
    data = moving_square()
    model = CTVAE.for_data(
        data,
        pretrain_steps=300,
        autoencoder=QuantizerOptions(
            codebook_size=32, code_dim=8, downsampling=4, channels=24, codebook_update="ema"
        ),
        transition=TransitionOptions(
            node_dim=32, activation="sine", edges="expected", message_passing=message_passing
        ),
    )
    fit(
        model,
        data,
        steps=1200,
        batch_size=32,
        learning_rate=3e-3,
        final_learning_rate=3e-4,
        threads=1,
    )
    pairs = transitions(data)
    scores = {score.name: score for score in action_scores(model, pairs)}
    assert scores["action-accuracy"].value > 0.8
    assert scores["intervention-share"].value < share
    undone = scores["intervention-error"].value / scores["intervention-share"].value
    assert rollout_scores(model, pairs)[0].details["after 5"] < 5 * share * undone
