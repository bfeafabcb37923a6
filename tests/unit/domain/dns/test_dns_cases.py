"""The DNS contract, row by row: the same table that ``docs/dns.md`` shows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from harness.dns_cases.page import page
from harness.dns_cases.spec import RULES
from harness.dns_cases.table import Case, ChangeCase, RegistrationCase

ROOT: Final = Path(__file__).resolve().parents[4]
_ROWS: Final = [pytest.param(case, id=f"{rule.title}: {case.title}") for rule in RULES for case in rule.cases]


@pytest.mark.parametrize("case", _ROWS)
def test_row_of_the_contract(case: Case | ChangeCase | RegistrationCase) -> None:
    match case:
        case Case():
            assert case.outcome() == (list(case.sets), list(case.problems))
        case ChangeCase():
            assert case.outcome() == list(case.changes)
        case RegistrationCase():
            assert case.outcome() == case.says


def test_contract_has_its_rows_and_each_has_a_title_of_its_own() -> None:
    assert len([row for rule in RULES for row in rule.cases if isinstance(row, Case)]) >= 150
    for rule in RULES:
        assert len({case.title for case in rule.cases}) == len(rule.cases), rule.title


def test_page_shows_the_table() -> None:
    shown = (ROOT / "docs/dns.md").read_text()
    assert shown == page(), "write it anew: make dns"
