"""Exceptions with exit codes, warnings and suggestions for misspelt names."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable


class DisentwineError(Exception):
    """An error that the user can fix; the command prints its message without a traceback."""

    exit_code = 1


class UsageError(DisentwineError):
    """A wrong argument, recipe key or option."""

    exit_code = 2


class DataError(DisentwineError):
    """A data set that is missing, damaged or inconsistent."""


class CheckpointError(DisentwineError):
    """A damaged or incompatible checkpoint."""


class StorageError(DisentwineError):
    """A file that cannot be read or written, such as on a full or read-only disk."""


class DivergenceError(DisentwineError):
    """A loss term or gradient that is no longer finite."""


class StudyError(DisentwineError):
    """Some trials of a study failed; the results of the others are kept."""


class Interrupted(DisentwineError):  # noqa: N818 - an interruption is not an error
    """Training was stopped by a signal after its state was saved."""

    def __init__(self, message: str, *, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; torch has no exception class for it.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to ..."))
    True
    """
    phrases = ("allocate memory", "out of memory", "Storage size calculation overflowed")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in phrases)
    )


def warn(message: str) -> None:
    """Print one line of warning to stderr."""
    print(f"disentwine: warning: {message}", file=sys.stderr)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Suggest the closest choice, or list all choices when none is close.

    >>> did_you_mean("latnet", ["latent", "beta"])
    "Did you mean 'latent'?"
    >>> did_you_mean("xyz", ["latent", "beta"])
    'Choose from: beta, latent.'
    """
    choices = sorted(choices)
    closest = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    if closest:
        return f"Did you mean '{closest[0]}'?"
    return f"Choose from: {', '.join(choices)}." if choices else "There is nothing to choose from."
