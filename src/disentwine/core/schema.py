"""Recipe schemas from constructor signatures, and readable validation errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, get_args, get_type_hints

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError

from disentwine.errors import did_you_mean

LIST_TYPES = ("tuple_type", "list_type", "set_type", "frozen_set_type")
"""Pydantic's error types for values that are lists in YAML."""

MAX_SHOWN = 200
"""Longest value, in characters, that an error quotes; longer values are replaced by their type."""


def schema_of(function: Callable[..., Any], *, without: Collection[str] = ()) -> type[BaseModel]:
    """Pydantic model of the keyword arguments of a function.

    Arguments:
        function: a class or function with typed keyword arguments.
        without: arguments to leave out.

    >>> def bake(*, minutes: int, hot: bool = True) -> None: ...
    >>> schema_of(bake)(minutes="5").model_dump()
    {'minutes': 5, 'hot': True}
    """
    return _schema(function, tuple(without))


@lru_cache(maxsize=512)
def _schema(function: Callable[..., Any], without: tuple[str, ...]) -> type[BaseModel]:
    """`schema_of`, cached: a study reads hundreds of recipes."""
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
    return create_model(function.__name__, __base__=_Arguments, **arguments)


def check(
    schema: type[BaseModel], values: Mapping[str, Any], *, section: str, also: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Values with defaults filled in, and one line for each problem.

    Arguments:
        schema: of the values.
        values: to validate.
        section: prefix of the keys in messages.
        also: further keys to suggest for unknown ones.

    >>> def bake(*, minutes: int, hot: bool = True) -> None: ...
    >>> check(schema_of(bake), {"minute": 5}, section="oven")[1]
    ["oven.minute: unknown key. Did you mean 'minutes'?", 'oven.minutes: missing; give a value']
    """
    parsed, problems = parse(schema, values, section=section, also=also)
    return {} if parsed is None else parsed.model_dump(mode="json"), problems


def parse(
    schema: type[BaseModel], values: Mapping[str, Any], *, section: str, also: Sequence[str] = ()
) -> tuple[BaseModel | None, list[str]]:
    """As `check`, but with Python types instead of JSON types (tuples, dataclasses)."""
    try:
        return schema(**values), []
    except ValidationError as error:
        lines = dict.fromkeys(_line(problem, schema, section, also) for problem in error.errors())
        return None, sorted(lines)
    except TypeError:
        return None, [f"{section}: keys must be text"]


def non_defaults(schema: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values to write in a recipe: required ones and those that differ from the default.

    Arguments:
        schema: made by `schema_of`.
        values: from `check`, with defaults filled in.

    >>> def bake(*, minutes: int, hot: bool = True, rack: int = 2) -> None: ...
    >>> non_defaults(schema_of(bake), {"minutes": 5, "hot": True, "rack": 3})
    {'minutes': 5, 'rack': 3}
    """
    required = {
        name: values[name] for name, field in schema.model_fields.items() if field.is_required()
    }
    defaults = schema(**required).model_dump(mode="json")
    groups = {
        name: non_defaults(schema_of(group), value)
        for name, value in values.items()
        if isinstance(value, Mapping) and defaults.get(name, value) is None
        for group in [_group(schema, name)]
        if group is not None
    }
    return required | _differing(values, defaults) | groups


def _differing(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Values that differ from the defaults; of nested mappings only the keys that differ."""
    found = {}
    for name, value in values.items():
        default = defaults.get(name)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            value = _differing(value, default)
            if value:
                found[name] = value
        elif name not in defaults or value != default:
            found[name] = value
    return found


class _Arguments(BaseModel):
    """Base of all schemas: accepts NumPy scalars, refuses booleans as numbers."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, revalidate_instances="always")

    @field_validator("*", mode="before")
    @classmethod
    def _without_numpy_scalars(cls, value: Any, info: ValidationInfo) -> Any:
        name = info.field_name or ""
        plain = _without_numpy(value)
        if _is_not_a_number(plain, cls.model_fields[name].annotation):
            raise PydanticCustomError("no_number", "expected a number")
        group = _group(cls, name)
        if group is not None and isinstance(plain, Mapping):
            hints = get_type_hints(group, include_extras=True)
            wrong = [key for key in hints if _is_not_a_number(plain.get(key), hints[key])]
            if wrong:
                problem = f"expected a number for {' and '.join(wrong)}"
                raise PydanticCustomError("no_number", "{problem}", {"problem": problem})
        return plain


def _is_not_a_number(value: Any, annotation: Any) -> bool:
    """Whether a boolean, or a list with booleans, is given for a number."""
    items = value if isinstance(value, list | tuple) else [value]
    kinds = _kinds(annotation)
    wants_number = bool not in kinds and not kinds.isdisjoint((int, float))
    return wants_number and any(isinstance(item, bool) for item in items)


def _without_numpy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_numpy(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_without_numpy(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def _kinds(annotation: Any) -> set[Any]:
    """The types in an annotation.

    >>> _kinds(tuple[int, ...] | None) == {int, ..., type(None)}
    True
    """
    parts = get_args(annotation)
    return set().union(*map(_kinds, parts)) if parts else {annotation}


def _group(schema: type[BaseModel], name: str) -> type[Any] | None:
    """The dataclass of options that an argument takes, also if it is optional."""
    field = schema.model_fields.get(name)
    kinds = set() if field is None else _kinds(field.annotation)
    return next((kind for kind in kinds if is_dataclass(kind) and isinstance(kind, type)), None)


def _nested_key(schema: type[BaseModel], key: str) -> str | None:
    """`group.key` of the first group of options with this key."""
    for name in schema.model_fields:
        group = _group(schema, name)
        if group is not None and key in {field.name for field in fields(group)}:
            return f"{name}.{key}"
    return None


def _line(problem: Any, schema: type[BaseModel], section: str, also: Sequence[str]) -> str:
    key, *inner = [str(part) for part in problem["loc"]]
    path, choices = [section, key] if section else [key], [*schema.model_fields, *also]
    group = _group(schema, key)
    if inner and group is not None:
        path, choices = [*path, inner[0]], [own.name for own in fields(group)]
    where = ".".join(path)
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        nested = None if inner else _nested_key(schema, key)
        hint = did_you_mean(path[-1], choices) if nested is None else f"Did you mean '{nested}'?"
        return f"{where}: unknown key. {hint}"
    if problem["type"] == "missing":
        return f"{where}: missing; give a value"
    reason = problem["msg"][0].lower() + problem["msg"][1:]
    if problem["type"] in LIST_TYPES:
        reason = "expected a list in brackets, such as [16,8] or [x,y]"
    return f"{where}: {reason}, got {_shown(problem['input'])}"


def _shown(value: Any) -> str:
    """A value as given, or its type if that is too long."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"a {type(value).__name__}"
