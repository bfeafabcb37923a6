"""``make mutants``: takes one mechanism out of kubesync at a time; exit status 1 where the tests do not notice."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from mutation.mutants import MUTANTS, Mutant
from mutation.trial import MutantError, copy_package, run_chaos, run_tests


def unnoticed(mutant: Mutant, scratch: Path, *, chaos: bool) -> list[str]:
    """What should have failed without the mechanism, and did not."""
    copy = copy_package(scratch, mutant)
    trial = run_tests(copy, mutant.caught_by)
    passed = [f"{test} passes" for test in mutant.caught_by if test not in trial.failed]
    if chaos and mutant.section and run_chaos(copy, mutant.section):
        passed.append(f"section {mutant.section} of the chaos run survives")
    return passed


def _one(mutant: Mutant, scratch: Path, *, chaos: bool) -> bool:
    began = time.monotonic()
    try:
        wrong = unnoticed(mutant, scratch, chaos=chaos)
    except MutantError as error:
        wrong = [str(error)]
    seconds = time.monotonic() - began
    lines = [f"{'NOT CAUGHT' if wrong else 'caught':<10} {mutant.invariants:<6} {mutant.name:<34} {seconds:>6.1f} s"]
    print("\n".join([*lines, *(f"    {line}" for line in wrong)]), flush=True)
    return not wrong


def _control(scratch: Path) -> bool:
    tests = sorted({test for mutant in MUTANTS for test in mutant.caught_by})
    trial = run_tests(copy_package(scratch, None), tests)
    print(
        f"control: {len(tests)} tests on the code as it is: {'pass' if not trial.failed else trial.output}", flush=True
    )
    return not trial.failed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutation", description="Show that the tests notice what is missing.")
    parser.add_argument("names", nargs="*", metavar="MUTANT", help=", ".join(mutant.name for mutant in MUTANTS))
    parser.add_argument("--chaos", action="store_true", help="also a short section of the chaos run for each")
    asked = parser.parse_args(arguments)
    unknown = set(asked.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in MUTANTS if not asked.names or mutant.name in asked.names]
    with tempfile.TemporaryDirectory(prefix="mutants-") as made:
        scratch = Path(made)
        if not asked.names and not _control(scratch):
            return 1
        with ThreadPoolExecutor(2) as two:
            caught = list(two.map(partial(_one, scratch=scratch, chaos=asked.chaos), chosen))
    print(f"{sum(caught)} of {len(caught)} mutants caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
