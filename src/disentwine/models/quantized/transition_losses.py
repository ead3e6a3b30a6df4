"""The losses of the second stage of a CT-VAE: what actions make of codes, and which action it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from disentwine.core.types import NonNegative
from disentwine.losses.transition import (
    edge_count,
    edge_divergence,
    from_identity,
    lonely_nodes,
    negative_log_likelihood,
    unlabelled,
)
from disentwine.nn.transition import ActionGraph, TransitionLayer


@dataclass(frozen=True)
class TransitionWeights:
    """How much each loss of the transition counts. The paper names no weights: these are ours, of which
    that of the divergence is far below the 1 of eq. 11, as all edges together would outweigh the rest.

    Arguments:
        l_x: doing nothing changes nothing (eq. 6).
        l_id_y: nor does it when the graph is the identity (eq. 7).
        l_id_m: the graph of doing nothing is the identity (eq. 8).
        l_y: the action makes y of x (eq. 9); and, times `repeats_weight`, l_later: the
            same of the actions that follow.
        l_a: of all actions, this one explains y best (eq. 10).
        kl: divergence of the edges from a fair coin (eq. 11 to 13).
        l_m: few edges (eq. 14).
        l_dep: no node without any (eq. 15).
    """

    l_x: NonNegative = 1.0
    l_id_y: NonNegative = 1.0
    l_id_m: NonNegative = 0.01
    l_y: NonNegative = 1.0
    l_a: NonNegative = 10.0
    kl: NonNegative = 1e-4
    l_m: NonNegative = 1e-3
    l_dep: NonNegative = 1.0


COMPARING = ("l_x", "l_id_y", "l_id_m", "l_a")
"""Terms of the pairs that are held against other actions and against none."""


def transition_terms(
    layer: TransitionLayer,
    table: Tensor,
    vectors: Tensor,
    x: Tensor,
    y: Tensor,
    action: Tensor,
    *,
    compared: int,
    tried: Callable[[Tensor], Tensor] | None,
    latent: bool,
) -> tuple[dict[str, Tensor], Tensor]:
    """Every term of `TransitionWeights`, one value a pair, those of comparisons for some pairs only;
    and log-probabilities (n, nodes, codes) of what each pair's action makes.

    Arguments:
        layer: what is learnt.
        table: (codebooks, codes, d) all codes.
        vectors: (n, codebooks, positions, d) of $L_x$.
        x: (n, nodes) codes of x.
        y: (n, nodes) codes of y, or (n, nodes, codes) one-hot.
        action: (n,)
        compared: how many pairs, the first ones, are held against other actions and against none.
        tried: actions (n, s) for those of pairs (n,), their own first and none last; all if omitted.
        latent: whether nobody says which action it was.
    """
    nodes = layer.nodes(vectors, table)
    some = slice(compared)
    terms, graph, made = _comparison(
        layer, table, nodes[some], x[some], y[some], action[some], tried=tried, latent=latent
    )
    parts = [{"l_y": terms["l_y"], **_graph_terms(graph)}]
    if compared < len(action):
        own = action[compared:, None]
        graph = layer.graph(nodes[compared:], own)
        log_p = layer.become(nodes[compared:], graph, table, own)
        l_y = negative_log_likelihood(log_p[:, 0], y[compared:])
        parts.append({"l_y": l_y, **_graph_terms(graph)})
        made = torch.cat([made, log_p[:, 0]])
    joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return {**terms, **joined}, made


def _comparison(
    layer: TransitionLayer,
    table: Tensor,
    nodes: Tensor,
    x: Tensor,
    y: Tensor,
    action: Tensor,
    *,
    tried: Callable[[Tensor], Tensor] | None,
    latent: bool,
) -> tuple[dict[str, Tensor], ActionGraph, Tensor]:
    """Losses of an action beside others and beside none; the graph of each pair's own, and what it
    makes."""
    chosen = None if tried is None else tried(action)
    own = action if chosen is None else torch.zeros_like(action)
    graph = layer.graph(nodes, chosen)
    log_p = layer.become(nodes, graph, table, chosen)
    fit = -negative_log_likelihood(log_p[:, :-1], y[:, None])  # (n, actions or rivals + 1)
    if latent:
        own = fit.argmax(1)
        l_y, l_a = unlabelled(fit)
    else:
        l_y = -fit.gather(1, own[:, None])[:, 0]
        l_a = F.cross_entropy(fit, own, reduction="none")
    identity = torch.eye(nodes.shape[1], device=nodes.device, dtype=nodes.dtype)
    still = graph.of(torch.full_like(action, fit.shape[1]))
    unlinked = still._replace(edges=identity.expand_as(still.edges))
    nothing = torch.full_like(action, layer.actions)[:, None]
    kept = layer.become(nodes, unlinked, table, nothing)
    terms = {
        "l_x": negative_log_likelihood(log_p[:, -1], x),
        "l_id_y": negative_log_likelihood(kept[:, 0], x),
        "l_id_m": from_identity(still.edges[:, 0]),
        "l_y": l_y,
        "l_a": l_a,
    }
    return terms, graph.of(own), log_p[torch.arange(len(own), device=own.device), own]


def _graph_terms(graph: ActionGraph) -> dict[str, Tensor]:
    """What eq. 11 to 15 say of the graphs of one action a pair."""
    return {
        "kl": edge_divergence(graph.probabilities[:, 0]),
        "l_m": edge_count(graph.edges[:, 0]),
        "l_dep": lonely_nodes(graph.no_parents[:, 0]),
    }


def with_rivals(action: Tensor, *, rivals: int, opposites: Sequence[int]) -> Tensor:
    """Each pair's action (n,), its opposite, others at random and none, (n, rivals + 2).

    Arguments:
        action: (n,)
        rivals: how many others; at most all.
        opposites: of each action, the number of the one that undoes it.

    >>> with_rivals(torch.tensor([0, 3]), rivals=1, opposites=[1, 0, 3, 2])
    tensor([[0, 1, 4],
            [3, 2, 4]])
    """
    actions = len(opposites)
    opposite = torch.tensor(opposites, device=action.device)[action]
    order = torch.rand(len(action), actions, device=action.device)
    order.scatter_(1, opposite[:, None], 2.0).scatter_(1, action[:, None], 3.0)
    chosen = order.topk(min(rivals + 1, actions)).indices
    return torch.cat([chosen, torch.full_like(action, actions)[:, None]], dim=1)


def opposites(actions: Sequence[str]) -> list[int]:
    """The number of the action that undoes each; its own where none does.

    >>> opposites(["+x", "-x", "smile"])
    [1, 0, 2]
    """
    signs = {"+": "-", "-": "+"}
    undoing = [signs.get(name[:1], name[:1]) + name[1:] for name in actions]
    return [
        actions.index(name) if name in actions else number for number, name in enumerate(undoing)
    ]
