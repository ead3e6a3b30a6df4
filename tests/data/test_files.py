"""Missing files are named, damaged ones refused, pickled ones never read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from disentwine.data.files import find_file, load_npz, stream_npz
from disentwine.errors import DataError

ABOUT = {"dataset": "moons", "source": "https://moons.example", "licence": "name the authors"}


def write_npz(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)
    return path


def test_finds_the_first_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    (tmp_path / "sub").mkdir()
    for name in ("sub/b.bin", "c.bin"):
        (tmp_path / name).touch()
    assert find_file(["a.bin", "sub/b.bin", "c.bin"], **ABOUT) == tmp_path / "sub" / "b.bin"


def test_a_missing_file_is_named_with_folder_source_and_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    with pytest.raises(DataError) as caught:
        find_file(["a.bin", "b.bin"], **ABOUT)
    for part in ("moons", "a.bin", "b.bin", str(tmp_path), *ABOUT.values()):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unset_folder_is_said_to_be_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISENTWINE_DATA", raising=False)
    with pytest.raises(DataError, match=r"DISENTWINE_DATA is not set.*export DISENTWINE_DATA="):
        find_file(["a.bin"], **ABOUT)


def test_reads_only_the_keys_asked_for_and_never_a_pickle(tmp_path: Path) -> None:
    pickled = np.array({"title": "moons"}, dtype=object)
    path = write_npz(tmp_path / "a.npz", x=np.arange(4), y=np.eye(2), metadata=pickled)
    arrays = load_npz(path, ["x", "y"])
    assert set(arrays) == {"x", "y"}
    np.testing.assert_array_equal(arrays["x"], np.arange(4))
    for read in (lambda: load_npz(path, ["metadata"]), lambda: list(stream_npz(path, "metadata"))):
        with pytest.raises(DataError, match=r"a\.npz"):
            read()


def test_a_missing_key_is_named_with_those_present(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", x=np.arange(4))
    with pytest.raises(DataError, match=r"a\.npz has no array 'imgs' \(it has x\)"):
        load_npz(path, ["imgs"])


def test_streams_the_array_in_blocks(tmp_path: Path) -> None:
    x = np.arange(30, dtype=np.int16).reshape(10, 3)
    blocks = list(stream_npz(write_npz(tmp_path / "a.npz", x=x), "x", rows=4))
    assert [len(block) for block in blocks] == [4, 4, 2]
    np.testing.assert_array_equal(np.concatenate(blocks), x)


@pytest.mark.parametrize("damage", ["truncated", "altered", "replaced", "emptied"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, damage: str, compressed: bool) -> None:
    path = tmp_path / "a.npz"
    x = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    (np.savez_compressed if compressed else np.savez)(path, x=x)
    content = bytearray(path.read_bytes())
    if damage == "altered":
        content[len(content) // 2] ^= 0xFF
    path.write_bytes(
        {
            "truncated": content[:-100],
            "altered": content,
            "replaced": b"<html>not found</html>",
            "emptied": b"",
        }[damage]
    )
    for read in (lambda: load_npz(path, ["x"]), lambda: list(stream_npz(path, "x"))):
        with pytest.raises(DataError, match=r"a\.npz cannot be read.*fetch it again"):
            read()
