"""disentwine serve: what goes wrong before anything is served is said in one line."""

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from disentwine import VAE, data, fit
from disentwine.serve.server import listen


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "plain"
    pendulum = data.Pendulum(size=32)
    options = {"steps": 1, "batch_size": 8, "threads": 1}
    fit(VAE.for_data(pendulum, latent=2), pendulum, out=path, **options)
    return path


def test_what_is_no_run_is_named(command: Any, tmp_path: Path) -> None:
    answer = command("serve", tmp_path)
    assert answer.code == 2
    assert "is not a run folder" in answer.err


def test_a_port_in_use_is_named(command: Any, run: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = command("serve", run, "--port", port)
    assert answer.code == 2
    assert f"127.0.0.1:{port}" in answer.err
    assert "choose another --port" in answer.err


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """asyncio switches Nagle's algorithm off for sockets that say that they speak TCP, and only for those."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP


def test_an_unknown_address_is_named(command: Any, run: Path) -> None:
    answer = command("serve", run, "--host", "256.256.256.256")
    assert answer.code == 2
    assert "there is no such address" in answer.err


@pytest.mark.parametrize("missing", ["uvicorn", "fastapi"])
def test_a_missing_extra_is_named(
    command: Any, run: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("disentwine.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    answer = command("serve", run)
    assert answer.code == 2
    assert f"serving needs {missing}" in answer.err
    assert "pip install 'disentwine[serve]'" in answer.err
