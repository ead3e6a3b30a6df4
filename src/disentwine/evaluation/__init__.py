"""Measuring trained models: scores, latent traversals, baselines."""

from disentwine.evaluation.evaluate import Evaluation, evaluate, evaluate_baseline, evaluate_run
from disentwine.evaluation.latents import traverse

__all__ = ["Evaluation", "evaluate", "evaluate_baseline", "evaluate_run", "traverse"]
