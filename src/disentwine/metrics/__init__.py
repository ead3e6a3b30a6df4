"""Pure functions of arrays that answer with a score."""

from disentwine.metrics.accuracy import action_accuracy, attribute_accuracy, factor_accuracy
from disentwine.metrics.activity import active_units
from disentwine.metrics.counterfactual import counterfactual_scores
from disentwine.metrics.dci import dci
from disentwine.metrics.effects import effect_matrix
from disentwine.metrics.factor_vae import factor_vae
from disentwine.metrics.graphs import edge_scores, shd
from disentwine.metrics.info_mec import info_mec
from disentwine.metrics.irs import irs
from disentwine.metrics.likelihood import importance_log_likelihood
from disentwine.metrics.mig import mig
from disentwine.metrics.mine import mic, mine, tic
from disentwine.metrics.modularity import explicitness, modularity
from disentwine.metrics.reconstruction import reconstruction_error
from disentwine.metrics.registry import METRICS
from disentwine.metrics.sap import sap
from disentwine.metrics.sharpness import sharpness
from disentwine.metrics.z_diff import z_diff

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
