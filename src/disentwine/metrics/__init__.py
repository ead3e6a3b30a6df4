"""Metrics: pure functions of arrays that return a score."""

from disentwine.metrics.actions import action_accuracy, factor_accuracy
from disentwine.metrics.active_latents import active_units
from disentwine.metrics.attributes import attribute_accuracy
from disentwine.metrics.disentanglement.dci import dci
from disentwine.metrics.disentanglement.gaps import mig, sap
from disentwine.metrics.disentanglement.info_mec import info_mec
from disentwine.metrics.disentanglement.irs import irs
from disentwine.metrics.disentanglement.mic_tic import mic, mine, tic
from disentwine.metrics.disentanglement.modularity import explicitness, modularity
from disentwine.metrics.disentanglement.shared_factor import factor_vae, z_diff
from disentwine.metrics.graphs import edge_scores, shd
from disentwine.metrics.images import counterfactual_scores, reconstruction_error, sharpness
from disentwine.metrics.interventions import effect_matrix
from disentwine.metrics.likelihood import importance_log_likelihood
from disentwine.metrics.registry import METRICS

__all__ = [
    "METRICS",
    "action_accuracy",
    "active_units",
    "attribute_accuracy",
    "counterfactual_scores",
    "dci",
    "edge_scores",
    "effect_matrix",
    "explicitness",
    "factor_accuracy",
    "factor_vae",
    "importance_log_likelihood",
    "info_mec",
    "irs",
    "mic",
    "mig",
    "mine",
    "modularity",
    "reconstruction_error",
    "sap",
    "sharpness",
    "shd",
    "tic",
    "z_diff",
]
