"""The tests bite: take one mechanism out of kubesync, and they fail.

``make test`` tries one mutant, ``make check`` every thirty-second, ``make thorough`` all but the slow ones, ``make mutants`` all of them, with
the chaos run.
"""

from pathlib import Path

import pytest

from mutation.mutant import Mutant
from mutation.mutants import MUTANTS
from mutation.trial import copy_package, run_tests

QUICK = [mutant for mutant in MUTANTS if not mutant.slow]
SAMPLE = {"no-fence-check"}
CHECKED = {mutant.name for mutant in QUICK[::32]}


def _often(mutant: Mutant) -> tuple[pytest.MarkDecorator, ...]:
    if mutant.name in SAMPLE:
        return ()
    return (pytest.mark.thorough,) if mutant.name in CHECKED else (pytest.mark.thorough, pytest.mark.soak)


@pytest.mark.thorough
@pytest.mark.soak
def test_the_same_tests_pass_on_a_copy_as_it_is(tmp_path: Path) -> None:
    trial = run_tests(copy_package(tmp_path, None), sorted({test for mutant in QUICK for test in mutant.caught_by}))
    assert trial.failed == frozenset(), trial.output


def test_the_sample_names_mutants() -> None:
    assert {mutant.name for mutant in QUICK} >= SAMPLE


@pytest.mark.parametrize("mutant", [pytest.param(each, id=each.name, marks=_often(each)) for each in QUICK])
def test_tests_notice_what_is_missing(mutant: Mutant, tmp_path: Path) -> None:
    trial = run_tests(copy_package(tmp_path, mutant), mutant.caught_by)
    assert set(mutant.caught_by) - trial.failed == set(), f"without: {mutant.without}"
