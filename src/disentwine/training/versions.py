"""What a result was made with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version


@cache
def versions() -> dict[str, str]:
    """Versions of disentwine, Python and the libraries that decide numbers."""
    packages = ("disentwine", "torch", "numpy", "scikit-learn")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
