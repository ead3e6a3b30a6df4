"""Make the picture of the page that README shows: python docs/screenshots.py runs/demo

It needs Chromium or Chrome on the machine, and `pip install playwright`; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent / "images"
BROWSERS = ("chromium", "google-chrome")
SCENE = "#/intervene?image=t-3&do=light_angle:75&film=light_angle"
DRAWN = (".frames img", ".stage[aria-busy=false]", ".verdict b")


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address at which `disentwine serve` shows a run."""
    disentwine = Path(sys.executable).with_name("disentwine")
    command = [str(disentwine), "serve", str(run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(word for word in server.stdout.readline().split() if "://" in word)
        finally:
            server.terminate()


def photograph(address: str, out: Path) -> None:
    """One scene, its light moved, as a visitor with a laptop sees it."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("no browser: install chromium or google-chrome")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    size = {"width": 1280, "height": 852}
    with sync_playwright() as play, play.chromium.launch(executable_path=browser, args=flags) as it:
        page = it.new_page(viewport=size, color_scheme="light", device_scale_factor=1.5)
        page.set_default_timeout(120_000)
        page.goto(address + SCENE)
        for part in DRAWN:
            page.wait_for_selector(part)
        page.screenshot(path=out)
    # Few colours are enough for a page, and a third of the bytes.
    with Image.open(out) as picture:
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(out, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run folder, such as 'disentwine demo' makes")
    parser.add_argument("--out", type=Path, default=HERE / "explorer.png")
    options = parser.parse_args()
    with served(options.run) as address:
        photograph(address, options.out)
    print(options.out)


if __name__ == "__main__":
    main()
