"""Losses of a transition between codes and of the graph it follows.

Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron, M. Witbrock
and G. Dobbie, 2023, section 3.5.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def negative_log_likelihood(log_p: Tensor, codes: Tensor) -> Tensor:
    r"""$-\sum_i \log p(L_i)$ of all nodes together (eq. 6, 7, 9, 10), in nats.

    Arguments:
        log_p: (..., nodes, codes) log-probabilities.
        codes: (..., nodes) what the nodes became, or one-hot (..., nodes, codes), through which
            gradients flow; axes of size 1 are repeated.

    >>> negative_log_likelihood(torch.tensor([[[0.25, 0.75]]]).log(), torch.tensor([[1]])).exp()
    tensor([1.3333])
    """
    if codes.is_floating_point():
        return -(log_p * codes).sum((-2, -1))
    index = codes.expand(log_p.shape[:-1])[..., None]
    return -log_p.gather(-1, index)[..., 0].sum(-1)


def from_identity(edges: Tensor) -> Tensor:
    r"""$\|M - I\|^2$ (eq. 8) of graphs (n, nodes, nodes), or its mean given the mean of M.

    >>> from_identity(torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]))
    tensor([1.])
    """
    diagonal = edges.diagonal(dim1=-2, dim2=-1)
    return edge_count(edges) + (1 - 2 * diagonal).sum(-1)


def edge_count(edges: Tensor) -> Tensor:
    r"""$\|M\|^2$ (eq. 14), the number of edges of graphs (n, nodes, nodes), or its mean given the mean
    of M: an edge is there or not, so that it is its own square.

    >>> edge_count(torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]))
    tensor([2.])
    """
    return edges.sum((-2, -1))


def edge_divergence(probabilities: Tensor) -> Tensor:
    r"""$D_{KL}(q(M) \,\|\, p(M))$ (eq. 11 to 13): Bernoulli edges from those of a fair coin, which is what
    a uniform law of their probability comes to.

    >>> edge_divergence(torch.tensor([[[0.5, 1.0]]]))  # log 2
    tensor([0.6931])
    """
    # At 0 and at 1 the slope of the entropy is infinite, and nothing is learnt from it times 0.
    least = torch.finfo(probabilities.dtype).eps
    p = probabilities.clamp(least, 1 - least)
    entropy: Tensor = torch.special.entr(p) + torch.special.entr(1 - p)
    return (math.log(2) - entropy).sum((-2, -1))


def lonely_nodes(alone: Tensor) -> Tensor:
    r"""$\sum_i \|\prod_j (1 - \sigma(\alpha_{ij}))\|^2$ (eq. 15).

    Arguments:
        alone: (n, nodes) probability that a node depends on nothing.
    """
    return alone.square().sum(-1)


def unlabelled(fit: Tensor) -> tuple[Tensor, Tensor]:
    r"""What takes the place of $L_y$ and $L_a$ where nobody says which action it was:
    $-\log \frac{1}{|A|} \sum_a p(L_y | L_x, a)$, (n,), and, so that all actions are used,
    $D_{KL}(\bar q(a) \,\|\, \mathrm{uniform})$ of how often each is retrieved in the batch, () nats.

    Arguments:
        fit: (n, actions) log-likelihood of y after each action.

    >>> likelihood, balance = unlabelled(torch.tensor([[0.0, -99.0], [-99.0, 0.0]]))
    >>> likelihood.exp(), balance
    (tensor([2., 2.]), tensor(0.))
    """
    actions = fit.shape[1]
    q = fit.softmax(1).mean(0)
    entropy: Tensor = torch.special.entr(q).sum()
    return math.log(actions) - fit.logsumexp(1), (math.log(actions) - entropy).clamp(min=0)
