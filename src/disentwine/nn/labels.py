"""Networks that see labels: embeddings, a label buffer, encoders of images and labels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from disentwine.nn.distributions import DiagonalGaussian
from disentwine.nn.encoders import ENCODERS, ImageShape, Network, perceptron


class ConceptEmbedding(nn.Module):
    r"""$g_i(u_i)$: d numbers from the value of each concept, by a network of one hidden layer each.

    Arguments:
        concepts: k.
        dimensions: d, numbers a concept.
        hidden: units of each network.

    >>> ConceptEmbedding(2, dimensions=3)(torch.zeros(5, 2)).shape
    torch.Size([5, 2, 3])
    """

    def __init__(self, concepts: int, *, dimensions: int, hidden: int = 32) -> None:
        super().__init__()
        # Standardised values spread over such kinks, and codes are about as large as they are.
        self.slopes = nn.Parameter(torch.randn(concepts, hidden))
        self.offsets = nn.Parameter(4 * torch.rand(concepts, hidden) - 2)
        self.weights = nn.Parameter(torch.randn(concepts, hidden, dimensions) * (2 / hidden) ** 0.5)
        self.biases = nn.Parameter(torch.zeros(concepts, dimensions))

    def forward(self, u: Tensor) -> Tensor:
        """(n, k, d) of values (n, k)."""
        bent = torch.relu(u[..., None] * self.slopes + self.offsets)
        return torch.einsum("nkh,khd->nkd", bent, self.weights) + self.biases

    def code(self, i: int, value: Tensor) -> Tensor:
        """(n, d) of values (n,) of one concept."""
        bent = torch.relu(value[:, None] * self.slopes[i] + self.offsets[i])
        return bent @ self.weights[i] + self.biases[i]


ROWS = 1000


class LabelBuffer(nn.Module):
    """The labels of some training images, which new images are drawn from; saved with the weights.

    Until it is filled it holds standard normal numbers, as standardised labels roughly are.

    Arguments:
        labels: k, columns of the table.

    >>> table = LabelBuffer(2)
    >>> table.fill(torch.tensor([[1.0, 2.0]]))
    >>> table.draw(3)
    tensor([[1., 2.],
            [1., 2.],
            [1., 2.]])
    """

    rows: Tensor

    def __init__(self, labels: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.register_buffer("rows", torch.randn(ROWS, labels, generator=generator))

    def fill(self, u: Tensor) -> None:
        """Keep labels (n, k): some of them where there are many, each several times where few."""
        order = torch.randperm(len(u), generator=torch.Generator().manual_seed(0))
        self.rows.copy_(u[order[torch.arange(ROWS) % len(u)]])

    def draw(self, n: int) -> Tensor:
        """(n, k) labels that belong together."""
        return self.rows[torch.randint(ROWS, (n,), device=self.rows.device)]


FEATURES = 128


class LabelledEncoder(nn.Module):
    r"""$q(z|x, u)$ from the features of an image and those of its labels that are given.

    Arguments:
        image_shape: (height, width, channels).
        labels: k, how many there are.
        latent: numbers in z.
        network: of the image's features.

    >>> encoder = LabelledEncoder((16, 16, 1), labels=2, latent=6, network="compact")
    >>> encoder(torch.zeros(5, 1, 16, 16)).mean.shape
    torch.Size([5, 6])
    """

    def __init__(
        self, image_shape: ImageShape, *, labels: int, latent: int, network: Network
    ) -> None:
        super().__init__()
        self.labels = labels
        self.features = nn.Sequential(ENCODERS[network](image_shape, FEATURES), nn.ReLU())
        self.head = nn.Linear(FEATURES + 2 * labels, 2 * latent)

    def forward(
        self, x: Tensor, u: Tensor | None = None, given: Tensor | None = None
    ) -> DiagonalGaussian:
        """Labels that are not given are not looked at.

        Arguments:
            x: images.
            u: (n, k) standardised labels.
            given: (n, k) 1 where a label is given, 0 elsewhere.
        """
        blank = x.new_zeros(len(x), self.labels)
        u, given = (blank, blank) if u is None or given is None else (u * given, given)
        return DiagonalGaussian.from_features(
            self.head(torch.cat([self.features(x), u, given], dim=1))
        )


def hide_rows(known: Tensor, share: float) -> Tensor:
    """The same (n, k) with a share of its rows, on average, set to 0: labels an encoder is not shown.

    >>> hide_rows(torch.ones(3, 2), 1.0).any()
    tensor(False)
    """
    return known * (torch.rand(len(known), 1, device=known.device) >= share)


class Reading(NamedTuple):
    """What was found in images.

    Arguments:
        code: (n, latent) what the labels do not say.
        u: (n, k) labels: the given ones, and where none is given what was read.
        read: (n, k) what was read.
    """

    code: Tensor
    u: Tensor
    read: Tensor


class LabelPredictingEncoder(nn.Module):
    r"""$f(x, u)$, with labels that are read from the image where they are not given.

    Arguments:
        image_shape: (height, width, channels).
        labels: k, how many there are.
        latent: numbers in a code.
        network: of the image's features.

    >>> encoder = LabelPredictingEncoder((16, 16, 1), labels=2, latent=6, network="compact")
    >>> encoder(torch.zeros(5, 1, 16, 16)).code.shape
    torch.Size([5, 6])
    """

    def __init__(
        self, image_shape: ImageShape, *, labels: int, latent: int, network: Network
    ) -> None:
        super().__init__()
        self.features = nn.Sequential(ENCODERS[network](image_shape, FEATURES), nn.ReLU())
        self.labels = nn.Linear(FEATURES, labels)
        self.code = perceptron([FEATURES + labels, FEATURES, latent])

    def forward(self, x: Tensor, u: Tensor | None = None, given: Tensor | None = None) -> Reading:
        """Labels that are not given are not looked at.

        Arguments:
            x: images.
            u: (n, k) standardised labels.
            given: (n, k) 1 where a label is given, 0 elsewhere.
        """
        features = self.features(x)
        read = self.labels(features)
        u = read if u is None or given is None else torch.where(given > 0, u, read)
        return Reading(self.code(torch.cat([features, u], dim=1)), u, read)
