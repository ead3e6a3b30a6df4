"""What the tests of studies share."""

from concurrent.futures import Future

import pytest

from disentwine.studies import scheduler as trials


class InThisProcess:
    """A pool of no processes."""

    def __init__(self, jobs, *, reused):
        self.reused = reused

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def submit(self, function, *arguments):
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture
def in_this_process(monkeypatch):
    """Trials are made without other processes."""
    monkeypatch.setattr(trials, "workers", InThisProcess)
