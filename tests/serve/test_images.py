"""Pictures that nobody should send: refused or converted, in little memory."""

import io
import resource
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from starlette.testclient import TestClient

from disentwine.serve.images import Uploads

MODEST_GROWTH = 300_000
"""Kilobytes that refusing a picture may take at most; 50,000 x 50,000 pixels would take 7.5 million."""


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def png(width: int, height: int, *chunks: bytes) -> bytes:
    """A PNG that claims to be so large."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks) + chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    return chunk(b"IDAT", zlib.compress(bytes(count)))


def noise(mode: str = "RGB", size: int = 40) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (size, size, len(mode)), dtype=np.uint8)
    return Image.fromarray(pixels.squeeze(), mode=None if mode in ("L", "RGB", "RGBA") else mode)


def text_bomb() -> bytes:
    bomb = chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(50_000_000), 1))
    return png(40, 40, bomb, zeros(40 * 121))


REFUSED: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "huge": lambda: png(50_000, 50_000, zeros(10_000_000)),
    "huge width": lambda: png(2**31 - 1, 1, zeros(100)),
    "no pixels": lambda: png(0, 0, zeros(0)),
    "bomb in text": text_bomb,
    "truncated": lambda: saved(noise())[:600],
    "truncated JPEG": lambda: saved(noise(), "JPEG")[:300],
    "bits flipped": lambda: saved(noise())[:200] + b"\xff" * 50 + saved(noise())[250:],
    "header alone": lambda: b"\x89PNG\r\n\x1a\n",
    "GIF": lambda: saved(noise(), "GIF"),
    "BMP": lambda: saved(noise(), "BMP"),
    "TIFF": lambda: saved(noise(), "TIFF"),
    "WebP": lambda: saved(noise(), "WEBP"),
    "PPM": lambda: saved(noise(), "PPM"),
    "PDF": lambda: b"%PDF-1.7\n",
    "EPS": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
    "SVG": lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    "a script": lambda: b"#!/bin/sh\n",
}
TAKEN: dict[str, Callable[[], bytes]] = {
    "one pixel": lambda: saved(Image.new("RGB", (1, 1))),
    "one row": lambda: saved(Image.new("RGB", (3000, 1))),
    "grey": lambda: saved(noise().convert("L")),
    "one bit": lambda: saved(noise().convert("1")),
    "palette": lambda: saved(noise().convert("P")),
    "transparent": lambda: saved(noise("RGBA")),
    "16 bits": lambda: saved(Image.fromarray(np.full((40, 40), 40_000, np.uint16))),
    "CMYK": lambda: saved(noise().convert("CMYK"), "JPEG"),
    "progressive": lambda: saved(noise(), "JPEG", progressive=True),
    "animated": lambda: saved(noise(), save_all=True, append_images=[noise().rotate(90)] * 3),
    "something after it": lambda: saved(noise()) + b"<script>",
    "with text": lambda: saved(noise(), pnginfo=texted()),
}


def texted() -> PngImagePlugin.PngInfo:
    info = PngImagePlugin.PngInfo()
    info.add_text("comment", "../../etc/passwd")
    return info


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_little_memory(client: TestClient, ids: dict[str, str], name: str) -> None:
    content = REFUSED[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = client.post(f"/api/uploads?run={ids['causal']}", content=content)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"].startswith("the image: ")
    assert grown < MODEST_GROWTH


@pytest.mark.parametrize("name", TAKEN)
def test_converted(client: TestClient, ids: dict[str, str], causal: str, name: str) -> None:
    answer = client.post(f"/api/uploads?run={ids['causal']}", content=TAKEN[name]())
    assert answer.status_code == 200, answer.text
    assert client.get(f"{causal}/images/{answer.json()['image']}").status_code == 200


def test_unknown_runs_take_no_pictures(client: TestClient) -> None:
    content = TAKEN["one pixel"]()
    assert client.post("/api/uploads?run=none", content=content).status_code == 404
    assert client.post("/api/uploads", content=content).status_code == 422


@pytest.mark.parametrize("bounded", ["bytes", "pictures"])
def test_the_oldest_pictures_go_first(bounded: str) -> None:
    content = saved(noise())
    few = {"max_bytes": 3 * len(content)} if bounded == "bytes" else {"max_images": 3}
    uploads = Uploads(**few)
    names = [uploads.add(content, (32, 32, 3))[0] for _ in range(5)]
    assert len(set(names)) == 5
    for gone in names[:2]:
        with pytest.raises(KeyError):
            uploads.read(gone, (32, 32, 3))
    for kept in names[2:]:
        assert uploads.read(kept, (16, 16, 1)).shape == (16, 16, 1)


def test_a_picture_that_is_too_large_for_all_leaves_room_for_the_next() -> None:
    small, large = saved(noise(size=8)), saved(noise(size=80))
    uploads = Uploads(max_bytes=len(large) - 1)
    uploads.add(large, (32, 32, 3))
    names = [uploads.add(small, (32, 32, 3))[0] for _ in range(2)]
    assert all(uploads.read(name, (8, 8, 3)).shape == (8, 8, 3) for name in names)
