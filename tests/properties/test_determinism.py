"""The same seed gives the same weights in every process, and leaves no trace in the caller's."""

from __future__ import annotations

import json
import os
import random
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.data import Arrays
from disentwine.models import MODELS
from disentwine.runs.fit import fit

WORKER = Path(__file__).with_name("determinism_worker.py")


def test_every_model_is_the_same_in_two_processes() -> None:
    """Strings have another hash in the other process, and so sets another order."""
    process = subprocess.Popen(
        [sys.executable, str(WORKER), "0"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "2"},
    )
    digests = runpy.run_path(str(WORKER))["digests"]
    here, other_seed = digests(0), digests(1)
    answer, _ = process.communicate(timeout=280)
    assert process.returncode == 0
    assert set(here) == set(MODELS)
    assert here == json.loads(answer)
    for name in MODELS:
        assert here[name] != other_seed[name], f"{name} ignores its seed"


@pytest.mark.parametrize("fails", [False, True])
def test_the_callers_generators_and_threads_are_left_alone(train: Any, fails: bool) -> None:
    def fail(model: Any, step: int) -> None:
        if fails:
            raise KeyError

    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(5)
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index,union-attr]
    torch.set_num_threads(2)
    try:
        train(None, threads=1, on_save=fail)
    except KeyError:
        assert fails
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert threads == 2
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.random.get_state()[1].tolist() == states[1]  # type: ignore[index,union-attr]
    assert random.getstate() == states[2]


def test_the_callers_generators_do_not_decide_the_training(train: Any) -> None:
    weights = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        weights.append(train(None).state_dict())
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name])


def test_the_seed_decides_batches_and_noise(train: Any) -> None:
    first, second = train(None, seed=1).state_dict(), train(None, seed=2).state_dict()
    assert not torch.equal(first["encoder.1.weight"], second["encoder.1.weight"])


def test_threads_are_those_that_were_asked_for(train: Any) -> None:
    seen = []
    train(None, threads=2, on_save=lambda model, step: seen.append(torch.get_num_threads()))
    assert set(seen) == {2}


def test_read_only_arrays_are_welcome(pictures: Arrays, build: Any) -> None:
    images, factors = pictures.images.copy(), pictures.factors.copy()  # type: ignore[attr-defined]
    images.flags.writeable = factors.flags.writeable = False
    frozen = Arrays(images=images, factors=factors)
    frozen.factors.flags.writeable = False
    options: dict[str, Any] = {"steps": 3, "batch_size": 8, "threads": 1, "progress": False}
    kept, other = fit(build(), frozen, **options), fit(build(), pictures, **options)
    assert torch.equal(
        kept.state_dict()["encoder.1.weight"], other.state_dict()["encoder.1.weight"]
    )
