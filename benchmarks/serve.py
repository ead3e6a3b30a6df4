"""Latency of the explorer for a slider: server time, round trip, processor time.

    python benchmarks/serve.py [--requests 200] [--size 96] [--models causal-vae causal-vae/layered]
    python benchmarks/serve.py --out results/serve-latency.json
    python benchmarks/serve.py --run RUN             # an existing run on pendulum

One user drags the light: one request after the other, each with another angle. Processor time is the
cost of an answer on a shared machine. `--threads` compares numbers of threads in this process,
without HTTP.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from serving import Client, make_run, serving, write_rows

from disentwine.serve.explore import intervene
from disentwine.serve.images import Uploads
from disentwine.serve.run_registry import RunRegistry


def angles(n: int) -> list[float]:
    """Values of a slider that is dragged to and fro."""
    return (90 + 30 * np.sin(np.linspace(0, 20, n))).tolist()


def over_http(run: Path, *, requests: int) -> dict[str, float]:
    """Milliseconds of a slider's requests, without the first."""
    server_times, round_trips = [], []
    with serving(run) as server:
        client = Client(server.port)
        name = client.ask("/api/runs").body[0]["id"]
        do = f"/api/runs/{name}/do"
        client.ask(do, {"image": "t-0", "do": {"light_angle": 90.0}})
        before = server.processor_seconds()
        for i, angle in enumerate(angles(requests)):
            turn = {"X-Client": "hand", "X-Sequence": str(i)}
            answer = client.ask(do, {"image": "t-0", "do": {"light_angle": angle}}, **turn)
            assert answer.status == 200, answer.body
            server_times.append(answer.body["milliseconds"])
            round_trips.append(1000 * answer.seconds)
        processor = 1000 * (server.processor_seconds() - before) / requests
    parts = (("server", server_times), ("trip", round_trips))
    found = {f"{name}-p{q}": float(np.percentile(t, q)) for name, t in parts for q in (50, 95)}
    return {**found, "processor": processor}


def in_process(run: Path, *, threads: int, requests: int) -> tuple[float, float]:
    """Median and 95th percentile of the milliseconds of an intervention, without HTTP."""
    torch.set_num_threads(threads)
    (entry,) = RunRegistry([run]).runs.values()
    loaded_run = entry.load()
    seen = loaded_run.encode("t-0", Uploads().read)
    intervene(loaded_run, seen, {})
    times = []
    for angle in angles(requests):
        start = time.perf_counter()
        intervene(loaded_run, seen, {"light_angle": angle})
        times.append(1000 * (time.perf_counter() - start))
    return float(np.percentile(times, 50)), float(np.percentile(times, 95))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--models", nargs="+", default=["causal-vae", "causal-vae/layered"])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--threads", type=int, nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    print("milliseconds of a do")
    print(f"{'':<20}  server: 50 %    95 %  trip: 50 %    95 %  processor")
    with tempfile.TemporaryDirectory() as folder:
        for model in [options.run.name[:20]] if options.run else options.models:
            run = options.run or make_run(Path(folder), model=model, size=options.size)
            found = over_http(run, requests=options.requests)
            rows += [
                {"system": model, "metric": name, "value": value, "n": options.requests,
                 "unit": "milliseconds"}
                for name, value in found.items()
            ]  # fmt: skip
            print(f"{model:<20}", *(f"{value:9.1f}" for value in found.values()))
            for threads in options.threads:
                half, most = in_process(run, threads=threads, requests=options.requests)
                print(f"{'':<4}{threads} threads, no web {half:.1f} (median) {most:.1f} (95 %)")
    if options.out:
        command = f"python benchmarks/serve.py --requests {options.requests} --size {options.size}"
        write_rows(options.out, "serve-latency", command, rows)


if __name__ == "__main__":
    main()
