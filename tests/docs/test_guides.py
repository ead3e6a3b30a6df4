"""The Python of the guides runs as it is written, but for shorter trainings and smaller pictures."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHORTER = {r"steps=\d+": "steps=3, progress=False, threads=1", r"size=64": "size=32"}


@pytest.mark.parametrize("guide", ["causal.md"])
def test_the_lines_of_a_guide_run(guide: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(), flags=re.DOTALL)
    lines = "\n".join(blocks)
    for long, short in SHORTER.items():
        lines, changed = re.subn(long, short, lines)
        assert changed
    names: dict[str, object] = {}
    exec(compile(lines, guide, "exec"), names)
    assert names["model"].graph.edges  # type: ignore[attr-defined]
