"""The pages about invariants and client-go name tests and places that exist, and mutants that still fit the code."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import invariants
from mutation.mutant import Mutant
from mutation.mutants import MUTANTS
from mutation.trial import mutated

ROOT: Final = Path(__file__).resolve().parents[3]
PAGES_WITH_PLACES: Final = (
    "CONTRIBUTING.md",
    "docs/adr/0006-settling-after-an-unclean-end.md",
    "docs/adr/0008-names-that-change-hands.md",
    "docs/adr/0009-zones-left-unsettled.md",
)
_TEST: Final = re.compile(r"`(?P<file>(?:unit|contract|integration|e2e)/[\w/]+\.py)::(?P<name>\w+)`")
_PLACE: Final = re.compile(r"`(?P<file>(?:\w+/)+\w+\.py)` (?P<names>`\w+`(?:, `\w+`)*)")


@cache
def _names(path: Path) -> frozenset[str]:
    """Functions and classes of a file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))


def _missing(test: str) -> bool:
    file, _, name = test.partition("::")
    path = ROOT / "tests" / file
    return not path.is_file() or name not in _names(path)


def test_page_has_every_invariant_and_its_tests_and_mutants_can_be_listed() -> None:
    titles = re.findall(r"^## (I\d+) ", (ROOT / "docs/proof/invariants.md").read_text(), re.MULTILINE)
    listed = list(invariants.lines_of("I7"))

    assert tuple(titles) == invariants.INVARIANTS
    assert listed[0] == "I7, tests:"
    assert [line for line in listed if line.startswith("  integration/")]
    assert listed.index("I7, mutants:") > 1


def test_every_test_that_the_page_about_client_go_names_exists() -> None:
    page = (ROOT / "tests/client-go-behaviours.md").read_text()
    named = [f"{match['file']}::{match['name']}" for match in _TEST.finditer(page)]
    assert len(named) > 50
    assert [test for test in named if _missing(test)] == []


def test_every_place_that_keeps_an_invariant_exists() -> None:
    assert len(list(_PLACE.finditer((ROOT / "docs/proof/invariants.md").read_text()))) > 30
    assert _places_that_are_gone("docs/proof/invariants.md") == []


@pytest.mark.parametrize("page", PAGES_WITH_PLACES)
def test_every_place_that_a_page_names_exists(page: str) -> None:
    assert _PLACE.search((ROOT / page).read_text())
    assert _places_that_are_gone(page) == []


def _places_that_are_gone(page: str) -> list[tuple[str, str]]:
    places = _PLACE.finditer((ROOT / page).read_text())
    package = ROOT / "layers/kubesync/kubesync"
    named = {(match["file"], name) for match in places for name in re.findall(r"\w+", match["names"])}
    return sorted((file, name) for file, name in named if name not in _names(package / file))


@pytest.mark.parametrize("invariant", invariants.INVARIANTS)
def test_every_invariant_has_tests_that_name_it_and_a_mutant(invariant: str) -> None:
    assert invariants.tests_of(invariant)
    assert [mutant.name for mutant in MUTANTS if invariant in mutant.invariants.split()]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_i1_i2_kill_between_two", {"I1", "I2"}),
        ("test_key_is_read_once_i7", {"I7"}),
        ("test_i10_cause_shows", {"I10"}),
        ("test_ipv4_is_let_in_i9s", set()),
    ],
)
def test_numbers_in_a_tests_name_are_its_invariants(name: str, expected: set[str]) -> None:
    assert invariants.invariants_of(name) == expected


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_fits_the_code_and_names_tests_that_exist(mutant: Mutant) -> None:
    changed = mutated(mutant)
    compile(changed, mutant.file, "exec")
    assert mutant.caught_by
    assert [test for test in mutant.caught_by if _missing(test)] == []
