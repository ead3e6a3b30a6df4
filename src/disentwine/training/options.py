"""`key=value` words from the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from disentwine.errors import UsageError


def parse_options(words: Sequence[str]) -> dict[str, Any]:
    """Values by dotted key, read as YAML.

    >>> parse_options(["model.beta=4", "data.size=64"])
    {'model.beta': 4, 'data.size': 64}
    """
    options: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"'{word}' is not of the form key=value, such as model.beta=4")
        try:
            options[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UsageError(f"'{word}': the value is not valid YAML") from error
    return options


def with_example(problem: str) -> str:
    """What is wrong with a value, in words of YAML: it has lists where Python has several kinds.

    >>> with_example("model.layers: input should be a valid tuple, got '16,8'")
    "model.layers: expected a list in brackets, such as [16,8] or [x,y], got '16,8'"
    """
    example = "expected a list in brackets, such as [16,8] or [x,y]"
    return re.sub(r"input should be a valid (tuple|list|frozenset|set)\b", example, problem)
