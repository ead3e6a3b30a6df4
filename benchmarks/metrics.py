"""Our metrics and those of disent 0.8 on the same latents, interleaved in one run.

    python benchmarks/metrics.py --disent PYTHON     # an interpreter that can import disent
    python benchmarks/metrics.py --ranks             # DCI and its gradient-boosting original

Both sample from the same full grid of factors (46,080 samples of ten latents) with the same numbers of
training and test points. Ours is timed without its noise floor, which disent does not compute.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = (3, 6, 10, 16, 16)
METRICS = ("mig", "sap", "factor_vae", "dci")


def grid_and_codes(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A full grid of factors, and latents like those of a mediocre VAE."""
    rng = np.random.default_rng(seed)
    axes = np.meshgrid(*(np.arange(float(size)) for size in SIZES), indexing="ij")
    v = np.stack([axis.ravel() for axis in axes], axis=1)
    standard = (v - v.mean(axis=0)) / v.std(axis=0)
    mixed = standard @ (np.eye(5) + 0.3 * rng.normal(size=(5, 5)))
    z = np.hstack([mixed + 0.2 * rng.normal(size=v.shape), rng.normal(size=v.shape)])
    return z, v


def ours(name: str, z: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """Value and seconds."""
    from disentwine import metrics

    if name in ("mig", "sap"):  # disent draws this many samples for both
        drawn = np.random.default_rng(0).choice(len(z), 10_000)
        z, v = z[drawn], v[drawn]
    start = time.perf_counter()
    value = getattr(metrics, name)(z, v, floor=False).value
    return value, time.perf_counter() - start


def theirs(python: str, name: str, folder: Path) -> tuple[float, float]:
    """Value and seconds, measured inside the other interpreter around the metric alone."""
    answer = subprocess.run(
        [python, __file__, "--worker", name, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(answer.stdout.splitlines()[-1])
    return found["value"], found["seconds"]


def worker(name: str, folder: Path) -> None:
    """Run one of disent's metrics on latents that are looked up by index."""
    import torch
    from disent import metrics
    from disent.dataset import DisentDataset
    from disent.dataset.data import GroundTruthData

    codes = torch.from_numpy(np.load(folder / "codes.npy"))

    class Indices(GroundTruthData):  # type: ignore[misc]
        name = "indices"
        factor_names = tuple("abcde")
        factor_sizes = SIZES
        img_shape = (1, 1, 1)

        def _get_observation(self, idx: int) -> torch.Tensor:
            return torch.tensor([float(idx)], dtype=torch.float64)

    dataset = DisentDataset(Indices())
    key = {
        "mig": "mig.discrete_score",
        "sap": "sap.score",
        "dci": "dci.disentanglement",
        "factor_vae": "factor_vae.eval_accuracy",
    }[name]
    start = time.perf_counter()
    found = getattr(metrics, f"metric_{name}")(dataset, lambda x: codes[x.reshape(-1).long()])
    seconds = time.perf_counter() - start
    print(
        json.dumps({"value": float(found.get(key, next(iter(found.values())))), "seconds": seconds})
    )


def compare_ranks() -> None:
    """Disentanglement of 20 representations by our learner and by the original's."""
    from scipy.linalg import expm
    from scipy.stats import spearmanr

    from disentwine.metrics import dci

    rng = np.random.default_rng(0)
    v = np.stack([rng.integers(0, size, 3000) for size in (3, 6, 10, 8, 8)], axis=1).astype(float)
    s = (v - v.mean(axis=0)) / v.std(axis=0)
    n = len(v)

    def noise(*shape: int) -> np.ndarray:
        return rng.normal(size=shape)

    def turned(angle: float) -> np.ndarray:
        generator = noise(5, 5)
        generator = generator - generator.T
        return np.asarray(s @ expm(3 * angle * generator / np.linalg.norm(generator)))

    codes = [turned(angle) + 0.05 * noise(n, 5) for angle in np.linspace(0, 1, 8)]
    codes += [np.hstack([s + sd * noise(n, 5), noise(n, 3)]) for sd in (0.1, 0.3, 0.6, 1.0, 2.0)]
    codes += [
        np.hstack([s, s]) + 0.2 * noise(n, 10),
        np.stack([s[:, 0] + s[:, 1], s[:, 2], s[:, 3], s[:, 4], noise(n)], axis=1),
        np.stack([s[:, 0] + s[:, 1], s[:, 2] + s[:, 3], s[:, 4], s[:, 4] + s[:, 2]], axis=1),
        np.tanh(turned(0.3)),
        np.sin(2 * s) + 0.1 * noise(n, 5),
        noise(n, 10),
        s @ noise(5, 10) + 0.1 * noise(n, 10),
    ]
    rows = []
    for z in codes:
        rows.append(
            [
                dci(z, v, learner=learner, floor=False).value  # type: ignore[arg-type]
                for learner in ("histogram-boosting", "gradient-boosting")
            ]
        )
        print(f"  {rows[-1][0]:.3f}  {rows[-1][1]:.3f}", flush=True)
    mine, original = np.array(rows).T
    print(f"rank correlation over {len(codes)} representations: {spearmanr(mine, original)[0]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disent", metavar="PYTHON")
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker[0], Path(options.worker[1]))
        return
    if options.ranks:
        compare_ranks()
        return
    z, v = grid_and_codes()
    total = {"ours": 0.0, "disent": 0.0}
    with tempfile.TemporaryDirectory() as name:
        np.save(Path(name) / "codes.npy", z)
        print(f"{'metric':<12}{'ours':>9}{'seconds':>9}{'disent':>9}{'seconds':>9}")
        for metric in METRICS:
            value, seconds = ours(metric, z, v)
            total["ours"] += seconds
            line = f"{metric:<12}{value:>9.4f}{seconds:>9.2f}"
            if options.disent:
                value, seconds = theirs(options.disent, metric, Path(name))
                total["disent"] += seconds
                line += f"{value:>9.4f}{seconds:>9.2f}"
            print(line, flush=True)
    if options.disent:
        print(f"together, ours is {total['disent'] / total['ours']:.1f} times as fast")


if __name__ == "__main__":
    main()
