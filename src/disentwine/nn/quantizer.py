"""Vector quantization with one codebook or several, each over a slice of the channels."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

CodebookTraining = Literal["gradient", "ema"]


class Quantized(NamedTuple):
    """What a grid of vectors became.

    Arguments:
        vectors: (n, codebooks, positions, d) the chosen codes; gradients pass straight through.
        indices: (n, codebooks, positions) which code each sub-vector became.
        codebook: (n,) squared distance that moves codes towards vectors; 0 where averages do.
        commitment: (n,) squared distance that moves vectors towards codes.
        perplexity: () how many codes a codebook uses, as though equally often; the mean over them.
    """

    vectors: Tensor
    indices: Tensor
    codebook: Tensor
    commitment: Tensor
    perplexity: Tensor


class Quantizer(nn.Module):
    r"""Each sub-vector becomes the nearest code of its own codebook: $\arg\min_k \|z - e_k\|^2$.

    Codes learn from the gradient of $\|\mathrm{sg}[z] - e\|^2$, or follow an average of the vectors
    that chose them (`ema`). Codes that are hardly ever chosen are put where vectors are; as none was
    ever chosen at the start, this also places the codebooks on the first batch.

    Reference: Neural Discrete Representation Learning, A. van den Oord, O. Vinyals and
    K. Kavukcuoglu, 2017, eq. 1 to 3 and appendix A.1.

    Arguments:
        codebooks: how many; sub-vector i is the slice `[i * d : (i + 1) * d]` of a vector.
        codes: in each.
        dimensions: d, of a code.
        training: "gradient" or "ema".
        decay: of the averages.
        dead: a code is revived when chosen less often than this share of an equal part.

    >>> quantizer = Quantizer(codebooks=2, codes=8, dimensions=3)
    >>> quantizer(torch.randn(5, 2, 16, 3)).indices.shape
    torch.Size([5, 2, 16])
    """

    usage: Tensor
    average: Tensor

    def __init__(
        self,
        *,
        codebooks: int,
        codes: int,
        dimensions: int,
        training: CodebookTraining = "gradient",
        decay: float = 0.97,
        dead: float = 0.05,
    ) -> None:
        super().__init__()
        self.codes, self.codebook_training = codes, training
        self.decay, self.dead = decay, dead
        start = torch.randn(codebooks, codes, dimensions)
        if training == "gradient":
            self.table = nn.Parameter(start)
        else:
            self.register_buffer("table", start)
            self.register_buffer("average", torch.zeros_like(start))
        self.register_buffer("usage", torch.zeros(codebooks, codes))
        self.seen: tuple[Tensor, Tensor] | None = None

    def nearest(self, z: Tensor) -> Tensor:
        """The index of the nearest code for sub-vectors (n, codebooks, positions, d)."""
        # The squared length of z is the same for all codes.
        closeness = torch.einsum("ncpd,ckd->ncpk", z, self.table)
        return (closeness - 0.5 * self.table.square().sum(-1)[:, None]).argmax(-1)

    def look_up(self, indices: Tensor) -> Tensor:
        """The codes (n, codebooks, positions, d) of indices (n, codebooks, positions)."""
        books = torch.arange(len(self.table), device=indices.device)[:, None]
        return self.table[books, indices]

    def one_hot(self, z: Tensor, indices: Tensor) -> Tensor:
        r"""(n, codebooks, positions, codes) with 1 at `indices`, and the gradient of the chance
        $\propto \exp(-\|z - e_k\|^2 / 2 \tau)$ of choosing each code, $\tau$ being the mean squared
        distance from chosen codes."""
        distances = (z[..., None, :] - self.table[:, None].detach()).square().sum(-1)
        nearest = distances.detach().gather(-1, indices[..., None])
        chance = (-0.5 * distances / nearest.mean().clamp(min=1e-12)).softmax(-1)
        hard = nn.functional.one_hot(indices, self.codes).to(z.dtype)
        return hard + chance - chance.detach()

    def forward(self, z: Tensor) -> Quantized:
        indices = self.nearest(z.detach())
        chosen = self.look_up(indices)
        commitment = (z - chosen.detach()).square().sum((1, 2, 3))
        learns = self.codebook_training == "gradient"
        codebook = (z.detach() - chosen).square().sum((1, 2, 3))
        if self.training and torch.is_grad_enabled():
            self.seen = z.detach(), indices
        return Quantized(
            z + (chosen - z).detach(),
            indices,
            codebook if learns else torch.zeros_like(codebook),
            commitment,
            perplexity(indices, self.codes).to(z.dtype),
        )

    @torch.no_grad()
    def after_update(self) -> None:
        """Move the averages, and reset_inactive_latents codes that nothing chooses; at most once for
        each batch."""
        if self.seen is None:
            return
        z, indices = self.seen
        self.seen = None
        vectors = z.transpose(0, 1).flatten(1, 2)  # (codebooks, n * positions, d)
        chosen = indices.transpose(0, 1).flatten(1)
        ones = torch.ones_like(chosen, dtype=self.usage.dtype)
        counts = torch.zeros_like(self.usage).scatter_add_(1, chosen, ones)
        self.usage.lerp_(counts, 1 - self.decay)
        if self.codebook_training == "ema":
            sums = torch.zeros_like(self.average).scatter_add_(
                1, chosen[..., None].expand_as(vectors), vectors.to(self.average)
            )
            self.average.lerp_(sums, 1 - self.decay)
            used = self.usage > 0
            means = self.average / self.usage.where(used, torch.ones_like(self.usage))[..., None]
            self.table.copy_(means.where(used[..., None], self.table))
        distances = (z - self.look_up(indices)).square().sum(-1).transpose(0, 1).flatten(1)
        self._revive(vectors, distances, chosen_now=counts > 0)

    def _revive(self, vectors: Tensor, distances: Tensor, *, chosen_now: Tensor) -> None:
        """Put dead codes on vectors that are far from theirs, as k-means++ does: where most of every
        image is alike, vectors drawn evenly would be alike as well."""
        equal_part = vectors.shape[1] / self.codes
        dead = (self.usage < self.dead * equal_part) & ~chosen_now
        if not dead.any():
            return
        rows = torch.multinomial(distances + 1e-12, self.codes, replacement=True)
        fresh = vectors.gather(1, rows[..., None].expand(-1, -1, vectors.shape[2]))
        self.table.copy_(torch.where(dead[..., None], fresh.to(self.table), self.table))
        # A revived code is given time to be chosen before it counts as dead again.
        self.usage.masked_fill_(dead, equal_part)
        if self.codebook_training == "ema":
            self.average.copy_(torch.where(dead[..., None], self.table * equal_part, self.average))


def perplexity(indices: Tensor, codes: int) -> Tensor:
    r"""$\exp H$ of how often each code is chosen, the mean over codebooks.

    Arguments:
        indices: (n, codebooks, positions).
        codes: in each codebook.

    >>> perplexity(torch.arange(8).view(2, 1, 4), codes=8).round()
    tensor(8.)
    """
    chosen = indices.transpose(0, 1).flatten(1)
    counts = torch.zeros(len(chosen), codes, device=indices.device)
    counts.scatter_add_(1, chosen, torch.ones_like(chosen, dtype=counts.dtype))
    share = counts / chosen.shape[1]
    entropy: Tensor = torch.special.entr(share).sum(1)
    return entropy.exp().mean()
