"""Lists the tests and mutants of each invariant: ``make invariants``, or ``make invariants ARGS=I4`` of one.

list             made from
----             ---------
tests of I1      names of tests: ``test_i1_...``, ``test_i1_i2_...`` or ``..._i1``; each file in its order
mutants of I1    ``mutation.mutants``: those that break it
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from mutation.mutants import MUTANTS

ROOT: Final = Path(__file__).resolve().parent.parent
TESTS: Final = ROOT / "tests"
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


def lines_of(invariant: str) -> Iterator[str]:
    """What ``make invariants`` prints of one."""
    yield f"{invariant}, tests:"
    yield from (f"  {file}::{name}" for file, names in tests_of(invariant).items() for name in names)
    yield f"{invariant}, mutants:"
    for mutant in MUTANTS:
        if invariant in mutant.invariants.split():
            yield f"  {mutant.name}: {mutant.without}; caught by {', '.join(mutant.caught_by)}"


def main() -> int:
    """Print the invariants that are named, or all."""
    asked = sys.argv[1:] or list(INVARIANTS)
    if unknown := set(asked) - set(INVARIANTS):
        sys.stderr.write(f"unknown invariant {', '.join(sorted(unknown))}: there are {', '.join(INVARIANTS)}\n")
        return 2
    for invariant in asked:
        sys.stdout.write("".join(f"{line}\n" for line in lines_of(invariant)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
