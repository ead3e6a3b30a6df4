"""Measures that other processes can import by name."""

from disentwine.contracts.score import Score


def count_steps(run, factor=1.0):
    return [Score("steps", factor * run.status["step"], n=1)]
