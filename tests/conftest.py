"""What tests of several rooms share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module

import pytest

NOBODY = 65534


@pytest.fixture
def without_permissions() -> Callable[[], AbstractContextManager[None]]:
    """As a user whom folder permissions bind; they do not bind root."""

    @contextmanager
    def bound() -> Iterator[None]:
        for used in ("lightning_fabric", "disentwine.report"):
            import_module(used)  # that user may not read what is in root's home
        user = os.geteuid()
        if user == 0:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(user)

    return bound
