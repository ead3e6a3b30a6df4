"""The explorer under hostile requests and images: status, latency, memory.

    python benchmarks/serve_hostile.py [--requests 1000] [--out results/serve-hostile.json]

The requests and images are those of tests/serve/test_hostile_requests.py and test_uploads.py, sent over
a socket to a server in its own process. Only 200 and 4xx are allowed, and the server must answer at the
end.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import Client, Server, make_run, serving, write_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "serve"))

from test_hostile_requests import ROUTES, bodies
from test_uploads import REFUSED, TAKEN


def send(server: Server, path: str, content: bytes, kind: str) -> tuple[int, float]:
    """Status and seconds of one request on a connection of its own."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("POST", path, content, {"Content-Type": kind})
        status = connection.getresponse().status
    finally:
        connection.close()
    return status, time.perf_counter() - start


def rows_of(name: str, answers: list[tuple[int, float]], grown: float) -> list[dict[str, Any]]:
    counts = Counter(f"{status // 100}xx" for status, _ in answers)
    slowest = max(seconds for _, seconds in answers)
    found = {f"answers-{kind}": count for kind, count in sorted(counts.items())}
    found |= {"slowest-seconds": slowest, "peak-growth-megabytes": grown}
    return [{"system": name, "metric": k, "value": v, "n": len(answers)} for k, v in found.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), model="causal-vae/layered", size=32)
        with serving(run) as server:
            client = Client(server.port)
            name = client.ask("/api/runs").body[0]["id"]
            good = (f"/api/runs/{name}/do", {"image": "t-0", "do": {"light_angle": 70.0}})
            client.ask(*good)
            answers: list[tuple[int, float]] = []

            @settings(
                max_examples=options.requests,
                deadline=None,
                database=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )
            @given(route=st.sampled_from(ROUTES), body=bodies)
            def any_json(route: str, body: Any) -> None:
                content = json.dumps(body).encode()
                path = f"/api/runs/{name}/{route}"
                answers.append(send(server, path, content, "application/json"))

            peak = server.peak_memory()
            any_json()
            rows = rows_of("requests", answers, server.peak_memory() - peak)
            for kind, images in (("images to refuse", REFUSED), ("images to convert", TAKEN)):
                peak = server.peak_memory()
                path = f"/api/uploads?run={name}"
                sent = [send(server, path, make(), "image/png") for make in images.values()]
                answers += sent
                rows += rows_of(kind, sent, server.peak_memory() - peak)
            alive = client.ask(*good).status == 200
    rows.append({"system": "after", "metric": "alive", "value": int(alive)})
    for row in rows:
        print(f"{row['system']:<20}{row['metric']:<24}{row['value']:.4g}")
    if options.out:
        command = f"python benchmarks/serve_hostile.py --requests {options.requests}"
        write_rows(options.out, "serve-hostile", command, rows)
    sys.exit(1 if not alive or any(status >= 500 for status, _ in answers) else 0)


if __name__ == "__main__":
    main()
