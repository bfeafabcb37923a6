"""Pages of docs/reference are as the code is: ``make reference`` writes them."""

from __future__ import annotations

import re
from typing import Final

import pytest

import reference
from harness.wire.template import read_template, resources
from kubesync.domain.errors import ErrorCode

QUICK: Final = reference.quick_pages()


@pytest.mark.parametrize("name", QUICK)
def test_page_of_the_reference_is_as_the_code_is(name: str) -> None:
    assert (reference.FOLDER / name).read_text() == QUICK[name], "make reference"


def test_index_lists_every_page_and_there_are_no_others() -> None:
    index = (reference.FOLDER / "README.md").read_text()
    pages = {path.name for path in reference.FOLDER.glob("*.md")} - {"README.md"}

    assert pages == {*QUICK, "answers.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


def test_every_error_code_has_a_meaning() -> None:
    rows = re.findall(r"^\| (\d+) \| `(ERR_\w+)` \| \S", QUICK["errors.md"], re.MULTILINE)

    assert len(rows) == 12
    assert [(int(code), key) for code, key in rows] == [(code.value, code.key) for code in ErrorCode]


def test_every_alarm_and_its_metric_are_listed() -> None:
    alarms = resources(read_template(), "AWS::CloudWatch::Alarm").values()
    own = {each["Properties"]["MetricName"] for each in alarms if each["Properties"]["Namespace"] == "kubesync"}

    assert QUICK["alarms.md"].count("\n| [") == len(alarms) == 23
    assert {name for name in own if f"`{name}`" not in QUICK["metrics.md"]} == set()


def test_row_of_a_table_goes_on_where_its_first_cells_are_empty() -> None:
    text = (
        "Title.\n\n    partition   sort     holds\n    ---------   ----     -----\n    a#<b>       one      first,\n"
        "                         second\n                two      third\n\nText --- after --- it."
    )
    ((titles, rows),) = reference.tables_in(text)

    assert titles == ("partition", "sort", "holds")
    assert list(reference._filled(rows)) == [["a#<b>", "one", "first, second"], ["a#<b>", "two", "third"]]


def test_tables_are_found_in_the_files_of_every_room() -> None:
    partitions = set(re.findall(r"^\| `([^`]+)` \|", QUICK["tables.md"], re.MULTILINE))

    assert {
        "clusters",
        "lease",
        "inflight#<shard>",
        "<cluster>#open#<0..3>",
        "names#<zone id>#<bucket>",
        "sessions",
    } <= partitions
    assert [name for name in partitions if " and " in name or len(name) > 40] == []
