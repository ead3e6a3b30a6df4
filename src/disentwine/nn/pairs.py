"""Networks of pairs of nodes, one for each action, without ever making the pairs."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

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
