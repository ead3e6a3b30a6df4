"""Measures that other processes can import by name."""

import os
import signal

from disentwine.core.score import Score


def count_steps(run, factor=1.0):
    return [Score("steps", factor * run.status["step"], n=1)]


def kill_worker(run):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_worker_after_three_steps(run):
    if run.status["step"] == 3:
        kill_worker(run)
    return count_steps(run)
