"""What discriminators and those they judge minimise, as functions of logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

SLOPE_EVERY = 8
"""Steps between two penalties of the slope, one of which costs more than all the rest of a step."""


def discriminator_loss(true: Tensor, false: Tensor) -> Tensor:
    r"""$-\tfrac12 [\log D(x) + \log(1 - D(\tilde x))]$ with D = sigmoid(logit), the cross-entropy of telling
    samples of p from those of q; its optimum is the logit $\log p(x) - \log q(x)$.

    Reference: Generative Adversarial Networks, I. Goodfellow et al., 2014, eq. 1.

    Arguments:
        true: (n,) logits of samples of p.
        false: (n,) logits of samples of q.

    Returns:
        (n,) nats; log 2 where nothing is told apart.

    >>> discriminator_loss(torch.zeros(2), torch.zeros(2))
    tensor([0.6931, 0.6931])
    """
    return 0.5 * (F.softplus(-true) + F.softplus(false))


def generator_loss(false: Tensor) -> Tensor:
    r"""$-\log D(\tilde x)$, whose slope does not vanish where the discriminator is sure.

    Reference: Generative Adversarial Networks, I. Goodfellow et al., 2014, section 3.

    Arguments:
        false: (n,) logits of what is to pass for true.

    >>> generator_loss(torch.tensor([0.0, -3.0]))
    tensor([0.6931, 3.0486])
    """
    return F.softplus(-false)


def slope_penalty(judge: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    r"""$R_1 = \tfrac12 \|\nabla_x D(x)\|^2$ at true samples, which makes the game come to rest.

    Reference: Which Training Methods for GANs do actually Converge?, L. Mescheder, A. Geiger and
    S. Nowozin, 2018, eq. 9.

    Arguments:
        judge: logits (n,) of samples, each of its own sample alone.
        x: (n, ...) true samples.

    Returns:
        (n,).

    >>> slope_penalty(lambda x: 3 * x[:, 0], torch.zeros(2, 5))
    tensor([4.5000, 4.5000])
    """
    # Validation runs without gradients, but this one is part of the value.
    learning = torch.is_grad_enabled()
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(judge(x).sum(), x, create_graph=learning)
    return 0.5 * slope.square().flatten(1).sum(1)


def lazy_slope_penalty(judge: Callable[[Tensor], Tensor], x: Tensor, *, step: int) -> Tensor:
    r"""$k R_1$ in every k-th step and 0 in the others: as much on average, at a fraction of the cost.

    Where nothing is learnt it is $R_1$ itself, so that validation does not depend on the step.

    Reference: Analyzing and Improving the Image Quality of StyleGAN, T. Karras et al., 2020, section 3.1.

    Arguments:
        judge, x: as for `slope_penalty`.
        step: of the training.

    Returns:
        (n,).

    >>> [lazy_slope_penalty(lambda x: x[:, 0], torch.zeros(1, 5), step=i).item() for i in (0, 1)]
    [4.0, 0.0]
    """
    if not torch.is_grad_enabled():
        return slope_penalty(judge, x)
    return SLOPE_EVERY * slope_penalty(judge, x) if step % SLOPE_EVERY == 0 else x.new_zeros(len(x))


def permute_dimensions(z: Tensor) -> Tensor:
    r"""Shuffle each dimension over the batch by itself: a sample of $\prod_j q(z_j)$ from samples of q(z).

    Reference: Disentangling by Factorising, H. Kim and A. Mnih, 2018, algorithm 1.

    Arguments:
        z: (n, d).

    >>> torch.equal(permute_dimensions(torch.eye(5)).sum(0), torch.ones(5))
    True
    """
    return z.gather(0, torch.rand_like(z).argsort(0))
