"""Long work tells how far it is, also where nobody sees a bar."""

import pytest

from disentwine import progress


def advance(bar: progress.ProgressBar) -> None:
    with bar:
        bar.advance({"loss": 2.5})
        bar.advance()


def test_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    monkeypatch.setattr(progress.time, "monotonic", iter(range(0, 100, 2)).__next__)
    advance(progress.ProgressBar("VAE", total=1_500, done=1_000))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "VAE: 1,001 of 1,500, 0.5/s, 0:16:38 left  loss 2.5"
    assert second.startswith("VAE: 1,002 of 1,500")


def test_lines_are_rare_and_can_be_silenced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    advance(progress.ProgressBar("VAE", total=2))
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    advance(progress.ProgressBar("VAE", total=2, show=False))
    assert capsys.readouterr().err == ""
