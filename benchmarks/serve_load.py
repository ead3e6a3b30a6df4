"""The explorer under load: many clients on loopback for some seconds, then a burst.

    python benchmarks/serve_load.py [--clients 64] [--seconds 20] [--run RUN] [--out results/serve.json]

Every client requests interventions, sweeps, images and samples, one after the other, and respects
Retry-After. Measured are answers by status, the latency of accepted requests, and the server's memory.
Only 200 and 503 with Retry-After are allowed, the server must answer at the end, and its memory must
not have grown.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from serving import Answer, Client, Server, make_run, serving, write_rows


class Tally:
    """Responses to all clients."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.seconds: list[float] = []
        self.unexplained: list[str] = []

    def note(self, answer: Answer) -> None:
        with self.lock:
            self.statuses[answer.status] += 1
            if answer.status == 200:
                self.seconds.append(answer.seconds)
            elif answer.status != 503 or not answer.retry_after:
                self.unexplained.append(f"{answer.status}: {answer.body}")


def question(where: str, rng: random.Random) -> tuple[str, Any]:
    """The next request of a visitor, mostly interventions."""
    image, light = f"t-{rng.randrange(200)}", rng.uniform(60, 130)
    kind = rng.random()
    if kind < 0.8:
        return f"{where}/do", {"image": image, "do": {"light_angle": light}}
    if kind < 0.9:
        return f"{where}/images/{image}", None
    if kind < 0.95:
        return f"{where}/sample", {"count": 4}
    return f"{where}/sweep", {"image": image, "concept": "light_angle", "count": 5}


def visit(server: Server, where: str, tally: Tally, seed: int, until: float) -> None:
    """One client that sends requests until the time is over, at least one."""
    rng, client = random.Random(seed), Client(server.port)
    while True:
        answer = client.ask(*question(where, rng))
        tally.note(answer)
        if time.monotonic() > until:
            return
        if answer.status == 503:
            time.sleep(rng.uniform(0.5, 1.5) * answer.retry_after)


def run_clients(server: Server, where: str, n: int, seconds: float) -> tuple[Tally, list[float]]:
    """Many clients at once; the memory of the server, sampled twice a second."""
    tally, memory, until = Tally(), [server.memory()], time.monotonic() + seconds
    threads = [
        threading.Thread(target=visit, args=(server, where, tally, seed, until))
        for seed in range(n)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.5)
        memory.append(server.memory())
    return tally, memory


def rows_of(name: str, tally: Tally) -> list[dict[str, Any]]:
    rows = [
        {"system": name, "metric": f"answers-{status}", "value": count}
        for status, count in sorted(tally.statuses.items())
    ]
    n = len(tally.seconds)
    rows += [
        {"system": name, "metric": f"latency-p{q}", "value": float(np.percentile(tally.seconds, q)),
         "n": n, "unit": "seconds"}
        for q in (50, 95, 99)
    ]  # fmt: skip
    return [*rows, {"system": name, "metric": "unexplained", "value": len(tally.unexplained)}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--run", type=Path, help="a run on pendulum; one is made when omitted")
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or make_run(Path(folder), model="causal-vae/layered", size=options.size)
        with serving(run) as server:
            client = Client(server.port)
            where = f"/api/runs/{client.ask('/api/runs').body[0]['id']}"
            client.ask(where)
            # All images that will be asked for are remembered before memory is judged.
            run_clients(server, where, 8, options.seconds / 4)
            began = server.processor_seconds()
            steady, memory = run_clients(server, where, options.clients, options.seconds)
            processor = server.processor_seconds() - began
            burst, _ = run_clients(server, where, 4 * options.clients, 1)
            alive = client.ask(f"{where}/do", {"image": "t-0", "do": {"light_angle": 70.0}})
    first, last = (float(np.median(part)) for part in np.array_split(memory, 4)[1::2])
    grown = last / first - 1
    rows = [*rows_of("steady", steady), *rows_of("burst", burst)]
    answered = sum(steady.statuses[status] for status in (200,))
    rows += [
        {"system": "steady", "metric": "processor-milliseconds-an-answer",
         "value": 1000 * processor / max(answered, 1)},
        {"system": "steady", "metric": "memory-megabytes", "value": last},
        {"system": "steady", "metric": "memory-growth", "value": grown},
        {"system": "after", "metric": "alive", "value": int(alive.status == 200)},
    ]  # fmt: skip
    for row in rows:
        print(f"{row['system']:<8}{row['metric']:<36}{row['value']:.4g}")
    for line in (steady.unexplained + burst.unexplained)[:5]:
        print(line, file=sys.stderr)
    if options.out:
        command = (
            f"python benchmarks/serve_load.py --clients {options.clients} "
            f"--seconds {options.seconds:g} --size {options.size}"
        )
        write_rows(options.out, "serve", command, rows)
    failed = steady.unexplained or burst.unexplained or alive.status != 200 or grown > 0.05
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
