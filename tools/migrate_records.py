"""Rename the committed records of trials after the recipes of studies were rewritten.

    python tools/migrate_records.py list > before.json      # with the code as it was
    python tools/migrate_records.py apply before.json       # with the code as it is

Both list the trials of all studies in the same order, so that a record moves from the old name of its
trial to the new one, and its recipe is written as it is spelled now. Needs `DISENTWINE_DATA`: data that are
missing would leave trials out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from disentwine.runs.upgrade import SCORE_NAMES, new_name
from disentwine.studies import STUDIES
from disentwine.studies.records import TRIALS, in_lines

RESULTS, SEEDS = Path("results"), (0, 1, 2)

KEYS = {"course": "learning_curve"}
DETAILS = {
    "alive": "active",
    "leak": "off_target",
    "leak_floor": "off_target_floor",
    "reader_error": "probe_error",
}
"""Renamed keys of a record, and of the details of its scores."""


def planned() -> dict[str, list[dict[str, Any]]]:
    """Every trial of every study: the folder of its record, the name of the record, and its recipe."""
    return {
        name: [
            {
                "runs": study.runs or study.name,
                "folder": trial.folder(Path()).name,
                "recipe": yaml.safe_load(trial.read_recipe().to_yaml()),
            }
            for trial in study.trials("paper", SEEDS)
        ]
        for name, study in sorted(STUDIES.items())
    }


def apply(before: dict[str, list[dict[str, Any]]]) -> None:
    """Move and rewrite the records, or refuse where one is claimed by no trial."""
    moves: dict[Path, tuple[Path, dict[str, Any]]] = {}
    for name, trials in planned().items():
        for old, new in zip(before[name], trials, strict=True):
            folder = RESULTS / new["runs"] / TRIALS
            moves[folder / f"{old['folder']}.json"] = (
                folder / f"{new['folder']}.json",
                new["recipe"],
            )
    records = sorted(RESULTS.glob(f"*/{TRIALS}/*.json"))
    unclaimed = [str(path) for path in records if path not in moves]
    if unclaimed:
        sys.exit("no trial claims these records:\n  " + "\n  ".join(unclaimed))
    targets = [moves[path][0] for path in records]
    if len(set(targets)) < len(targets):
        sys.exit("two records would get the same name")
    for path in records:
        target, recipe = moves[path]
        if target != path:
            subprocess.run(["git", "mv", str(path), str(target)], check=True)
        record = {**json.loads(target.read_bytes()), "recipe": recipe}
        target.write_text(in_lines(with_new_keys(record)), encoding="utf-8")
    print(f"{len(records)} records moved")


def with_new_keys(record: dict[str, Any]) -> dict[str, Any]:
    """A record with today's names of its keys, scores and details."""
    renamed = {KEYS.get(key, key): value for key, value in record.items()}
    for score in renamed["scores"]:
        score["name"] = new_name(score["name"], SCORE_NAMES)
        score["details"] = {DETAILS.get(k, k): value for k, value in score["details"].items()}
    return renamed


if __name__ == "__main__":
    if sys.argv[1] == "list":
        json.dump(planned(), sys.stdout, indent=1)
    else:
        apply(json.loads(Path(sys.argv[2]).read_bytes()))
