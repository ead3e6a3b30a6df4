"""Plain YAML, and `key=value` words from the command line."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
            options[key] = parse_yaml(value)
        except ValueError as error:
            raise UsageError(f"'{word}': the value is not valid YAML: {error}") from error
    return options


def parse_yaml(text: str) -> Any:
    """What a YAML text of plain values says; raises `ValueError` with what is wrong, in one line.

    >>> parse_yaml("latent: 4\\nbeta: 2\\nlatent: 8")
    Traceback (most recent call last):
    ValueError: line 3: 'latent' is given twice, in line 1 already; remove one of them
    """
    try:
        return _OnceEach(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error


class _OnceEach(yaml.SafeLoader):
    """Refuses a key that is given twice: the first value would be lost without a word."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line, name = key.start_mark.line + 1, f"{key.value}"
            if name in lines:
                raise ValueError(
                    f"line {line}: '{name}' is given twice, in line {lines[name]} already; "
                    f"remove one of them"
                )
            lines[name] = line
        return super().construct_mapping(node, deep=deep)
