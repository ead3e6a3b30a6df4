"""Acyclicity of a weighted adjacency matrix."""

from __future__ import annotations

import torch
from torch import Tensor


def acyclicity(A: Tensor, *, c: float = 1.0) -> Tensor:
    r"""$H(A) = \mathrm{tr}((I + \tfrac{c}{m} A \circ A)^m) - m$, zero if and only if A is acyclic.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, eq. 13 (its exponent n is the number m of concepts); DAG-GNN: DAG Structure
    Learning with Graph Neural Networks, Y. Yu et al., 2019, theorem 1.

    Arguments:
        A: (m, m) edge weights, from row to column.
        c: positive; larger values weigh long cycles more.

    >>> acyclicity(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
    tensor(0.)
    >>> acyclicity(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))  # (1 + 1/2)^2 + (1 - 1/2)^2 - 2
    tensor(0.5000)
    """
    m = len(A)
    one_step = torch.eye(m, dtype=A.dtype, device=A.device) + (c / m) * A.square()
    closed_walks: Tensor = torch.linalg.matrix_power(one_step, m).trace()
    return closed_walks - m
