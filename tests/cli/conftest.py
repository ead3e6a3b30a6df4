"""The command, called as a user calls it, without paying for a new process."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from disentwine.cli import main


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Command:
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))

    def call(*words: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["disentwine", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except Exception as error:
            line = " ".join(map(str, words))
            pytest.fail(f"'disentwine {line}' ends in a traceback: {error!r}")
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call
