"""What is told of this machine's folders: their names, but not where they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

ABSOLUTE = re.compile(r"(?<![\w.:/])(?:/[^/\s:;,'\"()]+)+")
"""A path from the root, but not one of an address on the web."""


def as_path(text: Any) -> PurePath | None:
    """A text that is a path from the root, of this system or of Windows, as one.

    >>> as_path("/home/ann smith/photos").name, as_path("photos"), as_path(r"C:\\photos").name
    ('photos', None, 'photos')
    """
    if not isinstance(text, str):
        return None
    kinds = (PurePosixPath(text), PureWindowsPath(text))
    return next((path for path in kinds if path.is_absolute()), None)


def paths_in(value: Any) -> list[PurePath]:
    """All paths from the root among texts in mappings and lists."""
    if isinstance(value, Mapping):
        return [path for item in value.values() for path in paths_in(item)]
    if isinstance(value, list | tuple):
        return [path for item in value for path in paths_in(item)]
    path = as_path(value)
    return [] if path is None else [path]


def named(value: Any) -> Any:
    """The same, with the last name of every path from the root in its place.

    >>> named({"name": "folder", "path": "/home/ann/photos"})
    {'name': 'folder', 'path': 'photos'}
    """
    if isinstance(value, Mapping):
        return {key: named(item) for key, item in value.items()}
    if isinstance(value, list):
        return [named(item) for item in value]
    path = as_path(value)
    return value if path is None else path.name


def without_paths(text: str, known: Iterable[PurePath] = ()) -> str:
    """A text with the last name of every path from the root in its place.

    Arguments:
        text: what is told.
        known: paths that may be in it, also such as no pattern tells where they end.

    >>> without_paths("/a b/c: no such folder; see https://x.org/y", [PurePosixPath("/a b/c")])
    'c: no such folder; see https://x.org/y'
    """
    names: dict[str, str] = {}
    for path in known:
        name = Path(path).resolve().name
        names |= {str(path): name, str(Path(path).resolve()): name}
    for told in sorted(names.keys() - {".", ".."}, key=len, reverse=True):
        text = text.replace(told, names[told])
    return ABSOLUTE.sub(lambda path: PurePosixPath(path[0]).name, text)
