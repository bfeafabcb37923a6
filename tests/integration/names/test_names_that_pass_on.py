"""Names that pass from one object to another: batch by batch, a name that is wanted before and after has an answer in between."""

from __future__ import annotations

import pytest

from harness.dns_cases.page import RULES
from harness.dns_cases.passing import NOTHING, PassingCase

ROWS = [case for rule in RULES for case in rule.cases if isinstance(case, PassingCase)]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.title)
def test_row_of_names_that_pass_on(case: PassingCase) -> None:
    answers, problems = case.outcome()
    assert (answers, problems) == (list(case.answers), list(case.problems))


def test_rows_are_many_and_no_name_is_away_in_between() -> None:
    assert len(ROWS) >= 30
    assert [case.title for case in ROWS if NOTHING in case.answers[:-1]] == []
