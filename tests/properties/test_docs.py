"""The Python of the guides runs as it is written, but for shorter trainings and fewer pixels and codes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHORTER = {
    r"\bsteps=[\d_]+": "steps=3, progress=False, threads=1",
    r"Pendulum\(size=64": "Pendulum(size=32",
    r"pretrain_steps=\d+": "pretrain_steps=1",
    r"from_step=\d+": "from_step=2",
    r"downsampling=8": "downsampling=16",
}


def knows_causes(names: dict[str, Any]) -> bool:
    return bool(names["model"].graph.edges)


def has_codes_of_all_layers(names: dict[str, Any]) -> bool:
    codes, model = names["codes"], names["model"]
    return codes.shape == (5, len(model.unit_layers)) and names["score"].n == 20


def moves_every_unit(names: dict[str, Any]) -> bool:
    scored = {"z-diff", "sap", "mig"} <= names["scores"].keys()
    return scored and names["rows"].shape == (10, 9, 64, 64, 1) and Path("units.png").exists()


def tells_actions(names: dict[str, Any]) -> bool:
    probabilities, actions = names["probabilities"], names["pairs"].actions
    return probabilities.shape == (10, len(actions)) and names["moved"].shape == (64, 64, 1)


@pytest.mark.parametrize(
    ("guide", "holds"),
    [
        ("actions.md", tells_actions),
        ("causal.md", knows_causes),
        ("disentangling.md", moves_every_unit),
        ("ladder.md", has_codes_of_all_layers),
    ],
)
def test_the_lines_of_a_guide_run(
    guide: str,
    holds: Callable[[dict[str, Any]], bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(), flags=re.DOTALL)
    lines = "\n".join(blocks)
    assert "steps=" in lines
    for long, short in SHORTER.items():
        lines = re.sub(long, short, lines)
    names: dict[str, Any] = {}
    exec(compile(lines, guide, "exec"), names)
    assert holds(names)
