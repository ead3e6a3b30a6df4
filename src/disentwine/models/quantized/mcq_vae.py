"""VQ-VAE and MCQ-VAE: images as grids of codes of one or several codebooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from disentwine.core.model import Batch, ForData, Losses, Model
from disentwine.core.types import Count, NonNegative
from disentwine.nn.encoders import (
    Downsampling,
    ImageShape,
    Likelihood,
    grid_decoder,
    grid_encoder,
    grid_of,
    log_noise_scale,
    mean_pixels,
    pixel_log_likelihood,
)
from disentwine.nn.images import accepts_images, as_latents
from disentwine.nn.quantizer import CodebookUpdate, Quantized, Quantizer


@dataclass(frozen=True)
class QuantizerOptions:
    r"""Options of a vector-quantized autoencoder.

    Arguments:
        num_codebooks: number of codebooks, each for a slice of the latent vector.
        codebook_size: number of codes in each codebook.
        code_dim: dimension of a code.
        downsampling: pixels per grid position along each side: 4, 8 or 16.
        channels: width of the convolutions.
        commitment_weight: weight of the commitment loss, $\beta$ of the paper.
        codebook_update: "gradient", or "ema" for a moving average of the vectors assigned to a code.
        likelihood: of pixels, "bernoulli" or "gaussian".
    """

    num_codebooks: Count = 2
    codebook_size: Count = 64
    code_dim: Count = 16
    downsampling: Downsampling = 8
    channels: Count = 48
    commitment_weight: NonNegative = 1.0
    codebook_update: CodebookUpdate = "gradient"
    likelihood: Likelihood = "bernoulli"


class MCQVAE(Model):
    r"""Multi-codebook quantized VAE: a VQ-VAE that divides latent vectors over several codebooks
    (section 3.3). It minimises
    $-\log p(x|z_q) + \|\mathrm{sg}[z_e] - e\|^2 + \beta \|z_e - \mathrm{sg}[e]\|^2$.

    The representation is the index of each sub-vector's code, codebook by codebook and row by row.
    The perplexity of the codebooks is logged with the losses.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, section 3.3; Neural Discrete Representation Learning, A. van den
    Oord, O. Vinyals and K. Kavukcuoglu, 2017, eq. 3.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        num_codebooks, codebook_size, code_dim, downsampling, channels, commitment_weight,
            codebook_update, likelihood: see `QuantizerOptions`.

    >>> model = MCQVAE(image_shape=(32, 32, 3), num_codebooks=2)
    >>> model.represent(torch.rand(5, 3, 32, 32)).shape  # 4 x 4 positions
    torch.Size([5, 32])
    """

    not_in_weights = ("commitment_weight",)

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        num_codebooks: Count = 2,
        codebook_size: Count = 64,
        code_dim: Count = 16,
        downsampling: Downsampling = 8,
        channels: Count = 48,
        commitment_weight: NonNegative = 1.0,
        codebook_update: CodebookUpdate = "gradient",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.num_codebooks, self.codebook_size = num_codebooks, codebook_size
        self.code_dim, self.downsampling, self.channels = code_dim, downsampling, channels
        self.commitment_weight = commitment_weight
        self.codebook_update = codebook_update
        self.likelihood = likelihood
        self.grid = grid_of(image_shape, downsampling)
        latent_dim = num_codebooks * code_dim
        self.encoder = grid_encoder(
            image_shape, latent_dim, downsampling=downsampling, width=channels
        )
        self.decoder = grid_decoder(
            latent_dim, image_shape, downsampling=downsampling, width=channels
        )
        self.quantizer = Quantizer(
            num_codebooks=num_codebooks,
            codebook_size=codebook_size,
            code_dim=code_dim,
            update=codebook_update,
        )
        self.log_scale = log_noise_scale(likelihood)

    for_data = ForData(__init__)

    @property
    def nodes(self) -> int:
        """Number of codes per image: codebooks times positions."""
        rows, columns = self.grid
        return self.num_codebooks * rows * columns

    def vectors(self, x: Tensor) -> Tensor:
        """Encode images to sub-vectors (n, codebooks, positions, d), not yet quantized."""
        features: Tensor = self.encoder(x)
        return features.view(len(x), self.num_codebooks, self.code_dim, -1).transpose(2, 3)

    def pixel_logits(self, vectors: Tensor) -> Tensor:
        """Decode sub-vectors to logits, or means, of pixels."""
        grid = vectors.transpose(2, 3).reshape(len(vectors), -1, *self.grid)
        output: Tensor = self.decoder(grid)
        return output

    def mean_image(self, vectors: Tensor) -> Tensor:
        """Decode sub-vectors to mean images (n, channels, height, width)."""
        return mean_pixels(self.pixel_logits(vectors), self.log_scale)

    def loss(self, batch: Batch) -> Losses:
        """Reconstruction in nats, commitment and codebook losses, and the perplexity."""
        return self.losses(batch.x, self.quantizer(self.vectors(batch.x)))

    def losses(self, x: Tensor, q: Quantized) -> Losses:
        """The losses of images x with quantized vectors q."""
        log_likelihood = pixel_log_likelihood(x, self.pixel_logits(q.vectors), self.log_scale)
        terms = {
            "reconstruction": -log_likelihood,
            "commitment": q.commitment,
            "perplexity": q.perplexity,
        }
        weights = {"commitment": self.commitment_weight, "perplexity": 0.0}
        if self.codebook_update == "gradient":
            terms["codebook"] = q.codebook
        return Losses(terms, weights)

    def after_update(self) -> None:
        """Update moving averages and dead codes with the last training batch."""
        self.quantizer.after_update()

    @torch.no_grad()
    def indices(self, x: Tensor) -> Tensor:
        """The code indices (n, nodes) of images."""
        return self.quantizer.nearest(self.vectors(x)).flatten(1)

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """Code indices (n, nodes) of images, in the dtype of the images."""
        return self.indices(x).to(x.dtype)

    @torch.no_grad()
    def decode(self, codes: Any) -> Tensor:
        """Mean images decoded from code indices (n, nodes), an array or a tensor, which are rounded and
        clipped to valid indices."""
        rows = as_latents(codes, width=self.nodes, like=next(self.parameters()), what="codes")
        indices = rows.round().long().clamp(0, self.codebook_size - 1)
        indices = indices.view(len(rows), self.num_codebooks, -1)
        return self.mean_image(self.quantizer.look_up(indices))

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Reconstruction of each image, in the format of the input."""
        return self.decode(self.indices(x).to(x.dtype))


class VQVAE(MCQVAE):
    r"""Vector-quantized VAE: minimise
    $-\log p(x|z_q) + \|\mathrm{sg}[z_e] - e\|^2 + \beta \|z_e - \mathrm{sg}[e]\|^2$ (eq. 3), where
    $z_q$ is the code nearest to the encoder's vector at each position.

    Reference: Neural Discrete Representation Learning, A. van den Oord, O. Vinyals and
    K. Kavukcuoglu, 2017.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        codebook_size, code_dim, downsampling, channels, commitment_weight, codebook_update,
            likelihood: see `QuantizerOptions`.

    >>> VQVAE(image_shape=(32, 32, 1)).represent(torch.rand(5, 1, 32, 32)).shape
    torch.Size([5, 16])
    """

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        codebook_size: Count = 256,
        code_dim: Count = 32,
        downsampling: Downsampling = 8,
        channels: Count = 48,
        commitment_weight: NonNegative = 1.0,
        codebook_update: CodebookUpdate = "gradient",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape=image_shape,
            num_codebooks=1,
            codebook_size=codebook_size,
            code_dim=code_dim,
            downsampling=downsampling,
            channels=channels,
            commitment_weight=commitment_weight,
            codebook_update=codebook_update,
            likelihood=likelihood,
        )

    for_data = ForData(__init__)  # type: ignore[assignment]  # other options than MCQVAE's
