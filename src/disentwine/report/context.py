"""The run, data set and evaluation that a report shows."""

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
class ReportContext:
    """What a report shows.

    Arguments:
        run: the run folder.
        dataset: where its images come from.
        found: its evaluation on held-out images.
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
        """The run's status; of a run that was killed before writing one, from its checkpoint."""
        checkpoint = self.run.checkpoint
        known = {"step": checkpoint.step, "best": checkpoint.state.get("best")}
        return known | self.run.status

    @property
    def badge(self) -> str:
        """The progress of the training."""
        step, steps = self.status["step"], self.run.recipe.training["steps"]
        if not self.run.finished:
            return f"unfinished, step {step:,} of {steps:,}"
        return "finished" if step == steps else f"stopped early, step {step:,} of {steps:,}"

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def summary(self) -> str:
        """One sentence: size of the training set, steps, time and best validation loss."""
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
    def active(self) -> NDArray[np.bool_]:
        """(d,) which latents are active."""
        score = self.found.score("active-units")
        return np.array(score.details["active"] if score is not None else [], dtype=bool)

    @cached_property
    def activity(self) -> NDArray[np.float64]:
        """(d,) the KL divergence of each latent, or else its variance; of a quantized latent the
        probability that two images have different codes."""
        if self.found.latent_kl is not None:
            return self.found.latent_kl
        latents = self.found.latents
        if latents is not None and isinstance(self.model, Quantizes):
            return np.array([1 - np.square(code_frequencies(z)[1]).sum() for z in latents.T])
        return np.zeros(0) if latents is None else latents.var(axis=0, dtype=np.float64)

    @cached_property
    def most_informative(self) -> list[int]:
        """Active latents, the most informative first."""
        return [int(i) for i in np.argsort(-self.activity, kind="stable") if self.active[i]]

    def shown(self, most: int) -> list[int]:
        """The most informative latents; in a hierarchy of all layers in turn, from the top down."""
        if isinstance(self.model, Hierarchical):
            return round_robin_by_layer(self.most_informative, self.model.latent_layers, most=most)
        return self.most_informative[:most]

    @property
    def active_by_kl(self) -> bool:
        """Whether a latent is active by its KL divergence, as in hierarchies, not by its variance."""
        return isinstance(self.model, Hierarchical) and self.found.latent_kl is not None

    def latent_name(self, latent: int) -> str:
        """The name of a latent in figures."""
        if isinstance(self.model, Hierarchical):
            return f"layer {self.model.latent_layers[latent]}, z{latent}"
        return f"z{latent}"

    @property
    def activity_name(self) -> str:
        if self.found.latent_kl is not None:
            return "KL"
        return "differs" if isinstance(self.model, Quantizes) else "var"
