"""``make mutants``: takes one mechanism out of kubesync at a time; exit status 1 where the tests do not notice."""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from mutation.mutant import Mutant
from mutation.mutants import MUTANTS
from mutation.trial import MutantError, caught_in_simulation, copy_package, run_chaos, run_tests

SIMULATED: Final = (15, 13, 3, 1, 2, 10, 12)
"""Sections of the chaos run that are played in the simulation."""


def unnoticed(mutant: Mutant, scratch: Path, usual: Mapping[int, int]) -> list[str]:
    """What should have failed without the mechanism, and did not.

    Args:
        usual: violations of sections of the chaos run on the code as it is; other sections are not run.
    """
    copy = copy_package(scratch, mutant)
    trial = run_tests(copy, mutant.caught_by)
    passed = [f"{test} passes" for test in mutant.caught_by if test not in trial.failed]
    if mutant.section in usual and run_chaos(copy, mutant.section) <= usual[mutant.section]:
        passed.append(f"section {mutant.section} of the chaos run survives")
    return passed


def _one(mutant: Mutant, scratch: Path, usual: Mapping[int, int]) -> bool:
    began = time.monotonic()
    try:
        wrong = unnoticed(mutant, scratch, usual)
    except MutantError as error:
        wrong = [str(error)]
    seconds = time.monotonic() - began
    lines = [f"{'NOT CAUGHT' if wrong else 'caught':<10} {mutant.invariants:<6} {mutant.name:<34} {seconds:>6.1f} s"]
    print("\n".join([*lines, *(f"    {line}" for line in wrong)]), flush=True)
    return not wrong


def _simulated(mutant: Mutant, scratch: Path) -> bool:
    """Whether the simulation alone catches it: first the section that the mutant names."""
    sections = sorted(SIMULATED, key=lambda section: (section != mutant.section, SIMULATED.index(section)))
    try:
        section = caught_in_simulation(copy_package(scratch, mutant), sections)
    except MutantError as error:
        print(f"no answer  {mutant.name}: {str(error)[:200]}", flush=True)
        return False
    said = "survives" if section is None else f"caught by section {section}"
    print(f"{said:<22} {mutant.invariants:<6} {mutant.name}", flush=True)
    return section is not None


def _control(copy: Path) -> bool:
    tests = sorted({test for mutant in MUTANTS for test in mutant.caught_by})
    trial = run_tests(copy, tests)
    print(
        f"control: {len(tests)} tests on the code as it is: {'pass' if not trial.failed else trial.output}", flush=True
    )
    return not trial.failed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutation", description="Show that the tests notice what is missing.")
    parser.add_argument("names", nargs="*", metavar="MUTANT", help=", ".join(mutant.name for mutant in MUTANTS))
    parser.add_argument("--chaos", action="store_true", help="also a short section of the chaos run for each")
    parser.add_argument("--simulation", action="store_true", help="the simulation alone, whatever tests there are")
    asked = parser.parse_args(arguments)
    unknown = set(asked.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in MUTANTS if not asked.names or mutant.name in asked.names]
    with tempfile.TemporaryDirectory(prefix="mutants-") as made:
        scratch = Path(made)
        as_it_is = copy_package(scratch, None)
        if asked.simulation:
            if (violated := caught_in_simulation(as_it_is, SIMULATED)) is not None:
                print(f"control: section {violated} of the chaos run finds violations in the code as it is")
                return 1
            with ThreadPoolExecutor(2) as two:
                caught = list(two.map(partial(_simulated, scratch=scratch), chosen))
            print(f"{sum(caught)} of {len(caught)} mutants caught by the simulation alone")
            return 0
        if not asked.names and not _control(as_it_is):
            return 1
        with ThreadPoolExecutor(2) as two:
            sections = sorted({mutant.section for mutant in chosen if mutant.section}) if asked.chaos else []
            usual = dict(zip(sections, two.map(partial(run_chaos, as_it_is), sections), strict=True))
            print(
                "".join(f"control: section {n} of chaos: {usual[n]} violations\n" for n in sections), end="", flush=True
            )
            caught = list(two.map(partial(_one, scratch=scratch, usual=usual), chosen))
    print(f"{sum(caught)} of {len(caught)} mutants caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
