"""The page: files of the package, by name from a list made at start, so that no path is ever followed."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
}
INDEX = "index.html"


def page_files() -> dict[str, Traversable]:
    """The files that the page is made of, by the path they are asked for.

    >>> "index.html" in page_files()
    True
    """
    return dict(_walk(resources.files("disentwine") / "serve" / "page", ""))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for item in folder.iterdir():
        if item.is_dir():
            found += _walk(item, f"{prefix}{item.name}/")
        elif media_type(item.name) is not None:
            found.append((prefix + item.name, item))
    return found


def media_type(name: str) -> str | None:
    """The type of a file by its ending; None for files that are not served.

    >>> media_type("app.js"), media_type("notes.txt")
    ('text/javascript; charset=utf-8', None)
    """
    return TYPES.get(name.rpartition(".")[2].lower())
