"""Count the modules that one command passes through; run in a process of its own.

    python tools/house/trace.py COMMAND FOLDER

FOLDER holds `recipe.yaml` and `run`, a tiny training of it. COMMAND is `prepare` (which makes
`run`), `train`, `do`, `evaluate`, `serve` or `serve-request`. The last line on the standard output
is a JSON list of the modules of disentwine in which a function ran. PYTHONPATH decides which
disentwine that is.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

from PIL import Image

FIRST_UPDATE = ("Trainer.update", "Trainer.step")
"""The function that makes one update, by its qualified name, in the old tree and in the new one."""

TABLE_HOLDS = {"do": "light_angle", "evaluate": "reconstruction-error"}
"""Text by which the printed table is recognised: a concept of Pendulum, a fixed name of a score."""

ADDRESS = "http://127.0.0.1:8000"


class Tracer:
    """Records in which modules of a package a Python function runs, in every thread.

    Module-level code and class bodies do not count, nor functions that these call while a module is
    imported: what is imported, and when, is no hop of the call.

    Arguments:
        package: the folder of the package.
        stops_at: qualified names of functions; `on_stop` is called when one of them is entered.
        on_stop: what ends the trace.
    """

    def __init__(
        self,
        package: Path,
        stops_at: tuple[str, ...] = (),
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self.prefix = f"{package}{os.sep}"
        self.stops_at = stops_at
        self.on_stop = on_stop
        self.files: set[str] = set()

    def start(self) -> None:
        threading.setprofile(self)  # for threads that begin from now on, such as the server's
        sys.setprofile(self)

    def stop(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def clear(self) -> None:
        self.files.clear()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(self.prefix):
            return
        if not code.co_flags & inspect.CO_OPTIMIZED:  # the body of a module or of a class
            return
        if code.co_filename not in self.files and not self._while_importing(frame):
            self.files.add(code.co_filename)
        if code.co_qualname in self.stops_at:
            self.on_stop()

    def _while_importing(self, frame: FrameType | None) -> bool:
        while frame is not None:
            code = frame.f_code
            if code.co_name == "<module>" and code.co_filename.startswith(self.prefix):
                return True
            frame = frame.f_back
        return False

    def modules(self) -> list[str]:
        """Names of the modules, without the package's own name."""
        found = (Path(name.removeprefix(self.prefix)) for name in self.files)
        return sorted(str(path.with_suffix("")).replace(os.sep, "/") for path in found)


class Watched:
    """A stream that calls a function as soon as some text is written to it."""

    def __init__(self, stream: TextIO, text: str, on_text: Callable[[], None]) -> None:
        self.stream = stream
        self.text = text
        self.on_text = on_text

    def write(self, words: str) -> int:
        if self.text in words:
            self.on_text()
        return self.stream.write(words)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def report(tracer: Tracer) -> NoReturn:
    """Print what was found and leave at once: what comes afterwards is not measured."""
    tracer.stop()
    sys.__stdout__.write(f"\n{json.dumps(tracer.modules())}\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]
    os._exit(0)


def run_main(*words: str) -> None:
    """Call the command's `main` as a shell would."""
    sys.argv = ["disentwine", *words]
    main = importlib.import_module("disentwine.cli").main
    try:
        main()
    except SystemExit as end:
        if end.code not in (0, None):
            raise


def request_do(app: Any, tracer: Tracer, *, only_request: bool) -> NoReturn:
    """Ask a served application for one counterfactual image."""
    from starlette.testclient import TestClient

    with TestClient(app, base_url=ADDRESS) as client:
        address = f"/api/runs/{client.get('/api/runs').json()[0]['id']}"
        if only_request:
            client.get(address).raise_for_status()
            tracer.clear()
        answer = client.post(f"{address}/do", json={"image": "t-3", "do": {"light_angle": 70.0}})
        answer.raise_for_status()
        report(tracer)


def main() -> None:
    command, folder = sys.argv[1], Path(sys.argv[2])
    recipe, run = folder / "recipe.yaml", folder / "run"
    if command == "prepare":
        Image.new("RGB", (32, 32), (128, 90, 60)).save(folder / "image.png")
        run_main("train", str(recipe), "--out", str(run))
        return
    package = Path(str(importlib.import_module("disentwine").__file__)).parent
    importlib.import_module("disentwine.cli")
    tracer = Tracer(package, FIRST_UPDATE if command == "train" else ())
    tracer.on_stop = lambda: report(tracer)
    if command in TABLE_HOLDS:
        sys.stdout = Watched(sys.stdout, TABLE_HOLDS[command], tracer.on_stop)  # type: ignore[assignment]
    if command.startswith("serve"):
        import uvicorn

        def answer_one(server: uvicorn.Server, sockets: Any = None) -> NoReturn:
            request_do(server.config.app, tracer, only_request=command == "serve-request")

        uvicorn.Server.run = answer_one  # type: ignore[assignment, method-assign]
    tracer.start()
    if command == "train":
        run_main("train", str(recipe), "--out", str(folder / "new"))
    elif command == "do":
        out = str(folder / "counterfactual.png")
        run_main("do", str(run), str(folder / "image.png"), "light_angle=70", "--out", out)
    elif command == "evaluate":
        run_main("evaluate", str(run), "--seeds", "1")
    else:
        run_main("serve", str(run), "--port", "0")
    tracer.stop()
    sys.exit(f"{command} ended without what the trace waits for: see FIRST_UPDATE, TABLE_HOLDS")


if __name__ == "__main__":
    main()
