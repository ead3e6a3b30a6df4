"""GAN losses, R1 gradient penalty, and permutation of latent dimensions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

PENALTY_INTERVAL = 8
"""Steps between gradient penalties, as one costs more than the rest of a step."""


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    r"""Cross-entropy of a discriminator, $-\tfrac12 [\log D(x) + \log(1 - D(\tilde x))]$ with
    D = sigmoid(logit). The optimal logit is the log density ratio $\log p(x) - \log q(x)$.

    Reference: Generative Adversarial Networks, I. Goodfellow et al., 2014, eq. 1.

    Arguments:
        real: (n,) logits of samples of p.
        fake: (n,) logits of samples of q.

    Returns:
        (n,) nats; log 2 at chance level.

    >>> discriminator_loss(torch.zeros(2), torch.zeros(2))
    tensor([0.6931, 0.6931])
    """
    return 0.5 * (F.softplus(-real) + F.softplus(fake))


def generator_loss(fake: Tensor) -> Tensor:
    r"""Non-saturating loss of a generator, $-\log D(\tilde x)$.

    Reference: Generative Adversarial Networks, I. Goodfellow et al., 2014, section 3.

    Arguments:
        fake: (n,) logits of generated samples.

    >>> generator_loss(torch.tensor([0.0, -3.0]))
    tensor([0.6931, 3.0486])
    """
    return F.softplus(-fake)


def gradient_penalty(discriminator: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    r"""R1 gradient penalty at real samples, $R_1 = \tfrac12 \|\nabla_x D(x)\|^2$.

    Reference: Which Training Methods for GANs do actually Converge?, L. Mescheder, A. Geiger and
    S. Nowozin, 2018, eq. 9.

    Arguments:
        discriminator: maps samples to logits (n,); each logit depends on one sample.
        x: (n, ...) real samples.

    Returns:
        (n,).

    >>> gradient_penalty(lambda x: 3 * x[:, 0], torch.zeros(2, 5))
    tensor([4.5000, 4.5000])
    """
    # The penalty needs gradients in validation, too.
    training = torch.is_grad_enabled()
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(discriminator(x).sum(), x, create_graph=training)
    return 0.5 * gradient.square().flatten(1).sum(1)


def lazy_gradient_penalty(
    discriminator: Callable[[Tensor], Tensor], x: Tensor, *, step: int
) -> Tensor:
    r"""Lazy R1 regularization: $k R_1$ in every k-th step and 0 in the others.

    Its mean over steps is that of $R_1$, at a fraction of the cost. If gradients are disabled, the result
    is $R_1$ itself, so that validation does not depend on the step.

    Reference: Analyzing and Improving the Image Quality of StyleGAN, T. Karras et al., 2020, section 3.1.

    Arguments:
        discriminator, x: as for `gradient_penalty`.
        step: training step.

    Returns:
        (n,).

    >>> [lazy_gradient_penalty(lambda x: x[:, 0], torch.zeros(1, 5), step=i).item() for i in (0, 1)]
    [4.0, 0.0]
    """
    if not torch.is_grad_enabled():
        return gradient_penalty(discriminator, x)
    if step % PENALTY_INTERVAL:
        return x.new_zeros(len(x))
    return PENALTY_INTERVAL * gradient_penalty(discriminator, x)


def permute_dimensions(z: Tensor) -> Tensor:
    r"""Permute each dimension over the batch: samples of $\prod_j q(z_j)$ from samples of q(z).

    Reference: Disentangling by Factorising, H. Kim and A. Mnih, 2018, algorithm 1.

    Arguments:
        z: (n, d).

    >>> torch.equal(permute_dimensions(torch.eye(5)).sum(0), torch.ones(5))
    True
    """
    return z.gather(0, torch.rand_like(z).argsort(0))
