"""Make the screenshot of README: python docs/images/screenshots.py runs/demo

With `--all FOLDER` and one or more runs: every view of every run, on a laptop in light and dark mode
and on a phone: python docs/images/screenshots.py runs/demo runs/cars --all screenshots

It needs Chromium or Chrome, and `pip install playwright`; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
BROWSERS = ("chromium", "google-chrome")
SCENE = "#/intervene?image=t-3&do=light_angle:75&film=light_angle"
LOADED = (".frames img", ".stage[aria-busy=false]", ".verdict b")
SHOWN = """() => [...document.querySelectorAll(".picture.main, ol.frames")]
  .every((place) => place.querySelector("img"))"""
LAPTOP, PHONE = {"width": 1280, "height": 852}, {"width": 390, "height": 844}
MODES: dict[str, dict[str, Any]] = {
    "laptop": {"viewport": LAPTOP, "color_scheme": "light"},
    "night": {"viewport": LAPTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "has_touch": True},
}


@contextmanager
def served(runs: Sequence[Path]) -> Iterator[str]:
    """The address at which `disentwine serve` shows runs."""
    disentwine = Path(sys.executable).with_name("disentwine")
    command = [str(disentwine), "serve", *map(str, runs), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(word for word in server.stdout.readline().split() if "://" in word)
        finally:
            server.terminate()


@contextmanager
def browsing() -> Iterator[Any]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("no browser: install chromium or google-chrome")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as play, play.chromium.launch(executable_path=browser, args=flags) as it:
        yield it


def photograph(browser: Any, address: str, out: Path) -> None:
    """One intervention on the light, at the size of a laptop."""
    page = browser.new_page(**MODES["laptop"], device_scale_factor=1.5)
    page.set_default_timeout(120_000)
    page.goto(address + SCENE)
    for part in LOADED:
        page.wait_for_selector(part)
    page.screenshot(path=out)
    # A palette of 128 colours takes a third of the bytes.
    with Image.open(out) as image:
        small = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(out, optimize=True)


def photograph_all(browser: Any, address: str, folder: Path) -> list[Path]:
    """Every view of every run in every mode, from top to bottom."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for mode, options in MODES.items():
        page = browser.new_page(**options)
        page.set_default_timeout(120_000)
        page.goto(address)
        page.wait_for_selector(".view")
        for run in page.evaluate("fetch('api/runs').then(answer => answer.json())"):
            page.goto(f"{address}#/first/{run['id']}")
            page.wait_for_selector(f"#tabs a[href*='{run['id']}']")
            for view in page.locator("#tabs a").all_text_contents():
                page.goto(f"{address}#/{view.lower()}/{run['id']}?image=t-3")
                page.wait_for_selector(f"#main[aria-busy=false] .view.{view.lower()}")
                page.wait_for_function(SHOWN)
                written.append(folder / f"{run['name']}-{view.lower()}-{mode}.png")
                page.screenshot(path=written[-1], full_page=True)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, such as runs/demo")
    parser.add_argument("--out", type=Path, default=HERE / "explorer.png")
    parser.add_argument("--all", type=Path, help="write every view to this folder instead")
    options = parser.parse_args()
    with served(options.runs) as address, browsing() as browser:
        if options.all:
            print(*photograph_all(browser, address, options.all), sep="\n")
        else:
            photograph(browser, address, options.out)
            print(options.out)


if __name__ == "__main__":
    main()
