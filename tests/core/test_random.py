"""Seeded noise is repeatable and leaves the caller's generator unchanged."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
import torch

from disentwine.core.random import fixed_noise, seeded


@pytest.mark.parametrize("noise", [fixed_noise, seeded])
def test_a_seed_repeats_and_the_callers_generator_is_unchanged(noise) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with noise(3):
        first = torch.rand(4)
    assert torch.equal(torch.get_rng_state(), before)
    with noise(3):
        assert torch.equal(torch.rand(4), first)
    with noise(4):
        assert not torch.equal(torch.rand(4), first)


@pytest.mark.parametrize("noise", [fixed_noise, seeded])
def test_the_callers_generator_is_unchanged_after_an_error(noise) -> None:
    before = torch.get_rng_state()
    with suppress(KeyError), noise(3):
        torch.rand(4)
        raise KeyError
    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_seed_noise_differs_and_the_generator_is_unchanged() -> None:
    before = torch.get_rng_state()
    samples = []
    for _ in range(2):
        with seeded(None):
            samples.append(torch.rand(4))
    assert not torch.equal(*samples)
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_sample_one_after_another() -> None:
    """The generator belongs to the process: without the lock one thread would restore another's state."""
    answers: list[torch.Tensor] = []

    def sample() -> None:
        with seeded(3):
            answers.append(torch.cat([torch.rand(1) for _ in range(200)]))

    threads = [threading.Thread(target=sample) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(answer, answers[0]) for answer in answers)
