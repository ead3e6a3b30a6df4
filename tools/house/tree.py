"""The source tree of a checkout: its modules, and what a check answers."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "disentwine"


@dataclass(frozen=True)
class Finding:
    """Result of a check.

    Arguments:
        summary: the measured numbers in one line.
        problems: what breaks the rule, one line each; none when the check passes.
        notes: further lines that `--report` prints.
    """

    summary: str
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Module:
    """One Python file of the package.

    Arguments:
        path: of the file.
        name: dotted, without the package's own name; a package has its `__init__`'s name.
    """

    path: Path
    name: str

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def room(self) -> str:
        """The first part of the name."""
        return self.name.split(".")[0]

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def syntax(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))


@dataclass(frozen=True)
class Tree:
    """A checkout.

    Arguments:
        root: the folder that holds `src`, `docs` and `README.md`.
    """

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "src"

    @property
    def package(self) -> Path:
        return self.source / PACKAGE

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """All Python files of the package, `__init__` included."""
        return tuple(Module(path, self._name(path)) for path in sorted(self.package.rglob("*.py")))

    @cached_property
    def files(self) -> tuple[Module, ...]:
        """All modules beside `__init__`."""
        return tuple(module for module in self.modules if not module.is_package)

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.package).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def summary(self) -> str:
        """Number of modules, of lines, and the median length."""
        lengths = [module.lines for module in self.files]
        packages = len(self.modules) - len(self.files)
        return (
            f"{len(self.files)} modules and {packages} packages, "
            f"{sum(module.lines for module in self.modules):,} lines, "
            f"median {statistics.median(lengths):g}, longest {max(lengths)}"
        )
