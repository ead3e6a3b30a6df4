"""Data set from a folder of images and a table of their concepts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PureWindowsPath

import numpy as np

from disentwine.core.dataset import Dataset
from disentwine.core.types import IndexArray, Kind, UInt8Array
from disentwine.data.arrays import check_enough, graph_from, split_by_share
from disentwine.data.folder.columns import Problems, check_kinds
from disentwine.data.folder.table import ConceptTable, read_table
from disentwine.data.images import SUFFIXES, check_format, read_image
from disentwine.errors import DataError

DEFAULT_TABLE = "concepts.csv"
# Each thread may hold one image of MAX_PIXELS; more threads gain little.
MAX_THREADS = 4


class Folder(Dataset):
    """PNG and JPEG images in a folder, with their concepts in a CSV or Parquet table.

    The column `file` has the path of each image relative to the folder. The optional column `split`
    has train, validation or test. Every other column is a concept. Without a table, all images of
    the folder are read in alphabetical order, without factors. One error reports all problems by row
    and column.

    Arguments:
        path: the folder.
        table: file name of the table in the folder; "" for none.
        size: each image is cropped to its centre square and resized to size x size.
        channels: 1 for grey, 3 for colour.
        seed: of the split, if the table has none.
        test: fraction of test images.
        validation: fraction of validation images, for early stopping.
        kinds: the kinds of columns for which the inferred kind is wrong, such as integer-coded
            categories.
        allow_missing: accept empty cells, NA, N/A, null, nan, - and ? as missing labels.
        edges: (cause, effect) pairs of the true graph, if known.

    >>> import tempfile
    >>> from disentwine.data.images import write_image
    >>> with tempfile.TemporaryDirectory() as path:
    ...     for i in range(10):
    ...         write_image(Path(path, f"{i}.png"), np.full((20, 30, 3), 25 * i, np.uint8))
    ...     rows = "\\n".join(f"{i}.png,{25 * i}" for i in range(10))
    ...     _ = Path(path, "concepts.csv").write_text(f"file,grey\\n{rows}")
    ...     Folder(path=path, size=16)
    Folder(10 images of 16x16x3; grey)
    """

    editable = True
    about = "your own folder of PNG or JPEG images with a CSV or Parquet table of concepts"

    def __init__(
        self,
        *,
        path: str | Path,
        table: str = DEFAULT_TABLE,
        size: int = 64,
        channels: int = 3,
        seed: int = 0,
        test: float = 0.2,
        validation: float = 0.1,
        kinds: Mapping[str, Kind] = {},
        allow_missing: bool = False,
        edges: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.path, self.table, self.size, self.channels = str(path), table, size, channels
        self.seed, self.test, self.validation = seed, test, validation
        self.kinds, self.allow_missing, self.edges = dict(kinds), allow_missing, edges
        check_format(size, channels)
        root = Path(path).expanduser()
        if not root.is_dir():
            hint = "" if root.is_absolute() else ", and from which folder the command is given"
            raise DataError(f"{path}: there is no such folder; check its name{hint}")
        problems = Problems(str(path))
        concepts = _concepts(root, table, kinds, allow_missing, problems)
        check_enough(len(concepts.files), problems)
        self.spec, self.factors = concepts.spec, concepts.factors
        self.graph = graph_from(edges, self.names)
        self.split = (
            split_by_share(len(self.factors), test=test, validation=validation, seed=seed)
            if concepts.split is None
            else _stated_split(concepts.split, problems)
        )
        self.images = _read_all(root, concepts, size, channels, problems)
        problems.raise_any()


def _concepts(
    root: Path, table: str, kinds: Mapping[str, Kind], allow_missing: bool, problems: Problems
) -> ConceptTable:
    if table and (table != DEFAULT_TABLE or (root / table).exists()):
        return read_table(root / table, allow_missing=allow_missing, kinds=kinds, problems=problems)
    names = sorted(entry.name for entry in root.iterdir() if entry.is_file())
    others = [name for name in names if name.lower().endswith((".csv", ".tsv", ".parquet"))]
    if table and others:
        raise DataError(
            f"{root}: no {table}, but {others[0]}; pass table='{others[0]}', or table='' for none"
        )
    files = tuple(name for name in names if name.lower().endswith(tuple(SUFFIXES)))
    if not files:
        raise DataError(f"{root}: no PNG or JPEG images in it; check the name of the folder")
    check_kinds(kinds, [])
    return ConceptTable(files, tuple(f"'{name}'" for name in files), (), np.empty((len(files), 0)))


def _stated_split(parts: Sequence[str], problems: Problems) -> dict[str, IndexArray]:
    if "train" not in parts:
        problems.add("column 'split': no row has train; mark the rows to train on")
    stated = np.array(parts)
    return {
        part: np.flatnonzero(stated == part).astype(np.int64)
        for part in ("train", "validation", "test")
    }


def _read_all(
    root: Path, concepts: ConceptTable, size: int, channels: int, problems: Problems
) -> UInt8Array:
    images = np.zeros((len(concepts.files), size, size, channels), np.uint8)

    def read(row: int) -> str | None:
        file = concepts.files[row]
        # A Windows path, so that both slashes and drive letters are recognised on every system.
        relative = PureWindowsPath(file)
        if relative.anchor or ".." in relative.parts:
            return f"'{file}' is outside the folder; move the image into it"
        if not file:
            return None  # reported by read_table
        if not (root / file).is_file():
            return f"there is no image '{file}' in the folder; add it or remove the row"
        try:
            images[row] = read_image(root / file, size=size, channels=channels)
        except DataError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool:
        for row, problem in enumerate(pool.map(read, range(len(images)))):
            if problem:
                problems.add(f"{concepts.rows[row]}, column 'file': {problem}")
    return images
