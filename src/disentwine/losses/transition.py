"""Losses of CT-VAE: transitions between codes, and their graphs.

Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron, M. Witbrock
and G. Dobbie, 2023, section 3.5.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def negative_log_likelihood(log_p: Tensor, codes: Tensor) -> Tensor:
    r"""Negative log-likelihood $-\sum_i \log p(L_i)$ summed over nodes (eq. 6, 7, 9, 10), in nats.

    Arguments:
        log_p: (..., nodes, codes) log-probabilities.
        codes: (..., nodes) observed codes, or one-hot codes (..., nodes, codes) with gradients; axes of
            size 1 are broadcast.

    >>> negative_log_likelihood(torch.tensor([[[0.25, 0.75]]]).log(), torch.tensor([[1]])).exp()
    tensor([1.3333])
    """
    if codes.is_floating_point():
        return -(log_p * codes).sum((-2, -1))
    index = codes.expand(log_p.shape[:-1])[..., None]
    return -log_p.gather(-1, index)[..., 0].sum(-1)


def distance_from_identity(edges: Tensor) -> Tensor:
    r"""Squared distance $\|M - I\|^2$ (eq. 8) of graphs (n, nodes, nodes), or its expectation given
    edge probabilities.

    >>> distance_from_identity(torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]))
    tensor([1.])
    """
    diagonal = edges.diagonal(dim1=-2, dim2=-1)
    return edge_count(edges) + (1 - 2 * diagonal).sum(-1)


def edge_count(edges: Tensor) -> Tensor:
    r"""Number of edges $\|M\|^2$ (eq. 14) of graphs (n, nodes, nodes), or its expectation given edge
    probabilities. Edges are 0 or 1, so each is its own square.

    >>> edge_count(torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]))
    tensor([2.])
    """
    return edges.sum((-2, -1))


def edge_divergence(probabilities: Tensor) -> Tensor:
    r"""KL divergence $D_{KL}(q(M) \,\|\, p(M))$ (eq. 11 to 13) of Bernoulli edges from Bernoulli(0.5),
    the marginal of a uniform prior on the edge probability.

    >>> edge_divergence(torch.tensor([[[0.5, 1.0]]]))  # log 2
    tensor([0.6931])
    """
    # The derivative of the entropy is infinite at 0 and 1, and its product with 0 is NaN.
    eps = torch.finfo(probabilities.dtype).eps
    p = probabilities.clamp(eps, 1 - eps)
    entropy: Tensor = torch.special.entr(p) + torch.special.entr(1 - p)
    return (math.log(2) - entropy).sum((-2, -1))


def orphan_penalty(no_parents: Tensor) -> Tensor:
    r"""Penalty on nodes without parents, $\sum_i \|\prod_j (1 - \sigma(\alpha_{ij}))\|^2$ (eq. 15).

    Arguments:
        no_parents: (n, nodes) probability that a node has no parents.
    """
    return no_parents.square().sum(-1)


def unlabelled_likelihood(fit: Tensor) -> tuple[Tensor, Tensor]:
    r"""Replacements of $L_y$ and $L_a$ for pairs without action labels: the mixture's negative
    log-likelihood $-\log \frac{1}{|A|} \sum_a p(L_y | L_x, a)$, (n,), and
    $D_{KL}(\bar q(a) \,\|\, \mathrm{uniform})$ of the batch's mean posterior of actions, () nats,
    which balances their use.

    Arguments:
        fit: (n, actions) log-likelihood of y after each action.

    >>> likelihood, balance = unlabelled_likelihood(torch.tensor([[0.0, -99.0], [-99.0, 0.0]]))
    >>> likelihood.exp(), balance
    (tensor([2., 2.]), tensor(0.))
    """
    actions = fit.shape[1]
    q = fit.softmax(1).mean(0)
    entropy: Tensor = torch.special.entr(q).sum()
    return math.log(actions) - fit.logsumexp(1), (math.log(actions) - entropy).clamp(min=0)
