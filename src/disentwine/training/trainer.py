"""Updates and validations of a training plan, and their exact state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from disentwine.core.capabilities import UpdatesItself
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, Losses, Model
from disentwine.core.plan import Stage
from disentwine.core.random import fixed_noise
from disentwine.core.types import IndexArray
from disentwine.data.samplers.shuffled import Shuffled, shuffled, validation_batches
from disentwine.errors import CheckpointError, DivergenceError, UsageError, warn
from disentwine.nn.images import to_unit_range
from disentwine.training.callbacks import Average, Callback, Checkpoint
from disentwine.training.optimizers import OptimizedLoss, frozen, optimized_losses
from disentwine.training.options import TrainingOptions

GENERATORS = {"generator.cpu", "generator.cuda"}


class Trainer:
    """A model, its optimizers, and everything else that decides the next update.

    Arguments:
        model: trained in place.
        dataset: where batches come from.
        options: how it is trained.
        seed: decides the batches and the noise.
        callbacks: called by the loop; their state is a part of a checkpoint.
    """

    def __init__(
        self,
        model: Model,
        dataset: Dataset,
        options: TrainingOptions,
        *,
        seed: int,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        from lightning_fabric import Fabric

        try:
            self.fabric = Fabric(accelerator=options.device, devices=1, precision=options.precision)
        except (RuntimeError, ValueError) as error:
            raise UsageError(
                f"training.device={options.device} with training.precision={options.precision} is not "
                f"available on this machine; device 'auto' and precision '32-true' always are"
            ) from error
        self.model, self.dataset, self.options = model, dataset, options
        self.callbacks = tuple(callbacks)
        self.seed = seed
        self.step = 0
        self.best: dict[str, float] | None = None
        self.stale = 0
        self.sums: dict[str, float] = {}
        self.plan = _plan(model, dataset, options)

        model.to(self.fabric.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.losses = optimized_losses(model, options)
        wrapped = self.fabric.setup(model, *(loss.optimizer for loss in self.losses))
        self.forward, *optimizers = wrapped
        for loss, optimizer in zip(self.losses, optimizers, strict=True):
            loss.optimizer = optimizer
            self.forward.mark_forward_method(loss.name)
        self.source = BatchSource(
            dataset, device=self.fabric.device, dtype=next(model.parameters()).dtype
        )
        updates = options.weight_averaging
        self.average = None if updates is None else Average(model, updates=updates)
        torch.manual_seed(seed)

    def update(self) -> None:
        """One step of Adam; refuses to take it when the loss or its gradient is not finite.

        A model and its discriminator are updated together, each by its gradient at the parameters of
        the other before; further updates of the discriminator come first.
        """
        if not self.model.training:
            self.model.train()
        for loss in self.losses:
            for number in range(1, loss.updates):
                self._take_gradient(loss, number)
                loss.update(step=self.step, steps=self.options.steps)
        means: dict[str, float] = {}
        for loss in self.losses:
            means |= self._take_gradient(loss)
        for loss in self.losses:
            loss.update(step=self.step, steps=self.options.steps)
        if isinstance(self.model, UpdatesItself):
            self.model.after_update()
        self.step += 1
        if self.average is not None:
            self.average.update(self.step - self.comparable_since)
        # In the order of the terms, which a checkpoint does not keep.
        counted = means | {"updates": 1.0}
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in counted.items()}

    def take_means(self) -> dict[str, float]:
        """Mean of every term since the last call."""
        updates = self.sums.pop("updates", 1.0)
        means = {name: total / updates for name, total in self.sums.items()}
        self.sums = {}
        return means

    def stage_of(self, update: int) -> Stage:
        """The stage of an update, counted from 0."""
        return [stage for stage in self.plan if stage.start <= update][-1]

    @property
    def stage(self) -> Stage:
        """The stage of the last update; of the first one before that."""
        return self.stage_of(max(self.step - 1, 0))

    @property
    def ends_stage(self) -> bool:
        """Whether the next update begins another stage."""
        return self.step > 0 and self.step in {stage.start for stage in self.plan}

    @property
    def comparable_since(self) -> int:
        """The step from which on scores compare with those of the current stage, and weights with its
        weights."""
        position = self.plan.index(self.stage)
        others = [
            i
            for i, stage in enumerate(self.plan[:position])
            if stage.scored_as != self.stage.scored_as
        ]
        return self.plan[max(others, default=-1) + 1].start

    def validate(self) -> dict[str, float]:
        """Mean of every loss term over the validation samples of the current stage, with the same noise
        every time."""
        indices = shuffled(self.stage.validation)
        self.model.eval()
        totals: dict[str, float] = {}
        with torch.no_grad(), fixed_noise(self.seed), self.kept_weights():
            for chunk in validation_batches(indices):
                for loss in self.losses:
                    batch = self._batch(self.stage, chunk, self.options.steps)
                    for name, value in loss.named(
                        _to_floats(self._losses(loss, batch).means())
                    ).items():
                        totals[name] = totals.get(name, 0.0) + value * len(chunk)
        means = {name: total / len(indices) for name, total in totals.items()}
        self._refuse_divergence(means, "validation")
        return means

    def prepare_save(self) -> None:
        """What a stage does between a validation and the checkpoint."""
        if self.stage.before_save is not None:
            with fixed_noise(self.seed), self.kept_weights():
                self.stage.before_save()

    def note_score(self, score: float) -> None:
        """Remember the best validation score.

        A discriminator that learns changes what a score means, so its last score counts as the best.
        Scores of an earlier stage do not compare either: the first one after it is the best so far,
        and patience counts in the last stages only.
        """
        best = self.best
        if best is not None and max(best["step"] - 1, 0) < self.comparable_since:
            best = None
        if len(self.losses) == 1 and best is not None and score >= best["score"]:
            self.stale += self.stage.scored_as == self.plan[-1].scored_as
            return
        self.best = {"step": self.step, "score": score}
        self.stale = 0

    @property
    def out_of_patience(self) -> bool:
        """Whether the last validations brought no better score."""
        return self.options.patience is not None and self.stale >= self.options.patience

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights that are kept so far: the model's own, or their average."""
        return self.model.state_dict() if self.average is None else self.average.weights

    def kept_weights(self) -> AbstractContextManager[None]:
        """Inside, the model has the weights that are kept."""
        return nullcontext() if self.average is None else self.average.applied()

    def checkpoint(self) -> Checkpoint:
        """The whole state, ready to be saved."""
        generators = {"generator.cpu": torch.get_rng_state()}
        if self.fabric.device.type == "cuda":
            generators["generator.cuda"] = torch.cuda.get_rng_state(self.fabric.device)
        kept = {each.name: dict(each.state()) for each in self._stateful() if each.state()}
        return Checkpoint(
            step=self.step,
            weights=self.weights,
            training=_union(loss.tensors() for loss in self.losses)
            | generators
            | {
                f"{each.name}.{name}": value
                for each in self._stateful()
                for name, value in each.tensors().items()
            },
            state=_union(loss.settings() for loss in self.losses)
            | {
                "best": self.best,
                "stale": self.stale,
                "sums": self.sums,
                "fixed_by_data": self.model.fixed_arguments(),
            }
            | ({"callbacks": kept} if kept else {}),
        )

    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """Take back the state of a checkpoint whose weights the model has, so that the next update is
        the one that would have followed; `path` is where it was read."""
        state, tensors = checkpoint.state, checkpoint.training
        used: set[str] = set()
        try:
            kept = dict(state.get("callbacks", {}))
            for each in self._stateful():
                own = {name for name in tensors if name.startswith(f"{each.name}.")}
                named = {name.removeprefix(f"{each.name}."): tensors[name] for name in own}
                own_state = kept.pop(each.name, {})
                if named or own_state or each is self.average:
                    each.restore(named, own_state)
                elif each.tensors() or each.state():
                    warn(f"{path.name} has no state of the callback '{each.name}': it starts new")
                used |= own
            for loss in self.losses:
                moments = loss.restore(tensors, state)
                if checkpoint.step and not moments:
                    raise ValueError(f"the moments of {loss.prefix}adam are missing")
                used |= moments
            unknown = (tensors.keys() - used - GENERATORS) | kept.keys()
            if unknown:
                raise ValueError(
                    f"{sorted(unknown)} are not part of a training with these callbacks"
                )
            torch.set_rng_state(tensors["generator.cpu"])
            if "generator.cuda" in tensors and self.fabric.device.type == "cuda":
                torch.cuda.set_rng_state(tensors["generator.cuda"], self.fabric.device)
            self.best, self.stale, self.sums = state["best"], state["stale"], state["sums"]
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{path} does not fit: {error}") from error
        self.step = checkpoint.step

    def _stateful(self) -> list[Callback]:
        """The callbacks whose state a checkpoint keeps."""
        average = [] if self.average is None else [self.average]
        return [*average, *(each for each in self.callbacks if each.name)]

    def _take_gradient(self, loss: OptimizedLoss, number: int = 0) -> dict[str, float]:
        """The gradient of a loss for its own parameters; returns the mean of every term."""
        stage = self.stage_of(self.step)
        indices = stage.train.batch(
            step=self.step * loss.updates + number,
            batch_size=self.options.batch_size,
            seed=self.seed,
            stream=loss.stream,
        )
        with frozen(p for other in self.losses if other is not loss for p in other.parameters):
            losses = self._losses(loss, self._batch(stage, indices, self.step))
            means = loss.named(_to_floats(losses.means()))
            self._refuse_divergence(means, "training")
            self.fabric.backward(losses.total)
        self._check_gradient(loss)
        return means

    def _batch(self, stage: Stage, indices: IndexArray, step: int) -> Batch:
        if stage.batch is None:
            return self.source.take(indices, step=step)
        return stage.batch(indices, self.source, step)

    def _losses(self, loss: OptimizedLoss, batch: Batch) -> Losses:
        # Fabric sets the precision by itself for `forward` only.
        with self.fabric.autocast():
            losses: Losses = getattr(self.forward, loss.name)(batch)
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
        once = all(loss.updates == 1 for loss in self.losses)
        return "no update was made" if once else "no further update was made"

    def _check_gradient(self, loss: OptimizedLoss) -> None:
        norm = get_total_norm([p.grad for p in loss.parameters if p.grad is not None])
        if not norm.isfinite():
            broken = _first_not_finite(self.model)
            raise DivergenceError(
                f"step {self.step}: the gradient of '{broken}' is no longer finite; "
                f"{self._no_update}. Try a lower training.learning_rate, or training.clip_norm=1"
            )
        if self.options.clip_norm is not None:
            clip_grads_with_norm_(loss.parameters, self.options.clip_norm, norm)


def _to_floats(means: Mapping[str, Tensor]) -> dict[str, float]:
    return dict(zip(means, torch.stack(list(means.values())).tolist(), strict=True))


def _union(dictionaries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for each in dictionaries for name, value in each.items()}


def _first_not_finite(model: nn.Module) -> str:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not parameter.grad.isfinite().all():
            return name
    return "all parameters together"


def _plan(model: Model, dataset: Dataset, options: TrainingOptions) -> tuple[Stage, ...]:
    """The model's plan; by default one stage of shuffled images."""
    plan = model.training_plan(dataset, steps=options.steps, batch_size=options.batch_size)
    if plan:
        return plan
    train = Shuffled(dataset.split["train"])
    return (Stage("images", 0, train, dataset.split["validation"]),)


class BatchSource:
    """Batches of a data set by index, `uint8` until they are on the device.

    Pixels of a stochastic data set are sampled here, by torch's generator, whose state a checkpoint
    keeps; pixels that are black or white stay as they are.

    Arguments:
        dataset: where images and factors come from.
        device: where batches go.
        dtype: of the numbers in a batch.
    """

    def __init__(
        self, dataset: Dataset, *, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> None:
        self.device = device
        self.dtype = dtype
        self.stochastic = dataset.stochastic
        self.images: Any = dataset.images
        self.in_memory = isinstance(dataset.images, np.ndarray) and dataset.images.flags.writeable
        if self.in_memory:
            self.images = torch.from_numpy(dataset.images)
        self.factors = torch.tensor(dataset.factors, dtype=dtype)

    @classmethod
    def like(cls, model: nn.Module, dataset: Dataset) -> Self:
        """Batches on the device of a model's weights, in their precision."""
        weight = next(model.parameters())
        return cls(dataset, device=weight.device, dtype=weight.dtype)

    def take(self, indices: IndexArray, *, step: int = 0) -> Batch:
        """Images and factors of some indices (n,)."""
        where = torch.from_numpy(indices)
        images: Tensor = (
            self.images.index_select(0, where)
            if self.in_memory
            else torch.from_numpy(self.images[indices])
        )
        x = to_unit_range(images.to(self.device, non_blocking=True)).to(self.dtype)
        return Batch(
            x=torch.rand_like(x).lt_(x) if self.stochastic else x,
            u=self.factors.index_select(0, where).to(self.device, non_blocking=True),
            step=step,
        )
