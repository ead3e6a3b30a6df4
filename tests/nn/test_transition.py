"""The pair networks in factors are the concatenated ones; actions act only where they may."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from disentwine.nn.graph_layers import GridMessageLayer, PairNetworks
from disentwine.nn.transition import (
    SELF_EDGE_LOGIT,
    ActionGraph,
    TransitionLayer,
    TransitionOptions,
    whitening,
)


@pytest.mark.parametrize("activation", ["relu", "sine"])
def test_the_factored_network_is_the_concatenated_one(activation: Any) -> None:
    torch.manual_seed(0)
    networks = PairNetworks(networks=4, node_dim=24, hidden=12, activation=activation)
    x = 2 * torch.randn(3, 17, 24)
    factored = networks(x)
    for a in range(4):
        assert torch.allclose(factored[:, a], networks.concatenated(x, a), atol=1e-5)
    chosen = torch.tensor([[3, 0], [1, 1], [0, 2]])
    some = networks(x, chosen)
    for n in range(3):
        assert torch.allclose(some[n], factored[n, chosen[n]], atol=1e-5)


TABLE = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))


def layer(**options: Any) -> TransitionLayer:
    torch.manual_seed(0)
    return TransitionLayer(
        actions=3,
        num_codebooks=2,
        grid=(1, 5),
        codebook_size=6,
        code_dim=4,
        options=TransitionOptions(**{"node_dim": 16} | options),
    )


either_network = pytest.mark.parametrize("message_passing", ["attention", "grid"])


@either_network
def test_all_actions_at_once_are_each_alone(message_passing: Any) -> None:
    model, vectors = layer(message_passing=message_passing).eval(), torch.randn(4, 2, 5, 4)
    everything, graph = model(vectors, TABLE)
    assert torch.allclose(everything.exp().sum(-1), torch.ones(4, 4, 10), atol=1e-5)
    for action in range(4):
        alone, own = model(vectors, TABLE, torch.full((4, 1), action))
        assert torch.allclose(alone[:, 0], everything[:, action], atol=1e-5)
        assert torch.allclose(own.edges[:, 0], graph.edges[:, action], atol=1e-6)
        assert torch.allclose(own.no_parents[:, 0], graph.no_parents[:, action], atol=1e-5)


@either_network
def test_a_node_depends_on_its_parents_only(message_passing: Any) -> None:
    model, vectors = layer(message_passing=message_passing).eval(), torch.randn(1, 2, 5, 4)
    x = model.nodes(vectors, TABLE)
    graph = model.graph(x)
    edges = torch.zeros_like(graph.edges)
    edges[..., 3, 7] = 1  # node 3 listens to node 7, nobody else to anybody
    given = graph._replace(edges=edges)
    before = model.predict(x, given, TABLE)
    x = x.clone()
    x[:, 7] += 1
    after = model.predict(x, given, TABLE)
    moved = (after - before).abs().amax((0, 1, 3)) > 1e-4
    assert moved.tolist() == [i == 3 for i in range(10)]


@pytest.mark.parametrize(
    ("message_passing", "num_layers", "reached"),
    [("attention", 3, [2]), ("grid", 1, [2]), ("grid", 2, [2, 3])],
)
def test_a_further_round_brings_what_parents_heard(
    message_passing: Any, num_layers: int, reached: list[int]
) -> None:
    """Of nodes 1 -> 2 -> 3, where nobody else listens to anybody."""
    model = layer(message_passing=message_passing, num_layers=num_layers).eval()
    vectors = torch.randn(1, 2, 5, 4)
    x = model.nodes(vectors, TABLE)
    graph = model.graph(x)
    edges = torch.zeros_like(graph.edges)
    edges[..., 2, 1] = edges[..., 3, 2] = 1
    given = graph._replace(edges=edges, mask=torch.zeros_like(graph.mask))
    changed = x.clone()
    changed[:, 1] += 1
    before, after = (model.predict(nodes, given, TABLE) for nodes in (x, changed))
    moved = (after - before).abs().amax((0, 1, 3)) > 1e-5
    assert moved.nonzero().flatten().tolist() == reached


@either_network
def test_a_code_is_the_likelier_the_nearer_it_is(message_passing: Any) -> None:
    """log p(k) ~ -s/2 |M_ii x_i + v - e_k|^2 + w_k . h, in whitened codes."""
    model, vectors = layer(message_passing=message_passing).eval(), torch.randn(2, 2, 5, 4)
    model.log_sharpness.data.copy_(torch.tensor([0.3, -0.2]))
    x = model.nodes(vectors, TABLE)
    graph = model.graph(x)
    found = model.predict(x, graph, TABLE)
    masked = torch.eye(4, 3)[None, :, None] * graph.mask[..., None]
    h = model.network(model.embed(x), graph.edges, masked)
    mean, whiten = whitening(TABLE)
    for book in range(2):
        codes = (TABLE[book] - mean[book]) @ whiten[book]
        apart = torch.cdist(codes, codes) + torch.diag(torch.full((6,), torch.inf))
        s = model.log_sharpness[book].exp() / apart.amin(1).median() ** 2
        for node in range(5 * book, 5 * book + 5):
            itself = graph.edges[:, :, node, node, None]
            point = itself * x[:, None, node] + h[:, :, node] @ model.aim[book]
            distance = (point[:, :, None] - codes).square().sum(-1)
            logits = -s / 2 * distance + h[:, :, node] @ model.leave[book]
            assert torch.allclose(found[:, :, node], logits.log_softmax(-1), atol=1e-4)


def test_codes_are_told_apart_in_every_direction_alike() -> None:
    """Also those of which most lie along one line."""
    table = TABLE * torch.tensor([5.0, 1.0, 1.0, 1.0]) + 7
    codes = layer().nodes(table[None], table)[0].view(2, 6, 4)
    for book in codes:
        assert torch.allclose(book.mean(0), torch.zeros(4), atol=1e-3)
        variances = torch.linalg.eigvalsh(book.T @ book / 6)
        assert (variances <= 1.001).all()
        assert (variances > 0.5).all()


def test_what_is_mostly_stays() -> None:
    graph = layer(edges="expected").eval().graph(torch.randn(8, 10, 4))
    own = graph.edges.diagonal(dim1=2, dim2=3)
    others = graph.edges[..., ~torch.eye(10, dtype=torch.bool)]
    assert own.mean() > 0.9 > 0.7 > others.mean()


@either_network
def test_noise_is_drawn_while_it_learns_only(message_passing: Any) -> None:
    model, vectors = (
        layer(message_passing=message_passing, edges="expected"),
        torch.randn(3, 2, 5, 4),
    )
    for learns in (True, False):
        model.train(learns)
        first, second = (model(vectors, TABLE)[0] for _ in range(2))
        assert torch.equal(first, second) != learns


def test_a_node_whose_favourite_is_no_parent_hears_the_noise() -> None:
    """Not nothing at all, of which the share of each would be 0/0."""
    model, vectors = layer(), torch.randn(1, 2, 5, 4)
    x = model.nodes(vectors, TABLE)
    graph = model.graph(x)
    given = graph._replace(edges=torch.zeros_like(graph.edges))
    for part in (model.network.query, model.network.key):
        part.weight.data *= 100
    log_p = model.predict(x, given, TABLE)
    assert log_p.isfinite().all()
    log_p.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@either_network
def test_an_action_reaches_a_node_where_the_mask_is_on(message_passing: Any) -> None:
    """And no other where nobody listens to that one."""
    model, vectors = layer(message_passing=message_passing).eval(), torch.randn(1, 2, 5, 4)
    x = model.nodes(vectors, TABLE)
    graph = model.graph(x)
    mask = torch.zeros_like(graph.mask)
    mask[..., 2] = 1
    given = graph._replace(edges=torch.zeros_like(graph.edges), mask=mask)
    log_p = model.predict(x, given, TABLE)
    differs = (log_p[:, 0] - log_p[:, 1]).abs().amax((0, 2)) > 1e-6
    assert differs.tolist() == [i == 2 for i in range(10)]


def test_to_do_nothing_touches_nothing_and_trials_are_yes_or_no() -> None:
    model, vectors = layer().train(), torch.randn(4, 2, 5, 4)
    _, graph = model(vectors, TABLE)
    assert not graph.mask[:, -1].any()
    for part in (graph.edges, graph.mask):
        assert set(part.detach().round(decimals=5).unique().tolist()) <= {0.0, 1.0}
    mean = torch.stack([model.sample(torch.full((2000,), 1.0)).mean() for _ in range(5)]).mean()
    # 10,000 trials of probability 0.731: five standard deviations are 0.022.
    assert mean.item() == pytest.approx(0.7311, abs=0.022)


def test_the_chance_of_no_parents_is_the_product() -> None:
    model, vectors = layer(edges="expected").eval(), torch.randn(2, 2, 5, 4)
    x = model.nodes(vectors, TABLE)
    alpha = model.pairs(model.embed(x))[:, -1] + SELF_EDGE_LOGIT * torch.eye(10)
    expected = (1 - alpha.sigmoid()).prod(-1)
    assert torch.allclose(model.graph(x).no_parents[:, -1], expected, atol=1e-6)


def test_under_a_doubtful_mask_the_chance_of_no_parents_is_that_of_either_graph() -> None:
    """A node is touched or not, with all its edges: logits or edges mixed one by one say otherwise."""
    model, vectors = layer(edges="expected").eval(), torch.randn(2, 2, 5, 4)
    graph = model.graph(model.nodes(vectors, TABLE))
    touched, left = (
        graph._replace(mask=torch.full_like(graph.mask, on)).no_parents for on in (1.0, 0.0)
    )
    expected = graph.mask * touched + (1 - graph.mask) * left
    assert torch.allclose(graph.no_parents, expected, rtol=1e-5, atol=0)
    exactly = (1 - graph.alpha.double().sigmoid()).prod(-1)
    assert torch.allclose(touched.double(), exactly, rtol=1e-4, atol=0)
    assert not torch.allclose(graph.no_parents, (1 - graph.probabilities).prod(-1), rtol=1e-2)


def test_messages_of_neighbours_are_a_convolution_where_all_edges_are() -> None:
    """3x3 over the channels of all codebooks, once the norm and the action are taken out."""
    torch.manual_seed(0)
    books, grid, width = 2, (3, 4), 5
    one = GridMessageLayer(num_codebooks=books, grid=grid, width=width, actions=1)
    one.norm = torch.nn.Identity()
    for part in (one.act.weight, one.act.bias):
        part.data.zero_()
    said = torch.randn(6, 1, books * 12, width)
    ours = one(said, torch.ones(6, 1, books * 12, books * 12), torch.zeros(6, 1, books * 12, 1))
    image = said[:, 0].view(6, books, *grid, width).permute(0, 1, 4, 2, 3).flatten(1, 2)
    kernel = one.hear.view(books, books, 3, 3, width, width).permute(0, 5, 1, 4, 2, 3)
    heard = F.conv2d(image, kernel.reshape(books * width, books * width, 3, 3), padding=1)
    felt = F.silu(heard).view(6, books, width, 12)
    theirs = torch.einsum("ncwp,cwv->ncpv", felt, one.answer).flatten(1, 2)
    torch.testing.assert_close(ours[:, 0], theirs, rtol=1e-4, atol=1e-5)


def test_codes_are_brought_to_mean_0_and_covariance_1() -> None:
    stretch = torch.tensor([100.0, 10.0, 1.0, 0.01])  # the last is but noise beside the others
    table = 7 + stretch * torch.randn(2, 500, 4, generator=torch.Generator().manual_seed(1))
    mean, whiten = whitening(table)
    codes = (table - mean) @ whiten
    torch.testing.assert_close(codes.mean(1), torch.zeros(2, 4), rtol=0, atol=1e-3)
    covariance = codes.transpose(1, 2) @ codes / 500
    assert (covariance.diagonal(dim1=1, dim2=2)[:, :2] > 0.9).all()
    assert (covariance[:, 3, 3] < 1e-3).all()
    apart = covariance - torch.diag_embed(covariance.diagonal(dim1=1, dim2=2))
    # What two of 500 draws have in common by chance, 1/sqrt(500), five times.
    assert apart.abs().max() < 0.22


def test_a_node_that_depends_on_itself_alone_stays_what_it_is() -> None:
    model = layer().eval()
    for part in (model.aim, model.leave):
        part.data.zero_()
    codes = torch.randint(0, 6, (3, 2, 5))
    vectors = torch.stack([TABLE[book][codes[:, book]] for book in range(2)], dim=1)
    x = model.nodes(vectors, TABLE)
    graph = model.graph(x)
    given = graph._replace(edges=torch.eye(10).expand_as(graph.edges))
    likeliest = model.predict(x, given, TABLE).argmax(-1)
    assert (likeliest == codes.flatten(1)[:, None]).all()


def plainly(model: TransitionLayer, vectors: torch.Tensor) -> torch.Tensor:
    """Causal mode by a loop over actions, with networks of concatenated pairs."""
    answers = []
    for action in range(model.actions):
        x = model.nodes(vectors, TABLE)
        placed, itself = model.embed(x), SELF_EDGE_LOGIT * torch.eye(x.shape[1])
        mask = model.touch(placed)[..., action].sigmoid()[:, None]
        alpha, alpha_none = (
            model.pairs.concatenated(placed, network)[:, None] + itself
            for network in (action, model.actions)
        )
        graph = ActionGraph(mask, mask, alpha, alpha_none)
        graph = graph._replace(edges=graph.probabilities)
        answers.append(model.predict(x, graph, TABLE, torch.full((len(x), 1), action)))
    return torch.cat(answers, dim=1)


@pytest.mark.parametrize("activation", ["relu", "sine"])
@pytest.mark.parametrize("hidden", [4, 64])
def test_the_layer_says_what_it_would_with_concatenated_pairs(activation: Any, hidden: int) -> None:
    model, vectors = (
        layer(activation=activation, edge_hidden=hidden).eval(),
        torch.randn(4, 2, 5, 4),
    )
    found = model(vectors, TABLE)[0][:, :-1]
    assert torch.allclose(found, plainly(model, vectors), rtol=1e-5, atol=1e-5)
