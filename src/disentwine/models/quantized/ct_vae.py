"""CT-VAE, the causal transition VAE."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses, Model
from disentwine.core.plan import Stage, TrainingSettings
from disentwine.core.types import NonNegativeInt
from disentwine.data.transitions import transitions
from disentwine.errors import UsageError
from disentwine.losses.transition import negative_log_likelihood
from disentwine.models.quantized.code_batches import pair_stages, too_few_steps
from disentwine.models.quantized.ct_vae_actions import (
    action_graphs,
    apply_actions,
    match_actions,
    retrieve_actions,
)
from disentwine.models.quantized.mcq_vae import MCQVAE, QuantizerOptions
from disentwine.models.quantized.transition_losses import (
    CONTRASTED,
    NO_CONTRAST,
    PAIRS_AT_ONCE,
    Contrast,
    Rollout,
    TransitionWeights,
    opposites,
    transition_terms,
    with_negatives,
)
from disentwine.nn.encoders import ImageShape
from disentwine.nn.images import accepts_images
from disentwine.nn.transition import ActionGraph, TransitionLayer, TransitionOptions

AUTOENCODER = QuantizerOptions()
TRANSITION = TransitionOptions()
WEIGHTS = TransitionWeights()


class CTVAE(Model):
    r"""Causal transition VAE: an `MCQVAE` and a transition model of its codes under actions,
    $p(L_y | L_x, a) = \mathrm{GNN}([L_x, a, z]; M)$ with a graph M for each action a.

    Training has a stage on images, then one on pairs (x, y) with an action from x to y. Each update
    computes all modes of the paper: *standard* (no action, y = x), *action*, and *causal*, which evaluates
    every action and retrieves it by $q(a | x, y) \propto p(L_y | L_x, a)$, the likelihood of all nodes
    (eq. 5 and 10).

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023.

    Arguments:
        image_shape, actions: `for_data` reads them from the data set.
        autoencoder: options of the `MCQVAE`.
        transition: options of the transition layer.
        weights: of the transition losses.
        pretrain_steps: number of updates on images, before those on pairs.
        joint: whether the autoencoder is also trained on pairs, which the paper does not specify.
        action_labels: "known", or "latent": pairs have no action labels and are modelled as a uniform
            mixture over as many latent actions, which are matched with names on the validation pairs
            (`match`).
        bidirectional: retrieve an action also by its opposite on the reversed pair (y, x).
        contrast: contrast a pair's action with few negatives, or for some pairs only; with all actions
            when omitted.
        rollout: train on multi-step rollouts; on single steps when omitted.
        readout: the codes after an action, "argmax" for the most probable codes, or "expectation" for
            their expected vectors, which are more accurate, especially after several actions.

    >>> import numpy as np
    >>> model = CTVAE(image_shape=(16, 16, 1), actions=("+x", "-x"))
    >>> image = np.zeros((16, 16, 1), np.uint8)
    >>> moved = model.apply(image, "+x", times=3)
    >>> moved.shape, model.retrieve(image, moved).shape
    ((16, 16, 1), (2,))
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape", "actions")
    not_in_weights = ("rollout.weight", "autoencoder.commitment_weight")
    places: Tensor

    def __init__(
        self,
        image_shape: ImageShape,
        actions: tuple[str, ...],
        *,
        autoencoder: QuantizerOptions = AUTOENCODER,
        transition: TransitionOptions = TRANSITION,
        weights: TransitionWeights = WEIGHTS,
        pretrain_steps: NonNegativeInt = 1000,
        joint: bool = False,
        action_labels: Literal["known", "latent"] = "known",
        bidirectional: bool = False,
        contrast: Contrast | None = None,
        rollout: Rollout | None = None,
        readout: Literal["argmax", "expectation"] = "argmax",
    ) -> None:
        super().__init__()
        if transition.message_passing == "attention" and transition.node_dim % transition.heads:
            raise UsageError(
                f"transition.node_dim={transition.node_dim} must be a multiple of "
                f"transition.heads={transition.heads}"
            )
        needs_labels = {
            "contrast=null": (contrast or NO_CONTRAST) != NO_CONTRAST,
            "rollout=null": rollout is not None,
        }
        if action_labels == "latent" and any(needs_labels.values()):
            needed = ", ".join(option for option, given in needs_labels.items() if given)
            raise UsageError(
                f"action_labels 'latent' needs {needed}: the action of a pair is unknown"
            )
        self.image_shape, self.actions = image_shape, actions
        self.autoencoder, self.transition, self.weights = autoencoder, transition, weights
        self.pretrain_steps, self.joint = pretrain_steps, joint
        self.action_labels, self.bidirectional = action_labels, bidirectional
        self.contrast, self.rollout, self.readout = contrast, rollout, readout
        self.register_buffer("places", torch.arange(len(actions)))  # latent action of each name
        self.mcq_vae = MCQVAE(image_shape, **asdict(autoencoder))
        self.layer = TransitionLayer(
            actions=len(actions),
            num_codebooks=autoencoder.num_codebooks,
            grid=self.mcq_vae.grid,
            codebook_size=autoencoder.codebook_size,
            code_dim=autoencoder.code_dim,
            options=transition,
        )

    for_data = ForData(__init__)

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"image_shape": dataset.image_shape, "actions": transitions(dataset).actions}

    def loss(self, batch: Batch) -> Losses:
        """The autoencoder's losses for images, and the transition losses for pairs; both for pairs with
        `joint`. x and y are images, or their codes (n, nodes)."""
        if batch.action is not None and not self.joint:
            codes = self.indices(batch.x) if batch.x.is_floating_point() else batch.x
            return self._transition_losses(batch, self.look_up(codes), codes)
        q = self.mcq_vae.quantizer(self.mcq_vae.vectors(batch.x))
        autoencoder = self.mcq_vae.losses(batch.x, q)
        if batch.action is None:
            return autoencoder
        transition = self._transition_losses(batch, q.vectors, q.indices.flatten(1))
        return Losses(
            {**autoencoder.terms, **transition.terms}, {**autoencoder.weights, **transition.weights}
        )

    def _transition_losses(self, batch: Batch, vectors: Tensor, x: Tensor) -> Losses:
        """Losses of pairs with codes x and their vectors, and of the further steps of rollouts."""
        assert batch.y is not None
        assert batch.action is not None
        terms, log_p = self.transition_terms(vectors, x, self._target(batch.y), batch.action)
        if batch.later:
            later = []
            for y, action in batch.later:
                log_p = self.layer(self.read_out(log_p), self.table, action[:, None])[0][:, 0]
                later.append(negative_log_likelihood(log_p, self._target(y)))
            terms["l_rollout"] = torch.stack(later).mean(0)
        rollout_weight = 1.0 if self.rollout is None else self.rollout.weight
        weights = {**asdict(self.weights), "l_rollout": rollout_weight * self.weights.l_y}
        for name in CONTRASTED:  # means over the contrasted pairs only
            weights[name] *= self._contrasted(len(x)) / len(x)
        return Losses(terms, {name: weights[name] for name in terms})

    def _contrasted(self, pairs: int) -> int:
        return math.ceil((self.contrast or NO_CONTRAST).fraction * pairs)

    def _target(self, y: Tensor) -> Tensor:
        """Codes of images y; codes are unchanged. One-hot with gradients if the autoencoder is trained on
        pairs."""
        if not y.is_floating_point():
            return y
        if not self.joint:
            return self.indices(y)
        z = self.mcq_vae.vectors(y)
        quantizer = self.mcq_vae.quantizer
        return quantizer.one_hot(z, quantizer.nearest(z.detach())).flatten(1, 2)

    def transition_terms(
        self, vectors: Tensor, x: Tensor, y: Tensor, action: Tensor
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Losses of one action and its predicted log-probabilities, see
        `transition_losses.transition_terms`."""
        contrast, candidates = self.contrast or NO_CONTRAST, None
        if self.training and contrast.negatives is not None:
            candidates = partial(
                with_negatives, negatives=contrast.negatives, opposites=opposites(self.actions)
            )
        terms_of = partial(
            transition_terms,
            self.layer,
            self.table,
            contrasted=self._contrasted(len(action)) if self.training else len(action),
            candidates=candidates,
            latent=self.latent_actions,
        )
        # The balance of latent actions is computed over the whole batch.
        if self.training or self.latent_actions:
            return terms_of(vectors, x, y, action)
        split = (torch.split(z, PAIRS_AT_ONCE) for z in (vectors, x, y, action))
        parts = [terms_of(*pairs) for pairs in zip(*split, strict=True)]
        terms = {name: torch.cat([part[name] for part, _ in parts]) for name in parts[0][0]}
        return terms, torch.cat([log_p for _, log_p in parts])

    def after_update(self) -> None:
        """Update moving averages and dead codes with the last training batch."""
        self.mcq_vae.after_update()

    @property
    def latent_actions(self) -> bool:
        """Whether the model is trained on pairs without action labels."""
        return self.action_labels == "latent"

    @property
    def codebook_size(self) -> int:
        """Number of codes in each codebook."""
        return self.autoencoder.codebook_size

    def indices(self, x: Tensor) -> Tensor:
        """The code indices (n, nodes) of images."""
        return self.mcq_vae.indices(x)

    @property
    def table(self) -> Tensor:
        """All codes (codebooks, codes, d), without gradients."""
        return self.mcq_vae.quantizer.table.detach()

    def look_up(self, indices: Tensor) -> Tensor:
        """The vectors (n, codebooks, positions, d) of codes (n, nodes), without gradients."""
        books = indices.view(len(indices), self.autoencoder.num_codebooks, -1)
        return self.mcq_vae.quantizer.look_up(books).detach()

    def read_out(self, log_p: Tensor) -> Tensor:
        """The vectors (n, codebooks, positions, d) of log-probabilities (n, nodes, codes), the most
        probable or expected ones by `readout`."""
        if self.readout == "argmax":
            return self.look_up(log_p.argmax(-1))
        p = log_p.exp().view(len(log_p), len(self.table), -1, self.codebook_size)
        return torch.einsum("ncpk,ckd->ncpd", p, self.table)

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """Code indices (n, nodes) of images, in the dtype of the images."""
        return self.indices(x).to(x.dtype)

    def decode(self, codes: Any) -> Tensor:
        """Mean images of code indices (n, nodes), see `MCQVAE.decode`."""
        return self.mcq_vae.decode(codes)

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Reconstruction of each image, in the format of the input."""
        return self.decode(self.indices(x).to(x.dtype))

    @torch.no_grad()
    def act(self, vectors: Tensor, action: Tensor) -> Tensor:
        """Vectors (n, codebooks, positions, d) after an action (n,)."""
        return self.read_out(self.layer(vectors, self.table, self.places[action][:, None])[0][:, 0])

    def apply(  # type: ignore[override]
        self, x: Any, action: str | int | Sequence[str | int], *, times: int = 1
    ) -> Any:
        """Images after an action, in the format of the input.

        Arguments:
            x: images, see `reconstruct`.
            action: name or index of the action, or a sequence of actions.
            times: number of repetitions.
        """
        return apply_actions(self, x, action, times=times)

    def retrieve(self, x: Any, y: Any) -> Any:
        """Posterior probabilities (n, actions) of the action that turned x into y.

        Arguments:
            x: images, see `reconstruct`.
            y: images in the same format, one for each x.
        """
        return retrieve_actions(self, x, y)

    def match(self, x: Any, y: Any, action: Any) -> None:
        """Assign names to latent actions to maximise the retrieval accuracy on labelled pairs.

        Training calls it with the validation pairs before each checkpoint.

        Arguments:
            x, y: pairs of images, see `retrieve`.
            action: (n,) name or index of each pair's action.
        """
        match_actions(self, x, y, action)

    @torch.no_grad()
    def graphs(self, x: Tensor) -> ActionGraph:
        """Expected graphs M and masks R of images under every action, in the order of `actions`, and
        under no action."""
        return action_graphs(self, x)

    def training_plan(self, dataset: Dataset, *, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """Images for `pretrain_steps` updates, then pairs, and rollouts from `rollout.from_step`."""
        rollout = self.rollout or Rollout(length=1)
        return pair_stages(
            self,
            dataset,
            pretrain_steps=self.pretrain_steps,
            joint=self.joint,
            length=rollout.length,
            from_step=rollout.from_step,
            sampled=max(0, steps - self.pretrain_steps) * batch_size,
        )

    def check_training(self, options: TrainingSettings) -> list[str]:
        """Warnings if training ends before the stages of pairs or rollouts."""
        first_steps = {
            "pretrain_steps": (
                self.pretrain_steps,
                "images are learned, but no actions; give more steps",
            )
        }
        if self.rollout is not None:
            first_steps["rollout.from_step"] = (
                self.rollout.from_step,
                "no rollouts are learned; give more steps",
            )
        return too_few_steps(options, first_steps)
