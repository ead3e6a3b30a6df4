"""Message passing by attention or on a grid; edge logits of pairs of nodes."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

MessagePassing = Literal["attention", "grid"]

MIN_NOISE_LOGIT = -15.0
"""Lower bound on the noise node's attention logit, relative to a node's largest one."""


class Attention(nn.Module):
    """Multi-head attention over all nodes, with weights gated by the edges, and a noise node.

    Queries and keys do not depend on the action and are computed once for all actions.

    Arguments:
        nodes: number of nodes.
        node_dim: features of a node, at the input and the output.
        actions: number of actions.
        heads: number of attention heads.
        noise: dimension of the noise node.

    >>> network = Attention(nodes=6, node_dim=8, actions=3, heads=2)
    >>> network(torch.randn(5, 6, 8), torch.ones(5, 2, 6, 6), torch.zeros(5, 2, 6, 3)).shape
    torch.Size([5, 2, 6, 8])
    """

    def __init__(
        self, *, nodes: int, node_dim: int, actions: int, heads: int = 4, noise: int = 4
    ) -> None:
        super().__init__()
        self.heads, self.noise, self.width = heads, noise, node_dim
        self.query, self.key, self.value = (nn.Linear(node_dim, node_dim) for _ in range(3))
        self.noise_key = nn.Parameter(torch.randn(heads, node_dim // heads))
        self.noise_value = nn.Linear(noise, node_dim)
        self.gather = nn.Linear(node_dim, node_dim)  # output projection of the heads
        self.stand = nn.Parameter(torch.randn(nodes, node_dim) / math.sqrt(2))  # node embedding
        self.first = nn.Linear(node_dim + actions, 2 * node_dim)
        nn.init.normal_(
            self.first.weight.detach()[:, node_dim:]
        )  # so that actions differ at initialisation
        self.second = nn.Linear(2 * node_dim, node_dim)
        self.norm = nn.LayerNorm(node_dim)

    def forward(self, x: Tensor, edges: Tensor, action: Tensor) -> Tensor:
        """Features (n, s, nodes, node_dim) of the nodes after s actions.

        Arguments:
            x: (n, nodes, node_dim).
            edges: (n, s, nodes, nodes) weights of the messages to each node (third axis) from each
                node (last axis).
            action: (n, s, nodes, actions) one-hot action at each node, times the node's mask.
        """
        message = self._attend(x, edges) + self.stand
        hidden = self.first(torch.cat([message, action], dim=-1)).relu()
        output: Tensor = self.norm(message + self.second(hidden))
        return output

    def _attend(self, x: Tensor, edges: Tensor) -> Tensor:
        """Messages (n, s, nodes, node_dim) from parents and from the noise node."""
        n, nodes = x.shape[:2]
        q, k, v = (
            layer(x).view(n, nodes, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scale = math.sqrt(q.shape[-1])
        logits = q @ k.transpose(-1, -2) / scale
        noise_logit = torch.einsum("nhid,hd->nhi", q, self.noise_key)[..., None] / scale
        largest = torch.maximum(logits.amax(-1, keepdim=True), noise_logit).detach()
        weight = (logits - largest).exp()
        # If no parent has a large weight, only the noise is left, and its weight must not underflow.
        noise_weight = (noise_logit - largest).clamp(min=MIN_NOISE_LOGIT).exp()
        z = sample_noise(self, x)
        noise = self.noise_value(z).view(n, self.heads, 1, -1)
        # An additional column of ones yields the sum of the weights in the same product.
        values, noise_values = (F.pad(part, (0, 1), value=1.0) for part in (v, noise))
        sums = (edges[:, None] * weight[:, :, None]).flatten(2, 3) @ values
        sums = sums.unflatten(2, edges.shape[1:3]) + (noise_weight * noise_values)[:, :, None]
        message = sums[..., :-1] / sums[..., -1:]  # (n, heads, s, nodes, width / heads)
        projected: Tensor = self.gather(message.permute(0, 2, 3, 1, 4).flatten(3))
        return projected


class GridMessagePassing(nn.Module):
    r"""Message passing between adjacent positions of the grid of codes:
    $h_i \leftarrow h_i + f\big(\sum_j M_{ij} W_{j - i} h_j, a\big)$, a 3x3 convolution gated by the edges.
    Initially $h_i = M_{ii} x_i$ plus an embedding of node i.

    Actions move objects to adjacent positions. Each layer widens the receptive field by one position.

    Arguments:
        num_codebooks: number of nodes at each position.
        grid: rows and columns of positions.
        node_dim: features of a node at the input.
        width: features of a node at the output.
        actions: number of actions.
        num_layers: number of layers.
        noise: dimension of the noise node.

    >>> network = GridMessagePassing(num_codebooks=2, grid=(3, 4), node_dim=8, width=6, actions=3)
    >>> network(torch.randn(5, 24, 8), torch.ones(5, 2, 24, 24), torch.zeros(5, 2, 24, 3)).shape
    torch.Size([5, 2, 24, 6])
    """

    def __init__(
        self,
        *,
        num_codebooks: int,
        grid: tuple[int, int],
        node_dim: int,
        width: int = 24,
        actions: int,
        num_layers: int = 3,
        noise: int = 4,
    ) -> None:
        super().__init__()
        self.width, self.noise = width, noise
        # Input projection for each codebook, and node embedding.
        self.enter = nn.Parameter(torch.randn(num_codebooks, node_dim, width) / math.sqrt(node_dim))
        self.noise_value = nn.Linear(noise, width)
        positions = grid[0] * grid[1]
        self.stand = nn.Parameter(0.1 * torch.randn(num_codebooks * positions, width))
        self.layers = nn.ModuleList(
            GridMessageLayer(num_codebooks=num_codebooks, grid=grid, width=width, actions=actions)
            for _ in range(num_layers)
        )

    def forward(self, x: Tensor, edges: Tensor, action: Tensor) -> Tensor:
        """Features (n, s, nodes, width) of the nodes after s actions; arguments as for `Attention`."""
        books = x.view(len(x), len(self.enter), -1, x.shape[2])
        sent = torch.einsum("ncpe,cew->ncpw", books, self.enter).flatten(1, 2)
        sent = (sent + self.noise_value(sample_noise(self, x))[:, None])[:, None]
        h: Tensor = self.stand + edges.diagonal(dim1=2, dim2=3)[..., None] * sent
        for layer in self.layers:
            h = h + layer(sent, edges, action)
            sent = h
        return h


class GridMessageLayer(nn.Module):
    """One layer of `GridMessagePassing`: gated 3x3 convolution, modulated by the action."""

    around: Tensor

    def __init__(
        self, *, num_codebooks: int, grid: tuple[int, int], width: int, actions: int
    ) -> None:
        super().__init__()
        self.register_buffer("around", grid_neighbours(*grid), persistent=False)
        received = num_codebooks * self.around.shape[1] * width
        self.norm = nn.LayerNorm(width)
        # Weights W of the messages, scale and shift by the action, and output projection.
        self.hear = nn.Parameter(torch.randn(num_codebooks, received, width) / math.sqrt(received))
        self.act = nn.Linear(actions, 2 * width)
        nn.init.normal_(self.act.weight)  # so that actions differ at initialisation
        self.answer = nn.Parameter(torch.randn(num_codebooks, width, width) / math.sqrt(width))

    def forward(self, sent: Tensor, edges: Tensor, action: Tensor) -> Tensor:
        """Residual update (n, s, nodes, width) from features `sent` (n, s or 1, nodes, width)."""
        books, (positions, adjacent) = len(self.hear), self.around.shape
        n, s = edges.shape[:2]
        neighbour_features = F.pad(
            self.norm(sent).view(n, -1, books, positions, sent.shape[-1]), (0, 0, 0, 1)
        )
        neighbour_features = neighbour_features.index_select(3, self.around.flatten())
        neighbour_features = neighbour_features.view(
            n, -1, books, positions, adjacent, sent.shape[-1]
        )
        gates = F.pad(edges.view(n, s, books, positions, books, positions), (0, 1))
        index = self.around[:, None].expand(n, s, books, positions, books, adjacent)
        # The axis order of the product below needs small copies here instead of a large one there.
        gates = gates.gather(5, index).movedim(2, 0).contiguous()
        received = gates[..., None] * neighbour_features.transpose(2, 3).contiguous()
        message = torch.bmm(received.view(books, n * s * positions, -1), self.hear)
        scale, shift = self.act(action).view(n, s, books, positions, -1).movedim(2, 0).chunk(2, -1)
        hidden = F.silu(message.view(books, n, s, positions, -1) * (1 + scale) + shift)
        update = torch.bmm(hidden.flatten(1, 3), self.answer)
        return update.view(books, n, s, positions, -1).permute(1, 2, 0, 3, 4).flatten(2, 3)


def grid_neighbours(rows: int, columns: int) -> Tensor:
    """Indices (rows * columns, 9) of the 3x3 neighbourhood of each position; the index rows * columns
    means outside the grid.

    >>> grid_neighbours(2, 2)[0]
    tensor([4, 4, 4, 4, 0, 1, 4, 2, 3])
    """
    positions = torch.full((rows + 2, columns + 2), rows * columns)
    positions[1:-1, 1:-1] = torch.arange(rows * columns).view(rows, columns)
    return positions.unfold(0, 3, 1).unfold(1, 3, 1).reshape(rows * columns, 9)


def sample_noise(network: Attention | GridMessagePassing, x: Tensor) -> Tensor:
    """Gaussian noise (n, noise) of a noise node; its mean, 0, in evaluation."""
    shape = (len(x), network.noise)
    return x.new_empty(shape).normal_() if network.training else x.new_zeros(shape)


Activation = Literal["relu", "sine"]


class FirstLayer(NamedTuple):
    """The two summands of the first layer for all nodes, (stack, nodes, hidden) each."""

    left: Tensor
    right: Tensor


class PairNetworks(nn.Module):
    r"""Edge logits $\alpha^a_{ij} = w_a \cdot \varphi(U_a x_i + V_a x_j + b_a) + c_a$ for every action a
    and pair of nodes (i, j).

    This is a two-layer network on the concatenation $[x_i, x_j]$ (see `concatenated`). As its first
    layer is a sum of two terms, it needs $2 N d h$ products instead of $N^2 \cdot 2 d h$, and no array
    over all pairs. With $\varphi = \sin$, $\sin(u + v) = \sin u \cos v + \cos u \sin v$ makes $\alpha$ a
    matrix product of rank 2h. With relu it is a sum of L1 distances.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, eq. 3 and 4.

    Arguments:
        networks: number of networks, one per action and one for no action.
        node_dim: d, features of a node.
        hidden: h, hidden units.
        activation: "relu" or "sine".

    >>> networks = PairNetworks(networks=3, node_dim=8, hidden=4)
    >>> networks(torch.randn(2, 5, 8)).shape
    torch.Size([2, 3, 5, 5])
    """

    def __init__(
        self, *, networks: int, node_dim: int, hidden: int, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        self.activation = activation
        scale = 1 / math.sqrt(node_dim)
        self.U = nn.Parameter(scale * torch.randn(networks, node_dim, hidden))
        self.V = nn.Parameter(scale * torch.randn(networks, node_dim, hidden))
        self.b = nn.Parameter(0.1 * torch.randn(networks, hidden))
        self.w = nn.Parameter(torch.randn(networks, hidden) / math.sqrt(hidden))
        self.c = nn.Parameter(torch.zeros(networks))

    def forward(self, x: Tensor, chosen: Tensor | None = None) -> Tensor:
        """Logits (n, s, nodes, nodes) of edges from node j, the last axis, to node i.

        Arguments:
            x: (n, nodes, d).
            chosen: (n, s) the networks to evaluate for each sample; all when omitted.
        """
        n, nodes, _ = x.shape
        if chosen is None:
            # Networks before samples, so that batched products need no copies.
            every = x.reshape(1, n * nodes, -1).expand(len(self.U), -1, -1)
            left, right = torch.baddbmm(self.b[:, None], every, self.U), torch.bmm(every, self.V)
            first = FirstLayer(*(part.view(-1, nodes, part.shape[-1]) for part in (left, right)))
            w, c = (part.repeat_interleave(n, dim=0) for part in (self.w, self.c))
            alpha = self._second_layer(first, w[:, None], c)
            return alpha.view(-1, n, nodes, nodes).transpose(0, 1)
        selected = chosen.flatten()
        every = x.repeat_interleave(chosen.shape[1], dim=0)
        left = torch.baddbmm(self.b[selected][:, None], every, self.U[selected])
        first = FirstLayer(left, torch.bmm(every, self.V[selected]))
        alpha = self._second_layer(first, self.w[selected][:, None], self.c[selected])
        return alpha.view(n, -1, nodes, nodes)

    def _second_layer(self, first: FirstLayer, w: Tensor, c: Tensor) -> Tensor:
        """Logits (stack, nodes, nodes), with weights (stack, 1, hidden) and constants (stack,)."""
        left, right = first
        c = c[:, None, None]
        if self.activation == "sine":
            half = torch.baddbmm(c, left.sin() * w, right.cos().mT)
            return torch.baddbmm(half, left.cos() * w, right.sin().mT)
        # w relu(u + v) = (w u + w v + w |u + v|) / 2. Sums of |u + v| are L1 distances, computed by
        # cdist, separately for hidden units of positive and negative weight.
        sums = (left * w).sum(-1)[..., None] + (right * w).sum(-1)[..., None, :]
        up, down = w.clamp(min=0), (-w).clamp(min=0)
        positive, negative = (torch.cdist(left * part, -right * part, p=1.0) for part in (up, down))
        return 0.5 * (sums + positive - negative) + c

    def concatenated(self, x: Tensor, network: int) -> Tensor:
        """Logits (n, nodes, nodes) of one network, computed on all concatenated pairs $[x_i, x_j]$."""
        nodes = x.shape[1]
        left = x[:, :, None].expand(-1, -1, nodes, -1)
        right = x[:, None].expand(-1, nodes, -1, -1)
        weight = torch.cat([self.U[network], self.V[network]])
        hidden = torch.cat([left, right], dim=-1) @ weight + self.b[network]
        hidden = hidden.relu() if self.activation == "relu" else hidden.sin()
        return hidden @ self.w[network] + self.c[network]
