"""Networks of pairs of nodes, one for each action, without ever making the pairs."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

Activation = Literal["relu", "sine"]


class Sides(NamedTuple):
    """First layer of some networks over all nodes, for either side of a pair, (n, s, nodes, hidden)."""

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
        if chosen is None:
            left = torch.einsum("nid,sdh->nsih", x, self.U)
            right = torch.einsum("njd,sdh->nsjh", x, self.V)
            b, w, c = self.b[None, :, None], self.w[None, :, None], self.c[None]
        else:
            left = torch.einsum("nid,nsdh->nsih", x, self.U[chosen])
            right = torch.einsum("njd,nsdh->nsjh", x, self.V[chosen])
            b, w, c = self.b[chosen][:, :, None], self.w[chosen][:, :, None], self.c[chosen]
        return self._joined(Sides(left + b, right), w) + c[..., None, None]

    def _joined(self, sides: Sides, w: Tensor) -> Tensor:
        left, right = sides
        if self.activation == "sine":
            first = torch.cat([left.sin() * w, left.cos() * w], dim=-1)
            second = torch.cat([right.cos(), right.sin()], dim=-1)
            return first @ second.transpose(-1, -2)
        # w relu(u + v) = (w u + w v + w |u + v|) / 2, and sums of |u + v| are distances, which need
        # no room for all pairs: those of hidden units of positive weight less those of the others.
        sums = (left * w).sum(-1)[..., None] + (right * w).sum(-1)[..., None, :]
        up, down = w.clamp(min=0), (-w).clamp(min=0)
        far, near = (torch.cdist(left * part, -right * part, p=1.0) for part in (up, down))
        return 0.5 * (sums + far - near)

    def concatenated(self, x: Tensor, network: int) -> Tensor:
        """The same logits (n, nodes, nodes) of one network, computed on all pairs $[x_i, x_j]$."""
        nodes = x.shape[1]
        left = x[:, :, None].expand(-1, -1, nodes, -1)
        right = x[:, None].expand(-1, nodes, -1, -1)
        first = torch.cat([self.U[network], self.V[network]])
        hidden = torch.cat([left, right], dim=-1) @ first + self.b[network]
        hidden = hidden.relu() if self.activation == "relu" else hidden.sin()
        return hidden @ self.w[network] + self.c[network]
