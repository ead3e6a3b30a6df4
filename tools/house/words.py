"""Check of names and prose against tools/words.yaml."""

from __future__ import annotations

import ast
import fnmatch
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from house.prose import prose_of, text_files
from house.tree import Finding, Module, Tree

LISTS = Path(__file__).resolve().parent.parent / "words.yaml"
MOST_EXCEPTIONS = 40
OLD_ROOMS = {"contracts": "core", "objectives": "losses"}
"""Rooms before the restructuring, so that limits on a path hold for both trees."""
FAMILIES = {"ct-vae": "quantized", "mcq": "quantized", "vq-vae": "quantized", "causal": "causal"}
"""Where the models of recipes are, by a part of their names."""
WORD = re.compile(r"[A-Za-z_]\w*")
GAP = r"(?:[\s*`_>#│]|//)+"
"""Between the words of a phrase: spaces and what marks comments, emphasis and quotes."""


@dataclass(frozen=True)
class Entry:
    """One private name.

    Arguments:
        old: the name; `*` stands for any letters.
        now: what to write.
        kind: "name", "text", "module", "class", "function", "option" or "call".
        where: paths below the package; none for all.
    """

    old: str
    now: str
    kind: str
    where: tuple[str, ...]

    def holds_in(self, path: str) -> bool:
        """Whether the entry is banned in a file, by its path below the package."""
        room, _, rest = path.partition("/")
        path = f"{OLD_ROOMS.get(room, room)}/{rest}"
        return not self.where or any(path.startswith(place) for place in self.where)


@dataclass(frozen=True)
class Hit:
    """One place where a word stands."""

    file: str
    line: int
    word: str
    now: str


@dataclass(frozen=True)
class Name:
    """One identifier and how it stands there."""

    text: str
    kind: str
    line: int


def check_words(tree: Tree) -> Finding:
    """No private name among identifiers, no private phrase in prose."""
    lists = yaml.safe_load(LISTS.read_text(encoding="utf-8"))
    names = list(names_found(tree, entries_of(lists["identifiers"])))
    phrases = list(phrases_found(tree, lists["prose"]))
    exceptions = lists["exceptions"]
    problems = []
    if len(exceptions) > MOST_EXCEPTIONS:
        problems.append(f"{len(exceptions)} exceptions, at most {MOST_EXCEPTIONS}")
    for each in exceptions:
        if not (each.get("file") and each.get("line") and each.get("reason")):
            problems.append(f"an exception lacks file, line or reason: {each}")
    left_names = [hit for hit in names if not _is_exception(hit, exceptions, tree)]
    left_phrases = [hit for hit in phrases if not _is_exception(hit, exceptions, tree)]
    for hit in (*left_names, *left_phrases):
        advice = f" -> {hit.now}" if hit.now else ""
        problems.append(f"{hit.file}:{hit.line}: '{hit.word}'{advice}")
    summary = (
        f"{len(left_names)} names, {len(left_phrases)} phrases, {len(exceptions)} exceptions "
        f"for {len(names) + len(phrases) - len(left_names) - len(left_phrases)} places"
    )
    counts = Counter(hit.word for hit in (*left_names, *left_phrases))
    return Finding(summary, problems, [f"{count:5} {word}" for word, count in counts.most_common()])


def entries_of(listed: dict[str, dict[str, Any]]) -> list[Entry]:
    """The private names; a space at the end of a key only keeps keys apart."""
    found = []
    for key, about in listed.items():
        old = key.strip()
        is_text = not re.fullmatch(r"[\w*\[\]]+", old)
        kind = "text" if is_text else about.get("kind", "name")
        found.append(Entry(old, about["now"], kind, tuple(about.get("in", ()))))
    return found


def names_found(tree: Tree, entries: list[Entry]) -> Iterator[Hit]:
    """Every private name in the source; texts such as `training.start` in guides too."""
    named = [entry for entry in entries if entry.kind != "text"]
    texts = [entry for entry in entries if entry.kind == "text"]
    known = {entry: re.compile(fnmatch.translate(entry.old)) for entry in named}
    for path, inside, names in _places(tree):
        file = tree.relative(path)
        here = [(entry, known[entry]) for entry in named if entry.holds_in(inside)]
        for name in names:
            for entry, pattern in here:
                if _stands_as(name.kind, entry.kind) and pattern.match(name.text):
                    yield Hit(file, name.line, name.text, entry.now)
                    break
            for entry in texts if name.kind == "path" else ():
                if entry.old == name.text:
                    yield Hit(file, name.line, name.text, entry.now)
    for entry in texts:
        pattern = re.compile(rf"(?<![\w.]){re.escape(entry.old)}(?!\w)")
        for file, text in text_files(tree):
            for match in pattern.finditer(text):
                yield Hit(file, text.count("\n", 0, match.start()) + 1, entry.old, entry.now)


def _places(tree: Tree) -> Iterator[tuple[Path, str, list[Name]]]:
    """The names of each file, and where below the package the file belongs.

    Keys of a recipe belong where their options are declared.
    """
    for module in tree.modules:
        inside = module.path.relative_to(tree.package).as_posix()
        yield module.path, inside, list(_python_names(module))
    for path in tree.package.rglob("*.js"):
        yield path, path.relative_to(tree.package).as_posix(), list(_script_names(path))
    for path in tree.package.rglob("*.yaml"):
        model = re.search(r"name: (\S+)", path.read_text(encoding="utf-8").partition("model:")[2])
        family = next((v for k, v in FAMILIES.items() if model and k in model[1]), "vae")
        rooms = {"model": f"models/{family}"}
        for section, names in _recipe_names(path).items():
            yield path, f"{rooms.get(section, section)}/", names


def _stands_as(found: str, banned: str) -> bool:
    if banned == "name":
        return found in ("name", "module", "key")
    if banned == "option":
        return found in ("option", "key")
    return found == banned


def _python_names(module: Module) -> Iterator[Name]:
    """Identifiers of a module: by their tokens, and again by what they define."""
    stem = module.path.parent.name if module.is_package else module.path.stem
    yield Name(stem, "module", 1)
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.NAME:
            yield Name(token.string, "name", token.start[0])
        elif token.type == tokenize.STRING and WORD.fullmatch(token.string.strip("\"'")):
            yield Name(token.string.strip("\"'"), "name", token.start[0])
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.ClassDef):
            yield Name(node.name, "class", node.lineno)
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield Name(each.target.id, "option", each.lineno)
                    yield Name(each.target.id, "call", each.lineno)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Name(node.name, "function", node.lineno)
            if node.name == "__init__":
                arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                for argument in arguments:
                    yield Name(argument.arg, "option", argument.lineno)


def _recipe_names(path: Path) -> dict[str, list[Name]]:
    """Keys of a recipe by their section, each also with its path, such as `training.steps`."""
    found: dict[str, list[Name]] = {}
    section = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := re.match(r"(\s*(?:- )?)([A-Za-z_]\w*):", line):
            section = section if match[1] else match[2]
            names = found.setdefault(section, [])
            names.append(Name(match[2], "key", number))
            names.append(Name(f"{section}.{match[2]}", "path", number))
    return found


def _script_names(path: Path) -> Iterator[Name]:
    """Properties that a script of the page reads, and the name of its file."""
    yield Name(path.stem, "module", 1)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for match in re.finditer(r"\.([A-Za-z_]\w*)", line):
            yield Name(match[1], "call", number)


def phrases_found(tree: Tree, phrases: Iterable[str]) -> Iterator[Hit]:
    """Every private phrase in prose."""
    longest = sorted(phrases, key=len, reverse=True)
    pattern = re.compile("|".join(map(_pattern, longest)), re.IGNORECASE)
    for block in prose_of(tree):
        for match in pattern.finditer(block.text):
            word = re.sub(r"\s+", " ", match[0]).lower()
            yield Hit(block.file, block.line_of(match.start()), word, "")


def _pattern(phrase: str) -> str:
    words = [r"[-\u2212]?\d[\d.,]*" if word == "#" else re.escape(word) for word in phrase.split()]
    words = [word.replace("'", "['\u2019]") for word in words]
    return rf"(?<![\w-]){GAP.join(words)}(?![\w-])"


def _is_exception(hit: Hit, exceptions: list[dict[str, str]], tree: Tree) -> bool:
    found = [each for each in exceptions if fnmatch.fnmatch(hit.file, each["file"])]
    if not found:
        return False
    lines = (tree.root / hit.file).read_text(encoding="utf-8").splitlines()
    line = lines[hit.line - 1] if hit.line <= len(lines) else ""
    return any(re.search(each["line"], line) for each in found)
