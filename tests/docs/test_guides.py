"""The Python of the guides runs as it is written, but for shorter trainings and smaller pictures."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHORTER = {r"\bsteps=\d+": "steps=3, progress=False, threads=1", r"size=64": "size=32"}


def knows_causes(names: dict[str, Any]) -> bool:
    return bool(names["model"].graph.edges)


def has_codes_of_all_layers(names: dict[str, Any]) -> bool:
    codes, model = names["codes"], names["model"]
    return codes.shape == (5, len(model.unit_layers)) and names["score"].n == 20


@pytest.mark.parametrize(
    ("guide", "holds"), [("causal.md", knows_causes), ("ladder.md", has_codes_of_all_layers)]
)
def test_the_lines_of_a_guide_run(guide: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(), flags=re.DOTALL)
    lines = "\n".join(blocks)
    for long, short in SHORTER.items():
        lines, changed = re.subn(long, short, lines)
        assert changed
    names: dict[str, Any] = {}
    exec(compile(lines, guide, "exec"), names)
    assert holds(names)
