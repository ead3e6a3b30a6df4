from __future__ import annotations

import gzip
import hashlib
import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from disentwine.data.published import mnist
from disentwine.data.published.mnist import MNIST, read_idx
from disentwine.errors import DataError

real = pytest.mark.skipif(
    not Path(os.environ.get("DISENTWINE_DATA", ""), "mnist/train-images-idx3-ubyte.gz").is_file(),
    reason="needs mnist/ in the folder that DISENTWINE_DATA names",
)


def idx(shape: tuple[int, ...], high: int = 256) -> bytes:
    body = np.random.default_rng(0).integers(0, high, math.prod(shape), dtype=np.uint8)
    return struct.pack(f">{1 + len(shape)}I", 0x800 + len(shape), *shape) + body.tobytes()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A tenth of a percent of MNIST, and its checksums in place of the published ones."""
    shapes = {name: (shape[0] // 1000, *shape[1:]) for name, (shape, _) in mnist.FILES.items()}
    content = {n: idx(shape, 10 if "labels" in n else 256) for n, shape in shapes.items()}
    sums = {n: (shapes[n], hashlib.sha256(content[n]).hexdigest()) for n in shapes}
    monkeypatch.setattr(mnist, "FILES", sums)
    monkeypatch.setattr(mnist, "VALIDATION", 5)
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    return content


@pytest.mark.parametrize("folder", ["mnist", "."])
@pytest.mark.parametrize("packed", [True, False])
def test_made_files(small: dict[str, bytes], tmp_path: Path, folder: str, packed: bool) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    for name, content in small.items():
        path = tmp_path / folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    data = MNIST(seed=1)
    assert data.images.shape == (70, 28, 28, 1)
    assert data.images[0].tobytes() == small["train-images-idx3-ubyte"][16 : 16 + 784]
    assert data.images[60].tobytes() == small["t10k-images-idx3-ubyte"][16 : 16 + 784]
    assert data.factors[:60, 0].tolist() == list(small["train-labels-idx1-ubyte"][8:])
    assert data.split["test"].tolist() == list(range(60, 70))
    assert len(data.split["validation"]) == 5
    assert sorted(np.concatenate(list(data.split.values()))) == list(range(70))


def test_a_missing_file_is_named(small: dict[str, bytes]) -> None:
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz.*ossci-datasets"):
        MNIST()


WHOLE = idx((3, 4))
SUM = hashlib.sha256(WHOLE).hexdigest()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "begins with"),
        (b"\0\0\x0d" + WHOLE[3:], "begins with 00000d02, not 00000802"),
        (WHOLE[:9], "ends early"),
        (WHOLE[:-1], "ends early"),
        (WHOLE + b"\0", "has bytes after its end"),
        (idx((4, 3)), r"has shape \(4, 3\), not \(3, 4\)"),
        (WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]), "another SHA-256"),
        (gzip.compress(WHOLE, mtime=0)[:-9], "cannot be read"),
        (gzip.compress(WHOLE, mtime=0)[:12], "cannot be read"),
        (gzip.compress(WHOLE, mtime=0)[:-5] + b"12345", "cannot be read"),
        (gzip.compress(bytes(100_000_000), 1, mtime=0), "begins with 00000000"),
    ],
)
def test_damage_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "some-idx"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"some-idx.*{reason}.*fetch it again"):
        read_idx(path, shape=(3, 4), sha256=SUM)


def test_no_truncation_passes(tmp_path: Path) -> None:
    path = tmp_path / "some-idx.gz"
    packed = gzip.compress(WHOLE, mtime=0)
    for end in range(len(packed)):
        path.write_bytes(packed[:end])
        with pytest.raises(DataError):
            read_idx(path, shape=(3, 4), sha256=SUM)
    path.write_bytes(packed)
    assert read_idx(path, shape=(3, 4), sha256=SUM).tobytes() == WHOLE[12:]


@real
def test_the_published_files() -> None:
    data = MNIST()
    assert data.images.shape == (70_000, 28, 28, 1)
    digits = data.column("digit").astype(int)
    assert digits[:5].tolist() == [5, 0, 4, 1, 9]
    assert digits[60_000:60_005].tolist() == [7, 2, 1, 0, 4]
    assert np.bincount(digits[:60_000])[:3].tolist() == [5923, 6742, 5958]
    assert {name: len(part) for name, part in data.split.items()} == {
        "train": 55_000,
        "validation": 5_000,
        "test": 10_000,
    }
    assert round(float(data.images[:60_000].mean()) / 255, 4) == 0.1307
