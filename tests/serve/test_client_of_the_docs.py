"""The client of the documentation, run against a listening server."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from disentwine.serve.app import create_app
from disentwine.serve.server import listen, server_of

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "use-the-http-api.md"


@pytest.fixture
def address(runs: Path) -> Iterator[str]:
    listener = listen("127.0.0.1", 0)
    server = server_of(create_app([runs / "plain", runs / "causal"]))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(60)
    listener.close()
    assert not thread.is_alive()


def test_it_runs(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert code.count("http://127.0.0.1:8000") == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace("http://127.0.0.1:8000", address), str(DOCS), "exec"), {})
    printed = capsys.readouterr().out
    assert "light_angle (54 to 132.3 degrees)" in printed
    assert "affected: ['shadow_length', 'shadow_position']" in printed
    assert (tmp_path / "counterfactual.png").read_bytes().startswith(b"\x89PNG")
