"""Causal transition layer of CT-VAE: graphs of actions and the graph network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from disentwine.core.types import Count
from disentwine.nn.graph_layers import (
    Activation,
    Attention,
    GridMessagePassing,
    MessagePassing,
    PairNetworks,
)

EdgeSampling = Literal["sampled", "expected"]

SELF_EDGE_LOGIT = 4.0
"""Added to the logits of self-edges, so that most nodes are unchanged at initialisation."""

MIN_VARIANCE = 1e-3
"""Lower bound on the codes' variance in any direction, relative to the mean variance."""


@dataclass(frozen=True)
class TransitionOptions:
    """Options of a `TransitionLayer`.

    Arguments:
        node_dim: features of a node in the edge networks and in the attention.
        message_passing: "attention" over all parents, or `num_layers` of message passing on the "grid"
            of codes, which models motion much more accurately.
        heads: number of attention heads.
        num_layers: number of layers of message passing on the grid.
        edge_hidden: hidden units of the networks that predict edges.
        activation: of those networks: "relu", or "sine", which is many times as fast.
        edges: "sampled" in training, as in the paper, or "expected", for training without sampling noise.
    """

    node_dim: Count = 64
    message_passing: MessagePassing = "attention"
    heads: Count = 4
    num_layers: Count = 3
    edge_hidden: Count = 16
    activation: Activation = "relu"
    edges: EdgeSampling = "sampled"


DEFAULTS = TransitionOptions()


class ActionGraph(NamedTuple):
    """The graph between nodes under each action, and the nodes that the action affects.

    Arguments:
        edges: M, (n, s, nodes, nodes): whether node i (third axis) depends on node j (last).
        mask: R, (n, s, nodes): whether the action affects node i directly.
        alpha: (n, s, nodes, nodes) edge logits of the action.
        alpha_none: (n, 1, nodes, nodes) edge logits without action.
    """

    edges: Tensor
    mask: Tensor
    alpha: Tensor
    alpha_none: Tensor

    def of(self, s: Tensor) -> ActionGraph:
        """The graph of one action (n,) per sample, with s = 1."""
        rows = torch.arange(len(s), device=s.device)
        edges, mask, alpha = (p[rows, s][:, None] for p in (self.edges, self.mask, self.alpha))
        return ActionGraph(edges, mask, alpha, self.alpha_none)

    @property
    def probabilities(self) -> Tensor:
        """Probabilities (n, s, nodes, nodes) of the edges."""
        on = self.mask[..., None]
        return on * self.alpha.sigmoid() + (1 - on) * self.alpha_none.sigmoid()

    @property
    def no_parents(self) -> Tensor:
        """Probability (n, s, nodes) that a node has no parents; all its edges share one mask."""
        own, none = (
            (-F.softplus(logits).sum(-1)).exp() for logits in (self.alpha, self.alpha_none)
        )
        return self.mask * own + (1 - self.mask) * none


class TransitionLayer(nn.Module):
    r"""$p(L_y | L_x, a) = \mathrm{GNN}([L_x, a, z]; M)$ (eq. 2) with
    $M_{ij} \sim \mathrm{Bernoulli}(\sigma(\alpha_{ij}))$ (eq. 3).

    The edges of node i come from the network of action a where the mask $R_{a,i}$ is on, and from the
    network without action elsewhere (eq. 4). A node receives messages from its parents and a noise
    node, an embedding of its position, and the action where its mask is on. With attention, the weights
    of its parents also depend on the node itself. Further layers (see `GridMessagePassing`) extend the
    receptive field.

    The network predicts a point in code space, and nearer codes are more probable:
    $\log p(k) \sim -\frac{s}{2} \|M_{ii} x_i + v - e_k\|^2 + w_k \cdot h$. Similar codes therefore have
    similar probabilities, which generalises from few pairs to many codes. At initialisation, a node that
    depends on itself keeps its code.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, section 3.4.

    Arguments:
        actions: number of actions; the index `actions` stands for no action.
        num_codebooks, codebook_size, code_dim: of the quantizer.
        grid: rows and columns of positions.
        options: see `TransitionOptions`. Edges are sampled with straight-through Gumbel noise in
            training, and are their expectation in evaluation.

    >>> layer = TransitionLayer(
    ...     actions=4, num_codebooks=2, grid=(3, 3), codebook_size=16, code_dim=8)
    >>> table = torch.randn(2, 16, 8)
    >>> log_p, graph = layer(torch.randn(5, 2, 9, 8), table)
    >>> log_p.shape, graph.edges.shape
    (torch.Size([5, 5, 18, 16]), torch.Size([5, 5, 18, 18]))
    """

    def __init__(
        self,
        *,
        actions: int,
        num_codebooks: int,
        grid: tuple[int, int],
        codebook_size: int,
        code_dim: int,
        options: TransitionOptions = DEFAULTS,
    ) -> None:
        super().__init__()
        self.actions, self.edges = actions, options.edges
        nodes, node_dim = num_codebooks * grid[0] * grid[1], options.node_dim
        self.enter = nn.Parameter(
            torch.randn(num_codebooks, code_dim, node_dim) / math.sqrt(code_dim)
        )
        self.place = nn.Parameter(torch.randn(nodes, node_dim) / math.sqrt(2))  # node embedding
        self.pairs = PairNetworks(
            networks=actions + 1,
            node_dim=node_dim,
            hidden=options.edge_hidden,
            activation=options.activation,
        )
        self.touch = nn.Linear(node_dim, actions)  # logits of the mask R
        self.network: Attention | GridMessagePassing = (
            Attention(nodes=nodes, node_dim=node_dim, actions=actions, heads=options.heads)
            if options.message_passing == "attention"
            else GridMessagePassing(
                num_codebooks=num_codebooks,
                grid=grid,
                node_dim=node_dim,
                actions=actions,
                num_layers=options.num_layers,
            )
        )
        width = self.network.width
        scale = math.sqrt(width)
        # v is a linear function of h by `aim`, s is the exponential of `log_sharpness`, w is `leave`.
        self.aim = nn.Parameter(0.1 * torch.randn(num_codebooks, width, code_dim) / scale)
        self.log_sharpness = nn.Parameter(torch.zeros(num_codebooks))
        self.leave = nn.Parameter(0.1 * torch.randn(num_codebooks, width, codebook_size) / scale)

    def forward(
        self, vectors: Tensor, table: Tensor, chosen: Tensor | None = None
    ) -> tuple[Tensor, ActionGraph]:
        """Log-probabilities (n, s, nodes, codes) of each node after s actions, and the graph.

        Arguments:
            vectors: (n, codebooks, positions, d) codes of $L_x$.
            table: (codebooks, codes, d) all codes.
            chosen: (n, s) actions; by default all actions, then no action (s = `actions` + 1).
        """
        x = self.nodes(vectors, table)
        graph = self.graph(x, chosen)
        return self.predict(x, graph, table, chosen), graph

    def nodes(self, vectors: Tensor, table: Tensor) -> Tensor:
        """Whitened codes (n, nodes, d), see `whitening`."""
        mean, whiten = whitening(table)
        return ((vectors - mean) @ whiten).flatten(1, 2)

    def embed(self, x: Tensor) -> Tensor:
        """Nodes (n, nodes, d) with position embeddings, (n, nodes, node_dim)."""
        books = x.view(len(x), len(self.enter), -1, x.shape[2])
        return torch.einsum("ncpd,cde->ncpe", books, self.enter).flatten(1, 2) + self.place

    def graph(self, x: Tensor, chosen: Tensor | None = None) -> ActionGraph:
        """M and R of nodes (n, nodes, d) under actions (eq. 3 and 4)."""
        x = self.embed(x)
        none = torch.full((len(x), 1), self.actions, device=x.device)
        mask_logits = torch.cat([self.touch(x), x.new_full((*x.shape[:2], 1), -math.inf)], dim=2)
        mask_logits = mask_logits.transpose(
            1, 2
        )  # (n, actions + 1, nodes); no action affects no node
        self_edges = SELF_EDGE_LOGIT * torch.eye(x.shape[1], device=x.device, dtype=x.dtype)
        if chosen is None:
            alpha = self.pairs(x) + self_edges
            alpha, alpha_none = alpha, alpha[:, -1:]
        else:
            alpha = self.pairs(x, torch.cat([chosen, none], dim=1)) + self_edges
            alpha, alpha_none = alpha[:, :-1], alpha[:, -1:]
            mask_logits = mask_logits.gather(1, chosen[..., None].expand(-1, -1, x.shape[1]))
        mask = self.sample(mask_logits)
        on = mask[..., None]
        edges = torch.lerp(self.sample(alpha_none), self.sample(alpha), on)
        return ActionGraph(edges, mask, alpha, alpha_none)

    def sample(self, logits: Tensor) -> Tensor:
        """Bernoulli samples with the gradient of their relaxation; in evaluation their mean.

        Reference: Categorical Reparameterization with Gumbel-Softmax, E. Jang et al., 2017.
        """
        if not self.training or self.edges == "expected":
            return logits.sigmoid()
        u = torch.rand_like(logits).clamp_(1e-6, 1 - 1e-6)
        soft = (logits + u.logit()).sigmoid()
        return (soft > 0.5).to(soft.dtype) + soft - soft.detach()

    def predict(
        self, x: Tensor, graph: ActionGraph, table: Tensor, chosen: Tensor | None = None
    ) -> Tensor:
        """Log-probabilities (n, s, nodes, codes) after actions, given the graph (eq. 2)."""
        one_hot = torch.eye(self.actions + 1, self.actions, device=x.device, dtype=x.dtype)
        one_hot = one_hot[None, :, None] if chosen is None else one_hot[chosen][:, :, None]
        hidden = self.network(self.embed(x), graph.edges, graph.mask[..., None] * one_hot)
        books = hidden.unflatten(2, (len(self.leave), -1))
        mean, whiten = whitening(table)
        codes = (table - mean) @ whiten
        # The squared length of the predicted point is the same for all codes.
        sharp = self.log_sharpness.exp()[:, None, None] / nearest_squared(codes)
        weights = self.leave + torch.einsum("ced,ckd->cek", self.aim, codes) * sharp
        penalty = 0.5 * codes.square().sum(-1, keepdim=True).transpose(1, 2) * sharp
        own = x.view(len(x), len(codes), -1, x.shape[2])
        own_logits = torch.einsum("ncpd,ckd->ncpk", own, codes) * sharp
        self_edge = graph.edges.diagonal(dim1=2, dim2=3).reshape(*books.shape[:4], 1)
        logits = (
            torch.einsum("nscpe,cek->nscpk", books, weights)
            - penalty
            + self_edge * own_logits[:, None]
        )
        return logits.flatten(2, 3).log_softmax(-1)


def whitening(table: Tensor) -> tuple[Tensor, Tensor]:
    r"""Mean (codebooks, 1, d) and $\Sigma^{-1/2}$ (codebooks, d, d) of the codes, without gradients.

    Codes of an autoencoder have any scale and may vary in few directions only. Whitening amplifies small
    differences between similar codes.
    """
    mean = table.detach().mean(1, keepdim=True)
    centred = table.detach() - mean
    covariance = centred.transpose(1, 2) @ centred / table.shape[1]
    variances, axes = torch.linalg.eigh(covariance)
    least = MIN_VARIANCE * variances.mean(1, keepdim=True) + 1e-12
    return mean, axes * (variances.clamp(min=0) + least).rsqrt()[:, None] @ axes.transpose(1, 2)


def nearest_squared(codes: Tensor) -> Tensor:
    """Squared median distance (codebooks, 1, 1) from a code to its nearest neighbour."""
    distances = torch.cdist(codes, codes)
    distances = distances + torch.diag_embed(torch.full_like(distances[..., 0], math.inf))
    return distances.amin(-1).median(1).values.square().clamp(min=1e-4)[:, None, None]
