"""Linear SCM and its acyclicity, mask layer, concept embeddings, encoders with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from disentwine.nn.encoders import ENCODERS, DiagonalGaussian, ImageShape, Network, perceptron


class LinearSCM(nn.Module):
    r"""Linear structural causal model $z = A^T z + \epsilon = (I - A^T)^{-1} \epsilon$ (eq. 1), the same
    for all d latents of a concept.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, eq. 1.

    Arguments:
        weights: (k, k) initial A, $A_{ji}$ from cause j to effect i.
        edges: (k, k) True where A is learnt; elsewhere A is 0. By default where `weights` is not 0.
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
        """(k, k) the adjacency matrix, 0 where there is no edge."""
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
        """The learnt entries of A by name, for `log_scalars` of a model.

        >>> LinearSCM(torch.tensor([[0.0, 0.5], [0.0, 0.0]])).named_weights(("light", "shadow"))
        {'A[light->shadow]': 0.5}
        """
        A = self.A.detach()
        return {f"A[{names[j]}->{names[i]}]": A[j, i].item() for j, i in self.edges.nonzero()}

    def forward(self, epsilon: Tensor) -> Tensor:
        """Endogenous z (n, k, d) from exogenous epsilon (n, k, d)."""
        z: Tensor = torch.einsum("ij,njd->nid", self.C, epsilon)
        return z


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


class MaskLayer(nn.Module):
    r"""Mask layer $z_i = g_i(A_i \circ z; \eta_i) + \epsilon_i$ (eq. 2), with a small nonlinear network
    $g_i$ for each concept with causes.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, eq. 2.

    Arguments:
        edges: (k, k) nonzero from each cause (row) to its effects (columns).
        dimensions: d, latents per concept.
        hidden: units of each hidden layer.

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
        r"""$g_i(A_i \circ z)$ of every concept, (n, k, d); 0 for root concepts."""
        return torch.stack([self.effect(i, z, A) for i in range(z.shape[1])], dim=1)

    def effect(self, i: int, z: Tensor, A: Tensor) -> Tensor:
        r"""$g_i(A_i \circ z)$, (n, d)."""
        if str(i) not in self.g:
            return torch.zeros_like(z[:, i])
        effect: Tensor = self.g[str(i)]((A[:, i, None] * z).flatten(1))
        return effect


class ConceptEmbedding(nn.Module):
    r"""Embedding $g_i(u_i)$ of the value of each concept in d dimensions, by an MLP with one hidden layer.

    Arguments:
        concepts: k, number of concepts.
        dimensions: d.
        hidden: units of the hidden layer of each concept.

    >>> ConceptEmbedding(2, dimensions=3)(torch.zeros(5, 2)).shape
    torch.Size([5, 2, 3])
    """

    def __init__(self, concepts: int, *, dimensions: int, hidden: int = 32) -> None:
        super().__init__()
        # The kinks cover the range of standardised values, and embeddings have about unit scale.
        self.slopes = nn.Parameter(torch.randn(concepts, hidden))
        self.offsets = nn.Parameter(4 * torch.rand(concepts, hidden) - 2)
        self.weights = nn.Parameter(torch.randn(concepts, hidden, dimensions) * (2 / hidden) ** 0.5)
        self.biases = nn.Parameter(torch.zeros(concepts, dimensions))

    def forward(self, u: Tensor) -> Tensor:
        """Embeddings (n, k, d) of values (n, k)."""
        activations = torch.relu(u[..., None] * self.slopes + self.offsets)
        return torch.einsum("nkh,khd->nkd", activations, self.weights) + self.biases

    def embed(self, i: int, value: Tensor) -> Tensor:
        """Embeddings (n, d) of values (n,) of concept i."""
        activations = torch.relu(value[:, None] * self.slopes[i] + self.offsets[i])
        return activations @ self.weights[i] + self.biases[i]


ROWS = 1000


class LabelBuffer(nn.Module):
    """Buffer of training labels to sample from, saved with the weights.

    It is initialised with samples of a standard normal distribution.

    Arguments:
        labels: k, number of labels.

    >>> buffer = LabelBuffer(2)
    >>> buffer.fill(torch.tensor([[1.0, 2.0]]))
    >>> buffer.sample(3)
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
        """Store `ROWS` labels: a random subset of (n, k), or repetitions if n is smaller."""
        order = torch.randperm(len(u), generator=torch.Generator().manual_seed(0))
        self.rows.copy_(u[order[torch.arange(ROWS) % len(u)]])

    def sample(self, n: int) -> Tensor:
        """Labels (n, k) of random training images."""
        return self.rows[torch.randint(ROWS, (n,), device=self.rows.device)]


FEATURES = 128


class LabelledEncoder(nn.Module):
    r"""Encoder $q(z|x, u)$ of an image and its given labels.

    Arguments:
        image_shape: (height, width, channels).
        labels: k, number of labels.
        latent: dimensions of z.
        network: the image encoder, "compact", "normed", "standard" or "mlp".

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
        """The posterior; without `u` or `given`, no labels are given.

        Arguments:
            x: images.
            u: (n, k) standardised labels.
            given: (n, k) 1 where a label is given, 0 where it is ignored.
        """
        zeros = x.new_zeros(len(x), self.labels)
        u, given = (zeros, zeros) if u is None or given is None else (u * given, given)
        return DiagonalGaussian.from_features(
            self.head(torch.cat([self.features(x), u, given], dim=1))
        )


def drop_labels(known: Tensor, share: float) -> Tensor:
    """Label dropout: the mask `known` (n, k) with a random share of its rows set to 0.

    >>> drop_labels(torch.ones(3, 2), 1.0).any()
    tensor(False)
    """
    return known * (torch.rand(len(known), 1, device=known.device) >= share)


class LabelPrediction(NamedTuple):
    """Exogenous latents and labels of images.

    Arguments:
        epsilon: (n, latent) exogenous latents.
        u: (n, k) the given labels, and predictions of the others.
        predicted: (n, k) predictions of all labels.
    """

    epsilon: Tensor
    u: Tensor
    predicted: Tensor


class LabelPredictingEncoder(nn.Module):
    r"""Encoder $f(x, u)$ of exogenous latents that also predicts the missing labels.

    Arguments:
        image_shape: (height, width, channels).
        labels: k, number of labels.
        latent: number of exogenous latents.
        network: the image encoder, "compact", "normed", "standard" or "mlp".

    >>> encoder = LabelPredictingEncoder((16, 16, 1), labels=2, latent=6, network="compact")
    >>> encoder(torch.zeros(5, 1, 16, 16)).epsilon.shape
    torch.Size([5, 6])
    """

    def __init__(
        self, image_shape: ImageShape, *, labels: int, latent: int, network: Network
    ) -> None:
        super().__init__()
        self.features = nn.Sequential(ENCODERS[network](image_shape, FEATURES), nn.ReLU())
        self.labels = nn.Linear(FEATURES, labels)
        self.code = perceptron([FEATURES + labels, FEATURES, latent])

    def forward(
        self, x: Tensor, u: Tensor | None = None, given: Tensor | None = None
    ) -> LabelPrediction:
        """The prediction; without `u` or `given`, no labels are given.

        Arguments:
            x: images.
            u: (n, k) standardised labels.
            given: (n, k) 1 where a label is given, 0 where it is predicted.
        """
        features = self.features(x)
        predicted = self.labels(features)
        u = predicted if u is None or given is None else torch.where(given > 0, u, predicted)
        return LabelPrediction(self.code(torch.cat([features, u], dim=1)), u, predicted)
