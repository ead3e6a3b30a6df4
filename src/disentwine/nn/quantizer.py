"""Vector quantization with one codebook or several, each over a slice of the channels."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

CodebookUpdate = Literal["gradient", "ema"]


class Quantized(NamedTuple):
    r"""Quantized sub-vectors and their losses.

    Arguments:
        vectors: (n, codebooks, positions, d) the nearest codes, with straight-through gradients.
        indices: (n, codebooks, positions) the index of each sub-vector's code.
        codebook: (n,) codebook loss $\|\mathrm{sg}[z] - e\|^2$; 0 with `ema` updates.
        commitment: (n,) commitment loss $\|z - \mathrm{sg}[e]\|^2$.
        perplexity: () see `perplexity`.
    """

    vectors: Tensor
    indices: Tensor
    codebook: Tensor
    commitment: Tensor
    perplexity: Tensor


class Quantizer(nn.Module):
    r"""Product quantization: each sub-vector becomes the nearest code of its own codebook,
    $\arg\min_k \|z - e_k\|^2$.

    Codes are trained by the gradient of $\|\mathrm{sg}[z] - e\|^2$, or are exponential moving averages of
    the vectors assigned to them (`ema`). Dead codes are reset to vectors of the batch. All codes are dead
    initially, so the first batch initialises the codebooks.

    Reference: Neural Discrete Representation Learning, A. van den Oord, O. Vinyals and
    K. Kavukcuoglu, 2017, eq. 1 to 3 and appendix A.1.

    Arguments:
        num_codebooks: sub-vector i of a vector is its slice `[i * d : (i + 1) * d]`.
        codebook_size: codes in each codebook.
        code_dim: d, the dimension of a code.
        update: of the codes, by "gradient" or "ema".
        decay: of the moving averages.
        dead: a code is dead below this share of its usage under uniform choice.

    >>> quantizer = Quantizer(num_codebooks=2, codebook_size=8, code_dim=3)
    >>> quantizer(torch.randn(5, 2, 16, 3)).indices.shape
    torch.Size([5, 2, 16])
    """

    usage: Tensor
    average: Tensor

    def __init__(
        self,
        *,
        num_codebooks: int,
        codebook_size: int,
        code_dim: int,
        update: CodebookUpdate = "gradient",
        decay: float = 0.97,
        dead: float = 0.05,
    ) -> None:
        super().__init__()
        self.codebook_size, self.update = codebook_size, update
        self.decay, self.dead = decay, dead
        initial = torch.randn(num_codebooks, codebook_size, code_dim)
        if update == "gradient":
            self.table = nn.Parameter(initial)
        else:
            self.register_buffer("table", initial)
            self.register_buffer("average", torch.zeros_like(initial))
        self.register_buffer("usage", torch.zeros(num_codebooks, codebook_size))
        self.seen: tuple[Tensor, Tensor] | None = None

    def nearest(self, z: Tensor) -> Tensor:
        """The index of the nearest code for sub-vectors (n, codebooks, positions, d)."""
        # The squared length of z is the same for all codes.
        products = torch.einsum("ncpd,ckd->ncpk", z, self.table)
        return (products - 0.5 * self.table.square().sum(-1)[:, None]).argmax(-1)

    def look_up(self, indices: Tensor) -> Tensor:
        """The codes (n, codebooks, positions, d) of indices (n, codebooks, positions)."""
        books = torch.arange(len(self.table), device=indices.device)[:, None]
        return self.table[books, indices]

    def one_hot(self, z: Tensor, indices: Tensor) -> Tensor:
        r"""One-hot codes (n, codebooks, positions, codes) of `indices`, with the gradient of the
        soft assignment $\propto \exp(-\|z - e_k\|^2 / 2 \tau)$; $\tau$ is the mean squared distance
        to the chosen codes."""
        distances = (z[..., None, :] - self.table[:, None].detach()).square().sum(-1)
        nearest = distances.detach().gather(-1, indices[..., None])
        soft = (-0.5 * distances / nearest.mean().clamp(min=1e-12)).softmax(-1)
        hard = nn.functional.one_hot(indices, self.codebook_size).to(z.dtype)
        return hard + soft - soft.detach()

    def forward(self, z: Tensor) -> Quantized:
        indices = self.nearest(z.detach())
        chosen = self.look_up(indices)
        commitment = (z - chosen.detach()).square().sum((1, 2, 3))
        by_gradient = self.update == "gradient"
        codebook = (z.detach() - chosen).square().sum((1, 2, 3))
        if self.training and torch.is_grad_enabled():
            self.seen = z.detach(), indices
        return Quantized(
            z + (chosen - z).detach(),
            indices,
            codebook if by_gradient else torch.zeros_like(codebook),
            commitment,
            perplexity(indices, self.codebook_size).to(z.dtype),
        )

    @torch.no_grad()
    def after_update(self) -> None:
        """Update the moving averages and reset dead codes, once for each training batch."""
        if self.seen is None:
            return
        z, indices = self.seen
        self.seen = None
        vectors = z.transpose(0, 1).flatten(1, 2)  # (codebooks, n * positions, d)
        chosen = indices.transpose(0, 1).flatten(1)
        ones = torch.ones_like(chosen, dtype=self.usage.dtype)
        counts = torch.zeros_like(self.usage).scatter_add_(1, chosen, ones)
        self.usage.lerp_(counts, 1 - self.decay)
        if self.update == "ema":
            sums = torch.zeros_like(self.average).scatter_add_(
                1, chosen[..., None].expand_as(vectors), vectors.to(self.average)
            )
            self.average.lerp_(sums, 1 - self.decay)
            used = self.usage > 0
            means = self.average / self.usage.where(used, torch.ones_like(self.usage))[..., None]
            self.table.copy_(means.where(used[..., None], self.table))
        distances = (z - self.look_up(indices)).square().sum(-1).transpose(0, 1).flatten(1)
        self._reset_dead_codes(vectors, distances, in_batch=counts > 0)

    def _reset_dead_codes(self, vectors: Tensor, distances: Tensor, *, in_batch: Tensor) -> None:
        """Reset dead codes to vectors sampled in proportion to their squared distance from their codes, as
        in k-means++. Uniform samples would mostly be vectors of the background."""
        uniform_usage = vectors.shape[1] / self.codebook_size
        dead = (self.usage < self.dead * uniform_usage) & ~in_batch
        if not dead.any():
            return
        rows = torch.multinomial(distances + 1e-12, self.codebook_size, replacement=True)
        fresh = vectors.gather(1, rows[..., None].expand(-1, -1, vectors.shape[2]))
        self.table.copy_(torch.where(dead[..., None], fresh.to(self.table), self.table))
        # Otherwise a reset code would be dead again before it is used.
        self.usage.masked_fill_(dead, uniform_usage)
        if self.update == "ema":
            reset = self.table * uniform_usage
            self.average.copy_(torch.where(dead[..., None], reset, self.average))


def perplexity(indices: Tensor, codebook_size: int) -> Tensor:
    r"""Perplexity $\exp H$ of the code frequencies, the mean over codebooks.

    Arguments:
        indices: (n, codebooks, positions).
        codebook_size: codes in each codebook.

    >>> perplexity(torch.arange(8).view(2, 1, 4), codebook_size=8).round()
    tensor(8.)
    """
    chosen = indices.transpose(0, 1).flatten(1)
    counts = torch.zeros(len(chosen), codebook_size, device=indices.device)
    counts.scatter_add_(1, chosen, torch.ones_like(chosen, dtype=counts.dtype))
    share = counts / chosen.shape[1]
    entropy: Tensor = torch.special.entr(share).sum(1)
    return entropy.exp().mean()
