"""Trainings shared by beta-VAE and DIP-VAE studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from disentwine.data.files import existing_files
from disentwine.data.published.dsprites import candidates
from disentwine.studies.trial import Trial

STEPS = 10_000
"""Updates of a training at batches of 64: five minutes on one core."""

NETWORK = (
    "model.network=normed",
    "training.learning_rate=.003",
    "training.final_learning_rate=.0003",
)
"""The network that learns most in that time (`benchmarks/networks.py`)."""

LARGE_BATCH = ("training.batch_size=256",)

STEPS_OF_LARGE_BATCH = 3_000
"""The same time with batches of 256, for penalties on moments, whose noise falls with the batch size."""

START_BETA, ANNEALING = 60, 0.3
"""Initial KL weight of an annealed training, and the share of updates over which it decreases."""

WARM_UP = 0.2
"""Length of the KL warm-up after latents were reset, as a share of the updates."""

RESET_LATENTS = "reset latents"
"""Suffix of systems whose inactive latents were re-initialised (see `with_reset_latents`)."""

SMOKE_STEPS = 20

LONG = "long"
"""Suffix of the notes of long trainings."""

SAVES = 10
"""Checkpoints of a training, each with scores."""

LONG_SAVES, LONG_TIMES = 45, 18
"""Checkpoints of a training of 90 minutes on one core, and its factor on the updates."""

DATA: Mapping[str, tuple[str, ...]] = {
    "dsprites-grid": ("data.name=dsprites", "data.variant=grid"),
    "dsprites": ("data.name=dsprites",),
    "dsprites-rerender": ("data.name=dsprites", "data.variant=rerender"),
    "shapes2d": ("data.name=shapes2d",),
}
"""Sources of the same scene: 46,080 real images, all real images, all re-rendered, our own."""

RECIPES = {"infogan": "infogan-shapes2d", "factor-vae": "factor-vae-shapes2d"}
"""Recipes of systems with their own training options."""


def available_data() -> list[str]:
    """Available sources of the scene, real images first; the last is always available."""
    variants = {"dsprites-grid": "grid", "dsprites": "full", "dsprites-rerender": "rerender"}
    return [
        data for data in DATA if data == "shapes2d" or existing_files(candidates(variants[data]))
    ]


def training(
    system: str,
    data: str,
    seed: int,
    *options: str,
    note: str = "",
    stage: int = 1,
    steps: int = STEPS,
    saves: int = SAVES,
) -> Trial:
    """One training, with the network that learns fastest, unless the system has its own recipe."""
    own = system in RECIPES
    overrides = (
        *DATA[data],
        *(() if own else (f"model.name={system}", *NETWORK)),
        *(options if own or system == "dc-ign" else ("model.latent=10", *options)),
        f"training.steps={steps}",
        f"training.save_every={max(1, steps // saves)}",
    )
    recipe = RECIPES.get(system, "beta-vae-shapes2d")
    return Trial(system, data, seed, recipe, overrides, note=note, stage=stage)


def trained_longer(trial: Trial, *, times: int = LONG_TIMES, stage: int) -> Trial:
    """The same training with a multiple of the updates, for its learning curve."""
    steps = times * trial.read_recipe().training["steps"]
    longer = f"training.steps={steps}", f"training.save_every={steps // LONG_SAVES}"
    note = f"{trial.note} {LONG}".strip()
    return replace(trial, note=note, stage=stage, overrides=(*trial.overrides, *longer))


def annealed(trial: Trial) -> Trial:
    """The same training with KL annealing: the KL weight is largest at first. A system of its own.

    The model then learns few factors at a time. Otherwise three latents may encode position and size
    as a direction and a length, which is as good for the loss but aligns no latent with a factor.
    """
    steps = trial.read_recipe().training["steps"]
    schedule = f"model.start_beta={START_BETA}", f"model.warm_up_steps={int(ANNEALING * steps)}"
    return replace(
        trial, system=f"{trial.system} annealed", overrides=(*trial.overrides, *schedule)
    )


def with_reset_latents(
    trial: Trial, *, after: Trial, times: int = 1, latents: int | None = None
) -> Trial:
    """The same training initialised from an annealed one, with inactive latents re-initialised.

    Their KL divergence has no weight at first. Without both measures the decoder keeps ignoring
    them. They encode the remaining factors; factors already aligned with a latent keep it.

    Arguments:
        trial: the training.
        after: the annealed training.
        times: factor on its number of updates; the KL warm-up keeps its length.
        latents: how many are re-initialised; all of them by default.
    """
    steps = trial.read_recipe().training["steps"]
    schedule = (
        "model.start_beta=0",
        f"model.warm_up_steps={int(WARM_UP * steps)}",
        f"training.reset_inactive_latents={latents or 'true'}",
        *((f"training.steps={times * steps}",) if times > 1 else ()),
    )
    how = f"{latents} reset latent{'s' * (latents > 1)}" if latents else RESET_LATENTS
    return replace(
        trial, system=f"{trial.system} {how}", overrides=(*trial.overrides, *schedule), after=after
    )


def smoke_trial(system: str, seed: int, *options: str, note: str = "") -> Trial:
    """A training of a few updates."""
    few = "training.batch_size=16"
    return training(system, "shapes2d", seed, few, *options, note=note, steps=SMOKE_STEPS, saves=1)
