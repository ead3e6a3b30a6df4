"""Binary images: sampled with the right probabilities, once or in every batch."""

from __future__ import annotations

import contextlib
import os
import struct
import time
import tracemalloc
import warnings
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from disentwine.core.random import fixed_noise
from disentwine.data import MNIST
from disentwine.data.arrays import Arrays
from disentwine.data.images import binarised, read_image, shrink, write_image
from disentwine.data.published import mnist as binarized_mnist
from disentwine.data.published.mnist import BinarizedMNIST
from disentwine.errors import DataError, StorageError, UsageError
from disentwine.training.trainer import BatchSource

real = pytest.mark.skipif(
    not Path(os.environ.get("DISENTWINE_DATA", ""), "mnist/train-images-idx3-ubyte.gz").is_file()
    or not Path(os.environ["DISENTWINE_DATA"], "binarized_mnist").is_dir(),
    reason="needs mnist/ and binarized_mnist/ in the folder that DISENTWINE_DATA names",
)

LEVELS = np.array([0, 1, 64, 128, 254, 255], np.uint8)

SPLIT = {"train": np.arange(4), "validation": np.arange(4, 6), "test": np.arange(6, 10)}


def grey(side: int = 60) -> np.ndarray:
    """Ten images whose columns have each of the levels."""
    return np.tile(LEVELS, (10, side, side // len(LEVELS)))[..., None]


def within_chance(white: np.ndarray, n: int) -> bool:
    """Shares of white are the levels', to 5 standard errors; at black and white exactly."""
    p = LEVELS / 255
    return bool((np.abs(white - p) <= 5 * np.sqrt(p * (1 - p) / n)).all())


def shares(images: np.ndarray) -> np.ndarray:
    return np.array([(images[:, :, i :: len(LEVELS)] > 0).mean() for i in range(len(LEVELS))])


def test_static_images_are_drawn_once_with_the_right_probabilities() -> None:
    sampled = binarised(grey(), SPLIT, how="static")
    assert set(np.unique(sampled)) == {0, 255}
    assert within_chance(shares(sampled), 10 * 60 * 10)
    assert np.array_equal(sampled, binarised(grey(), SPLIT, how="static"))


def test_dynamic_images_are_grey_for_training_and_drawn_elsewhere() -> None:
    sampled, static = (binarised(grey(), SPLIT, how=how) for how in ("dynamic", "static"))  # type: ignore[arg-type]
    assert np.array_equal(sampled[:4], grey()[:4])
    assert np.array_equal(sampled[4:], static[4:])
    assert binarised(images := grey(), SPLIT, how="none") is images


def test_batches_draw_stochastic_pixels_anew_and_repeatably() -> None:
    data = Arrays(images=grey(), test=0.0, validation=0.1)
    plain = BatchSource(data, device=torch.device("cpu")).take(np.arange(10)).x
    data.stochastic = True
    source = BatchSource(data, device=torch.device("cpu"))
    with fixed_noise(0):
        first, second = (source.take(np.arange(10)).x for _ in range(2))
    with fixed_noise(0):
        again = source.take(np.arange(10)).x
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert set(first.unique().tolist()) == {0.0, 1.0}
    assert within_chance(shares(first.permute(0, 2, 3, 1).numpy()), 10 * 60 * 10)
    certain = (plain == 0) | (plain == 1)
    assert torch.equal(first[certain], plain[certain])


def test_shrinking_keeps_the_mean_and_whole_areas() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 12, 12), dtype=np.uint8)
    quarter = images.reshape(5, 6, 2, 6, 2).mean(axis=(2, 4))
    assert np.abs(shrink(images, 6).astype(float) - quarter).max() <= 0.5001
    # Areas that do not divide evenly: 12 rows in 5, which cover 2.4 rows each.
    weights = np.array([1, 1, 0.4]) / 2.4
    corner = weights @ images[0, :3, :3] @ weights
    assert abs(float(shrink(images, 5)[0, 0, 0]) - corner) <= 0.5001
    assert np.array_equal(shrink(images, 12), images)
    assert np.array_equal(shrink(images > 99, 12, white=1.0), 255 * (images > 99))
    with pytest.raises(UsageError, match=r"size=13.*1 to 12"):
        shrink(images, 13)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Sixteen images as text, in the published folder."""
    parts = {"train": ("train", 8), "validation": ("valid", 4), "test": ("test", 4)}
    monkeypatch.setattr(binarized_mnist, "PARTS", parts)
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    values = np.random.default_rng(0).integers(0, 2, (16, 784))
    start = 0
    for name, n in parts.values():
        lines = [" ".join(map(str, row)) + " \n" for row in values[start : start + n]]
        (tmp_path / f"binarized_mnist_{name}.amat").write_text("".join(lines))
        start += n
    return values


def test_text_and_matlab_files_hold_the_same(small: np.ndarray, tmp_path: Path) -> None:
    from scipy.io import savemat

    as_text = BinarizedMNIST()
    assert np.array_equal(as_text.images[:].reshape(16, 784), 255 * small)
    assert {name: part.tolist() for name, part in as_text.split.items()} == {
        "train": list(range(8)),
        "validation": list(range(8, 12)),
        "test": list(range(12, 16)),
    }
    for name, rows in (("train", small[:8]), ("valid", small[8:12]), ("test", small[12:])):
        (tmp_path / f"binarized_mnist_{name}.amat").unlink()
        savemat(tmp_path / f"binarized_mnist_{name}.mat", {"X": rows.astype(np.uint8)})
    assert np.array_equal(BinarizedMNIST().images[:], as_text.images[:])


@pytest.mark.parametrize("change", [lambda t: t[:-5], lambda t: t + "0", lambda t: "2" + t[1:]])
def test_damaged_text_is_refused(small: np.ndarray, tmp_path: Path, change: object) -> None:
    path = tmp_path / "binarized_mnist_test.amat"
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    with pytest.raises(DataError, match=r"test\.amat.*28x28 zeros and ones.*fetch it again"):
        BinarizedMNIST()


def test_a_damaged_matlab_file_is_refused(small: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "binarized_mnist_test.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    with pytest.raises(DataError, match=r"test\.mat cannot be read.*fetch it again"):
        BinarizedMNIST()


@real
def test_the_published_files() -> None:
    data = BinarizedMNIST()
    assert {name: len(part) for name, part in data.split.items()} == {
        "train": 50_000,
        "validation": 10_000,
        "test": 10_000,
    }
    mean = data.images[data.split["train"]].mean() / 255
    grey_mean = MNIST().images[:60_000].mean() / 255
    assert mean == pytest.approx(grey_mean, abs=0.001)


@real
def test_dynamic_digits_are_drawn_for_scores_and_grey_for_training() -> None:
    data, plain = MNIST(binarise="dynamic"), MNIST()
    assert data.stochastic
    assert not plain.stochastic
    assert np.array_equal(data.images[data.split["train"]], plain.images[data.split["train"]])
    assert set(np.unique(data.images[data.split["test"]])) == {0, 255}


def encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    content = BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def noise(height: int, width: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)


def png_chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def png_header(width: int, height: int, depth: int = 8, colour: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("suffix", ["png", "PNG"])
def test_what_is_written_is_read_back(tmp_path: Path, channels: int, suffix: str) -> None:
    array = noise(5, 7, channels)
    write_image(tmp_path / f"a.{suffix}", array)
    assert (read_image(tmp_path / f"a.{suffix}", channels=channels) == array).all()
    assert [file.name for file in tmp_path.iterdir()] == [f"a.{suffix}"]


def test_a_picture_of_the_right_size_is_left_as_it_is() -> None:
    array = noise(16, 16)
    assert (read_image(encode(Image.fromarray(array), "PNG"), size=16) == array).all()


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16"])
@pytest.mark.parametrize("size", [None, 6])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_png_mode_keeps_its_grey(mode: str, size: int | None, channels: int) -> None:
    level = 255 if mode == "1" else 200
    if mode == "I;16":
        image = Image.fromarray(np.full((9, 9), level * 257, np.uint16))
        assert image.mode == "I;16"
    else:
        image = Image.new("L", (9, 9), level).convert(mode)
    read = read_image(encode(image, "PNG"), size=size, channels=channels)
    side = size or 9
    assert read.shape == (side, side, channels)
    assert read.dtype == np.uint8
    assert np.abs(read.astype(int) - level).max() <= 1


def test_sixteen_bit_colour_keeps_its_high_byte() -> None:
    row = b"\x00" + struct.pack(">3H", 0xFF00, 0x8000, 0x0100) * 4
    body = png_chunk(b"IDAT", zlib.compress(row * 4)) + png_chunk(b"IEND", b"")
    read = read_image(png_header(4, 4, depth=16) + body)
    assert (read == [255, 128, 1]).all()


@pytest.mark.parametrize("kind", ["RGBA", "palette", "colour key", "16-bit key"])
def test_transparency_is_laid_over_white(kind: str) -> None:
    if kind == "RGBA":
        content = encode(Image.new("RGBA", (4, 4), (255, 0, 0, 0)), "PNG")
    elif kind == "palette":
        image = Image.new("P", (4, 4), 0)
        image.putpalette([255, 0, 0])
        content = encode(image, "PNG", transparency=0)
    elif kind == "colour key":
        content = encode(Image.new("RGB", (4, 4), (255, 0, 0)), "PNG", transparency=(255, 0, 0))
    else:
        key = png_chunk(b"tRNS", struct.pack(">H", 1000))
        pixels = zlib.compress((b"\x00" + struct.pack(">4H", *[1000] * 4)) * 4)
        body = png_chunk(b"IDAT", pixels) + png_chunk(b"IEND", b"")
        content = png_header(4, 4, depth=16, colour=0) + key + body
    assert (read_image(content) == 255).all()
    assert (read_image(content, size=2) == 255).all()


def test_half_transparent_black_over_white_is_grey() -> None:
    content = encode(Image.new("RGBA", (4, 4), (0, 0, 0, 128)), "PNG")
    assert (read_image(content) == 127).all()


def test_cmyk_red_is_red() -> None:
    read = read_image(encode(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG"), size=8)
    assert np.abs(read.astype(int) - [255, 0, 0]).max() < 12


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [None, 24])
def test_the_orientation_is_applied(orientation: int, kind: str, size: int | None) -> None:
    array = np.zeros((24, 24, 3), np.uint8)
    array[:12, :12] = 255
    array[:6, :] = 128
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    content = encode(Image.fromarray(array), kind, exif=exif, **options)
    with Image.open(BytesIO(content)) as image:
        upright = np.asarray(ImageOps.exif_transpose(image))
    assert np.abs(read_image(content, size=size).astype(int) - upright).max() <= 8


def test_orientation_swaps_height_and_width() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    assert read_image(encode(Image.new("RGB", (30, 10)), "JPEG", exif=exif)).shape == (30, 10, 3)


def test_the_centre_square_is_taken() -> None:
    array = np.zeros((10, 30, 3), np.uint8)
    array[:, 10:20] = 255
    assert (read_image(encode(Image.fromarray(array), "PNG"), size=5) == 255).all()


def test_resizing_is_antialiased() -> None:
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    small = read_image(encode(Image.fromarray(stripes), "PNG"), size=8)
    assert np.abs(small[:, 1:-1].astype(int) - 128).max() < 12


def test_a_large_jpeg_resizes_as_the_whole_does() -> None:
    x = np.linspace(0, 255, 1200).astype(np.uint8)
    image = Image.fromarray(np.stack([np.tile(x, (1200, 1))] * 3, axis=2))
    whole = np.asarray(image.resize((32, 32), Image.Resampling.BICUBIC)).astype(int)
    assert np.abs(read_image(encode(image, "JPEG", quality=95), size=32) - whole).max() <= 4


def test_one_pixel_becomes_a_plain_square() -> None:
    content = encode(Image.new("RGB", (1, 1), (1, 2, 3)), "PNG")
    assert (read_image(content, size=8) == [1, 2, 3]).all()


def test_an_animation_gives_its_first_frame() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "lime", "blue")]
    content = encode(frames[0], "PNG", save_all=True, append_images=frames[1:])
    assert (read_image(content) == [255, 0, 0]).all()


@pytest.mark.parametrize("side", [7_100, 10_000, 13_000, 50_000, 2**31 - 1])
def test_a_huge_picture_is_refused_from_its_header(side: int) -> None:
    content = png_header(side, side) + png_chunk(b"IDAT", zlib.compress(bytes(1000)))
    tracemalloc.start()
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"the image: .*megapixels; save it smaller"):
            read_image(content, size=8)
    assert time.perf_counter() - begin < 1
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_a_huge_jpeg_is_refused_from_its_header() -> None:
    content = bytearray(encode(Image.new("RGB", (16, 16)), "JPEG"))
    start = content.index(b"\xff\xc0") + 5
    content[start : start + 4] = struct.pack(">HH", 60_000, 60_000)
    with pytest.raises(DataError, match="60000 x 60000 pixels"):
        read_image(bytes(content), size=8)


def test_text_that_would_unpack_to_much_is_refused() -> None:
    bomb = b"note\x00\x00" + zlib.compress(bytes(50_000_000))
    content = png_header(1, 1) + png_chunk(b"zTXt", bomb)
    pixels = png_chunk(b"IDAT", zlib.compress(bytes(4))) + png_chunk(b"IEND", b"")
    tracemalloc.start()
    with contextlib.suppress(DataError):
        read_image(content + pixels)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_truncated_picture_is_never_taken_for_a_whole_one(kind: str) -> None:
    content = encode(Image.fromarray(noise(24, 24)), kind)
    whole = read_image(content)
    refused = 0
    for end in range(len(content)):
        try:
            assert (read_image(content[:end]) == whole).all()
        except DataError:
            refused += 1
    assert refused >= len(content) - 20  # only what follows the last pixel may be lacking


@pytest.mark.filterwarnings("ignore:.*:UserWarning:PIL")
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_no_damage_raises_anything_but_a_data_error(kind: str) -> None:
    generator = np.random.default_rng(0)
    info = PngInfo()
    info.add_text("note", "text" * 20, zip=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    options = {"pnginfo": info} if kind == "PNG" else {"exif": exif}
    content = np.frombuffer(encode(Image.fromarray(noise(12, 12)), kind, **options), np.uint8)
    for _ in range(400):
        damaged = content.copy()
        places = generator.integers(3, min(200, len(content)), 3)
        damaged[places] = generator.integers(0, 256, 3)
        with contextlib.suppress(DataError):
            assert read_image(damaged.tobytes(), size=8).shape == (8, 8, 3)


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "WEBP", "PPM", "ICO"])
def test_other_formats_are_refused_by_their_content(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "named.png"
    path.write_bytes(encode(Image.new("RGB", (16, 16)), kind))
    with pytest.raises(DataError, match=r"named\.png: neither PNG nor JPEG"):
        read_image(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"<svg/>", b"%!PS-Adobe-3.0 EPSF-3.0"])
def test_text_is_refused(content: bytes) -> None:
    with pytest.raises(DataError, match="neither PNG nor JPEG"):
        read_image(content)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.png", "a\0b.png"):
        with pytest.raises(DataError, match="no such image"):
            read_image(path)
    with pytest.raises(DataError, match="is a folder"):
        read_image(tmp_path)


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    content = encode(Image.new("L", (4, 4)), "PNG")
    with pytest.raises(UsageError, match="channels=4"):
        read_image(content, channels=4)
    with pytest.raises(UsageError, match="size=0"):
        read_image(content, size=0)
    with pytest.raises(UsageError, match=r"\.gif"):
        write_image(tmp_path / "a.gif", noise(4, 4))
    for wrong in (noise(4, 4, 2), noise(4, 4).astype(float), noise(0, 4)):
        with pytest.raises(UsageError, match="uint8 of"):
            write_image(tmp_path / "a.png", wrong)
    with pytest.raises(StorageError, match="cannot be written"):
        write_image(tmp_path / "no" / "a.png", noise(4, 4))
