"""Check sizes, constructors, imports, hops and words of the package, as CI does.

python tools/house.py [--only NAME] [--report] [--source DIR]
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from house.hops import check_hops
from house.structure import check_constructors, check_imports, check_links, check_sizes
from house.tree import Finding, Tree
from house.words import check_words

CHECKS: dict[str, tuple[Callable[[Tree], Finding], str]] = {
    "sizes": (check_sizes, "median 130-180 lines, none above 400, 15 entries, 225 modules"),
    "constructors": (check_constructors, "at most 18 arguments, CT-VAE 12"),
    "imports": (check_imports, "no cycle, nothing against the order of the rooms"),
    "hops": (check_hops, "modules on the way: 60 % of before, evaluate 75 %"),
    "words": (check_words, "no private names, no private phrases (tools/words.yaml)"),
    "where-is-what": (check_links, "the guide to the tree exists and its links resolve"),
}

SHOWN = 20
"""Problems printed for one check, unless `--report` asks for all."""


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", choices=CHECKS, help="run one check")
    parser.add_argument("--report", action="store_true", help="print everything, never fail")
    default = Path(__file__).resolve().parent.parent
    parser.add_argument("--source", type=Path, default=default, help="the checkout to look at")
    options = parser.parse_args()
    tree = Tree(options.source.resolve())
    names = [options.only] if options.only else list(CHECKS)
    found = {name: CHECKS[name][0](tree) for name in names}
    for name, finding in found.items():
        print_problems(name, finding, everything=options.report)
    print(f"{tree.summary()}\n")
    for name, finding in found.items():
        mark = f"FAILS ({len(finding.problems)})" if finding.problems else "passes"
        print(f"{name:14} {mark:14} {finding.summary}\n{'':29} rule: {CHECKS[name][1]}")
    failed = any(finding.problems for finding in found.values())
    return int(failed and not options.report)


def print_problems(name: str, finding: Finding, *, everything: bool) -> None:
    """Print what breaks a rule, and with `everything` the notes too."""
    problems = finding.problems if everything else finding.problems[:SHOWN]
    for problem in problems:
        print(f"{name}: {problem}")
    if left := len(finding.problems) - len(problems):
        print(f"{name}: and {left} more; --report prints all")
    for note in finding.notes if everything else ():
        print(textwrap.indent(note, f"{name}: "))
    if problems or (everything and finding.notes):
        print()


if __name__ == "__main__":
    sys.exit(main())
