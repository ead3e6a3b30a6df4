"""What models with a linear causal layer share: its matrix as a graph, and what holds it to be one."""

from __future__ import annotations

from torch import Tensor

from disentwine.causal.graph import Graph
from disentwine.models.causal import CausalModel, Latents
from disentwine.nn.scm import LinearSCM, MaskLayer
from disentwine.objectives.acyclicity import acyclicity


class LinearCausalModel(CausalModel[Latents]):
    r"""Concepts of d numbers each, $z = A^T z + \epsilon$, of which a mask layer makes effects.

    A subclass builds both layers.

    Attributes:
        dimensions: d.
        scm: the causal layer, with A.
    """

    dimensions: int
    scm: LinearSCM

    @property
    def graph(self) -> Graph:
        """What causes what, with A as it is now for weights."""
        weights = self.scm.A.detach().double().cpu().numpy()
        return Graph(self.concept_names, weights, self.start.confidence)

    def watched(self) -> dict[str, float]:
        """A as it is now, edge by edge."""
        return self.scm.named_weights(self.concept_names)

    def by_concept(self, flat: Tensor) -> Tensor:
        """(n, k d) to (n, k, d)."""
        return flat.view(len(flat), -1, self.dimensions)

    def graph_terms(
        self, z: Tensor, u: Tensor, known: Tensor, *, mask: MaskLayer
    ) -> dict[str, Tensor]:
        r"""$H(A)$, $l_u = \|u - A^T u\|^2$ and $l_m = \sum_i \|z_i - g_i(A_i \circ z)\|^2$.

        Concepts without causes have nothing to be explained by and are left out, and so are labels of which
        a cause's is missing. Labels are
        standardised here, so that no function need bring $A^T u$ into their range.

        References: CausalVAE, M. Yang et al., 2021, eqs 11 to 13; Causal Representation Learning via WAE,
        Y. Noh, H. Lee and S. Jung, 2022, eqs 2 to 4.

        Arguments:
            z: (n, k, d).
            u: (n, k) standardised labels.
            known: (n, k) 1 where a label is known, 0 elsewhere.
            mask: its $g_i$.
        """
        A, caused = self.scm.A, self.scm.edges.any(dim=0)
        whole = known * ((1 - known) @ self.scm.edges.to(known) == 0)
        return {
            "acyclicity": acyclicity(A),
            "l_u": ((u - u @ A) * whole)[:, caused].square().sum(1),
            "l_m": (z - mask(z, A))[:, caused].square().sum((1, 2)),
        }
