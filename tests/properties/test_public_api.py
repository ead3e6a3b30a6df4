"""The public API: names at the top level, and an import without torch."""

import subprocess
import sys

import disentwine
from disentwine import discover
from disentwine.causal.discovery import discover as discover_in_its_room
from disentwine.models import MODELS


def test_names_at_the_top_are_those_of_the_rooms():
    assert discover is discover_in_its_room
    classes = {cls.__name__ for cls in MODELS.values()}
    assert classes <= set(disentwine.__all__) == set(dir(disentwine))
    for name in disentwine.__all__:
        assert getattr(disentwine, name) is not None


def test_the_top_waits_for_torch():
    code = "import sys, disentwine; disentwine.metrics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
