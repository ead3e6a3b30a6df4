"""disentwine data: list, show and check data sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from disentwine.core.dataset import Dataset

data_app = typer.Typer(help="List, show and check data sets.", no_args_is_help=True)

DatasetName = Annotated[
    str, typer.Argument(help="A data set's name, or a folder of your own images.")
]
Options = Annotated[
    list[str] | None, typer.Argument(help="Constructor arguments, such as size=64.")
]


@data_app.command("list")
def list_datasets() -> None:
    """List every data set by name."""
    from disentwine.cli._tables import print_table
    from disentwine.data import DATASETS

    rows = [(name, cls.about) for name, cls in DATASETS.items()]
    print_table("data sets: disentwine data show NAME", ("name", "about"), rows)


@data_app.command()
def show(
    name: DatasetName,
    options: Options = None,
    out: Annotated[
        Path | None, typer.Option(help="Also save a grid of images to this PNG file.")
    ] = None,
) -> None:
    """Print the factors, split and graph of a data set."""
    from disentwine.errors import UsageError

    if out is not None and out.exists():
        raise UsageError(f"{out} exists already; choose another --out")
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}; create it, or choose another --out")
    dataset = open_dataset(name, options or [])
    print(repr(dataset))
    print_factors(dataset)
    print("split: " + ", ".join(f"{part} {len(i):,}" for part, i in dataset.split.items()))
    if dataset.graph is not None:
        edges = ", ".join(f"{cause} -> {effect}" for cause, effect in dataset.graph.edges)
        print(f"true graph: {edges or 'no edges'}")
    if out is not None:
        import numpy as np

        from disentwine.figures import image_grid, save_figure
        from disentwine.runs.storage import storage_errors

        some = np.linspace(0, len(dataset) - 1, 32).astype(np.int64)
        with storage_errors(out):
            save_figure(image_grid(dataset.images[some], columns=8), out)
        print(f"image: {out}")


@data_app.command()
def check(name: DatasetName, options: Options = None) -> None:
    """Validate a data set: print how its columns were read, or all problems."""
    dataset = open_dataset(name, options or [])
    dataset.images[[0, len(dataset) - 1]]
    print_factors(dataset)
    print(f"valid: {dataset!r}")


def print_factors(dataset: Dataset) -> None:
    """Print a table of the factors: kind, unit, range and values."""
    import numpy as np

    from disentwine.cli._tables import print_table

    rows = []
    for factor, column in zip(dataset.spec, dataset.factors.T, strict=True):
        known = column[np.isfinite(column)]
        no_range = not len(known) or any(isinstance(value, str) for value in factor.values)
        values = [value if isinstance(value, str) else f"{value:.4g}" for value in factor.values]
        rows.append(
            (
                factor.name,
                factor.kind,
                factor.unit,
                "" if no_range else f"{known.min():.4g}",
                "" if no_range else f"{known.max():.4g}",
                ", ".join([*values[:6], *(["..."] if len(values) > 6 else [])]),
                f"{missing:,}" if (missing := len(column) - len(known)) else "",
            )
        )
    if rows:
        columns = ("name", "kind", "unit", ">minimum", ">maximum", "values", ">unlabelled")
        print_table("factors", columns, rows)


def open_dataset(name: str, options: list[str]) -> Dataset:
    """Open a data set by name, or a folder of images by path, with `key=value` options."""
    from disentwine.core.schema import check as check_options
    from disentwine.core.schema import schema_of
    from disentwine.data import DATASETS
    from disentwine.errors import UsageError
    from disentwine.runs.recipe import parse_options

    given = _nested(parse_options(options))
    own_folder = name not in DATASETS or (name == "folder" and "path" not in given)
    if own_folder and Path(name).is_dir():
        given, name = {"path": name, **given}, "folder"
    if name not in DATASETS:
        from disentwine.errors import did_you_mean

        guess = "" if Path(name).name != name else f" {did_you_mean(name, DATASETS)}"
        raise UsageError(f"there is no data set or folder '{name}'.{guess}")
    checked, problems = check_options(schema_of(DATASETS[name]), given, section=name)
    if problems:
        raise UsageError("\n  ".join(["wrong options of the data set:", *problems]))
    return DATASETS[name](**checked)


def _nested(options: Mapping[str, Any]) -> dict[str, Any]:
    """Nested options from keys with dots, such as `kinds.species`."""
    from disentwine.errors import UsageError

    nested: dict[str, Any] = {}
    for key, value in options.items():
        *parents, last = key.split(".")
        place = nested
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise UsageError(f"{key}: '{parent}' has a single value, not keys")
        place[last] = value
    return nested
