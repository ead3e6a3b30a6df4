"""Checks of sizes, constructors and imports, and of the links of where-is-what.md."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from house.tree import PACKAGE, Finding, Module, Tree

MEDIAN = (130, 180)
LONGEST = 400
ENTRIES = 15
MODULES = 225

ARGUMENTS = 18
ARGUMENTS_OF = {"CTVAE": 12}
"""Classes with a limit of their own."""
WITH_FIELDS = {"Model", "Dataset"}
"""Bases whose dataclasses are counted by their fields; other dataclasses are plain records."""

ORDER = (
    ("core",),
    ("data",),
    ("losses",),
    ("nn",),
    ("causal",),
    ("models",),
    ("metrics",),
    ("training",),
    ("runs",),
    ("figures",),
    ("evaluation",),
    ("report",),
    ("serve", "studies"),
    ("cli",),
)
"""A room imports itself and rooms of lines above its own."""
FOR_ALL = {"errors", "progress"}
EXEMPT = {"", "__main__", "testing"}
"""Modules that may import every room: the package itself, `python -m`, tests for users' models."""

LAZY_CYCLES: dict[frozenset[str], str] = {}
"""Accepted cycles that are closed by an import inside a function: their modules, and the reason."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
GUIDE = "docs/explanation/where-is-what.md"


def check_sizes(tree: Tree) -> Finding:
    """Median and longest module, entries a package, number of modules."""
    lengths = [module.lines for module in tree.files]
    median = statistics.median(lengths)
    problems = []
    if not MEDIAN[0] <= median <= MEDIAN[1]:
        problems.append(f"median length {median:g} is not between {MEDIAN[0]} and {MEDIAN[1]}")
    for module in tree.files:
        if module.lines > LONGEST:
            problems.append(
                f"{tree.relative(module.path)}: {module.lines} lines, at most {LONGEST}"
            )
    entries = {module.path.parent: 0 for module in tree.modules}
    for module in tree.modules:
        holder = module.path.parent.parent if module.is_package else module.path.parent
        # The order of the rooms fixes how many the root has; its modules count.
        is_room = module.is_package and holder == tree.package
        if holder in entries and not is_room:
            entries[holder] += 1
    for folder, count in entries.items():
        if count > ENTRIES:
            problems.append(f"{tree.relative(folder)}: {count} entries, at most {ENTRIES}")
    if len(lengths) > MODULES:
        problems.append(f"{len(lengths)} modules, at most {MODULES}")
    fullest = max(entries.values())
    return Finding(
        f"{len(lengths)} modules, median {median:g}, longest {max(lengths)}, "
        f"fullest package {fullest} entries",
        problems,
    )


def check_constructors(tree: Tree) -> Finding:
    """Arguments of each `__init__`; keys of an unpacked TypedDict count too."""
    classes = {
        node.name: (module, node)
        for module in tree.modules
        for node in ast.walk(module.syntax)
        if isinstance(node, ast.ClassDef)
    }
    fields = {name: _fields(node) for name, (_, node) in classes.items()}
    bases = {name: {_last(base) for base in node.bases} for name, (_, node) in classes.items()}
    counts: dict[str, int] = {}
    for module in tree.modules:
        for node in ast.walk(module.syntax):
            if isinstance(node, ast.ClassDef):
                count = _arguments(node, fields)
                if count is None and _is_dataclass(node) and _inherits(node.name, bases):
                    count = len(fields[node.name])
                if count is not None:
                    counts[f"{tree.relative(module.path)}:{node.lineno} {node.name}"] = count
    problems = []
    for place, count in sorted(counts.items(), key=lambda item: -item[1]):
        limit = ARGUMENTS_OF.get(place.split()[-1], ARGUMENTS)
        if count > limit:
            problems.append(f"{place}: {count} arguments, at most {limit}")
    own = ", ".join(
        f"{name} {counts[p]}" for name in ARGUMENTS_OF for p in counts if p.endswith(f" {name}")
    )
    return Finding(f"{len(counts)} constructors, most {max(counts.values())}; {own}", problems)


def _arguments(node: ast.ClassDef, fields: dict[str, list[str]]) -> int | None:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            found = each.args
            count = len(found.posonlyargs) + len(found.args) - 1 + len(found.kwonlyargs)
            unpacked = found.kwarg and found.kwarg.annotation
            if isinstance(unpacked, ast.Subscript) and _last(unpacked.value) == "Unpack":
                count += len(fields.get(_last(unpacked.slice), []))
            return count
    return None


def _fields(node: ast.ClassDef) -> list[str]:
    found = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    return [
        each.target.id
        for each in found
        if isinstance(each.target, ast.Name) and "ClassVar" not in ast.unparse(each.annotation)
    ]


def _last(node: ast.expr) -> str:
    """The name of a base or decorator without arguments and modules."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(_last(each) == "dataclass" for each in node.decorator_list)


def _inherits(name: str, bases: dict[str, set[str]]) -> bool:
    """Whether a class is a Model or a Dataset, by the names of its bases."""
    seen, waiting = set(), {name}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= bases.get(name, set()) - seen
    return bool(seen & WITH_FIELDS)


@dataclass(frozen=True)
class Import:
    """One import of another module of the package.

    Arguments:
        source: the importing module.
        target: the imported one.
        line: of the statement.
        when: "top", "lazy" (inside a function) or "types" (under TYPE_CHECKING).
    """

    source: Module
    target: str
    line: int
    when: str


def imports_of(tree: Tree) -> Iterator[Import]:
    """Every import between modules of the package."""
    known = {module.name for module in tree.modules}
    for module in tree.modules:
        for node, when in _statements(module.syntax, "top"):
            for target in _targets(node, module, known):
                if target != module.name:
                    yield Import(module, target, node.lineno, when)


def _statements(node: ast.AST, when: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, when
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _statements(child, "lazy")
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _statements(ast.Module(child.body, []), "types")
            yield from _statements(ast.Module(child.orelse, []), when)
        else:
            yield from _statements(child, when)


def _targets(node: ast.Import | ast.ImportFrom, module: Module, known: set[str]) -> set[str]:
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    else:
        base = node.module or ""
        if node.level:
            parts = [PACKAGE, *filter(None, module.name.split("."))]
            parts = parts[: len(parts) - node.level + module.is_package]
            base = ".".join([*parts, *filter(None, [base])])
        whole = {alias.name: f"{base}.{alias.name}" for alias in node.names}
        inner = {name for name, each in whole.items() if each.removeprefix(f"{PACKAGE}.") in known}
        dotted = [whole[name] if name in inner else base for name in whole]
    found = {name for name in dotted if name == PACKAGE or name.startswith(f"{PACKAGE}.")}
    return {name.removeprefix(PACKAGE).lstrip(".") for name in found}


def check_imports(tree: Tree) -> Finding:
    """Cycles between modules, and imports against the order of the rooms."""
    found = [each for each in imports_of(tree) if each.source.name not in EXEMPT]
    problems = list(dict.fromkeys(filter(None, (_against(each, tree) for each in found))))
    against = len(problems)
    top = _cycles([each for each in found if each.when == "top"])
    lazy = [c for c in _cycles([each for each in found if each.when != "types"]) if c not in top]
    problems += [f"cycle: {_in_words(cycle)}" for cycle in top]
    problems += [f"lazy cycle: {_in_words(cycle)}" for cycle in lazy if cycle not in LAZY_CYCLES]
    return Finding(
        f"{len(found)} imports, {against} against the order, {len(top)} cycles, "
        f"{len(lazy)} lazy ({len(LAZY_CYCLES)} accepted)",
        problems,
    )


def _against(found: Import, tree: Tree) -> str:
    """What is wrong with the direction of an import, or nothing."""
    ranks = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
    ranks |= dict.fromkeys(FOR_ALL, -1)
    source, target = found.source.room, found.target.split(".")[0]
    place = f"{tree.relative(found.source.path)}:{found.line} imports {found.target or PACKAGE}"
    if source == target:
        return ""
    unknown = [room for room in (source, target) if room not in ranks]
    if unknown:
        return f"{place}: '{unknown[0] or PACKAGE}' is not in the order"
    if ranks[source] <= ranks[target] and target not in FOR_ALL:
        return f"{place}: {source} comes before {target}, or beside it"
    return ""


def _cycles(found: list[Import]) -> list[frozenset[str]]:
    graph = nx.DiGraph((each.source.name, each.target) for each in found)
    return [frozenset(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]


def _in_words(cycle: frozenset[str]) -> str:
    return " <-> ".join(sorted(cycle))


def check_links(tree: Tree) -> Finding:
    """The guide to the tree exists, and its relative links resolve."""
    guide = tree.root / GUIDE
    if not guide.is_file():
        return Finding("no guide", [f"{GUIDE} is missing"])
    links = [link for link in LINK.findall(guide.read_text(encoding="utf-8")) if "://" not in link]
    files = [link.split("#")[0] for link in links]
    broken = [link for link in files if link and not (guide.parent / link).exists()]
    problems = [f"{GUIDE}: the link {link} leads nowhere" for link in broken]
    if not files:
        problems.append(f"{GUIDE} has no relative link")
    return Finding(f"{len(files)} links, {len(broken)} broken", problems)
