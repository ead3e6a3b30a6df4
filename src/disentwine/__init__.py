"""Representations you can intervene on.

>>> from disentwine import VAE, data, fit
>>> pendulum = data.Pendulum(size=32)
>>> model = fit(VAE.for_data(pendulum), pendulum, steps=1)
>>> model.represent(pendulum.images[0]).shape
(10,)
"""

# ruff: noqa: F405 - names of models come from their own list
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Threads that spin long slow down other processes, threads that never spin wake up late. Torch reads
# this variable when it is imported (docs/decisions/0004).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "8000")

if TYPE_CHECKING:
    from disentwine import causal, data, figures, metrics
    from disentwine.causal.discovery import discover
    from disentwine.evaluation import evaluate, traverse
    from disentwine.models import *  # noqa: F403
    from disentwine.runs.fit import fit
    from disentwine.runs.run import load_run

# Names are imported on first use, so that `disentwine --help` does not import torch.
_ROOMS = ("causal", "data", "figures", "metrics")
_HOMES = {
    "discover": "disentwine.causal.discovery",
    "evaluate": "disentwine.evaluation",
    "fit": "disentwine.runs.fit",
    "load_run": "disentwine.runs.run",
    "traverse": "disentwine.evaluation",
}

__all__ = [
    "CTVAE",
    "DCIGN",
    "DIPVAEI",
    "DIPVAEII",
    "MCQVAE",
    "VAE",
    "VQVAE",
    "WAEGAN",
    "WAEMMD",
    "BetaTCVAE",
    "BetaVAE",
    "CausalGAN",
    "CausalVAE",
    "CausalWAE",
    "ConditionVAE",
    "FactorVAE",
    "HierarchicalVAE",
    "InfoGAN",
    "LadderVAE",
    "LayeredCausalVAE",
    "LayeredCausalWAE",
    "UnsupervisedCausalVAE",
    "causal",
    "data",
    "discover",
    "evaluate",
    "figures",
    "fit",
    "load_run",
    "metrics",
    "traverse",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("disentwine")
    if name in _ROOMS:
        return import_module(f"disentwine.{name}")
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "disentwine.models")), name)
    raise AttributeError(f"module 'disentwine' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
