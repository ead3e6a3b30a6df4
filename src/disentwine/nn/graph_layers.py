"""Attention / grid message passing; edge logits for all node pairs."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Messages = Literal["attention", "neighbours"]

LEAST = -15.0
"""How much less than to its favourite a node listens to the noise at least, in nats."""


class Attention(nn.Module):
    """One round of attention over all pairs of nodes, weighed by the edges.

    Whom of its parents a node listens to most may depend on what they are. All that does not depend
    on the action is computed once for all.

    Arguments:
        nodes: how many.
        width: of a node, before and after.
        actions: how many.
        heads: of the attention.
        noise: numbers of the noise node.

    >>> network = Attention(nodes=6, width=8, actions=3, heads=2)
    >>> network(torch.randn(5, 6, 8), torch.ones(5, 2, 6, 6), torch.zeros(5, 2, 6, 3)).shape
    torch.Size([5, 2, 6, 8])
    """

    def __init__(
        self, *, nodes: int, width: int, actions: int, heads: int = 4, noise: int = 4
    ) -> None:
        super().__init__()
        self.heads, self.noise, self.width = heads, noise, width
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.noise_key = nn.Parameter(torch.randn(heads, width // heads))
        self.noise_value = nn.Linear(noise, width)
        self.gather = nn.Linear(width, width)
        self.stand = nn.Parameter(torch.randn(nodes, width) / math.sqrt(2))
        self.first = nn.Linear(width + actions, 2 * width)
        nn.init.normal_(self.first.weight.detach()[:, width:])  # actions differ from the start
        self.second = nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, edges: Tensor, told: Tensor) -> Tensor:
        """What becomes of nodes, (n, s, nodes, width).

        Arguments:
            x: (n, nodes, width).
            edges: (n, s, nodes, nodes) how much each node (third axis) hears of each (last).
            told: (n, s, nodes, actions) the action, where a node is told of it.
        """
        message = self._listen(x, edges) + self.stand
        hidden = self.first(torch.cat([message, told], dim=-1)).relu()
        outcome: Tensor = self.norm(message + self.second(hidden))
        return outcome

    def _listen(self, x: Tensor, edges: Tensor) -> Tensor:
        """What every node hears from its parents and from the noise, (n, s, nodes, width)."""
        n, nodes = x.shape[:2]
        q, k, v = (
            layer(x).view(n, nodes, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scale = math.sqrt(q.shape[-1])
        closeness = q @ k.transpose(-1, -2) / scale
        to_noise = torch.einsum("nhid,hd->nhi", q, self.noise_key)[..., None] / scale
        most = torch.maximum(closeness.amax(-1, keepdim=True), to_noise).detach()
        weight = (closeness - most).exp()
        # Those whom a node listens to most may be no parents of it: then only the noise is left, and
        # must not vanish.
        noise_weight = (to_noise - most).clamp(min=LEAST).exp()
        z = drawn_noise(self, x)
        noise = self.noise_value(z).view(n, self.heads, 1, -1)
        # A column of ones counts the weights in the same product; actions are rows beside nodes.
        counted, noise_counted = (F.pad(values, (0, 1), value=1.0) for values in (v, noise))
        heard = (edges[:, None] * weight[:, :, None]).flatten(2, 3) @ counted
        heard = heard.unflatten(2, edges.shape[1:3]) + (noise_weight * noise_counted)[:, :, None]
        message = heard[..., :-1] / heard[..., -1:]  # (n, heads, s, nodes, width / heads)
        gathered: Tensor = self.gather(message.permute(0, 2, 3, 1, 4).flatten(3))
        return gathered


class Neighbours(nn.Module):
    r"""Rounds of messages between places that touch, a map of its own for each direction:
    $h_i \leftarrow h_i + f\big(\sum_j M_{ij} W_{j - i} h_j, a\big)$, a convolution that the edges gate,
    from $h_i = M_{ii} x_i$ and where node i stands.

    What moves in an image moves to the place beside, so that a node hears in full from the few
    that matter, and from further off after several rounds.

    Arguments:
        codebooks: nodes at each place.
        grid: rows and columns of the places.
        inputs: numbers of a node before.
        width: and after.
        actions: how many.
        rounds: how often nodes are told of their neighbours.
        noise: numbers of the noise node.

    >>> network = Neighbours(codebooks=2, grid=(3, 4), inputs=8, width=6, actions=3)
    >>> network(torch.randn(5, 24, 8), torch.ones(5, 2, 24, 24), torch.zeros(5, 2, 24, 3)).shape
    torch.Size([5, 2, 24, 6])
    """

    def __init__(
        self,
        *,
        codebooks: int,
        grid: tuple[int, int],
        inputs: int,
        width: int = 24,
        actions: int,
        rounds: int = 3,
        noise: int = 4,
    ) -> None:
        super().__init__()
        self.width, self.noise = width, noise
        self.enter = nn.Parameter(torch.randn(codebooks, inputs, width) / math.sqrt(inputs))
        self.noise_value = nn.Linear(noise, width)
        places = grid[0] * grid[1]
        self.stand = nn.Parameter(0.1 * torch.randn(codebooks * places, width))
        self.rounds = nn.ModuleList(
            Round(codebooks=codebooks, grid=grid, width=width, actions=actions)
            for _ in range(rounds)
        )

    def forward(self, x: Tensor, edges: Tensor, told: Tensor) -> Tensor:
        """What becomes of nodes, (n, s, nodes, width); arguments as for `Attention`."""
        books = x.view(len(x), len(self.enter), -1, x.shape[2])
        said = torch.einsum("ncpe,cew->ncpw", books, self.enter).flatten(1, 2)
        said = (said + self.noise_value(drawn_noise(self, x))[:, None])[:, None]
        h: Tensor = self.stand + edges.diagonal(dim1=2, dim2=3)[..., None] * said
        for one in self.rounds:
            h = h + one(said, edges, told)
            said = h
        return h


class Round(nn.Module):
    """What neighbours say, and what a node makes of it under an action (see `Neighbours`)."""

    around: Tensor

    def __init__(self, *, codebooks: int, grid: tuple[int, int], width: int, actions: int) -> None:
        super().__init__()
        self.register_buffer("around", neighbours(*grid), persistent=False)
        heard = codebooks * self.around.shape[1] * width
        self.norm = nn.LayerNorm(width)
        self.hear = nn.Parameter(torch.randn(codebooks, heard, width) / math.sqrt(heard))
        self.act = nn.Linear(actions, 2 * width)
        nn.init.normal_(self.act.weight)  # actions differ from the start
        self.answer = nn.Parameter(torch.randn(codebooks, width, width) / math.sqrt(width))

    def forward(self, said: Tensor, edges: Tensor, told: Tensor) -> Tensor:
        """(n, s, nodes, width) of what nodes said, where s may be 1."""
        books, (places, beside) = len(self.hear), self.around.shape
        n, s = edges.shape[:2]
        spoken = F.pad(self.norm(said).view(n, -1, books, places, said.shape[-1]), (0, 0, 0, 1))
        spoken = spoken.index_select(3, self.around.flatten())
        spoken = spoken.view(n, -1, books, places, beside, said.shape[-1])
        gates = F.pad(edges.view(n, s, books, places, books, places), (0, 1))
        where = self.around[:, None].expand(n, s, books, places, books, beside)
        # In the order in which the product below has them: small copies in place of a large one.
        gates = gates.gather(5, where).movedim(2, 0).contiguous()
        heard = gates[..., None] * spoken.transpose(2, 3).contiguous()
        message = torch.bmm(heard.view(books, n * s * places, -1), self.hear)
        by, more = self.act(told).view(n, s, books, places, -1).movedim(2, 0).chunk(2, -1)
        felt = F.silu(message.view(books, n, s, places, -1) * (1 + by) + more)
        answer = torch.bmm(felt.flatten(1, 3), self.answer)
        return answer.view(books, n, s, places, -1).permute(1, 2, 0, 3, 4).flatten(2, 3)


def neighbours(rows: int, columns: int) -> Tensor:
    """The places (rows * columns, 9) that touch each, itself included; one past the last for none.

    >>> neighbours(2, 2)[0]
    tensor([4, 4, 4, 4, 0, 1, 4, 2, 3])
    """
    places = torch.full((rows + 2, columns + 2), rows * columns)
    places[1:-1, 1:-1] = torch.arange(rows * columns).view(rows, columns)
    return places.unfold(0, 3, 1).unfold(1, 3, 1).reshape(rows * columns, 9)


def drawn_noise(network: Attention | Neighbours, x: Tensor) -> Tensor:
    """z (n, noise) of a noise node; its mean in evaluation."""
    shape = (len(x), network.noise)
    return x.new_empty(shape).normal_() if network.training else x.new_zeros(shape)


Activation = Literal["relu", "sine"]


class Sides(NamedTuple):
    """First layer of some networks over all nodes, for either side of a pair, (stack, nodes, hidden)."""

    left: Tensor
    right: Tensor


class PairNetworks(nn.Module):
    r"""$\alpha^a_{ij} = w_a \cdot \varphi(U_a x_i + V_a x_j + b_a) + c_a$ for every action a and pair (i, j).

    This is a two-layer network on the concatenation $[x_i, x_j]$ (see `concatenated`), whose first
    layer is a sum of two: $2 N d h$ products instead of $N^2 \cdot 2 d h$. Nor need that sum be formed:
    with $\varphi = \sin$, $\sin(u + v) = \sin u \cos v + \cos u \sin v$ makes all of $\alpha$ one matrix
    product of rank 2h; with relu it is a sum of distances.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, eq. 3 and 4.

    Arguments:
        networks: how many, one an action and one for none.
        width: d, of a node.
        hidden: h.
        activation: "relu" or "sine".

    >>> networks = PairNetworks(networks=3, width=8, hidden=4)
    >>> networks(torch.randn(2, 5, 8)).shape
    torch.Size([2, 3, 5, 5])
    """

    def __init__(
        self, *, networks: int, width: int, hidden: int, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        self.activation = activation
        scale = 1 / math.sqrt(width)
        self.U = nn.Parameter(scale * torch.randn(networks, width, hidden))
        self.V = nn.Parameter(scale * torch.randn(networks, width, hidden))
        self.b = nn.Parameter(0.1 * torch.randn(networks, hidden))
        self.w = nn.Parameter(torch.randn(networks, hidden) / math.sqrt(hidden))
        self.c = nn.Parameter(torch.zeros(networks))

    def forward(self, x: Tensor, chosen: Tensor | None = None) -> Tensor:
        """Logits (n, s, nodes, nodes) of edges from node j, the last axis, to node i.

        Arguments:
            x: (n, nodes, d).
            chosen: (n, s) which networks to ask for each sample; all of them when omitted.
        """
        n, nodes, _ = x.shape
        if chosen is None:
            # Networks before samples: what follows are products of whole stacks, none of them copied.
            every = x.reshape(1, n * nodes, -1).expand(len(self.U), -1, -1)
            left, right = torch.baddbmm(self.b[:, None], every, self.U), torch.bmm(every, self.V)
            sides = Sides(*(side.view(-1, nodes, side.shape[-1]) for side in (left, right)))
            w, c = (part.repeat_interleave(n, dim=0) for part in (self.w, self.c))
            alpha = self._joined(sides, w[:, None], c)
            return alpha.view(-1, n, nodes, nodes).transpose(0, 1)
        asked = chosen.flatten()
        every = x.repeat_interleave(chosen.shape[1], dim=0)
        left = torch.baddbmm(self.b[asked][:, None], every, self.U[asked])
        sides = Sides(left, torch.bmm(every, self.V[asked]))
        alpha = self._joined(sides, self.w[asked][:, None], self.c[asked])
        return alpha.view(n, -1, nodes, nodes)

    def _joined(self, sides: Sides, w: Tensor, c: Tensor) -> Tensor:
        """Logits (stack, nodes, nodes), with weights (stack, 1, hidden) and constants (stack,)."""
        left, right = sides
        c = c[:, None, None]
        if self.activation == "sine":
            half = torch.baddbmm(c, left.sin() * w, right.cos().mT)
            return torch.baddbmm(half, left.cos() * w, right.sin().mT)
        # w relu(u + v) = (w u + w v + w |u + v|) / 2, and sums of |u + v| are distances, which need
        # no room for all pairs: those of hidden units of positive weight less those of the others.
        sums = (left * w).sum(-1)[..., None] + (right * w).sum(-1)[..., None, :]
        up, down = w.clamp(min=0), (-w).clamp(min=0)
        far, near = (torch.cdist(left * part, -right * part, p=1.0) for part in (up, down))
        return 0.5 * (sums + far - near) + c

    def concatenated(self, x: Tensor, network: int) -> Tensor:
        """The same logits (n, nodes, nodes) of one network, computed on all pairs $[x_i, x_j]$."""
        nodes = x.shape[1]
        left = x[:, :, None].expand(-1, -1, nodes, -1)
        right = x[:, None].expand(-1, nodes, -1, -1)
        first = torch.cat([self.U[network], self.V[network]])
        hidden = torch.cat([left, right], dim=-1) @ first + self.b[network]
        hidden = hidden.relu() if self.activation == "relu" else hidden.sin()
        return hidden @ self.w[network] + self.c[network]
