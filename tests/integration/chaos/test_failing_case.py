"""What a failing case says: one line that plays it again, and the shortest course that still fails."""

import pytest

from chaos.faults.schedules import SECTION, Scheduled, explained
from chaos.run import Run
from chaos.sections import Outcome
from chaos.stories.happenings import Course, Pause
from sequences.steps import Kill

SEED = 20261120


def _struck(_case: Scheduled, course: Course) -> list[str]:
    kinds = [type(happening) for _, happening in course]
    return ["something is lost"] if Kill in kinds and Pause in kinds else []


def test_course_is_shrunk_to_what_makes_it_fail() -> None:
    case = next(case for case in (Scheduled(SEED, number) for number in range(100)) if _struck(case, case.course))
    lines = explained(case, _struck)
    assert lines[:2] == ["something is lost", "shrunk to:"]
    assert len(lines) == 4
    assert all("Kill(" in line or "Pause(" in line for line in lines[2:])


def test_case_that_passes_says_nothing() -> None:
    assert explained(Scheduled(SEED, 0), lambda _case, _course: []) == []


def test_course_is_drawn_from_the_seed_alone() -> None:
    assert Scheduled(SEED, 3).course == Scheduled(SEED, 3).course
    assert Scheduled(SEED, 3).course != Scheduled(SEED, 4).course


def test_violation_is_printed_with_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(seed=7, short=True, workers=1)
    case = Scheduled(7, 5)
    tally = run._tally(SECTION, [(13, 5, case)], iter([(5, case, Outcome(["something is lost"]))]), 0.0)
    assert tally.violated == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("VIOLATED: Scheduled(seed=7, number=5)")
    assert shown[1:] == ['    make chaos ARGS="--section 13 --seed 7 --case 5"', "    something is lost"]
