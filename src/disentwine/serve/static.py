"""Files of the page; HTML page of the API documentation."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

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
    """The files of the page by their request path.

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
    """Media type of a file by its suffix; None for files that are not served.

    >>> media_type("app.js"), media_type("notes.txt")
    ('text/javascript; charset=utf-8', None)
    """
    return TYPES.get(name.rpartition(".")[2].lower())


PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}: API</title></head>
<body><main>
<h1>{title}: API</h1>
<p>{about} OpenAPI description: <a href="/openapi.json">/openapi.json</a>. <a href="/">Explorer</a>.</p>
{routes}
<h2>Schemas</h2>
{schemas}
</main></body>
</html>
"""


def api_docs(description: Mapping[str, Any]) -> str:
    """The API documentation as HTML without scripts.

    Arguments:
        description: an OpenAPI description.

    >>> "<h1>x: API</h1>" in api_docs({"info": {"title": "x", "description": ""}, "paths": {}})
    True
    """
    info = description["info"]
    routes = [
        _route(method, path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = description.get("components", {}).get("schemas", {})
    return PAGE.format(
        title=escape(info["title"]),
        about=escape(info["description"]),
        routes="\n".join(routes),
        schemas="\n".join(_schema(name, schema) for name, schema in schemas.items()),
    )


def _route(method: str, path: str, operation: Mapping[str, Any]) -> str:
    lines = [f"<h2><code>{method.upper()} {escape(path)}</code></h2>"]
    lines.append(f"<p>{escape(operation.get('description', ''))}</p>")
    rows = [(p["name"], p["in"], p["schema"]) for p in operation.get("parameters", ())]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        rows.append(("body", kind, content["schema"]))
    good = operation["responses"].get("200", {}).get("content", {})
    rows += [("answer", kind, content["schema"]) for kind, content in good.items()]
    return "\n".join([*lines, _table([(n, where, _type(schema)) for n, where, schema in rows])])


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        (field, "required" if field in needed else "", _type(inner))
        for field, inner in schema.get("properties", {}).items()
    ]
    about = f"<p>{escape(schema.get('description', ''))}</p>"
    return f'<h3 id="{escape(name)}">{escape(name)}</h3>\n{about}\n{_table(rows)}'


def _table(rows: list[tuple[str, str, str]]) -> str:
    cells = "\n".join(
        f"<tr><th scope=row>{escape(name)}</th><td>{escape(where)}</td><td>{kind}</td></tr>"
        for name, where, kind in rows
    )
    return f"<table>{cells}</table>"


def _type(schema: Mapping[str, Any]) -> str:
    """A type as text, with a link to its schema."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    kind = schema.get("type", "anything")
    if kind == "array" and "items" in schema:
        kind = f"list of {_type(schema['items'])}"
    elif kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        kind = f"map to {_type(schema['additionalProperties'])}"
    limits = {
        "minimum": "at least",
        "maximum": "at most",
        "maxItems": "at most",
        "default": "default",
    }
    words = [f"{word} {escape(str(schema[key]))}" for key, word in limits.items() if key in schema]
    return ", ".join([str(kind), *words, *filter(None, [escape(schema.get("description", ""))])])
