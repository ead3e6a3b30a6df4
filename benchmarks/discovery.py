"""Graphs learnt from labels by our method, NOTEARS, PC, GES and LiNGAM on the same tables.

    python benchmarks/discovery.py [--quick] [--out results/]

Structural Hamming distance to the true graph over seeds (a seed determines rows, noise and graphs), on
Pendulum and Flow labels with label noise and on random nonlinear graphs; and the confidence of edges
whose direction is not identifiable. PC, GES and LiNGAM are those of causal-learn, left out if it is not
installed. An edge that PC or GES leaves undirected counts as half correct, and a method that fails as one
without edges.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same for all methods

import networkx as nx
import numpy as np

from disentwine import data
from disentwine.causal import Graph, discover, discover_notears

Table = tuple[np.ndarray, np.ndarray]
Method = Callable[[np.ndarray, int], np.ndarray]


def names(k: int) -> list[str]:
    return [f"x{i}" for i in range(k)]


def ours(x: np.ndarray, seed: int) -> np.ndarray:
    return discover(x, names(x.shape[1]), seed=seed).adjacency


def notears(x: np.ndarray, seed: int) -> np.ndarray:
    return discover_notears(x, names(x.shape[1])).adjacency


def notears_raw(x: np.ndarray, seed: int) -> np.ndarray:
    return discover_notears(x, names(x.shape[1]), standardise=False).adjacency


def _from_endpoints(ends: np.ndarray) -> np.ndarray:
    """causal-learn: [j, i] = 1 and [i, j] = -1 means i -> j; both alike, that it cannot tell."""
    return (ends != 0) & ((ends == -1) | (ends == ends.T))


def pc(x: np.ndarray, seed: int) -> np.ndarray:
    from causallearn.search.ConstraintBased.PC import pc as run

    return _from_endpoints(run(x, alpha=0.01, show_progress=False).G.graph)


def ges(x: np.ndarray, seed: int) -> np.ndarray:
    from causallearn.search.ScoreBased.GES import ges as run

    return _from_endpoints(run(x)["G"].graph)


def lingam(x: np.ndarray, seed: int) -> np.ndarray:
    from causallearn.search.FCMBased.lingam import DirectLiNGAM

    model = DirectLiNGAM(random_state=seed)
    model.fit((x - x.mean(axis=0)) / x.std(axis=0))
    return np.abs(model.adjacency_matrix_.T) > 0.1


def distance(found: np.ndarray, true: np.ndarray) -> float:
    """SHD, with half a mistake for a true edge left undirected."""
    wrong = 0.0
    for i in range(len(true)):
        for j in range(i):
            a, b = (found[i, j], found[j, i]), (true[i, j], true[j, i])
            wrong += 0.5 if all(a) and any(b) else float(a != b)
    return wrong


def drawn(dataset: data.Pendulum | data.Flow, n: int, noise: float, seed: int) -> Table:
    """So many labels of a data set, with noise relative to each label's standard deviation."""
    rng = np.random.default_rng(seed)
    x = dataset.factors[rng.choice(len(dataset), min(n, len(dataset)), replace=False)]
    x = x + noise * dataset.factors.std(axis=0) * rng.normal(size=x.shape)
    assert dataset.graph is not None
    return x, nx.to_numpy_array(dataset.graph, nodelist=dataset.names) > 0


def random_graph(k: int, n: int, seed: int, *, edges_a_node: float = 1.0) -> Table:
    """An additive-noise model in which each effect is a random smooth curve of its cause."""
    rng = np.random.default_rng([seed, k])
    edges = np.triu(rng.random((k, k)) < 2 * edges_a_node / (k - 1), 1)
    x = rng.normal(size=(n, k))
    for j in np.flatnonzero(edges.any(axis=0)):
        effect = np.zeros(n)
        for i in np.flatnonzero(edges[:, j]):
            z = (x[:, i] - x[:, i].mean()) / x[:, i].std()
            a, b = rng.uniform(0.8, 2.0, 2) * rng.choice([-1, 1], 2)
            curves = (np.tanh(2 * a * z + b / 2), np.sin(a * z + b), 0.7 * np.sign(a) * z * z)
            effect += (*curves, a * z / 2 + np.cos(1.5 * b * z))[rng.integers(4)]
        x[:, j] = effect / effect.std() + rng.uniform(0.3, 0.7) * x[:, j]
    order = rng.permutation(k)
    return x[:, order], edges[np.ix_(order, order)]


def linear_chain(k: int, n: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, k))
    for j in range(1, k):
        x[:, j] = rng.uniform(0.6, 1.2) * x[:, j] + rng.uniform(0.7, 1.3) * x[:, j - 1]
    return x, np.eye(k, k=1, dtype=bool)


def binary_chain(k: int, n: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    x = np.zeros((n, k))
    x[:, 0] = rng.random(n) < rng.uniform(0.3, 0.7)
    for j in range(1, k):
        chance = np.array([rng.uniform(0.1, 0.4), rng.uniform(0.6, 0.9)])
        x[:, j] = rng.random(n) < chance[x[:, j - 1].astype(int)]
    return x, np.eye(k, k=1, dtype=bool)


def unequal_noise(k: int, n: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    cause, noise = rng.normal(size=(2, n))
    return np.stack([cause, cause / 2 + np.exp(cause / 2) * noise / 2], axis=1), np.eye(
        2, k=1, dtype=bool
    )


def methods() -> dict[str, Method]:
    found: dict[str, Method] = {"ours": ours, "notears": notears, "notears-raw": notears_raw}
    try:
        version("causal-learn")
    except PackageNotFoundError:
        print("PC, GES and LiNGAM are left out: causal-learn is not installed", file=sys.stderr)
        return found
    return found | {"pc": pc, "ges": ges, "lingam": lingam}


def measured(name: str, tables: dict[str, list[Table]], some: dict[str, Method]) -> list[Any]:
    """A row for each method and kind of table; prints them too."""
    rows = []
    for label, drawn_tables in tables.items():
        line = f"{name + ' ' + label:<28}"
        for system, method in some.items():
            start, values, failed = time.perf_counter(), [], 0
            for seed, (x, true) in enumerate(drawn_tables):
                with contextlib.redirect_stdout(io.StringIO()):  # GES and LiNGAM talk
                    try:
                        values.append(distance(method(x, seed), true))
                    except (
                        ValueError,
                        np.linalg.LinAlgError,
                    ):  # singular, as determined labels are
                        values.append(float(true.sum()))
                        failed += 1
            seconds = (time.perf_counter() - start) / len(values)
            exact = sum(value == 0 for value in values)
            line += f"{system:>12} {np.mean(values):4.2f} {exact:2}/{len(values)} {seconds:5.2f}s"
            rows.append(
                {
                    "system": system,
                    "data": name,
                    "metric": "shd",
                    "value": float(np.mean(values)),
                    "spread": float(np.std(values)),
                    "n": len(drawn_tables[0][0]),
                    "seeds": len(values),
                    "exact": exact,
                    "failed": failed,
                    "paper": None,
                    "minutes": seconds / 60,
                    "recipe": label,
                }
            )
        print(line, flush=True)
    return rows


def confidences(name: str, tables: list[Table], label: str) -> list[Any]:
    """How sure we are of the edges we learn, and what share of them is right."""
    start, sure, right = time.perf_counter(), [], []
    for seed, (x, true) in enumerate(tables):
        graph: Graph = discover(x, names(x.shape[1]), seed=seed)
        assert graph.confidence is not None
        sure += list(graph.confidence[graph.adjacency])
        right += list(true[graph.adjacency])
    minutes = (time.perf_counter() - start) / 60 / len(tables)
    common = {"system": "ours", "data": name, "n": len(tables[0][0]), "seeds": len(tables)}
    common |= {"paper": None, "minutes": minutes, "recipe": label}
    values = {
        "edge-confidence": (float(np.mean(sure)), float(np.std(sure))),
        "edges-right": (float(np.mean(right)), None),
        "edges-below-0.8": (float(np.mean(np.array(sure) < 0.8)), None),
    }
    numbers = "  ".join(f"{metric} {value:.2f}" for metric, (value, _) in values.items())
    print(f"{name + ' ' + label:<28}{numbers}", flush=True)
    return [
        common | {"metric": metric, "value": value, "spread": spread}
        for metric, (value, spread) in values.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 seeds, few sizes, nothing written")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    seeds = range(3 if options.quick else 10)
    sizes = (500,) if options.quick else (500, 1000, 2000, 10_000)
    some, rows = methods(), []
    for dataset in (data.Pendulum(size=32), data.Flow(size=32)):
        tables = {
            f"n={min(n, len(dataset))} noise={noise:g}": [
                drawn(dataset, n, noise, seed) for seed in seeds
            ]
            for n in sizes
            for noise in (0, 0.01, 0.1)
        }
        rows += measured(type(dataset).__name__.lower(), tables, some)
    for k in (4, 6) if options.quick else (4, 5, 6, 8, 10):
        tables = {
            f"k={k} edges={edges:g}k": [
                random_graph(k, 2000, seed, edges_a_node=edges) for seed in seeds
            ]
            for edges in (1.0, 1.5)
        }
        rows += measured("random-additive-noise", tables, some)
    for make, k in ((linear_chain, 4), (binary_chain, 4), (unequal_noise, 2)):
        for n in (1000,) if options.quick else (500, 2000):
            name = f"unidentifiable-{make.__name__.replace('_', '-')}"
            rows += confidences(name, [make(k, n, seed) for seed in seeds], f"k={k} n={n}")
    rows += confidences("random-additive-noise", [random_graph(4, 2000, s) for s in seeds], "k=4")
    if options.quick:
        return
    packages = ("disentwine", "numpy", "scipy", "scikit-learn", "causal-learn")
    study = {
        "study": "discovery",
        "command": "python benchmarks/discovery.py",
        "versions": {"python": platform.python_version()} | _versions(packages),
        "machine": {"cpu": platform.machine(), "cores": os.cpu_count(), "threads": 1},
        "rows": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "discovery.json").write_text(json.dumps(study, indent=1) + "\n")


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


if __name__ == "__main__":
    main()
