"""Recipe schemas made from the signatures of constructors, so that nothing is declared twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from disentwine.errors import did_you_mean

LIST_TYPES = ("tuple_type", "list_type", "set_type", "frozen_set_type")
"""What pydantic calls them; YAML has lists for all of these."""

LONGEST_SHOWN = 200
"""Characters of a wrong value that are told: a network, given for its name, has thousands."""


def schema_of(function: Callable[..., Any], *, without: Collection[str] = ()) -> type[BaseModel]:
    """A pydantic model of a function's keyword arguments.

    Arguments:
        function: a class or function with typed keyword arguments.
        without: arguments that a recipe does not set.

    >>> def bake(*, minutes: int, hot: bool = True) -> None: ...
    >>> schema_of(bake)(minutes="5").model_dump()
    {'minutes': 5, 'hot': True}
    """
    target = function.__init__ if inspect.isclass(function) else function
    hints = get_type_hints(target, include_extras=True)
    arguments: dict[str, Any] = {
        name: (
            hints.get(name, Any),
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in without
    }
    return create_model(
        function.__name__, __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **arguments
    )


def check(
    schema: type[BaseModel], values: Mapping[str, Any], *, section: str
) -> tuple[dict[str, Any], list[str]]:
    """Values with their defaults filled in, and a line for each thing that is wrong with them.

    >>> def bake(*, minutes: int, hot: bool = True) -> None: ...
    >>> check(schema_of(bake), {"minute": 5}, section="oven")[1]
    ["oven.minute: unknown key. Did you mean 'minutes'?", 'oven.minutes: missing; give a value']
    """
    try:
        return schema(**values).model_dump(mode="json"), []
    except ValidationError as error:
        lines = dict.fromkeys(_line(problem, schema, section) for problem in error.errors())
        return {}, sorted(lines)
    except TypeError:
        return {}, [f"{section}: keys must be text"]


def _line(problem: Any, schema: type[BaseModel], section: str) -> str:
    key, *inner = [str(part) for part in problem["loc"]]
    path, choices = [section, key] if section else [key], list(schema.model_fields)
    field = schema.model_fields.get(key)
    if inner and field is not None and is_dataclass(field.annotation):
        path, choices = [*path, inner[0]], [own.name for own in fields(field.annotation)]
    where = ".".join(path)
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{where}: unknown key. {did_you_mean(path[-1], choices)}"
    if problem["type"] == "missing":
        return f"{where}: missing; give a value"
    reason = problem["msg"][0].lower() + problem["msg"][1:]
    if problem["type"] in LIST_TYPES:
        reason = "expected a list in brackets, such as [16,8] or [x,y]"
    return f"{where}: {reason}, got {_shown(problem['input'])}"


def _shown(value: Any) -> str:
    """A value as it was given, or what it is where that would fill the screen."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"a {type(value).__name__}"
