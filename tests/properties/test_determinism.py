"""The same seed gives the same weights in every process, and leaves no trace in the caller's."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.data import Arrays
from disentwine.models import MODELS
from disentwine.runs.fit import fit

PROGRAM = """
import hashlib, json, sys
import safetensors.torch
from disentwine.data import Arrays, Pendulum
from disentwine.models import MODELS
from disentwine.testing import small_grid
from disentwine.runs.fit import fit
from disentwine.core.random import fixed_noise

seed = int(sys.argv[1])
pendulum = Pendulum(size=32)
some = slice(0, 28 * 87, 29)  # a grid of 28 angles and 3 lights
pendulum = Arrays(
    images=pendulum.images[some],
    factors=pendulum.factors[some],
    names=pendulum.names,
    edges=list(pendulum.graph.edges),
)
digests = {}
for name, cls in MODELS.items():
    acts = "actions" in cls.fixed_by_data
    dataset = small_grid((16, 16, 1)) if acts else pendulum
    options = {"pretrain_steps": 1} if acts else {}
    with fixed_noise(seed):
        model = cls.for_data(dataset, **options)
    fit(model, dataset, steps=3, save_every=3, batch_size=16, threads=1, seed=seed)
    weights = {k: v.contiguous() for k, v in model.state_dict().items()}
    digests[name] = hashlib.sha256(safetensors.torch.save(weights)).hexdigest()
print(json.dumps(digests))
"""


def start(seed: int, *, hash_seed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
    )


def digests(process: subprocess.Popen[str]) -> dict[str, str]:
    answer, _ = process.communicate(timeout=280)
    assert process.returncode == 0
    return dict(json.loads(answer))


def test_every_model_is_the_same_in_two_processes() -> None:
    processes = [start(0, hash_seed="1"), start(0, hash_seed="2"), start(1, hash_seed="1")]
    first, second, other = map(digests, processes)
    assert set(first) == set(MODELS)
    assert first == second
    for name in MODELS:
        assert first[name] != other[name], f"{name} ignores its seed"


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
