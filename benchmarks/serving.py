"""Run, server process and memory of the explorer's benchmarks."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from disentwine.runs.checkpoint import versions
from disentwine.runs.fit import train_recipe
from disentwine.runs.recipe import read_recipe


def make_run(folder: Path, *, model: str, size: int) -> Path:
    """A run of one update; latency does not depend on the quality of a model."""
    overrides = [f"data.size={size}", "training.steps=1", "training.batch_size=8"]
    recipe = read_recipe("demo", [f"model.name={model}", *overrides, "training.threads=1"])
    path = folder / model.replace("/", "-")
    train_recipe(recipe, path, progress=False)
    return path


class Answer(NamedTuple):
    status: int
    body: Any
    seconds: float
    retry_after: float


class Client:
    """One connection to the server, opened again if it was closed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, path: str, body: Any = None, **headers: str) -> Answer:
        start = time.perf_counter()
        for attempt in (0, 1):
            try:
                self.connection.request(
                    "POST" if body is not None else "GET",
                    path,
                    None if body is None else json.dumps(body),
                    {"Content-Type": "application/json", **headers},
                )
                response = self.connection.getresponse()
                content = response.read()
                break
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self.connection.close()
                if attempt:
                    raise
        seconds = time.perf_counter() - start
        retry = float(response.headers.get("Retry-After", 0))
        return Answer(response.status, json.loads(content), seconds, retry)


class Server(NamedTuple):
    port: int
    pid: int

    def memory(self) -> float:
        """Current memory in megabytes."""
        return self._megabytes("VmRSS")

    def peak_memory(self) -> float:
        """Peak memory in megabytes."""
        return self._megabytes("VmHWM")

    def _megabytes(self, name: str) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(name))

    def processor_seconds(self) -> float:
        """Processor time in seconds, independent of other load."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def serving(*runs: Path) -> Iterator[Server]:
    """A server on loopback, in a process of its own, at any free port."""
    command = [sys.executable, "-c", "from disentwine.cli import main; main()", "serve"]
    process = subprocess.Popen(
        [*command, *map(str, runs), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        port = int(told.split("127.0.0.1:")[1].split("/")[0])
        client = Client(port)
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                client.ask("/api/health")
                break
            time.sleep(0.1)
        yield Server(port, process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def write_rows(path: Path, study: str, command: str, rows: list[dict[str, Any]]) -> None:
    """Write results to a file, with command, versions and machine."""
    machine = {"cpu": platform.machine(), "load": Path("/proc/loadavg").read_text()[:14]}
    content = {
        "study": study,
        "command": command,
        "versions": versions(),
        "machine": machine,
        "rows": rows,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
