"""Structural causal models as layers: causes in, effects out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from disentwine.nn.encoders import perceptron


class LinearSCM(nn.Module):
    r"""$z = A^T z + \epsilon = (I - A^T)^{-1} \epsilon$ (eq. 1), for every dimension of a concept alike.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, eq. 1.

    Arguments:
        weights: (k, k) where A starts, $A_{ji}$ from cause j to effect i.
        edges: (k, k) True where A is learnt; elsewhere it stays 0. By default where it does not start
            at 0.
    """

    edges: Tensor
    weights: Tensor

    def __init__(self, weights: Tensor, edges: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("edges", weights != 0 if edges is None else edges)
        strengths = weights[self.edges]
        if len(strengths):
            self.weights = nn.Parameter(strengths)
        else:
            self.register_buffer("weights", strengths)

    @property
    def A(self) -> Tensor:  # noqa: N802 - the paper's symbol
        """(k, k) the adjacency matrix, zero where there is no edge."""
        empty = self.weights.new_zeros(self.edges.shape)
        return empty.masked_scatter(self.edges, self.weights)

    @property
    def C(self) -> Tensor:  # noqa: N802 - the paper's symbol
        r"""$C = (I - A^T)^{-1}$, (k, k)."""
        A = self.A
        identity = torch.eye(len(A), dtype=A.dtype, device=A.device)
        inverse: Tensor = torch.linalg.inv(identity - A.T)
        return inverse

    def named_weights(self, names: Sequence[str]) -> dict[str, float]:
        """Every entry of A that is learnt, for a model's `watched`.

        >>> LinearSCM(torch.tensor([[0.0, 0.5], [0.0, 0.0]])).named_weights(("light", "shadow"))
        {'A[light->shadow]': 0.5}
        """
        A = self.A.detach()
        return {f"A[{names[j]}->{names[i]}]": A[j, i].item() for j, i in self.edges.nonzero()}

    def forward(self, epsilon: Tensor) -> Tensor:
        """Endogenous z (n, k, d) of exogenous epsilon (n, k, d)."""
        z: Tensor = torch.einsum("ij,njd->nid", self.C, epsilon)
        return z


class MaskLayer(nn.Module):
    r"""$z_i = g_i(A_i \circ z; \eta_i) + \epsilon_i$ (eq. 2), with a small nonlinear network $g_i$ for each
    concept that has causes.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, eq. 2.

    Arguments:
        edges: (k, k) not 0 from each cause (row) to its effects.
        dimensions: d, numbers a concept.
        hidden: units of each network's hidden layers.

    >>> A = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    >>> MaskLayer(A, dimensions=3)(torch.zeros(5, 2, 3), A).shape
    torch.Size([5, 2, 3])
    """

    def __init__(self, edges: Tensor, *, dimensions: int, hidden: int = 32) -> None:
        super().__init__()
        sizes = [len(edges) * dimensions, hidden, hidden, dimensions]
        caused = [i for i in range(len(edges)) if edges[:, i].any()]
        self.g = nn.ModuleDict({str(i): perceptron(sizes) for i in caused})

    def forward(self, z: Tensor, A: Tensor) -> Tensor:
        r"""$g_i(A_i \circ z)$ of every concept, (n, k, d); 0 for one without causes."""
        return torch.stack([self.effect(i, z, A) for i in range(z.shape[1])], dim=1)

    def effect(self, i: int, z: Tensor, A: Tensor) -> Tensor:
        r"""$g_i(A_i \circ z)$, (n, d)."""
        if str(i) not in self.g:
            return torch.zeros_like(z[:, i])
        effect: Tensor = self.g[str(i)]((A[:, i, None] * z).flatten(1))
        return effect
