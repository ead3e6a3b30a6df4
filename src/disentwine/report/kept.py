"""Scores that stay in the run folder, for the page and for whoever looks later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from disentwine.contracts.score import Score
from disentwine.report.scoring import to_json
from disentwine.training.run import Run
from disentwine.training.storage import write_atomically

EVALUATION = "evaluation.json"
SCORES = "scores.json"
"""What `disentwine evaluate` and reports keep, and what a study has measured of its own run."""


def keep_scores(run: Run, scores: Sequence[Score]) -> None:
    """Write scores of a run's weights into its folder; others of the same weights stay beside them."""
    step = run.checkpoint.step
    old = _read(run, EVALUATION)
    kept = {s["name"]: s for s in old["scores"]} if old.get("step") == step else {}
    kept |= {score.name: to_json(_brief(score)) for score in scores}
    content = {"step": step, "scores": list(kept.values())}
    write_atomically(run.path / EVALUATION, json.dumps(content, indent=1, allow_nan=False) + "\n")


def kept_scores(run: Run) -> list[dict[str, Any]]:
    """What was measured of a run last, as `to_json` writes it; nothing where nothing was."""
    evaluated: list[dict[str, Any]] = _read(run, EVALUATION)["scores"]
    return evaluated or _read(run, SCORES)["scores"]


def _brief(score: Score) -> Score:
    """Without arrays, of which figures are made."""
    words = {n: value for n, value in score.details.items() if isinstance(value, str | int | float)}
    return replace(score, details=words)


def _read(run: Run, name: str) -> dict[str, Any]:
    try:
        record = json.loads((run.path / name).read_bytes())
    except (OSError, ValueError):
        record = None
    record = record if isinstance(record, dict) else {}
    scores = record.get("scores")
    listed = scores if isinstance(scores, list) else []
    return {**record, "scores": [s for s in listed if isinstance(s, dict) and "name" in s]}
