"""No test of the earlier tree is lost: `tests/moved_tests.json` says where each is today."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "moved_tests.py"


@pytest.fixture(scope="module")
def moved():
    spec = importlib.util.spec_from_file_location("moved_tests", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_names_of_tests_are_taken_apart_and_put_together(moved):
    for node in (
        "tests/a/test_b.py::test_c",
        "tests/a/test_b.py::TestD::test_c[x[0]-y::z -> w]",
        "src/disentwine/data/files.py::disentwine.data.files.find_file",
        "src/disentwine/__init__.py::disentwine",
    ):
        assert str(moved.Test.parse(node)) == node


def test_the_table_is_written_as_it_is_read(moved, tmp_path, monkeypatch):
    table = moved.Table.read()
    monkeypatch.setattr(moved, "TABLE", tmp_path / "table.json")
    table.write()
    assert moved.Table.read().places.items() == table.places.items()


def test_renamed_parameters_are_matched_by_likeness(moved):
    matched = dict(
        moved.match_parameters(["opponent_a", "b", "opponent_c"], ["b", "critic_c", "critic_a"])
    )
    assert matched == {"b": "b", "opponent_a": "critic_a", "opponent_c": "critic_c"}


def test_what_is_missing_is_named(moved):
    here, away = (moved.Test.parse(f"tests/test_a.py::test_{name}") for name in ("b", "c"))
    table = moved.Table("0", {here: here, away: here, moved.Test.parse("tests/a.py::test_d"): None})
    assert moved.lost(table, [here]) == ["tests/a.py::test_d was not found"]
    assert len(moved.lost(table, [])) == 3


@pytest.mark.slow
def test_every_test_of_the_earlier_tree_is_there_still():
    done = subprocess.run(
        [sys.executable, SCRIPT, "check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
