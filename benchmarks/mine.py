"""Time of MIC and TIC, ours and minepy's, on the same arrays.

    python benchmarks/mine.py [--minepy PYTHON]

PYTHON is the interpreter of an environment with minepy (GPL, hence not a dependency); without it only
our times are printed. Both compute 4 latents with 4 factors, alpha 0.6 and c 15, alternate for several
rounds, and report the fastest; start, compilation and reading of arrays are not included.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from disentwine.metrics.disentanglement import _mic_kernel
from disentwine.metrics.disentanglement.mic_tic import Estimator, mine

ROUNDS = 5
SIZES = (1000, 1826)
ESTIMATORS: tuple[Estimator, ...] = ("approx", "e")

THEIRS = """
import sys, time
import numpy as np
from minepy import MINE
for line in sys.stdin:
    path, estimator = line.split()
    codes, factors = np.load(path)
    start = time.perf_counter()
    pair = MINE(alpha=0.6, c=15, est="mic_" + estimator)
    values = []
    for code in codes:
        for factor in factors:
            pair.compute_score(code, factor)
            values += [pair.mic(), pair.tic(norm=True)]
    print(time.perf_counter() - start, *values, flush=True)
"""

Array = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minepy", metavar="PYTHON", help="interpreter that can import minepy")
    python = parser.parse_args().minepy
    with tempfile.TemporaryDirectory() as folder, peer(python) as pipes:
        for n in SIZES:
            path = Path(folder) / f"{n}.npy"
            codes, factors = arrays(n)
            np.save(path, [codes.T, factors.T])
            for estimator in ESTIMATORS:
                compare(codes, factors, estimator, path, pipes)


def compare(
    codes: Array, factors: Array, estimator: Estimator, path: Path, pipes: Pipes | None
) -> None:
    """Print the quickest of each side, the ratios and the largest difference of values."""
    ours: dict[int, list[float]] = {threads: [] for threads in sorted({1, _mic_kernel.THREADS})}
    theirs: list[float] = []
    difference = 0.0
    for _ in range(ROUNDS):
        for threads, seconds in ours.items():
            elapsed, values = timed(codes, factors, estimator, threads)
            seconds.append(elapsed)
        if pipes is not None:
            question, answer = pipes
            print(path, estimator, file=question, flush=True)
            line = answer.readline()
            if not line:
                raise SystemExit("minepy ended without an answer; its error is above")
            elapsed, *reference = map(float, line.split())
            theirs.append(elapsed)
            difference = max(difference, float(np.abs(values - reference).max()))
    print(f"n {len(codes)}, estimator {estimator}")
    for threads, seconds in ours.items():
        ratio = f", {min(theirs) / min(seconds):.1f} times as fast as minepy" if theirs else ""
        print(f"  disentwine, threads {threads}: {min(seconds):.3f} s{ratio}")
    if theirs:
        print(f"  minepy: {min(theirs):.3f} s; largest difference of a value {difference:.1e}")


def timed(codes: Array, factors: Array, estimator: Estimator, threads: int) -> tuple[float, Array]:
    """Our seconds, and MIC and TIC of every pair in turn."""
    allowed, _mic_kernel.THREADS = _mic_kernel.THREADS, threads
    start = time.perf_counter()
    scores = mine(codes, factors, estimator=estimator, floor_permutations=0)
    seconds = time.perf_counter() - start
    _mic_kernel.THREADS = allowed
    return seconds, np.stack([s.details["matrix"] for s in scores], axis=-1).ravel()


def arrays(n: int) -> tuple[Array, Array]:
    """Two continuous factors, one of ten values and one of two, and each with noise as latents."""
    random = np.random.default_rng(0)
    continuous = random.normal(size=(n, 2))
    factors = np.column_stack([continuous, random.integers(0, 10, n), random.integers(0, 2, n)])
    noise = random.normal(size=factors.shape)
    return factors / factors.std(axis=0) + 0.5 * noise, factors


Pipes = tuple[IO[str], IO[str]]


@contextlib.contextmanager
def peer(python: str | None) -> Iterator[Pipes | None]:
    """The pipes to minepy, which runs in a process of its own."""
    if python is None:
        yield None
        return
    with subprocess.Popen(
        [python, "-c", THEIRS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout
        process.stdin.close()


if __name__ == "__main__":
    main()
