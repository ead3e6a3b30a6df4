"""What one cell of a table says: a number, a name, or that there is no label."""

from __future__ import annotations

import re

NO_LABEL = frozenset(["", "-", "?", "na", "n/a", "#n/a", "null", "nan", "+nan", "-nan"])
"""What programs and people write into a cell that has no label, in lower case."""

NONE = "none"
"""What they write as well, but may mean as a name: a face whose beard is "none"."""

FOLDED = frozenset(["true", "false", "yes", "no", NONE])
"""Names that are the same in any case: spreadsheets write TRUE, Python writes True."""

_MINUS = "\N{MINUS SIGN}"
_EXPONENT = r"([eE][+-]?\d+)?"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)" + _EXPONENT)
_GROUPED = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(,\d{3})+)?(\.\d+)?" + _EXPONENT)
_NOT_FINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no label.

    >>> [is_missing(cell) for cell in ("", "N/A", "?", "none")]
    [True, True, True, False]
    """
    return _plain(cell).lower() in NO_LABEL


def is_infinite(cell: str) -> bool:
    """Whether a cell says infinity, which is no label either."""
    return bool(_NOT_FINITE.fullmatch(_plain(cell)))


def number_in(cell: str) -> float | None:
    """The number that a cell holds, if it is one that can be read in one way only.

    >>> number_in("-2e3"), number_in("1,5"), number_in("red")
    (-2000.0, None, None)
    """
    plain = _plain(cell)
    return float(plain) if _NUMBER.fullmatch(plain) else None


def name_in(cell: str) -> str:
    """The cell as a category's name.

    >>> name_in("TRUE"), name_in("Red")
    ('true', 'Red')
    """
    folded = cell.lower()
    return folded if folded in FOLDED else cell


def readings(cell: str) -> list[str]:
    """The numbers that a cell with commas or a percent sign may stand for.

    >>> readings("1,5"), readings("1,234"), readings("1.234,5"), readings("10%"), readings("red")
    (['1.5'], ['1.234', '1234'], ['1234.5'], ['0.1'], [])
    """
    plain = _plain(cell)
    if plain.endswith("%"):
        share = plain[:-1].rstrip()
        numbers = [share] if number_in(share) is not None else readings(share)
        return [f"{float(number) / 100:.12g}" for number in numbers]
    exchanged = plain.translate(str.maketrans(",.", ".,"))
    numbers = [text.replace(",", "") for text in (exchanged, plain) if _GROUPED.fullmatch(text)]
    return [number for number in numbers if number_in(number) is not None]


def _plain(cell: str) -> str:
    return cell.replace(_MINUS, "-")
