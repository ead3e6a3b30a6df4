"""The causal transition layer: what becomes of an image's codes under an action."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from disentwine.nn.graph_layers import Activation, Attention, Messages, Neighbours, PairNetworks

Edges = Literal["sampled", "expected"]

ITSELF = 4.0
"""Added to the logit of every node's edge to itself: what is, mostly stays."""

LEAST_VARIANCE = 1e-3
"""Of the codes in any direction, beside the mean of all: what is less is noise."""


class ActionGraph(NamedTuple):
    """Which nodes depend on which under each action, and which the action touches.

    Arguments:
        edges: M, (n, s, nodes, nodes): whether node i (third axis) depends on node j (last).
        mask: R, (n, s, nodes): whether the action touches node i.
        alpha: (n, s, nodes, nodes) logits of the action's own edges.
        alpha_none: (n, 1, nodes, nodes) logits of the edges without action.
    """

    edges: Tensor
    mask: Tensor
    alpha: Tensor
    alpha_none: Tensor

    def of(self, s: Tensor) -> ActionGraph:
        """That of one action (n,) for each sample, with s of size 1."""
        rows = torch.arange(len(s), device=s.device)
        edges, mask, alpha = (p[rows, s][:, None] for p in (self.edges, self.mask, self.alpha))
        return ActionGraph(edges, mask, alpha, self.alpha_none)

    @property
    def probabilities(self) -> Tensor:
        """(n, s, nodes, nodes) of the edges."""
        on = self.mask[..., None]
        return on * self.alpha.sigmoid() + (1 - on) * self.alpha_none.sigmoid()

    @property
    def no_parents(self) -> Tensor:
        """(n, s, nodes) probability that a node depends on nothing; all its edges share one mask."""
        own, none = (
            (-F.softplus(logits).sum(-1)).exp() for logits in (self.alpha, self.alpha_none)
        )
        return self.mask * own + (1 - self.mask) * none


class TransitionLayer(nn.Module):
    r"""$p(L_y | L_x, a) = \mathrm{GNN}([L_x, a, z]; M)$ (eq. 2) with
    $M_{ij} \sim \mathrm{Bernoulli}(\sigma(\alpha_{ij}))$ (eq. 3).

    Every node has the edges that network a gives it where the mask $R_{a,i}$ is on, and those of the
    network without action elsewhere (eq. 4). A node hears of nothing but its parents, a noise node,
    where it stands, and the action where the mask is on (with attention, whom of its parents it hears most
    also depends on what it is itself); in further rounds (see `nn.messages`) its parents
    pass on what they heard. What a node becomes is
    told by a point in the space of its codes, and code k is the likelier the nearer it is,
    $\log p(k) \sim -\frac{s}{2} \|M_{ii} x_i + v - e_k\|^2 + w_k \cdot h$: codes that look alike are
    likely together, so that few pairs tell of many codes; and a node that depends on itself stays
    what it is until something else is learnt.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, section 3.4.

    Arguments:
        actions: how many; action number `actions` is to do nothing.
        codebooks, grid, codes, dimensions: of what was quantized.
        width: of a node.
        messages: the graph network: one round of "attention", or several between "neighbours".
        heads: of the attention.
        rounds: between neighbours.
        hidden: of the pair networks.
        activation: of the pair networks.
        edges: "sampled" by straight-through Gumbel in training, or "expected"; expected afterwards.

    >>> layer = TransitionLayer(actions=4, codebooks=2, grid=(3, 3), codes=16, dimensions=8)
    >>> table = torch.randn(2, 16, 8)
    >>> log_p, graph = layer(torch.randn(5, 2, 9, 8), table)
    >>> log_p.shape, graph.edges.shape
    (torch.Size([5, 5, 18, 16]), torch.Size([5, 5, 18, 18]))
    """

    def __init__(
        self,
        *,
        actions: int,
        codebooks: int,
        grid: tuple[int, int],
        codes: int,
        dimensions: int,
        width: int = 64,
        messages: Messages = "attention",
        heads: int = 4,
        rounds: int = 3,
        hidden: int = 16,
        activation: Activation = "relu",
        edges: Edges = "sampled",
    ) -> None:
        super().__init__()
        self.actions, self.edges = actions, edges
        nodes = codebooks * grid[0] * grid[1]
        self.enter = nn.Parameter(torch.randn(codebooks, dimensions, width) / math.sqrt(dimensions))
        self.place = nn.Parameter(torch.randn(nodes, width) / math.sqrt(2))
        self.pairs = PairNetworks(
            networks=actions + 1, width=width, hidden=hidden, activation=activation
        )
        self.touch = nn.Linear(width, actions)
        self.network: Attention | Neighbours = (
            Attention(nodes=nodes, width=width, actions=actions, heads=heads)
            if messages == "attention"
            else Neighbours(
                codebooks=codebooks, grid=grid, inputs=width, actions=actions, rounds=rounds
            )
        )
        width = self.network.width
        self.aim = nn.Parameter(0.1 * torch.randn(codebooks, width, dimensions) / math.sqrt(width))
        self.log_sharpness = nn.Parameter(torch.zeros(codebooks))
        self.leave = nn.Parameter(0.1 * torch.randn(codebooks, width, codes) / math.sqrt(width))

    def forward(
        self, vectors: Tensor, table: Tensor, chosen: Tensor | None = None
    ) -> tuple[Tensor, ActionGraph]:
        """Log-probabilities (n, s, nodes, codes) of what each node becomes, and the graph.

        Arguments:
            vectors: (n, codebooks, positions, d) codes of $L_x$.
            table: (codebooks, codes, d) all codes.
            chosen: (n, s) actions; when omitted all of them, and then none (`actions` + 1).
        """
        x = self.nodes(vectors, table)
        graph = self.graph(x, chosen)
        return self.become(x, graph, table, chosen), graph

    def nodes(self, vectors: Tensor, table: Tensor) -> Tensor:
        """Codes (n, nodes, d), brought to mean 0 and covariance 1."""
        mean, whiten = whitening(table)
        return ((vectors - mean) @ whiten).flatten(1, 2)

    def placed(self, x: Tensor) -> Tensor:
        """Nodes (n, nodes, d) with where they stand, (n, nodes, width)."""
        books = x.view(len(x), len(self.enter), -1, x.shape[2])
        return torch.einsum("ncpd,cde->ncpe", books, self.enter).flatten(1, 2) + self.place

    def graph(self, x: Tensor, chosen: Tensor | None = None) -> ActionGraph:
        """M and R of nodes (n, nodes, d) under actions (eq. 3 and 4)."""
        x = self.placed(x)
        none = torch.full((len(x), 1), self.actions, device=x.device)
        touched = torch.cat([self.touch(x), x.new_full((*x.shape[:2], 1), -math.inf)], dim=2)
        touched = touched.transpose(1, 2)  # (n, actions + 1, nodes); to do nothing touches none
        itself = ITSELF * torch.eye(x.shape[1], device=x.device, dtype=x.dtype)
        if chosen is None:
            alpha = self.pairs(x) + itself
            alpha, alpha_none = alpha, alpha[:, -1:]
        else:
            alpha = self.pairs(x, torch.cat([chosen, none], dim=1)) + itself
            alpha, alpha_none = alpha[:, :-1], alpha[:, -1:]
            touched = touched.gather(1, chosen[..., None].expand(-1, -1, x.shape[1]))
        mask = self.draw(touched)
        on = mask[..., None]
        edges = torch.lerp(self.draw(alpha_none), self.draw(alpha), on)
        return ActionGraph(edges, mask, alpha, alpha_none)

    def draw(self, logits: Tensor) -> Tensor:
        """Bernoulli trials whose gradient is that of their relaxation; in evaluation their mean.

        Reference: Categorical Reparameterization with Gumbel-Softmax, E. Jang et al., 2017.
        """
        if not self.training or self.edges == "expected":
            return logits.sigmoid()
        u = torch.rand_like(logits).clamp_(1e-6, 1 - 1e-6)
        soft = (logits + u.logit()).sigmoid()
        return (soft > 0.5).to(soft.dtype) + soft - soft.detach()

    def become(
        self, x: Tensor, graph: ActionGraph, table: Tensor, chosen: Tensor | None = None
    ) -> Tensor:
        """Log-probabilities (n, s, nodes, codes) of what nodes become, given the graph (eq. 2)."""
        told = torch.eye(self.actions + 1, self.actions, device=x.device, dtype=x.dtype)
        told = told[None, :, None] if chosen is None else told[chosen][:, :, None]
        outcome = self.network(self.placed(x), graph.edges, graph.mask[..., None] * told)
        books = outcome.unflatten(2, (len(self.leave), -1))
        mean, whiten = whitening(table)
        codes = (table - mean) @ whiten
        # The squared length of the point aimed at is the same for all codes.
        sharp = self.log_sharpness.exp()[:, None, None] / nearest_squared(codes)
        towards = self.leave + torch.einsum("ced,ckd->cek", self.aim, codes) * sharp
        away = 0.5 * codes.square().sum(-1, keepdim=True).transpose(1, 2) * sharp
        own = x.view(len(x), len(codes), -1, x.shape[2])
        stay = torch.einsum("ncpd,ckd->ncpk", own, codes) * sharp
        itself = graph.edges.diagonal(dim1=2, dim2=3).reshape(*books.shape[:4], 1)
        logits = torch.einsum("nscpe,cek->nscpk", books, towards) - away + itself * stay[:, None]
        return logits.flatten(2, 3).log_softmax(-1)


def whitening(table: Tensor) -> tuple[Tensor, Tensor]:
    r"""What brings codes to mean 0 and covariance 1, as constants: their mean (codebooks, 1, d) and
    $\Sigma^{-1/2}$ (codebooks, d, d).

    Autoencoders may draw their codes as large or as small as they like, and far apart in few
    directions only; what tells neighbours apart would then be lost beside it.
    """
    mean = table.detach().mean(1, keepdim=True)
    centred = table.detach() - mean
    covariance = centred.transpose(1, 2) @ centred / table.shape[1]
    variances, axes = torch.linalg.eigh(covariance)
    least = LEAST_VARIANCE * variances.mean(1, keepdim=True) + 1e-12
    return mean, axes * (variances.clamp(min=0) + least).rsqrt()[:, None] @ axes.transpose(1, 2)


def nearest_squared(codes: Tensor) -> Tensor:
    """How far from its nearest neighbour a code lies mostly, squared, (codebooks, 1, 1)."""
    apart = torch.cdist(codes, codes)
    apart = apart + torch.diag_embed(torch.full_like(apart[..., 0], math.inf))
    return apart.amin(-1).median(1).values.square().clamp(min=1e-4)[:, None, None]
