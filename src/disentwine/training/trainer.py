"""One update, validation, exact state; knows stages, no model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from disentwine.core.capabilities import LearnsActions, MatchesActions, UpdatesItself, frozen
from disentwine.core.dataset import Dataset
from disentwine.core.model import Losses, Model
from disentwine.core.random import fixed_noise
from disentwine.core.types import IndexArray
from disentwine.data.samplers.pairs import HeldOut, learns_images
from disentwine.data.samplers.shuffled import batch_indices, shuffled, validation_batches
from disentwine.errors import CheckpointError, DataError, DivergenceError, UsageError, warn
from disentwine.models.quantized.code_batches import PairSource
from disentwine.runs.provenance import changes, versions
from disentwine.training.batch_source import BatchSource
from disentwine.training.callbacks import Average
from disentwine.training.optimizers import Player, players_of
from disentwine.training.state import TRAINING, WEIGHTS, Checkpoint, load_weights

GENERATORS = {"generator.cpu", "generator.cuda"}

OWN = "weights."
"""What the names of a model's own weights begin with in a checkpoint that keeps their average."""


class Trainer:
    """A model, its optimisers and everything that decides the next update.

    Arguments:
        model: what is trained, in place.
        dataset: where batches come from.
        steps: updates in the whole training; validation sees schedules as they end.
        batch_size: images an update.
        learning_rate: Adam's.
        final_learning_rate: what it falls to in a straight line; none keeps it constant.
        weight_decay: of AdamW, for the model itself.
        clip_norm: largest norm of the gradient; none leaves it alone.
        precision: Lightning Fabric's, such as "32-true" or "bf16-mixed".
        device: "auto", "cpu", "cuda" or "mps".
        averaged: updates over which weights are averaged: the average is what is validated and kept;
            none keeps the weights themselves.
        seed: decides the batches and the noise.
        data: the fingerprint of the data set, if it has one.
    """

    def __init__(
        self,
        model: Model,
        dataset: Dataset,
        *,
        steps: int,
        batch_size: int,
        learning_rate: float,
        final_learning_rate: float | None = None,
        weight_decay: float | None = None,
        clip_norm: float | None,
        precision: Any,
        device: str,
        averaged: int | None = None,
        seed: int,
        data: str | None = None,
    ) -> None:
        from lightning_fabric import Fabric

        try:
            self.fabric = Fabric(accelerator=device, devices=1, precision=precision)
        except (RuntimeError, ValueError) as error:
            raise UsageError(
                f"training.device={device} with training.precision={precision} is not to be had "
                f"on this machine; device 'auto' and precision '32-true' always are"
            ) from error
        self.model = model
        self.dataset = dataset
        self.steps = steps
        self.batch_size = batch_size
        self.clip_norm = clip_norm
        self.seed = seed
        self.data = data
        self.step = 0
        self.best: dict[str, float] | None = None
        self.stale = 0
        self.sums: dict[str, float] = {}
        self.pretraining = model.pretraining if isinstance(model, LearnsActions) else 0

        model.to(self.fabric.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.players = players_of(
            model,
            learning_rate=learning_rate,
            final_learning_rate=final_learning_rate,
            weight_decay=weight_decay or 0.0,
        )
        self.forward, *optimisers = self.fabric.setup(model, *(p.optimiser for p in self.players))
        for player, optimiser in zip(self.players, optimisers, strict=True):
            player.optimiser = optimiser
            self.forward.mark_forward_method(player.loss)
        source = BatchSource(
            dataset, device=self.fabric.device, dtype=next(model.parameters()).dtype
        )
        self.source: BatchSource | PairSource = source
        if isinstance(model, LearnsActions):
            drawn = max(0, steps - self.pretraining) * batch_size
            self.source = PairSource(source, model, dataset.split["train"], drawn=drawn)
        self.average = Average(model, updates=averaged) if averaged is not None else None
        torch.manual_seed(seed)

    def update(self) -> None:
        """One step of Adam; refuses to take it when the loss or its gradient is not finite.

        A model and its discriminator move at once, each by the gradient at where the other was; further
        turns of the discriminator come before.
        """
        if not self.model.training:
            self.model.train()
        for player in self.players:
            for turn in range(1, player.turns):
                self._take_gradient(player, turn)
                player.move(step=self.step, steps=self.steps)
        means: dict[str, float] = {}
        for player in self.players:
            means |= self._take_gradient(player)
        for player in self.players:
            player.move(step=self.step, steps=self.steps)
        if isinstance(self.model, UpdatesItself):
            self.model.after_update()
        self.step += 1
        if self.average is not None:
            # What is averaged while images are learnt is not what actions are learnt of.
            self.average.follow(self.step - self.pretraining * (self.step > self.pretraining))
        # Built anew in the order of the terms, which a checkpoint does not keep.
        counted = means | {"updates": 1.0}
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in counted.items()}

    def take_means(self) -> dict[str, float]:
        """Mean of every term since the last call."""
        updates = self.sums.pop("updates", 1.0)
        means = {name: total / updates for name, total in self.sums.items()}
        self.sums = {}
        return means

    @property
    def ends_stage(self) -> bool:
        """Whether the next update learns from something else than the last one did."""
        ends = [self.pretraining]
        if isinstance(self.model, LearnsActions) and (self.model.repeats or 1) > 1:
            ends.append(max(self.pretraining, self.model.repeats_from or 0))
        return self.step > 0 and self.step in ends

    def validate(self) -> dict[str, float]:
        """Mean of every term that the last update learnt from, over the validation split, with noise
        that is the same every time."""
        held_out: Any = self.dataset.split["validation"]
        if isinstance(held_out, HeldOut):
            held_out = held_out.learnt(steps=self.step)
        indices = shuffled(held_out)
        self.model.eval()
        totals: dict[str, float] = {}
        with torch.no_grad(), fixed_noise(self.seed), self.as_kept():
            for chunk in validation_batches(indices):
                for player in self.players:
                    losses = self._losses(player, chunk, step=self.steps)
                    for name, value in player.named(_to_floats(losses.means())).items():
                        totals[name] = totals.get(name, 0.0) + value * len(chunk)
        means = {name: total / len(indices) for name, total in totals.items()}
        self._refuse_divergence(means, "validation")
        return means

    def name_actions(self) -> None:
        """Give actions that were learnt without names those of the validation pairs."""
        model, held_out = self.model, cast(Any, self.dataset.split["validation"])
        if not isinstance(model, MatchesActions) or not model.nameless or self._early(self.step):
            return
        x, y, action = held_out.pairs[:, :3].T
        with fixed_noise(self.seed), self.as_kept():
            model.match(self.dataset.images[x], self.dataset.images[y], action)

    def note_score(self, score: float) -> None:
        """Remember the best validation score.

        A discriminator that learns changes what a score means, so the last of a game counts as its best.
        Pre-training has scores of its own: the first one after it is the best so far, and however
        little it still helps, it goes on, since what comes after needs to be learnt too.
        """
        alone = len(self.players) == 1
        best, early = self.best, self._early(self.step)
        if best is not None and early != self._early(best["step"]):
            best = None
        if alone and best is not None and score >= best["score"]:
            self.stale += not early
            return
        self.best = {"step": self.step, "score": score}
        self.stale = 0

    def _early(self, step: float) -> bool:
        """Whether a state after so many updates is one of pre-training."""
        return learns_images(int(step), pretraining=self.pretraining)

    @property
    def weights(self) -> dict[str, Tensor]:
        """What the training has to show so far: the model's weights, or their average."""
        return self.model.state_dict() if self.average is None else self.average.weights

    def as_kept(self) -> AbstractContextManager[None]:
        """Inside, the model has the weights that are kept of it."""
        return nullcontext() if self.average is None else self.average.worn()

    def checkpoint(self, *, log_bytes: int) -> Checkpoint:
        """The whole state, ready to be saved."""
        generators = {"generator.cpu": torch.get_rng_state()}
        if self.fabric.device.type == "cuda":
            generators["generator.cuda"] = torch.cuda.get_rng_state(self.fabric.device)
        return Checkpoint(
            step=self.step,
            weights=self.weights,
            training=_union(player.tensors() for player in self.players)
            | generators
            | self._own_weights(),
            state=_union(player.settings() for player in self.players)
            | {
                "best": self.best,
                "stale": self.stale,
                "sums": self.sums,
                "log_bytes": log_bytes,
                "fixed_by_data": self.model.fixed_arguments(),
                "threads": torch.get_num_threads(),
                "versions": versions(),
            }
            | ({} if self.data is None else {"data": self.data}),
        )

    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """Go on from a checkpoint as though nothing had happened; `path` is where it came from."""
        if self.data is not None and checkpoint.state.get("data", self.data) != self.data:
            raise DataError(
                f"the pictures, concepts or split of the data are not those that {path} learnt from; "
                f"bring them back as they were, or choose another folder for out"
            )
        load_weights(self.model, checkpoint.weights, source=path / WEIGHTS)
        state, tensors = checkpoint.state, checkpoint.training
        used = self._restore_own_weights(tensors, path)
        try:
            for player in self.players:
                moments = player.restore(tensors, state)
                if checkpoint.step and not moments:
                    raise ValueError(f"the moments of {player.prefix}adam are missing")
                used |= moments
            unknown = tensors.keys() - used - GENERATORS
            if unknown:
                raise ValueError(f"{sorted(unknown)} are not part of a training")
            torch.set_rng_state(tensors["generator.cpu"])
            if "generator.cuda" in tensors and self.fabric.device.type == "cuda":
                torch.cuda.set_rng_state(tensors["generator.cuda"], self.fabric.device)
            self.best, self.stale, self.sums = state["best"], state["stale"], state["sums"]
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{path / TRAINING} does not fit: {error}") from error
        self.step = checkpoint.step
        if changed := changes(state, threads=torch.get_num_threads()):
            warn(
                f"{path.name} was saved with {'; '.join(changed)}: going on is not exact to the bit"
            )

    def _own_weights(self) -> dict[str, Tensor]:
        """Where their average is kept in their place: the model's weights, under a checkpoint's names."""
        own = {} if self.average is None else self.model.state_dict()
        return {f"{OWN}{name}": value for name, value in own.items()}

    def _restore_own_weights(self, tensors: Mapping[str, Tensor], path: Path) -> set[str]:
        """Take back what `_own_weights` gave, the average being in the model; returns the names."""
        if self.average is None:
            return set()
        self.average = Average(self.model, updates=self.average.updates)
        own = {n.removeprefix(OWN): value for n, value in tensors.items() if n.startswith(OWN)}
        load_weights(self.model, own, source=path / TRAINING)
        return {f"{OWN}{name}" for name in own}

    def _take_gradient(self, player: Player, turn: int = 0) -> dict[str, float]:
        """The gradient of a player's loss for its own parameters; returns the mean of every term."""
        indices = batch_indices(
            self.dataset.split["train"],
            step=self.step * player.turns + turn,
            batch_size=self.batch_size,
            seed=self.seed,
            stream=player.stream,
        )
        with frozen(p for other in self.players if other is not player for p in other.parameters):
            losses = self._losses(player, indices, step=self.step)
            means = player.named(_to_floats(losses.means()))
            self._refuse_divergence(means, "training")
            self.fabric.backward(losses.total)
        self._check_gradient(player)
        return means

    def _losses(self, player: Player, indices: IndexArray, *, step: int) -> Losses:
        batch = self.source.take(indices, step=step)
        # Fabric sets the precision by itself for `forward` only.
        with self.fabric.autocast():
            losses: Losses = getattr(self.forward, player.loss)(batch)
        return losses

    def _refuse_divergence(self, means: Mapping[str, float], where: str) -> None:
        broken = [name for name, value in means.items() if not math.isfinite(value)]
        if broken:
            terms = [name for name in broken if name != "loss"] or broken
            outcome = self._no_update if where == "training" else "nothing was saved"
            raise DivergenceError(
                f"step {self.step}: the {where} loss is no longer finite in "
                f"{' and '.join(repr(term) for term in terms)}; {outcome}. "
                f"Try a lower training.learning_rate, or training.clip_norm=1"
            )

    @property
    def _no_update(self) -> str:
        once = all(player.turns == 1 for player in self.players)
        return "no update was made" if once else "no further update was made"

    def _check_gradient(self, player: Player) -> None:
        norm = get_total_norm([p.grad for p in player.parameters if p.grad is not None])
        if not norm.isfinite():
            broken = _first_not_finite(self.model)
            raise DivergenceError(
                f"step {self.step}: the gradient of '{broken}' is no longer finite; "
                f"{self._no_update}. Try a lower training.learning_rate, or training.clip_norm=1"
            )
        if self.clip_norm is not None:
            clip_grads_with_norm_(player.parameters, self.clip_norm, norm)


def _to_floats(means: Mapping[str, Tensor]) -> dict[str, float]:
    return dict(zip(means, torch.stack(list(means.values())).tolist(), strict=True))


def _union(dictionaries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for each in dictionaries for name, value in each.items()}


def _first_not_finite(model: nn.Module) -> str:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not parameter.grad.isfinite().all():
            return name
    return "all parameters together"
