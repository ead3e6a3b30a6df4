"""Time and memory of the importance-weighted bound of a five-layer ladder VAE.

    python benchmarks/likelihood.py --images 1000
    python benchmarks/likelihood.py --run runs/ladder/mnist-ladder-vae-64-32-16-8-4-0-* \
        --out results/likelihood.json

With `--run`: the bound of a trained model on its test split with all images and samples, to check
the estimate of the study. Without: that of an untrained model on noise, for time and memory only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from disentwine import load_run
from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.model import Model
from disentwine.data import Arrays
from disentwine.evaluation.likelihood import log_likelihood
from disentwine.models import LadderVAE
from disentwine.runs.checkpoint import versions
from disentwine.runs.storage import write_atomically
from disentwine.training.loop import keep_freed_memory


def untrained(images: int) -> tuple[Model, Dataset]:
    noise = np.random.default_rng(0).integers(0, 2, (images, 28, 28, 1), dtype=np.uint8)
    dataset = Arrays(images=noise * 255)
    torch.manual_seed(0)
    return LadderVAE.for_data(dataset), dataset


def measure(run: Path | None, *, images: int, samples: int) -> dict[str, Any]:
    if run is None:
        model, dataset = untrained(images)
        indices = np.arange(images)
    else:
        opened = load_run(run)
        model, dataset = opened.model, opened.dataset
        indices = evenly_spaced(dataset.split["test"], images)
    start, cpu = time.perf_counter(), time.process_time()
    score = log_likelihood(model, dataset, indices, samples=samples)
    return {
        "run": run.name if run is not None else None,
        "images": score.n,
        "samples": samples,
        "seconds": time.perf_counter() - start,
        "seconds_of_processor": time.process_time() - cpu,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "log-likelihood": score.value,
        "standard_error": score.details["standard_error"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="a run folder; by default an untrained model")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=5_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="write what was found as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    found = measure(options.run, images=options.images, samples=options.samples)
    print(
        f"{found['samples']} samples x {found['images']} images of a five-layer model: "
        f"{found['seconds']:.0f} s, {found['gigabytes']:.2f} GB at most, bound "
        f"{found['log-likelihood']:.2f} nats"
    )
    if options.out:
        record = {
            "command": shlex.join(["python", *sys.argv]),
            "versions": versions(),
            "machine": {"cores": os.cpu_count(), "threads": options.threads},
            **found,
        }
        write_atomically(options.out, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
