"""Every reason that the source gives is in the one list, and the list is what docs/reasons.md and docs/audit.md say."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kubesync.domain.reasons import ADVICE, advice_for
from kubesync_local.documents.audit_log import KINDS

ROOT: Final = Path(__file__).resolve().parents[3]
_GIVEN_IN: Final = (
    *(
        f"layers/kubesync/kubesync/{room}"
        for room in ("domain", "cluster", "zone", "upstreams", "operations", "session")
    ),
    "local/kubesync_local/commands",
    "local/kubesync_local/documents",
)
# What carries a code, and at which position.
_MAKERS: Final = {"Problem": 0, "Finding": 1, "Outcome": 4, "OpenMark": 3, "Refusal": 3, "classified": 2}
_ROW: Final = re.compile(r"^\| `(\w+)` \| (.+) \| (.+) \|$", re.MULTILINE)


def codes_in(source: str) -> Iterator[tuple[str, int]]:
    """Codes that a module gives, with their lines; an empty code where it cannot be told what is given.

    Seen are: arguments of what carries a code, comparisons with ``.code``, what functions named ``..._code`` return, and
    arguments of functions of the module that hand a parameter on as a code.
    """
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    handed_on: dict[str, int] = {}
    for call in calls:
        for node in _given(call):
            place = _parameter(functions, call, node.id) if isinstance(node, ast.Name) else None
            if place is not None:
                handed_on[place[0]] = place[1]
            else:
                yield from ((text, call.lineno) for text in _texts(node))
    for call in calls:
        if (position := handed_on.get(_name(call))) is not None:
            yield from ((text, call.lineno) for text in _texts(call.args[position]))
    for function in functions:
        for line in ast.walk(function) if function.name.endswith("_code") else ():
            if isinstance(line, ast.Return) and line.value is not None:
                yield from ((text, line.lineno) for text in _texts(line.value))
    for compared in ast.walk(tree):
        if (
            isinstance(compared, ast.Compare)
            and isinstance(compared.left, ast.Attribute)
            and compared.left.attr == "code"
        ):
            found = [other.value for other in compared.comparators if isinstance(other, ast.Constant)]
            yield from ((text, compared.lineno) for text in found if isinstance(text, str))


def _given(call: ast.Call) -> list[ast.expr]:
    position = _MAKERS.get(_name(call))
    if position is None:
        return []
    named = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    plain = call.args[position : position + 1] if not any(isinstance(a, ast.Starred) for a in call.args) else []
    return [*named, *plain]


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="messages"), attr=name):
            return name
    return ""


def _texts(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text] if text else []
        case ast.IfExp(body=one, orelse=other):
            return [*_texts(one), *_texts(other)]
        case ast.Attribute():  # handed on from what carries one
            return []
        case ast.Call(func=ast.Name(id=name)) if name.endswith("_code"):
            return []
    return [""]


def _parameter(functions: list[ast.FunctionDef], call: ast.Call, name: str) -> tuple[str, int] | None:
    for function in functions:
        names = [argument.arg for argument in function.args.args]
        if name in names and any(node is call for node in ast.walk(function)):
            return function.name, names.index(name)
    return None


def given_codes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for folder in _GIVEN_IN:
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text()
            if any(f"{maker}(" in source for maker in _MAKERS) or "_code(" in source or ".code ==" in source:
                for code, line in codes_in(source):
                    found.setdefault(code, []).append(f"{path.name}:{line}")
    return found


def test_every_code_that_is_given_is_in_the_list_and_every_listed_one_is_given() -> None:
    given = given_codes()

    assert {code: places for code, places in given.items() if code not in ADVICE} == {}
    assert ADVICE.keys() - given.keys() == set()


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ("Problem('A', 'x', 'y')", ["A"]),
        ("def f(x, code):\n    return Problem(code, x, '')\nf(1, 'B')", ["B"]),
        ("Outcome(unit, code='C')", ["C"]),
        ("p.code == 'D'", ["D"]),
        ("Problem(anything(), 'x', 'y')", [""]),
        ("Problem(*fields)", []),
        ("Finding('open', mark.code, '')", []),
        ("def zone_code(x):\n    return 'F' if x else 'G'\nFinding('s', zone_code(1), '')", ["F", "G"]),
        ("print(code='E')", []),
    ],
)
def test_codes_are_found_in_a_source(source: str, codes: list[str]) -> None:
    assert [code for code, _ in codes_in(source)] == codes


def test_page_of_reasons_is_the_list() -> None:
    rows = _ROW.findall((ROOT / "docs/reasons.md").read_text())

    assert [(code, advice) for code, _, advice in rows] == list(ADVICE.items())


def test_codes_are_single_words() -> None:
    assert all(re.fullmatch(r"([A-Z][a-z]+)+", code) for code in ADVICE)


def test_advice_for_a_code_of_another_release_is_empty() -> None:
    assert advice_for("ZoneFull") == "Have AWS raise the zone's limit, or remove record sets that nobody needs."
    assert advice_for("FromTheFuture") == ""


def test_page_of_the_audit_says_what_each_word_and_field_means() -> None:
    page = (ROOT / "docs/audit.md").read_text()
    about, why, fields = (page.partition(f"## {title}")[2].partition("\n## ")[0] for title in (
        "What an entry is about", "Why it happened", "Fields",
    ))  # fmt: skip

    assert tuple(re.findall(r"^\| `(\w+)` \|", about, re.MULTILINE)) == KINDS
    assert {"watch", "list", "resync", "a name was let go"} <= set(re.findall(r"^\| `([^`]+)` \|", why, re.MULTILINE))
    named = {
        name for row in re.findall(r"^\| (`.*?`) \|", fields, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert named == {
        "at", "cluster", "service", "object_kind", "what", "kind", "name", "type", "identifier", "zone", "upstream", "from", "to", "why", "object",
        "resource_version", "epoch", "session", "batch", "reason", "message",
    }  # fmt: skip
