"""From sections to one self-contained page."""

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
    """Arguments:
    columns: their names; those with a leading ">" hold numbers and are aligned to the right.
    rows: one text for each column.
    """

    columns: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Picture:
    """Arguments:
    name: of its file, without the ending.
    alt: what it shows, for those who cannot see it.
    png: its bytes.
    """

    name: str
    alt: str
    png: bytes


@dataclass(frozen=True)
class Section:
    """One thing that a report shows; every text is plain and escaped when written.

    Arguments:
        title: its heading.
        text: a sentence or two on how to read it.
        picture: shown below the text.
        table: shown below the picture.
        code: shown as it is, below the table.
    """

    title: str
    text: str = ""
    picture: Picture | None = None
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
    if section.picture is not None:
        parts.append(_picture(section.picture))
    if section.table is not None:
        parts.append(_table(section.table))
    if section.code:
        parts.append(f'<pre tabindex="0">{escape(section.code)}</pre>')
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _picture(picture: Picture) -> str:
    # A PNG holds its size at bytes 16 to 24; pages are laid out before images are decoded.
    width, height = (pixels // 2 for pixels in struct.unpack(">II", picture.png[16:24]))
    source = base64.b64encode(picture.png).decode()
    return (
        f'<figure><img width="{width}" height="{height}" alt="{escape(picture.alt)}" '
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
