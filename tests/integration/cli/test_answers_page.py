"""docs/reference/answers.md shows what commands answer: the same fields with values of the same kinds."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from harness.answers_page import ANSWERS, fewest, run, shape
from harness.wire.template import ROOT


@pytest.fixture(scope="module")
def answers() -> Mapping[str, Any]:
    return run()


def shown() -> dict[str, Any]:
    page = (ROOT / "docs/reference/answers.md").read_text()
    found = re.findall(r"^## (.+?)\n.+?```json\n(.+?)```", page, re.MULTILINE | re.DOTALL)
    return {title: json.loads(text) for title, text in found}


@pytest.mark.parametrize("title", ANSWERS)
def test_page_shows_the_fields_of_an_answer(title: str, answers: Mapping[str, Any]) -> None:
    assert shape(answers[title]) == shape(shown()[title]), "make reference"


def test_page_shows_nothing_of_one_run_only() -> None:
    text = (ROOT / "docs/reference/answers.md").read_text()

    assert set(re.findall(r"\d{4}-\d\d-\d\dT[\d:.]+Z", text)) == {"2026-01-31T12:00:00Z"}
    assert set(re.findall(r"\bZ[0-9A-Z]{8,}\b", text)) == {"Z0123456789ABCDEFGHIJ"}
    assert re.findall(r"127\.0\.0\.1", text) == []


def test_shape_differs_with_a_name_or_a_kind() -> None:
    assert shape({"a": 1, "b": [{"c": "x"}, {"d": None}]}) == {
        "a": "number",
        "b": ["array", {"c": ["str"], "d": ["NoneType"]}],
    }
    assert shape({"a": "1"}) != shape({"a": 1})
    assert shape([{"a": 1}]) != shape([{"b": 1}])


def test_page_has_an_entry_of_each_shape_and_no_more() -> None:
    rows = [{"a": 1}, {"a": 2}, {"a": None}, {"b": [3, 4]}]

    assert fewest(rows) == [{"a": 1}, {"a": None}, {"b": [3]}]
    assert shape(fewest(rows)) == shape(rows)
