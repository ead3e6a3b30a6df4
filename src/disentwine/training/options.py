"""`key=value` words from the command line."""

from __future__ import annotations

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
