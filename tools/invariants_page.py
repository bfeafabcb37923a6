"""Writes the lists of ``docs/invariants.md``: ``python tools/invariants_page.py``. A house test fails where they are old.

list             made from
----             ---------
tests of I1      names of tests: ``test_i1_...``, ``test_i1_i2_...`` or ``..._i1``; each file in its order
mutants of I1    ``mutation.mutants``; a mutant stands at the first invariant that it breaks
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final

from mutation.mutant import Mutant
from mutation.mutants import MUTANTS
from page_parts import with_part

ROOT: Final = Path(__file__).resolve().parent.parent
TESTS: Final = ROOT / "tests"
PAGE: Final = ROOT / "docs" / "invariants.md"
INVARIANTS: Final = tuple(f"I{number}" for number in range(1, 11))
_NAMED: Final = re.compile(r"_i(\d+)(?=_|$)")
_TEST: Final = re.compile(r"^def (test_\w+)", re.MULTILINE)


def invariants_of(test: str) -> set[str]:
    """The invariants that a test has in its name."""
    return {f"I{number}" for number in _NAMED.findall(test)}


@cache
def _tests() -> dict[str, dict[str, list[str]]]:
    """Invariants, files below ``tests``, and which of their tests name the invariant."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(TESTS.rglob("test_*.py")):
        for name in _TEST.findall(path.read_text()):
            for invariant in invariants_of(name):
                found[invariant][path.relative_to(TESTS).as_posix()].append(name)
    return found


def tests_of(invariant: str) -> dict[str, list[str]]:
    """Files below ``tests``, and which of their tests name an invariant."""
    return _tests()[invariant]


def page_with_lists(page: str) -> str:
    """The page with every list made anew."""
    for invariant in INVARIANTS:
        listed = [
            f"- `{file}`: {', '.join(f'`{name}`' for name in names)}" for file, names in tests_of(invariant).items()
        ]
        mutants = [row(mutant) for mutant in MUTANTS if mutant.invariants.split()[0] == invariant]
        head = ["| mutant | what it does | caught by |", "|---|---|---|"]
        for what, lines in (("tests", listed), ("mutants", [*head, *mutants])):
            begin, end = f"<!-- {what} of {invariant}: made by make reference -->\n", f"\n<!-- end of the {what} -->"
            page = with_part(page, begin, end, "\n".join(lines))
    return page


def row(mutant: Mutant) -> str:
    """A mutant's row."""
    caught = ", ".join(f"`{test}`" for test in mutant.caught_by)
    by_chaos = f"; section {mutant.section} of `make chaos`" if mutant.section else ""
    return f"| `{mutant.name}` | {mutant.without} | {caught}{by_chaos} |"


def main() -> None:
    PAGE.write_text(page_with_lists(PAGE.read_text()))


if __name__ == "__main__":
    main()
