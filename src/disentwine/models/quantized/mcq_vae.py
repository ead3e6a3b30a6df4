"""VQ-VAE and MCQ-VAE: images as grids of words from one codebook, or from several."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from disentwine.core.model import Batch, ForData, Losses, Model
from disentwine.core.types import Count, NonNegative
from disentwine.nn.distributions import (
    Likelihood,
    log_noise_scale,
    mean_pixels,
    pixel_log_likelihood,
)
from disentwine.nn.encoders import ImageShape, Reduction, grid_decoder, grid_encoder, grid_of
from disentwine.nn.images import accepts_images, as_latents
from disentwine.nn.quantizer import CodebookTraining, Quantized, Quantizer


class MCQVAE(Model):
    r"""A VQ-VAE whose latent vectors are divided over several codebooks (section 3.3): minimise
    $-\log p(x|z_q) + \|\mathrm{sg}[z_e] - e\|^2 + \beta \|z_e - \mathrm{sg}[e]\|^2$.

    A code is the index that each sub-vector became, codebook by codebook and row by row; the loss
    also shows the codebooks' perplexity.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, section 3.3; Neural Discrete Representation Learning, A. van den
    Oord, O. Vinyals and K. Kavukcuoglu, 2017, eq. 3.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        codebooks: how many.
        codes: in each.
        dimensions: of each code.
        reduction: pixels of an image's side for one position of the grid: 4, 8 or 16.
        width: channels of the convolutions.
        beta: weight of the commitment.
        codebook_training: by "gradient", or "ema" for an average of the vectors that chose a code.
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> model = MCQVAE(image_shape=(32, 32, 3), codebooks=2)
    >>> model.represent(torch.rand(5, 3, 32, 32)).shape  # 4 x 4 positions
    torch.Size([5, 32])
    """

    not_in_weights = ("beta",)

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        codebooks: Count = 2,
        codes: Count = 64,
        dimensions: Count = 16,
        reduction: Reduction = 8,
        width: Count = 48,
        beta: NonNegative = 1.0,
        codebook_training: CodebookTraining = "gradient",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.codebooks, self.codes, self.dimensions = codebooks, codes, dimensions
        self.reduction, self.width = reduction, width
        self.beta = beta
        self.codebook_training = codebook_training
        self.likelihood = likelihood
        self.grid = grid_of(image_shape, reduction)
        channels = codebooks * dimensions
        self.encoder = grid_encoder(image_shape, channels, reduction=reduction, width=width)
        self.decoder = grid_decoder(channels, image_shape, reduction=reduction, width=width)
        self.quantizer = Quantizer(
            codebooks=codebooks, codes=codes, dimensions=dimensions, training=codebook_training
        )
        self.log_scale = log_noise_scale(likelihood)

    for_data = ForData(__init__)

    @property
    def nodes(self) -> int:
        """Numbers in a code: codebooks times positions."""
        rows, columns = self.grid
        return self.codebooks * rows * columns

    def vectors(self, x: Tensor) -> Tensor:
        """The sub-vectors (n, codebooks, positions, d) of images before they are quantized."""
        features: Tensor = self.encoder(x)
        return features.view(len(x), self.codebooks, self.dimensions, -1).transpose(2, 3)

    def paint(self, vectors: Tensor) -> Tensor:
        """What the decoder makes of sub-vectors: logits, or means, of pixels."""
        grid = vectors.transpose(2, 3).reshape(len(vectors), -1, *self.grid)
        output: Tensor = self.decoder(grid)
        return output

    def mean_image(self, vectors: Tensor) -> Tensor:
        """The pixels that sub-vectors stand for."""
        return mean_pixels(self.paint(vectors), self.log_scale)

    def loss(self, batch: Batch) -> Losses:
        """Reconstruction in nats, squared distances of the codebooks, and their perplexity."""
        return self.losses(batch.x, self.quantizer(self.vectors(batch.x)))

    def losses(self, x: Tensor, q: Quantized) -> Losses:
        """What `loss` says of images x that became q."""
        fit = pixel_log_likelihood(x, self.paint(q.vectors), self.log_scale)
        terms = {"reconstruction": -fit, "commitment": q.commitment, "perplexity": q.perplexity}
        weights = {"commitment": self.beta, "perplexity": 0.0}
        if self.codebook_training == "gradient":
            terms["codebook"] = q.codebook
        return Losses(terms, weights)

    def after_update(self) -> None:
        """Let the codebooks follow the batch that was just learnt from."""
        self.quantizer.after_update()

    @torch.no_grad()
    def indices(self, x: Tensor) -> Tensor:
        """Which code each sub-vector of images becomes, (n, nodes)."""
        return self.quantizer.nearest(self.vectors(x)).flatten(1)

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """Which code each sub-vector of images becomes, (n, nodes), as numbers."""
        return self.indices(x).to(x.dtype)

    @torch.no_grad()
    def decode(self, codes: Any) -> Tensor:
        """The mean image of codes (n, nodes), an array or a tensor; numbers between codes become the
        nearest."""
        rows = as_latents(codes, width=self.nodes, like=next(self.parameters()), what="codes")
        indices = rows.round().long().clamp(0, self.codes - 1)
        indices = indices.view(len(rows), self.codebooks, -1)
        return self.mean_image(self.quantizer.look_up(indices))

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image decoded from its codes, in the form it was given."""
        return self.decode(self.indices(x).to(x.dtype))


class VQVAE(MCQVAE):
    r"""$-\log p(x|z_q) + \|\mathrm{sg}[z_e] - e\|^2 + \beta \|z_e - \mathrm{sg}[e]\|^2$ (eq. 3), with
    $z_q$ the code nearest to the encoder's vector at each position.

    Reference: Neural Discrete Representation Learning, A. van den Oord, O. Vinyals and
    K. Kavukcuoglu, 2017.

    Arguments:
        image_shape, codes, dimensions, reduction, width, beta, codebook_training, likelihood: as
            for `MCQVAE`.

    >>> VQVAE(image_shape=(32, 32, 1)).represent(torch.rand(5, 1, 32, 32)).shape
    torch.Size([5, 16])
    """

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        codes: Count = 256,
        dimensions: Count = 32,
        reduction: Reduction = 8,
        width: Count = 48,
        beta: NonNegative = 1.0,
        codebook_training: CodebookTraining = "gradient",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape=image_shape,
            codebooks=1,
            codes=codes,
            dimensions=dimensions,
            reduction=reduction,
            width=width,
            beta=beta,
            codebook_training=codebook_training,
            likelihood=likelihood,
        )

    for_data = ForData(__init__)  # type: ignore[assignment]  # other options than MCQVAE's
