"""Best weight decay of each system of the study `ladder` on OMNIGLOT, by validation images.

    python benchmarks/decay.py --jobs 2

Five layers, one seed, as many updates as in the study. Runs are in the study's folders: finished ones are
read, and the study reuses those of the chosen weight decay. Test images are not used.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from disentwine.evaluation.likelihood import log_likelihood
from disentwine.evaluation.protocols import active_per_layer, mean_latent_kl
from disentwine.runs.checkpoint import commit, versions
from disentwine.runs.fit import train_recipe
from disentwine.studies.ladder.measures import watch
from disentwine.studies.ladder.study import ladder_trial
from disentwine.studies.learning_curves import RecordLearningCurve, read_learning_curve
from disentwine.studies.workers import workers

TRIED = {
    "ladder-vae": (0.3, 0.6, 1.0),
    "vae+bn+wu": (0.3, 0.6, 1.0),
    "vae+bn": (0.3, 0.6),
    "vae": (0.1, 0.3, 0.6),
}
SAMPLES = 1_000


def measure(system: str, decay: float, runs: Path) -> dict[str, Any]:
    trial = ladder_trial(system, "omniglot", 0, decay=decay)
    run = trial.finished_run(runs) or train_recipe(
        trial.read_recipe(runs),
        trial.folder(runs),
        progress=False,
        callbacks=[RecordLearningCurve(trial.folder(runs), watch=watch)],
    )
    model, data, validation = run.model, run.dataset, run.dataset.split["validation"]
    bound = log_likelihood(model, data, validation, samples=SAMPLES, progress=False)
    active = active_per_layer(model, mean_latent_kl(model, data, validation), n=len(validation))
    return {
        "system": system,
        "decay": decay,
        "validation": bound.value,
        "standard_error": bound.details["standard_error"],
        "training": read_learning_curve(run.path)[-1]["scores"]["train"],
        "active_units": [int(score.value) for score in active[1:]],
        "n": len(validation),
        "samples": SAMPLES,
        "seed": 0,
        "recipe": trial.command,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/ladder"), help="the study's run folders"
    )
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once, one thread each")
    parser.add_argument("--out", type=Path, default=Path("results/ladder-decay.json"))
    arguments = parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    with workers(arguments.jobs, reused=False) as pool:
        futures = [
            pool.submit(measure, system, decay, arguments.runs)
            for system, decays in TRIED.items()
            for decay in decays
        ]
        rows = [future.result() for future in futures]
    table = Table("system", "weight decay", "validation, nats", "training", "active units")
    for row in rows:
        numbers = (f"{row[name]:.2f}" for name in ("validation", "training"))
        table.add_row(row["system"], str(row["decay"]), *numbers, str(row["active_units"]))
    Console().print(table)
    found = {"rows": rows, "versions": versions(), "commit": commit()}
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
