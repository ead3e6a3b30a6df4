"""Check of how many modules a command passes through."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from house.tree import Finding, Tree

MEASURED_AT = "2c329ef"
"""The commit before the restructuring, at which `BEFORE` was measured by this script."""
BEFORE = {"train": 58, "do": 28, "evaluate": 62, "serve": 40}
"""Modules of src in which a function runs between main() and the first update (train), the printed
table (do, evaluate) and the JSON answer to one do request (serve)."""
SHARE = {"train": 0.60, "do": 0.60, "evaluate": 0.75, "serve": 0.75}
BESIDE = {"serve-request": 24}
"""Measured and shown, without a limit: the request alone, to a server that has opened the run."""

RECIPE = """\
data:
  name: pendulum
  size: 32
model:
  name: causal-vae
training:
  steps: 2
  batch_size: 8
  threads: 1
"""
TRACE = Path(__file__).with_name("trace.py")


def check_hops(tree: Tree) -> Finding:
    """Modules that train, do, evaluate and serve pass through, against the tree before."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
        failed = _trace(tree, "prepare", folder)[1]
        if failed:
            return Finding("the tiny training failed", [failed])
        commands = [*BEFORE, *BESIDE]
        with ThreadPoolExecutor(2) as pool:
            traced = list(pool.map(lambda command: _trace(tree, command, folder), commands))
    found = {command: modules for command, (modules, _) in zip(commands, traced, strict=True)}
    problems = [f"{c}: {failed}" for c, (_, failed) in zip(commands, traced, strict=True) if failed]
    for command, before in BEFORE.items():
        limit = int(before * SHARE[command])
        if len(found[command]) > limit:
            problems.append(
                f"{command}: {len(found[command])} modules, at most {limit} "
                f"({SHARE[command]:.0%} of {before} at {MEASURED_AT})"
            )
    was = BEFORE | BESIDE
    summary = ", ".join(f"{each} {len(found[each])} (was {was[each]})" for each in commands)
    return Finding(summary, problems, [f"{each}: {' '.join(found[each])}" for each in commands])


def _trace(tree: Tree, command: str, folder: Path) -> tuple[list[str], str]:
    """The modules of one command, and the error where there was one."""
    done = subprocess.run(
        [sys.executable, str(TRACE), command, str(folder)],
        env=os.environ | {"PYTHONPATH": str(tree.source)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode or (command != "prepare" and not (lines and lines[-1].startswith("["))):
        return [], f"failed: {(done.stderr.splitlines() or ['no output'])[-1]}"
    return (json.loads(lines[-1]) if command != "prepare" else []), ""
