from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from disentwine.data.published import smallnorb
from disentwine.data.published.smallnorb import SmallNORB, read_matrix
from disentwine.errors import DataError

PAIRS = 20


def matrix(values: np.ndarray) -> bytes:
    magic = 0x1E3D4C55 if values.dtype == np.uint8 else 0x1E3D4C54
    lengths = (*values.shape, *(1,) * (3 - values.ndim))
    return struct.pack(f"<{2 + len(lengths)}i", magic, values.ndim, *lengths) + values.tobytes()


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, np.ndarray]]:
    monkeypatch.setattr(smallnorb, "PAIRS", PAIRS)
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    halves = []
    for i, stem in enumerate(smallnorb.STEMS):
        info = [rng.integers(0, top, PAIRS) for top in (10, 9, 18, 6)]
        info[2] *= 2
        half = {
            "dat": rng.integers(0, 256, (PAIRS, 2, 96, 96), dtype=np.uint8),
            "cat": rng.integers(0, 5, PAIRS).astype("<i4"),
            "info": np.stack(info, axis=1).astype("<i4"),
        }
        for name, values in half.items():
            content = matrix(values)
            path = tmp_path / f"{stem}-{name}.mat{'' if i else '.gz'}"
            path.write_bytes(content if i else gzip.compress(content, mtime=0))
        halves.append(half)
    return halves


def test_made_files(toys: list[dict[str, np.ndarray]]) -> None:
    data = SmallNORB()
    assert data.images.shape == (2 * PAIRS, 32, 32, 1)
    left = np.concatenate([half["dat"][:, 0] for half in toys])
    means = left.reshape(-1, 32, 3, 32, 3).mean(axis=(2, 4))
    assert np.abs(data.images[..., 0] - means).max() <= 0.5001
    assert np.array_equal(SmallNORB(size=96).images[..., 0], left)
    info = np.concatenate([half["info"] for half in toys])
    assert data.column("category").tolist() == [c for half in toys for c in half["cat"]]
    assert data.column("elevation").tolist() == (30 + 5 * info[:, 1]).tolist()
    assert data.column("azimuth").tolist() == (10 * info[:, 2]).tolist()
    assert [factor.name for factor in data.spec if factor.cyclic] == ["azimuth"]
    assert data.split["test"].tolist() == list(range(PAIRS, 2 * PAIRS))
    assert len(data.split["validation"]) == 2
    for factor in data.spec:
        if factor.kind == "ordinal":
            assert set(data.column(factor.name)) <= set(factor.values)
        else:
            assert data.column(factor.name).max() < len(factor.values)


def test_a_missing_file_is_named(toys: list[dict[str, np.ndarray]], tmp_path: Path) -> None:
    (tmp_path / f"{smallnorb.STEMS[1]}-cat.mat").unlink()
    with pytest.raises(DataError, match=r"testing-cat\.mat.*nyu\.edu"):
        SmallNORB()


WHOLE = matrix(np.arange(12, dtype="<i4").reshape(3, 4))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "begins with"),
        (b"\0" + WHOLE[1:], "begins with 0x1e3d4c00"),
        (matrix(np.zeros((4, 3), "<i4")), "does not have the shape"),
        (WHOLE[:10], "does not have the shape"),
        (WHOLE[:-1], "ends early"),
        (WHOLE + b"\0", "bytes after its end"),
        (gzip.compress(WHOLE, mtime=0)[:-9], "cannot be read"),
    ],
)
def test_damage_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "some.mat"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"some\.mat.*{reason}.*fetch it again"):
        read_matrix(path, shape=(3, 4))


def test_a_whole_matrix_is_read(tmp_path: Path) -> None:
    path = tmp_path / "some.mat"
    path.write_bytes(WHOLE)
    assert read_matrix(path, shape=(3, 4)).tolist() == np.arange(12).reshape(3, 4).tolist()
