"""What a report is about (run, data, evaluation)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disentwine.core.capabilities import Adversarial, Hierarchical, Quantizes
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.evaluation.evaluate import Evaluation
from disentwine.evaluation.latents import code_frequencies, round_robin_by_layer
from disentwine.report.text import duration, number
from disentwine.runs.run import Run


@dataclass(frozen=True)
class Subject:
    """Arguments:
    run: the run folder.
    dataset: where its images come from.
    found: what a pass over its held-out images found.
    """

    run: Run
    dataset: Dataset
    found: Evaluation

    @property
    def model(self) -> Model:
        return self.run.model

    @property
    def title(self) -> str:
        return f"{self.run.recipe.model['name']} on {self.run.recipe.data['name']}"

    @cached_property
    def status(self) -> dict[str, Any]:
        """The run's status, with what a run killed before writing one is known to have done."""
        checkpoint = self.run.checkpoint
        known = {"step": checkpoint.step, "best": checkpoint.state.get("best")}
        return known | self.run.status

    @property
    def badge(self) -> str:
        """How far the training came."""
        step, steps = self.status["step"], self.run.recipe.training["steps"]
        if not self.run.finished:
            return f"unfinished, step {step:,} of {steps:,}"
        return "finished" if step == steps else f"stopped early, step {step:,} of {steps:,}"

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def summary(self) -> str:
        """One sentence: how much was learnt from, for how long, and how well it went."""
        train, best = len(self.dataset.split["train"]), self.status.get("best")
        sentence = (
            f"Trained on {train:,} of {len(self.dataset):,} images for "
            f"{self.status['step']:,} steps"
        )
        if "seconds" in self.status:
            sentence += f" in {duration(self.status['seconds'])}"
        if best and not isinstance(self.model, Adversarial):
            sentence += f"; the best validation loss was {number(best['score'])}"
            sentence += f" at step {int(best['step']):,}"
        return sentence + "."

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """(d,) which units of the code say something."""
        score = self.found.score("active-units")
        return np.array(score.details["alive"] if score is not None else [], dtype=bool)

    @cached_property
    def activity(self) -> NDArray[np.float64]:
        """(d,) how much each unit carries: its KL divergence, or else its code's variance; of a unit
        whose codes are names the chance that two images have different ones."""
        if self.found.unit_kl is not None:
            return self.found.unit_kl
        codes = self.found.codes
        if codes is not None and isinstance(self.model, Quantizes):
            return np.array([1 - np.square(code_frequencies(unit)[1]).sum() for unit in codes.T])
        return np.zeros(0) if codes is None else codes.var(axis=0, dtype=np.float64)

    @cached_property
    def busiest(self) -> list[int]:
        """Units that say something, the busiest first."""
        return [int(i) for i in np.argsort(-self.activity, kind="stable") if self.alive[i]]

    def shown(self, most: int) -> list[int]:
        """The busiest units; of a hierarchy a fair share of each layer, from the top down."""
        if isinstance(self.model, Hierarchical):
            return round_robin_by_layer(self.busiest, self.model.latent_layers, most=most)
        return self.busiest[:most]

    @property
    def counted_by_divergence(self) -> bool:
        """Whether a unit is alive by its divergence, as those of hierarchies are, not its variance."""
        return isinstance(self.model, Hierarchical) and self.found.unit_kl is not None

    def unit_name(self, unit: int) -> str:
        """What figures call a unit of the code."""
        if isinstance(self.model, Hierarchical):
            return f"layer {self.model.latent_layers[unit]}, z{unit}"
        return f"z{unit}"

    @property
    def activity_name(self) -> str:
        if self.found.unit_kl is not None:
            return "KL"
        return "differs" if isinstance(self.model, Quantizes) else "var"
