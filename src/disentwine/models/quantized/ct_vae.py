"""CT-VAE: actions on images as transitions between their codes, and which action it was."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses, Model
from disentwine.core.plan import Stage, TrainingSettings
from disentwine.core.types import Count, NonNegative, NonNegativeInt, PositiveShare
from disentwine.data.transitions import transitions
from disentwine.errors import UsageError, did_you_mean
from disentwine.losses.transition import negative_log_likelihood
from disentwine.models.quantized.code_batches import pair_stages, too_few_steps
from disentwine.models.quantized.mcq_vae import MCQVAE
from disentwine.models.quantized.transition_losses import (
    COMPARING,
    TransitionWeights,
    opposites,
    transition_terms,
    with_rivals,
)
from disentwine.nn.distributions import Likelihood
from disentwine.nn.encoders import ImageShape, Reduction, grid_of
from disentwine.nn.graph_layers import Activation, Messages
from disentwine.nn.images import accepts_images, answer_in_kind, check_images, evaluation_mode
from disentwine.nn.quantizer import CodebookTraining
from disentwine.nn.transition import ActionGraph, Edges, TransitionLayer

WEIGHTS = TransitionWeights()
PAIRS_AT_ONCE = 32
"""Of which all actions are tried: of all codes of many images they would fill the memory."""


class CTVAE(Model):
    r"""An `MCQVAE`, and over its codes $p(L_y | L_x, a) = \mathrm{GNN}([L_x, a, z]; M)$ with a graph M.

    Images are learnt first, then pairs (x, y) of which an action a made the second. All modes of the
    paper are computed at once: *standard* (a is nothing, y is x), *action*, and *causal*, in which
    every action is tried and $q(a | x, y) \propto p(L_y | L_x, a)$, the likelihood of all nodes
    together (eq. 5 and 10).

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023.

    Arguments:
        image_shape, actions: `for_data` reads them from the data set.
        pretraining: updates that learn images, before those that learn pairs.
        joint: whether the autoencoder learns further in the second stage, which the paper leaves open.
        labels: "known", or "latent": pairs are learnt from without being told their actions, as a
            mixture of as many actions as there are, all equally often; the validation pairs then
            `match` them with names.
        two_way: retrieve an action also by its opposite, which should make x of y.
        rivals: other actions that a pair's own is compared with in an update, its opposite first and
            the rest at random; all of them when omitted. Few are as good, and sooner computed, where
            there are many.
        compared: share of an update's pairs that are held against other actions and against none;
            the others learn what their own makes of them, for a fraction of the time.
        repeats: actions in a row that are learnt from, the same again where it leads on: each from
            what the layer itself made of the one before, so that errors do not grow; one when omitted.
        repeats_from: the update from which on; until then single actions, which take less time. From
            the first on when omitted.
        repeats_weight: how much the later actions of a row count together, the first being 1; as much
            as that one when omitted.
        weights: of the losses of the second stage.
        layer_width: numbers that a node has where edges are found, and in the attention over parents.
        messages: "attention" over all parents, or several rounds between "neighbours" on the grid of
            codes, which learn far more of what moves.
        heads: of the attention over parents.
        rounds: between neighbours.
        hidden: of the networks that find edges.
        activation: of those networks: "relu", or "sine", which is many times as quick.
        edges: "sampled" in training as the paper has it, or "expected", which learns without noise.
        outcome: of an action, the "likeliest" codes, or the "expected" vectors, between codes where
            several are likely: nearer to the truth, and more so the more actions follow.
        codebooks, codes, dimensions, reduction, width, beta, codebook_training, likelihood: as for
            `MCQVAE`.

    >>> model = CTVAE(image_shape=(16, 16, 1), actions=("+x", "-x"))
    >>> picture = np.zeros((16, 16, 1), np.uint8)
    >>> moved = model.apply(picture, "+x", times=3)
    >>> moved.shape, model.retrieve(picture, moved).shape
    ((16, 16, 1), (2,))
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape", "actions")
    places: Tensor

    def __init__(
        self,
        image_shape: ImageShape,
        actions: tuple[str, ...],
        *,
        pretraining: NonNegativeInt = 1000,
        joint: bool = False,
        labels: Literal["known", "latent"] = "known",
        two_way: bool = False,
        rivals: Count | None = None,
        compared: PositiveShare = 1.0,
        repeats: Count | None = None,
        repeats_from: NonNegativeInt | None = None,
        repeats_weight: NonNegative | None = None,
        weights: TransitionWeights = WEIGHTS,
        layer_width: Count = 64,
        messages: Messages = "attention",
        heads: Count = 4,
        rounds: Count = 3,
        hidden: Count = 16,
        activation: Activation = "relu",
        edges: Edges = "sampled",
        outcome: Literal["likeliest", "expected"] = "likeliest",
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
        if messages == "attention" and layer_width % heads:
            raise UsageError(f"layer_width={layer_width} must be a multiple of heads={heads}")
        wrong = {"rivals=null": rivals is not None, "compared=1": compared < 1}
        wrong["repeats=null"] = repeats is not None
        if labels == "latent" and any(wrong.values()):
            needed = ", ".join(option for option, given in wrong.items() if given)
            raise UsageError(
                f"labels 'latent' need {needed}: nobody says which action is a pair's own"
            )
        for name, given in {"repeats_from": repeats_from, "repeats_weight": repeats_weight}.items():
            if given is not None and repeats is None:
                raise UsageError(
                    f"{name}: give repeats, how many actions are in a row, or leave out both"
                )
        self.image_shape, self.actions = image_shape, actions
        self.pretraining, self.joint, self.weights = pretraining, joint, weights
        self.labels, self.two_way = labels, two_way
        self.rivals, self.compared = rivals, compared
        self.repeats, self.repeats_from = repeats, repeats_from
        self.repeats_weight = repeats_weight
        self.register_buffer("places", torch.arange(len(actions)))
        self.layer_width, self.hidden = layer_width, hidden
        self.messages, self.heads, self.rounds = messages, heads, rounds
        self.activation, self.edges, self.outcome = activation, edges, outcome
        self.codebooks, self.codes, self.dimensions = codebooks, codes, dimensions
        self.reduction, self.width, self.beta = reduction, width, beta
        self.codebook_training, self.likelihood = codebook_training, likelihood
        self.autoencoder = MCQVAE(
            image_shape=image_shape,
            codebooks=codebooks,
            codes=codes,
            dimensions=dimensions,
            reduction=reduction,
            width=width,
            beta=beta,
            codebook_training=codebook_training,
            likelihood=likelihood,
        )
        self.layer = TransitionLayer(
            actions=len(actions),
            codebooks=codebooks,
            grid=grid_of(image_shape, reduction),
            codes=codes,
            dimensions=dimensions,
            width=layer_width,
            messages=messages,
            heads=heads,
            rounds=rounds,
            hidden=hidden,
            activation=activation,
            edges=edges,
        )

    for_data = ForData(__init__)

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"image_shape": dataset.image_shape, "actions": transitions(dataset).actions}

    def loss(self, batch: Batch) -> Losses:
        """The autoencoder's losses while it learns, the transition's where an action is given; x and
        y are images, or codes (n, nodes) that stand for them."""
        if batch.action is not None and not self.joint:
            codes = self.indices(batch.x) if batch.x.is_floating_point() else batch.x
            return self._transition_losses(batch, self.look_up(codes), codes)
        q = self.autoencoder.quantizer(self.autoencoder.vectors(batch.x))
        own = self.autoencoder.losses(batch.x, q)
        if batch.action is None:
            return own
        further = self._transition_losses(batch, q.vectors, q.indices.flatten(1))
        return Losses({**own.terms, **further.terms}, {**own.weights, **further.weights})

    def _transition_losses(self, batch: Batch, vectors: Tensor, x: Tensor) -> Losses:
        """What vectors of codes x become under each pair's action, and further actions of a row."""
        assert batch.y is not None
        assert batch.action is not None
        terms, made = self.transition_terms(vectors, x, self._target(batch.y), batch.action)
        if batch.later:
            later = []
            for y, action in batch.later:
                made = self.layer(self._outcome(made), self.table, action[:, None])[0][:, 0]
                later.append(negative_log_likelihood(made, self._target(y)))
            terms["l_later"] = torch.stack(later).mean(0)
        later_weight = 1.0 if self.repeats_weight is None else self.repeats_weight
        weights = {**asdict(self.weights), "l_later": later_weight * self.weights.l_y}
        for name in COMPARING:  # they count as much as the pairs do that training has them of
            weights[name] *= self._compared(len(x)) / len(x)
        return Losses(terms, {name: weights[name] for name in terms})

    def _compared(self, pairs: int) -> int:
        return math.ceil(self.compared * pairs)

    def _target(self, y: Tensor) -> Tensor:
        """Codes as they are, and those of images; one-hot with gradients where the autoencoder learns
        from them."""
        if not y.is_floating_point():
            return y
        if not self.joint:
            return self.indices(y)
        z = self.autoencoder.vectors(y)
        quantizer = self.autoencoder.quantizer
        return quantizer.one_hot(z, quantizer.nearest(z.detach())).flatten(1, 2)

    def transition_terms(
        self, vectors: Tensor, x: Tensor, y: Tensor, action: Tensor
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Losses of one action and what it makes, see `action_losses.transition_terms`."""
        learns, tried = self.training, None
        if learns and self.rivals is not None:
            tried = partial(with_rivals, rivals=self.rivals, opposites=opposites(self.actions))
        terms_of = partial(
            transition_terms,
            self.layer,
            self.table,
            compared=self._compared(len(action)) if learns else len(action),
            tried=tried,
            latent=self.nameless,
        )
        if (
            learns or self.nameless
        ):  # how often each latent action is taken is told of all pairs together
            return terms_of(vectors, x, y, action)
        split = (torch.split(z, PAIRS_AT_ONCE) for z in (vectors, x, y, action))
        parts = [terms_of(*pairs) for pairs in zip(*split, strict=True)]
        terms = {name: torch.cat([part[name] for part, _ in parts]) for name in parts[0][0]}
        return terms, torch.cat([made for _, made in parts])

    def after_update(self) -> None:
        """Let the codebooks follow the batch that was just learnt from."""
        self.autoencoder.after_update()

    def indices(self, x: Tensor) -> Tensor:
        """The codes (n, nodes) of images."""
        return self.autoencoder.indices(x)

    @property
    def table(self) -> Tensor:
        """All codes (codebooks, codes, d), without gradients."""
        return self.autoencoder.quantizer.table.detach()

    def look_up(self, indices: Tensor) -> Tensor:
        """The vectors (n, codebooks, positions, d) of codes (n, nodes), without gradients."""
        books = indices.view(len(indices), self.codebooks, -1)
        return self.autoencoder.quantizer.look_up(books).detach()

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """Which code each sub-vector of images becomes, (n, nodes), as numbers."""
        return self.indices(x).to(x.dtype)

    def decode(self, codes: Any) -> Tensor:
        """The mean image of codes (n, nodes), see `MCQVAE.decode`."""
        return self.autoencoder.decode(codes)

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image decoded from its codes, in the form it was given."""
        return self.decode(self.indices(x).to(x.dtype))

    @torch.no_grad()
    def act(self, vectors: Tensor, action: Tensor) -> Tensor:
        """What becomes of vectors (n, codebooks, positions, d) under an action (n,)."""
        return self._outcome(self.layer(vectors, self.table, self.places[action][:, None])[0][:, 0])

    def _outcome(self, log_p: Tensor) -> Tensor:
        """The vectors (n, codebooks, positions, d) that log-probabilities (n, nodes, codes) stand for."""
        if self.outcome == "likeliest":
            return self.look_up(log_p.argmax(-1))
        p = log_p.exp().view(len(log_p), self.codebooks, -1, self.codes)
        return torch.einsum("ncpk,ckd->ncpd", p, self.table)

    def apply(  # type: ignore[override]
        self, x: Any, action: str | int | Sequence[str | int], *, times: int = 1
    ) -> Any:
        """The picture after an action, in the form it was given.

        Arguments:
            x: images, see `reconstruct`.
            action: its name or number, or several to be done one after the other.
            times: how often.
        """
        if not isinstance(times, int | np.integer) or times < 1:
            raise UsageError(f"times: an action is done once or more, got {times}")
        several: list[Any] = (
            [*action] if isinstance(action, list | tuple | np.ndarray) else [action]
        )
        numbers = [self.action_number(one) for one in several] * int(times)

        def answer(x: Tensor, rows: slice) -> Tensor:
            vectors = self.look_up(self.indices(x))
            for number in numbers:
                vectors = self.act(vectors, torch.full((len(x),), number, device=x.device))
            return self.autoencoder.mean_image(vectors)

        return answer_in_kind(self, x, answer)

    def retrieve(self, x: Any, y: Any) -> Any:
        """How probable it is that each action made y of x, (n, actions) in the order of `actions`.

        Arguments:
            x: images, see `reconstruct`.
            y: as many of the same form.
        """
        tensors = isinstance(x, Tensor)
        if tensors != isinstance(y, Tensor):
            raise UsageError("x and y must be pairs of images, both arrays or both tensors")
        if not tensors:
            x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape:
            raise UsageError(f"x {tuple(x.shape)} and y {tuple(y.shape)} must be pairs of images")
        check_images(x, self.image_shape)
        channels_first = tensors and x.is_floating_point()
        axis = 1 if channels_first else -1
        pairs = torch.cat([x, y], axis) if tensors else np.concatenate([x, y], axis)
        height, width, channels = self.image_shape
        return answer_in_kind(
            self,
            pairs,
            lambda pair, rows: self._retrieve(*pair.chunk(2, dim=1)),
            shape=(height, width, 2 * channels),
        )

    def _retrieve(self, x: Tensor, y: Tensor) -> Tensor:
        a, b = self.indices(x), self.indices(y)
        fit = self._fit(a, b)
        if self.two_way:
            fit = 0.5 * (fit + self._fit(b, a)[:, opposites(self.actions)])
        return fit.softmax(-1)

    def _fit(self, x: Tensor, y: Tensor) -> Tensor:
        """Log-likelihood (n, actions) of codes y after each action on codes x."""
        parts = [
            -negative_log_likelihood(self.layer(self.look_up(a), self.table)[0], b[:, None])
            for a, b in zip(*(torch.split(z, PAIRS_AT_ONCE) for z in (x, y)), strict=True)
        ]
        return torch.cat(parts)[:, self.places]

    @property
    def nameless(self) -> bool:
        """Whether actions are learnt from pairs that are not told theirs."""
        return self.labels == "latent"

    def match(self, x: Any, y: Any, action: Any) -> None:
        """Give latent actions the names under which most of some labelled pairs are told right.

        A training does so with the validation pairs, whenever it saves.

        Arguments:
            x, y: pairs of images, see `retrieve`.
            action: (n,) the name or the number of the action that made each.
        """
        if not self.nameless:
            raise UsageError("actions with known names need no match; labels 'latent' has none")
        several = action.tolist() if isinstance(action, Tensor | np.ndarray) else action
        if isinstance(several, str | int) or len(several) != len(x):
            raise UsageError(f"give the action of each pair: {len(x)} pairs, got {several!r:.80}")
        numbers = [self.action_number(one) for one in several]
        places, two_way = self.places.clone(), self.two_way
        self.places.copy_(torch.arange(len(self.actions)))
        self.two_way = False  # without names there are no opposites
        try:
            q = np.asarray(self.retrieve(x, y), dtype=np.float64)
        except BaseException:
            self.places.copy_(places)
            raise
        finally:
            self.two_way = two_way
        counts = np.zeros((len(self.actions), len(self.actions)))
        np.add.at(counts, (numbers, q.argmax(1)), 1)
        self.places.copy_(torch.from_numpy(linear_sum_assignment(-counts)[1]))

    @torch.no_grad()
    def graphs(self, x: Tensor) -> ActionGraph:
        """M and R of images under every action, in the order of `actions`, and under none; those that
        are expected, also while it learns."""
        with evaluation_mode(self):
            vectors = self.look_up(self.indices(x))
            found = self.layer.graph(self.layer.nodes(vectors, self.table))
        order = torch.cat([self.places, self.places.new_tensor([len(self.actions)])])
        edges, mask, alpha = (part[:, order] for part in (found.edges, found.mask, found.alpha))
        return ActionGraph(edges, mask, alpha, found.alpha_none)

    def action_number(self, action: str | int) -> int:
        """The number of an action, or an error that names the nearest one."""
        if isinstance(action, str):
            if action not in self.actions:
                both = [name for name in self.actions if name[1:] == action.strip("+-=0123456789.")]
                near = f"Did you mean {' or '.join(both)}?" if both else ""
                raise UsageError(
                    f"there is no action '{action}'. {near or did_you_mean(action, self.actions)}"
                )
            return self.actions.index(action)
        if not isinstance(action, int | np.integer) or not 0 <= action < len(self.actions):
            raise UsageError(
                f"actions have names, or numbers from 0 to {len(self.actions) - 1}; got {action}"
            )
        return int(action)

    not_in_weights = ("repeats_weight", "beta")

    def training_plan(self, dataset: Dataset, *, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """Images for `pretraining` updates, then pairs; rollouts from `repeats_from` on."""
        pretrain_steps, length, from_step = self.pretraining, self.repeats, self.repeats_from
        return pair_stages(
            self,
            dataset,
            pretrain_steps=pretrain_steps,
            joint=self.joint,
            length=length or 1,
            from_step=from_step or 0,
            sampled=max(0, steps - pretrain_steps) * batch_size,
        )

    def check_training(self, options: TrainingSettings) -> list[str]:
        """Warnings where the training ends before pairs, or rollouts, are learned."""
        pretrain_steps, from_step = self.pretraining, self.repeats_from or 0
        first_steps = {
            "pretraining": (pretrain_steps, "images are learned, but no actions; give more steps"),
            "repeats_from": (from_step, "no rollouts are learned; give more steps"),
        }
        return too_few_steps(options, first_steps)
