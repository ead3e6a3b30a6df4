"""Evaluating trained models: scores, latent traversals, baselines."""

from disentwine.evaluation.baselines import evaluate_baseline
from disentwine.evaluation.evaluate import EVALUATORS, Evaluation, evaluate, evaluate_run
from disentwine.evaluation.latents import traverse

__all__ = [
    "EVALUATORS",
    "Evaluation",
    "evaluate",
    "evaluate_baseline",
    "evaluate_run",
    "traverse",
]
