"""What people read: docstrings, comments and sentences of the source, guides, page and `--help`."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from house.tree import Module, Tree

GUIDES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*", "results/*.md")
NOT_CHECKED = {"docs/lab-log.md"}
RESOURCES = ("*.html", "*.js", "*.css", "*.yaml")
TEXT = {".md", ".py", ".html", ".js", ".css", ".yaml", ".txt", ".ipynb", ".json"}

HELP = """
import sys, typer
from typer.testing import CliRunner
from disentwine.cli import app
def walk(command, words):
    print(CliRunner().invoke(app, [*words, "--help"]).output)
    for name, each in getattr(command, "commands", {}).items():
        walk(each, [*words, name])
walk(typer.main.get_command(app), [])
"""


@dataclass(frozen=True)
class Block:
    """Prose that belongs together.

    Arguments:
        file: relative to the root of the checkout.
        text: without the marks of comments and the quotes of strings.
        starts: for each piece of the text its offset and the line that it begins at.
    """

    file: str
    text: str
    starts: tuple[tuple[int, int], ...]

    def line_of(self, offset: int) -> int:
        """The line of the file that an offset of the text lies in."""
        start, line = [each for each in self.starts if each[0] <= offset][-1]
        return line + self.text.count("\n", start, offset)


def prose_of(tree: Tree) -> Iterator[Block]:
    """All prose of a checkout."""
    for module in tree.modules:
        yield from _python_prose(tree.relative(module.path), module)
    for file, text in text_files(tree, python=False):
        if file.endswith(".py"):
            yield from _python_prose(file, Module(tree.root / file, ""))
        else:
            yield Block(file, text, ((0, 1),))
    yield Block("--help", _help_texts(tree), ((0, 1),))


def text_files(tree: Tree, *, python: bool = True) -> Iterator[tuple[str, str]]:
    """Path and content of every file that is checked as a whole."""
    paths = [path for pattern in RESOURCES for path in tree.package.rglob(pattern)]
    paths += [path for pattern in GUIDES for path in tree.root.glob(pattern)]
    paths += [module.path for module in tree.modules] if python else []
    for path in sorted(set(paths)):
        file = tree.relative(path)
        if path.is_file() and path.suffix in TEXT and file not in NOT_CHECKED:
            yield file, path.read_text(encoding="utf-8")


def _python_prose(file: str, module: Module) -> Iterator[Block]:
    """Comments, and strings that hold a space; neighbours are one block."""
    pieces: list[tuple[str, int]] = []
    kind = ""
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            continue
        found, text = _piece(token)
        if found != kind and pieces:
            yield _block(file, pieces, kind)
            pieces = []
        kind = found
        if found:
            pieces.append((text, token.start[0]))


def _piece(token: tokenize.TokenInfo) -> tuple[str, str]:
    """Kind and text of a token of prose; nothing for code."""
    if token.type == tokenize.COMMENT:
        return "comment", f"{token.string.lstrip('#: ')}\n"
    if token.type == tokenize.STRING:
        return "string", _content(token.string)
    if tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
        return "string", token.string
    return "", ""


def _content(literal: str) -> str:
    """What stands between the quotes, with line breaks as in the file."""
    body = literal.lstrip("rRbBuUfF")
    quotes = body[:3] if body[:3] in ('"""', "'''") else body[:1]
    inner = body[len(quotes) : -len(quotes)]
    if (
        "\\" in inner
        and "\n" not in inner
        and "f" not in literal[: len(literal) - len(body)].lower()
    ):
        return str(ast.literal_eval(literal)).replace("\n", " ")
    return inner


def _block(file: str, pieces: list[tuple[str, int]], kind: str) -> Block:
    text, starts = "", []
    for piece, line in pieces:
        starts.append((len(text), line))
        text += piece
    keep = kind == "comment" or any(space in text.strip() for space in " \n")
    return Block(file, text if keep else "", tuple(starts))


def _help_texts(tree: Tree) -> str:
    """`--help` of every verb."""
    wide = {"PYTHONPATH": str(tree.source), "TERMINAL_WIDTH": "2000", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", HELP],
        env=os.environ | wide,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
