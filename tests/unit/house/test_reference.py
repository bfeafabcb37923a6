"""Pages of docs/reference are as the code is: ``make reference`` writes them."""

import re
from typing import Final

import pytest

import reference
from harness.wire.template import read_template, resources

QUICK: Final = reference.quick_pages()


@pytest.mark.parametrize("name", QUICK)
def test_page_of_the_reference_is_as_the_code_is(name: str) -> None:
    assert (reference.FOLDER / name).read_text() == QUICK[name], "make reference"


def test_index_lists_every_page_and_there_are_no_others() -> None:
    index = (reference.FOLDER / "README.md").read_text()
    pages = {path.name for path in reference.FOLDER.glob("*.md")} - {"README.md"}

    assert pages == {*QUICK, "answers.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


def test_every_alarm_and_its_metric_are_listed() -> None:
    alarms = resources(read_template(), "AWS::CloudWatch::Alarm").values()
    own = {each["Properties"]["MetricName"] for each in alarms if each["Properties"]["Namespace"] == "kubesync"}

    assert QUICK["alarms.md"].count("\n| [") == len(alarms) == 23
    assert {name for name in own if f"`{name}`" not in QUICK["metrics.md"]} == set()


def test_row_of_a_table_goes_on_where_its_first_cells_are_empty() -> None:
    text = "Title.\n\n    one   two\n    ---   ---\n    a     first,\n          second\n    b     third\n\nText --- after --- it."
    ((titles, rows),) = reference.tables_in(text)

    assert (titles, rows) == (("one", "two"), [["a", "first,"], ["", "second"], ["b", "third"]])


def test_options_of_a_cluster_are_explained_in_one_place() -> None:
    of_add = QUICK["commands.md"].partition("## kubesync cluster add\n")[2].partition("\n## ")[0]

    assert "configuration.md#a-cluster" in of_add
    assert set(re.findall(r"`(--[a-z-]+)`", of_add)) == {
        "--replace",
        "--disabled",
        "--dry-run",
        "--yes",
    }
