"""Every error a user can cause, and warnings: each says what was wrong, where, and what to do."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable


class DisentwineError(Exception):
    """Something the user can mend; the command prints its text, never a traceback."""

    exit_code = 1


class UsageError(DisentwineError):
    """A wrong argument, recipe key or option."""

    exit_code = 2


class DataError(DisentwineError):
    """A data set that is missing, damaged or inconsistent."""


class CheckpointError(DisentwineError):
    """A checkpoint that cannot be trusted."""


class StorageError(DisentwineError):
    """A disk that is full, read-only or otherwise refuses to be written or read."""


class DivergenceError(DisentwineError):
    """A loss term or gradient that is no longer finite."""


class StudyError(DisentwineError):
    """Some trainings of a study failed; the others are kept."""


class Interrupted(DisentwineError):  # noqa: N818 - being stopped is not a fault
    """Training was stopped by a signal after its state was saved."""

    def __init__(self, message: str, *, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def is_want_of_memory(error: BaseException) -> bool:
    """Whether there was not memory enough; torch has no class of its own for that.

    >>> is_want_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to ..."))
    True
    """
    told = ("allocate memory", "out of memory", "Storage size calculation overflowed")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in told)
    )


def warn(message: str) -> None:
    """One line for the user, who should know it although the work goes on."""
    print(f"disentwine: warning: {message}", file=sys.stderr)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a sentence naming the nearest choice, or all choices when none is near.

    >>> did_you_mean("latnet", ["latent", "beta"])
    "Did you mean 'latent'?"
    >>> did_you_mean("xyz", ["latent", "beta"])
    'Choose from: beta, latent.'
    """
    choices = sorted(choices)
    nearest = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    if nearest:
        return f"Did you mean '{nearest[0]}'?"
    return f"Choose from: {', '.join(choices)}." if choices else "There is nothing to choose from."
