"""Pictures that are named on the command line: files, or the test images of a run's data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from disentwine.core.dataset import Dataset
    from disentwine.core.types import UInt8Array
    from disentwine.runs.run import Run

IMAGE_HELP = (
    "A PNG or JPEG picture; t-0, t-1, ... are the data's test images, in the order of the page."
)


def named_image(name: Path, run: Run) -> tuple[UInt8Array, str]:
    """The picture as the run's model takes it, and what to tell of how it was made to fit, if anything.

    Arguments:
        name: a file, or "t-0" and so on.
        run: whose model it is for, and whose data test images come from.
    """
    from disentwine.data.images import read_image
    from disentwine.errors import UsageError

    model: Any = run.model
    height, width, channels = model.image_shape
    picture = _test_image(name, run)
    if picture is not None:
        return picture, ""
    if height != width:
        raise UsageError(
            f"{run.path} was trained on {height}x{width} images, which are not square, so that files "
            "cannot be fitted; name a test image, such as t-0"
        )
    whole = read_image(name, channels=channels).shape
    told = f"of {whole[1]}x{whole[0]} pixels the centre square was resized to {width}x{height}"
    picture = read_image(name, size=height, channels=channels)
    return picture, told if whole[:2] != (height, width) else ""


def data_of(run: Run) -> Dataset | None:
    """What the run was trained on, or nothing where that is not at hand any more."""
    from disentwine.errors import DisentwineError

    try:
        return run.dataset
    except DisentwineError:
        return None


def _test_image(name: Path, run: Run) -> UInt8Array | None:
    index = index_of(name, run)
    if index is None:
        return None
    picture: UInt8Array = run.dataset.images[index]
    return picture


def index_of(name: Path, run: Run) -> int | None:
    """The place of the test image that "t-0" and so on name, as the page does; None for any other name."""
    from disentwine.data.splits import display_order
    from disentwine.errors import UsageError

    number = re.fullmatch(r"t-(\d+)", str(name))
    if number is None or name.exists():
        return None
    held_out = display_order(run.dataset.split)
    if int(number[1]) >= len(held_out):
        at_hand = f"{len(held_out):,} are at hand, from t-0 on"
        raise UsageError(f"there is no test image {name}: {at_hand}")
    return int(held_out[int(number[1])])
