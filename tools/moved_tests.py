"""Find every test of an earlier tree in today's, and check that none is lost.

    python tools/moved_tests.py check
    python tools/moved_tests.py build [--old COLLECTED --commit COMMIT]

`tests/moved_tests.json` holds {old file: {new file: {function: parameters}}}: 1 for a test without
parameters, else a list in which a pair is [old, new]. A renamed function is "old -> new". Tests that
were not found stand under the new file "". `build` matches the tests of the table once more, or those
that `pytest --collect-only -q -m ""` printed into COLLECTED in a checkout of COMMIT. Tests of one name
are matched; if several have it, or none, the source of the earlier commit decides, which Git reads.
`tools/moved_tests.yaml` has the rows written by hand: `renamed`, {old: new} for whole tests or for
functions, and `gone`, {old: reason}. `check` needs the table and today's tests only.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "moved_tests.json"
BY_HAND = ROOT / "tools" / "moved_tests.yaml"
ALIKE = 0.5
"""Share of equal words or characters from which two tests, or two parameters, count as the same."""

Function = tuple[str, str]  # file and name


class Test(NamedTuple):
    """A test by its parts. Doctests are named by the object in their module."""

    file: str
    name: str
    parameters: str | None = None

    @classmethod
    def parse(cls, node: str) -> Test:
        """
        >>> Test.parse("tests/a.py::test_it[1-x]")
        Test(file='tests/a.py', name='test_it', parameters='1-x')
        >>> Test.parse("src/p/q.py::p.q.Class.method")
        Test(file='src/p/q.py', name='Class.method', parameters=None)
        """
        file, _, rest = node.partition("::")
        name, bracket, parameters = rest.partition("[")
        if file.startswith("src/"):
            name = name.removeprefix(module_of(file)).removeprefix(".")
        return cls(file, name, parameters[:-1] if bracket else None)

    @property
    def function(self) -> Function:
        return self.file, self.name

    def __str__(self) -> str:
        name = self.name
        if self.file.startswith("src/"):
            name = ".".join(filter(None, (module_of(self.file), name)))
        return f"{self.file}::{name}" + ("" if self.parameters is None else f"[{self.parameters}]")


def module_of(file: str) -> str:
    """The dotted name of a module under src."""
    return file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def collected(lines: Iterable[str]) -> list[Test]:
    """The tests that `pytest --collect-only -q` printed."""
    return [Test.parse(line.rstrip("\n")) for line in lines if "::" in line]


def collect() -> list[Test]:
    """Today's tests, slow ones too."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", ""]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"pytest cannot collect the tests:\n{done.stdout[-3000:]}{done.stderr}")
    return collected(done.stdout.splitlines())


class Table(NamedTuple):
    """New test, or None, of every old one."""

    commit: str
    places: dict[Test, Test | None]

    @classmethod
    def read(cls) -> Table:
        content = json.loads(TABLE.read_text())
        places: dict[Test, Test | None] = {}
        for old_file, files in content["tests"].items():
            for file, functions in files.items():
                for names, parameters in functions.items():
                    old_name, _, name = names.partition(" -> ")
                    for pair in [[None, None]] if parameters == 1 else parameters:
                        old, new = pair if isinstance(pair, list) else (pair, pair)
                        found = Test(file, name or old_name, new) if file else None
                        places[Test(old_file, old_name, old)] = found
        return cls(content["commit"], places)

    def write(self) -> None:
        """One line a function."""
        files: dict[str, Any] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        for old, new in self.places.items():
            file, name, parameters = new or ("", old.name, old.parameters)
            names = old.name if name == old.name else f"{old.name} -> {name}"
            pair = [old.parameters, parameters]
            files[old.file][file][names].append(pair[0] if pair[0] == pair[1] else pair)
        lines = []
        for old_file in sorted(files):
            moved = []
            for file, functions in sorted(files[old_file].items()):
                rows = (
                    f"{json.dumps(names)}: {1 if found == [None] else json.dumps(found)}"
                    for names, found in functions.items()
                )
                moved.append(f"  {json.dumps(file)}: {{\n   " + ",\n   ".join(rows) + "\n  }")
            lines.append(f" {json.dumps(old_file)}: {{\n" + ",\n".join(moved) + "\n }")
        head = f'{{"commit": {json.dumps(self.commit)}, "tests": {{\n'
        TABLE.write_text(head + ",\n".join(lines) + "\n}}\n")


def by_hand() -> tuple[dict[str, str], dict[str, str]]:
    """Renamed tests and tests that are gone, with the reason."""
    content = yaml.safe_load(BY_HAND.read_text()) if BY_HAND.exists() else {}
    return content.get("renamed") or {}, content.get("gone") or {}


def source_today(file: str) -> str:
    path = ROOT / file
    return path.read_text() if path.exists() else ""


def source_at(commit: str) -> Callable[[str], str]:
    """Reads files of an earlier commit."""

    def read(file: str) -> str:
        command = ["git", "show", f"{commit}:{file}"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout

    return read


def words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[A-Za-z]+|[0-9.]+|[^\sA-Za-z0-9.]", text))


def contents(source: str, *, doctests: bool) -> dict[str, tuple[str, ...]]:
    """Words of every function of a file, or of every example in its docstrings, by name."""
    tree = ast.parse(source)
    found: dict[str, tuple[str, ...]] = {}

    def walk(node: Any, path: tuple[str, ...]) -> None:
        if doctests:
            example = (ast.get_docstring(node) or "").partition(">>>")[2]
            found[".".join(path)] = words(example)
        elif path:
            found["::".join(path)] = words(ast.unparse(node))
        for child in node.body:
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                walk(child, (*path, child.name))

    walk(tree, ())
    return found


class Matcher:
    """Pairs functions of two trees by name, then by content."""

    def __init__(self, commit: str, old: Iterable[Function], new: Iterable[Function]) -> None:
        self.old, self.new = dict.fromkeys(old), dict.fromkeys(new)
        self.sources = {"old": source_at(commit), "new": source_today}
        self.moves: Counter[tuple[str, str]] = Counter()
        self.pairs: dict[Function, Function] = {}
        self.by_content: list[tuple[Function, Function]] = []
        self._contents = cache(self._read)
        self.alike = cache(self._alike)

    def _read(self, tree: str, file: str) -> dict[str, tuple[str, ...]]:
        return contents(self.sources[tree](file), doctests=file.startswith("src/"))

    def _alike(self, old: Function, new: Function) -> float:
        """Share of words that are the same."""
        a = self._contents("old", old[0]).get(old[1], ())
        b = self._contents("new", new[0]).get(new[1], ())
        return SequenceMatcher(None, a, b, autojunk=False).ratio()

    def match(self, renamed: dict[Function, Function]) -> dict[Function, Function]:
        for old, new in renamed.items():
            if old in self.old:
                self._pair(old, new)
        self._match_by_name()
        self._match_by_content()
        return self.pairs

    def _pair(self, old: Function, new: Function) -> None:
        self.pairs[old] = new
        self.moves[old[0], new[0]] += 1
        self.old.pop(old)
        self.new.pop(new, None)

    def _match_by_name(self) -> None:
        """Those whose name only one has come first: they tell which file became which."""
        names: dict[tuple[bool, str], list[Function]] = defaultdict(list)
        for new in self.new:
            names[key(new)].append(new)
        count = Counter(map(key, self.old))
        for old in list(self.old):
            if count[key(old)] == len(names[key(old)]) == 1:
                self._pair(old, names[key(old)][0])
        self._greedily(lambda old: names[key(old)], least=0.0)

    def _match_by_content(self) -> None:
        before = set(self.pairs)
        news = list(self.new)
        self._greedily(lambda old: [n for n in news if key(n)[0] == key(old)[0]], least=ALIKE)
        self.by_content = [pair for pair in self.pairs.items() if pair[0] not in before]

    def _greedily(self, candidates: Callable[[Function], list[Function]], *, least: float) -> None:
        """The most alike first; where several are, the file that most others have gone to."""
        scored = [
            (self.alike(old, new), self.moves[old[0], new[0]], old, new)
            for old in self.old
            for new in candidates(old)
        ]
        for score, _, old, new in sorted(scored, key=lambda row: row[:2], reverse=True):
            if score >= least and old in self.old and new in self.new:
                self._pair(old, new)


def key(function: Function) -> tuple[bool, str]:
    """Doctests and tests are never each other."""
    return function[0].startswith("src/"), function[1]


def match_parameters(old: list[str | None], new: list[str | None]) -> Iterator[tuple[Any, Any]]:
    """Equal ones, then those most alike; as many as there are."""
    yield from ((one, one) for one in old if one in new)
    olds, news = [one for one in old if one not in new], [one for one in new if one not in old]
    scored = [
        (SequenceMatcher(None, a or "", b or "").ratio() - abs(i - k) / 1000, a, b)
        for i, a in enumerate(olds)
        for k, b in enumerate(news)
    ]
    for score, a, b in sorted(scored, key=lambda row: row[0], reverse=True):
        if a in olds and b in news and (score >= ALIKE or len(old) == len(new) or a is None):
            olds.remove(a)
            news.remove(b)
            yield a, b


def build(old: list[Test], new: list[Test], commit: str) -> tuple[Table, Matcher]:
    """Where each old test is today."""
    renamed = {Test.parse(a): Test.parse(b) for a, b in by_hand()[0].items()}
    functions = {a.function: b.function for a, b in renamed.items() if a.parameters is None}
    gone = set(by_hand()[1])
    kept = (test.function for test in old if str(test) not in gone)
    matcher = Matcher(commit, kept, (test.function for test in new))
    pairs = matcher.match(functions)
    parameters: dict[str, dict[Function, list[str | None]]] = {"old": {}, "new": {}}
    for tree, tests in (("old", old), ("new", new)):
        for test in tests:
            parameters[tree].setdefault(test.function, []).append(test.parameters)
    today = set(new)
    places: dict[Test, Test | None] = dict.fromkeys(old)
    for a, b in pairs.items():
        matched = match_parameters(parameters["old"][a], parameters["new"].get(b, []))
        places.update({Test(*a, p): Test(*b, q) for p, q in matched})
    places.update({a: b for a, b in renamed.items() if a in places and b in today})
    return Table(commit, places), matcher


def lost(table: Table, today: Iterable[Test]) -> list[str]:
    """What is missing, one line each."""
    gone, there = by_hand()[1], set(today)
    return [
        f"{old} {'was not found' if new is None else f'should be {new}'}"
        for old, new in table.places.items()
        if new not in there and str(old) not in gone
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("action", choices=("check", "build"))
    parser.add_argument("--old", type=Path, help="what pytest collected in the earlier tree")
    parser.add_argument("--commit", help="the earlier tree's commit")
    parser.add_argument("--new", type=Path, help="what pytest collects today; asked if left out")
    options = parser.parse_args()
    today = collected(options.new.open()) if options.new else collect()
    table = Table.read() if TABLE.exists() else Table("", {})
    if options.action == "build":
        before = {(a.function, b.function) for a, b in table.places.items() if b is not None}
        old = collected(options.old.open()) if options.old else list(table.places)
        table, matcher = build(old, today, options.commit or table.commit)
        for a, b in matcher.by_content:
            if (a, b) not in before:
                print(f"renamed, by its content: {Test(*a)} -> {Test(*b)}")
        table.write()
    problems = lost(table, today)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(table.places)} tests of {table.commit}: {len(problems)} lost; {len(today)} today")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
