"""Sections of a report as one self-contained HTML page."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Arguments:
        columns: headings; columns with a leading ">" have numbers and are right-aligned.
        rows: one text for each column.
    """

    columns: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Image:
    """A PNG image of a section.

    Arguments:
        name: of its file, without suffix.
        alt: alternative text.
        png: content of the file.
    """

    name: str
    alt: str
    png: bytes


@dataclass(frozen=True)
class Section:
    """A section of a report; texts are plain and are escaped in the page.

    Arguments:
        title: its heading.
        text: one or two sentences on how to read it.
        image: shown below the text.
        table: shown below the image.
        code: shown verbatim below the table.
    """

    title: str
    text: str = ""
    image: Image | None = None
    table: Table | None = None
    code: str = ""


def write_page(*, title: str, badge: str, summary: str, sections: list[Section]) -> str:
    """The page's HTML, with styles and images inside.

    >>> page = write_page(title="<vae>", badge="finished", summary="", sections=[])
    >>> "<h1>&lt;vae&gt;</h1>" in page
    True
    """
    template = (resources.files("disentwine.report") / "page.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=escape(title),
        badge=escape(badge),
        summary=escape(summary),
        sections="\n".join(_section(section) for section in sections),
    )


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    if section.image is not None:
        parts.append(_image(section.image))
    if section.table is not None:
        parts.append(_table(section.table))
    if section.code:
        parts.append(f'<pre tabindex="0">{escape(section.code)}</pre>')
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _image(image: Image) -> str:
    # A PNG has its size in bytes 16 to 24; pages are laid out before images are decoded.
    width, height = (pixels // 2 for pixels in struct.unpack(">II", image.png[16:24]))
    source = base64.b64encode(image.png).decode()
    return (
        f'<figure><img width="{width}" height="{height}" alt="{escape(image.alt)}" '
        f'src="data:image/png;base64,{source}"></figure>'
    )


def _table(table: Table) -> str:
    classes = ["number" if name.startswith(">") else "words" for name in table.columns]
    head = _cells("th", classes, tuple(name.lstrip(">") for name in table.columns))
    body = "\n".join(f"<tr>{_cells('td', classes, row)}</tr>" for row in table.rows)
    return (
        f'<div class="table"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cells(tag: str, classes: list[str], row: Row) -> str:
    cells = zip(classes, row, strict=True)
    scope = ' scope="col"' if tag == "th" else ""
    return "".join(f'<{tag}{scope} class="{kind}">{escape(text)}</{tag}>' for kind, text in cells)
