"""CT-VAE's transition losses: predicted codes, action retrieval and graph penalties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from disentwine.core.types import Count, NonNegative, NonNegativeInt, PositiveShare
from disentwine.losses.transition import (
    distance_from_identity,
    edge_count,
    edge_divergence,
    negative_log_likelihood,
    orphan_penalty,
    unlabelled_likelihood,
)
from disentwine.nn.transition import ActionGraph, TransitionLayer


@dataclass(frozen=True)
class TransitionWeights:
    """Weights of the transition losses.

    The paper gives no weights; these are ours. The weight of the KL divergence is much smaller than 1
    (eq. 11), as the sum over all edges would outweigh the other losses.

    Arguments:
        l_x: no action leaves the codes unchanged (eq. 6).
        l_id_y: as l_x, with the identity as graph (eq. 7).
        l_id_m: the graph of no action is the identity (eq. 8).
        l_y: prediction of y from x and the action (eq. 9). Multiplied by `rollout.weight`, it is also
            the weight of l_rollout, the same loss for the further steps of a rollout.
        l_a: classification of the action by the likelihood of y (eq. 10).
        kl: KL divergence of the edges from Bernoulli(0.5) (eq. 11 to 13).
        l_m: number of edges (eq. 14).
        l_dep: nodes without parents (eq. 15).
    """

    l_x: NonNegative = 1.0
    l_id_y: NonNegative = 1.0
    l_id_m: NonNegative = 0.01
    l_y: NonNegative = 1.0
    l_a: NonNegative = 10.0
    kl: NonNegative = 1e-4
    l_m: NonNegative = 1e-3
    l_dep: NonNegative = 1.0


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Options of the losses that compare a pair's action with other actions and with no action.

    Arguments:
        negatives: number of other actions per pair: its opposite, and the rest at random; all actions
            when omitted. With many actions, few negatives are as accurate and much faster.
        fraction: fraction of the pairs of a batch that are contrasted. For the other pairs only their
            own action is evaluated, which is much faster.
    """

    negatives: Count | None = None
    fraction: PositiveShare = 1.0


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """Options of multi-step rollouts, in which each step starts from the prediction of the step before.

    Training on rollouts reduces the accumulation of errors. The same action is repeated as long as the
    data set has a further step.

    Arguments:
        length: number of actions in a rollout.
        from_step: first update on rollouts; earlier updates are on single steps, which is faster.
        weight: weight of the further steps together, relative to the first step.
    """

    length: Count
    from_step: NonNegativeInt = 0
    weight: NonNegative = 1.0


NO_CONTRAST = Contrast()


CONTRASTED = ("l_x", "l_id_y", "l_id_m", "l_a")
"""Terms that compare a pair's action with other actions and with no action."""

PAIRS_AT_ONCE = 32
"""Number of pairs for which all actions are evaluated at a time, which bounds the memory."""


def transition_terms(
    layer: TransitionLayer,
    table: Tensor,
    vectors: Tensor,
    x: Tensor,
    y: Tensor,
    action: Tensor,
    *,
    contrasted: int,
    candidates: Callable[[Tensor], Tensor] | None,
    latent: bool,
) -> tuple[dict[str, Tensor], Tensor]:
    """Every term of `TransitionWeights`, one value per pair (terms in `CONTRASTED` for the first
    `contrasted` pairs only), and log-probabilities (n, nodes, codes) after each pair's action.

    Arguments:
        layer: the transition layer.
        table: (codebooks, codes, d) all codes.
        vectors: (n, codebooks, positions, d) of $L_x$.
        x: (n, nodes) codes of x.
        y: (n, nodes) codes of y, or (n, nodes, codes) one-hot.
        action: (n,) index of each pair's action.
        contrasted: number of pairs, the first ones, whose action is contrasted with others.
        candidates: maps the actions (n,) of pairs to the actions (n, s) to evaluate: a pair's own
            first, no action last. By default all actions, then none.
        latent: whether the pairs have no action labels.
    """
    nodes = layer.nodes(vectors, table)
    first = slice(contrasted)
    terms, graph, predicted = _contrastive_terms(
        layer, table, nodes[first], x[first], y[first], action[first], candidates, latent=latent
    )
    parts = [{"l_y": terms["l_y"], **_graph_terms(graph)}]
    if contrasted < len(action):
        own = action[contrasted:, None]
        graph = layer.graph(nodes[contrasted:], own)
        log_p = layer.predict(nodes[contrasted:], graph, table, own)
        l_y = negative_log_likelihood(log_p[:, 0], y[contrasted:])
        parts.append({"l_y": l_y, **_graph_terms(graph)})
        predicted = torch.cat([predicted, log_p[:, 0]])
    joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return {**terms, **joined}, predicted


def _contrastive_terms(
    layer: TransitionLayer,
    table: Tensor,
    nodes: Tensor,
    x: Tensor,
    y: Tensor,
    action: Tensor,
    candidates: Callable[[Tensor], Tensor] | None,
    *,
    latent: bool,
) -> tuple[dict[str, Tensor], ActionGraph, Tensor]:
    """Losses of pairs compared with other actions and with none; the graph of each pair's own action
    and its predicted log-probabilities."""
    chosen = None if candidates is None else candidates(action)
    own = action if chosen is None else torch.zeros_like(action)
    graph = layer.graph(nodes, chosen)
    log_p = layer.predict(nodes, graph, table, chosen)
    fit = -negative_log_likelihood(log_p[:, :-1], y[:, None])  # (n, actions or negatives + 1)
    if latent:
        own = fit.argmax(1)
        l_y, l_a = unlabelled_likelihood(fit)
    else:
        l_y = -fit.gather(1, own[:, None])[:, 0]
        l_a = F.cross_entropy(fit, own, reduction="none")
    identity = torch.eye(nodes.shape[1], device=nodes.device, dtype=nodes.dtype)
    no_action_graph = graph.of(torch.full_like(action, fit.shape[1]))
    unlinked = no_action_graph._replace(edges=identity.expand_as(no_action_graph.edges))
    no_action = torch.full_like(action, layer.actions)[:, None]
    unchanged = layer.predict(nodes, unlinked, table, no_action)
    terms = {
        "l_x": negative_log_likelihood(log_p[:, -1], x),
        "l_id_y": negative_log_likelihood(unchanged[:, 0], x),
        "l_id_m": distance_from_identity(no_action_graph.edges[:, 0]),
        "l_y": l_y,
        "l_a": l_a,
    }
    return terms, graph.of(own), log_p[torch.arange(len(own), device=own.device), own]


def _graph_terms(graph: ActionGraph) -> dict[str, Tensor]:
    """The losses of eq. 11 to 15 for graphs of one action per pair."""
    return {
        "kl": edge_divergence(graph.probabilities[:, 0]),
        "l_m": edge_count(graph.edges[:, 0]),
        "l_dep": orphan_penalty(graph.no_parents[:, 0]),
    }


def with_negatives(action: Tensor, *, negatives: int, opposites: Sequence[int]) -> Tensor:
    """Each pair's action, its opposite, further actions at random, and no action: (n, negatives + 2).

    Arguments:
        action: (n,) index of each pair's action.
        negatives: number of other actions, at most all.
        opposites: for each action the index of its inverse, see `opposites`.

    >>> with_negatives(torch.tensor([0, 3]), negatives=1, opposites=[1, 0, 3, 2])
    tensor([[0, 1, 4],
            [3, 2, 4]])
    """
    actions = len(opposites)
    opposite = torch.tensor(opposites, device=action.device)[action]
    order = torch.rand(len(action), actions, device=action.device)
    order.scatter_(1, opposite[:, None], 2.0).scatter_(1, action[:, None], 3.0)
    chosen = order.topk(min(negatives + 1, actions)).indices
    return torch.cat([chosen, torch.full_like(action, actions)[:, None]], dim=1)


def opposites(actions: Sequence[str]) -> list[int]:
    """The index of each action's inverse; its own index where there is none.

    >>> opposites(["+x", "-x", "smile"])
    [1, 0, 2]
    """
    signs = {"+": "-", "-": "+"}
    inverses = [signs.get(name[:1], name[:1]) + name[1:] for name in actions]
    return [
        actions.index(name) if name in actions else number for number, name in enumerate(inverses)
    ]
