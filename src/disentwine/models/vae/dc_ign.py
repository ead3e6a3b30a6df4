"""DC-IGN: weak supervision by batches in which one factor varies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.plan import Stage, TrainingSettings
from disentwine.core.types import Count, NonNegative
from disentwine.data.samplers.one_factor import OneFactor
from disentwine.errors import DataError, UsageError
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models.vae.vae import LatentModel
from disentwine.nn.encoders import ImageShape, Likelihood, Network


class DCIGN(LatentModel):
    r"""VAE with batches in which one factor varies. The latents $z_i$ of the fixed factors are replaced
    by their mean $\bar z_i$ over the batch before decoding (section 3.1), and get the gradient
    $\eta\,(z_i - \bar z_i)$ in place of the decoder's (section 3.2), which is that of
    $\frac{\eta}{2} \|z_i - \bar z_i\|^2$.

    The values of factors are not used, only whether they are constant in the batch. If all factors vary,
    as in validation, the loss is the negative ELBO.

    Reference: Deep Convolutional Inverse Graphics Network, T. Kulkarni, W. Whitney, P. Kohli and
    J. Tenenbaum, 2015.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        varied: factor columns; one of them varies in a batch; `for_data` takes all columns, or the root
            nodes if the graph is known, as effects vary with their causes.
        dimensions: latents per factor.
        invariance: $\eta$, weight of the squared distance of latents of fixed factors from their mean.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> model = DCIGN(image_shape=(16, 16, 1), varied=(0, 1))
    >>> u = torch.tensor([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])  # the second factor is fixed
    >>> model.fixed(u)
    tensor([False,  True])
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape", "varied")
    not_in_weights = ("invariance",)

    def __init__(
        self,
        image_shape: ImageShape,
        varied: tuple[int, ...],
        *,
        dimensions: Count = 1,
        invariance: NonNegative = 0.01,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape=image_shape,
            latent=dimensions * len(varied),
            network=network,
            likelihood=likelihood,
        )
        self.varied = varied
        self.dimensions = dimensions
        self.invariance = invariance

    for_data = ForData(__init__)

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        graph, names = dataset.graph, dataset.names
        varied = [i for i, name in enumerate(names) if graph is None or not graph.in_degree(name)]
        if not varied:
            raise DataError(
                "the data set names no factors, and DC-IGN needs to know which of them varies in a "
                "batch: give a table of factors, or train 'vae', which needs none"
            )
        return {"image_shape": dataset.image_shape, "varied": tuple(varied)}

    def check_fits(self, dataset: Dataset) -> None:
        """Raise `UsageError` if the image shape differs, or if the data set has too few factors."""
        super().check_fits(dataset)
        if max(self.varied) >= len(dataset.names):
            raise UsageError(
                f"the model varies {len(self.varied)} factors one by one, but the data set has "
                f"{len(dataset.names)}; build it with {type(self).__name__}.for_data"
            )

    def check_training(self, options: TrainingSettings) -> list[str]:
        """Raise `UsageError` for batches of a single image."""
        if options.batch_size < 2:
            raise UsageError(
                "training.batch_size: give 2 or more; no factor varies in a batch of one"
            )
        return super().check_training(options)

    def training_plan(self, dataset: Dataset, *, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """One stage of batches in which one factor varies; warns if most images are unused."""
        sampler = OneFactor(dataset.factors, dataset.split["train"], varied=self.varied)
        sampler.warn_of_unused_images([dataset.names[column] for column in self.varied])
        return (Stage("one factor varies", 0, sampler, dataset.split["validation"]),)

    def fixed(self, u: Tensor) -> Tensor:
        """Mask (d,) of the latents of factors that are constant in the batch.

        Arguments:
            u: (n, k) factors; a missing value counts as varying.
        """
        columns = u[:, list(self.varied)]
        return (columns == columns[:1]).all(0).repeat_interleave(self.dimensions)

    def loss(self, batch: Batch) -> Losses:
        """Reconstruction from clamped latents and KL divergence in nats, and the invariance term."""
        q = self.posterior(batch.x)
        z = q.sample()
        fixed, mean = self.fixed(batch.u), z.mean(0)
        clamped = torch.where(fixed, mean.detach(), z)
        return Losses(
            {
                "reconstruction": -self.reconstruction_log_likelihood(batch.x, clamped),
                "kl": kl_to_standard_normal(q.mean, q.log_variance).sum(1),
                "invariance": 0.5 * ((z - mean).square() * fixed).sum(1),
            },
            {"invariance": self.invariance},
        )
