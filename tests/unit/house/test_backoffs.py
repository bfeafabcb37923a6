"""The table of backoffs in docs/architecture.md is what the code does."""

import ast
import re
from pathlib import Path
from typing import Final

import kubesync
from kubesync.domain.state import CONFLICT_CHECK_SECONDS
from kubesync.kubernetes.ports import ReflectorPolicy

PACKAGE: Final = Path(kubesync.__file__).parent
PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "architecture.md"
NAMED: Final = {
    "CONFLICT_CHECK_SECONDS": CONFLICT_CHECK_SECONDS,
    "backoff_initial": ReflectorPolicy().backoff_initial,
    "backoff_cap": ReflectorPolicy().backoff_cap,
}


def _number(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float() | int() as value):
            return float(value)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return NAMED[name]
    raise AssertionError(ast.dump(node))


def _in_the_code() -> list[tuple[str, float, float, float, float]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Backoff":
                given = dict(zip(("initial", "cap", "least", "most"), call.args, strict=False))
                given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
                numbers = {name: _number(value) for name, value in given.items()}
                place = path.relative_to(PACKAGE).as_posix()
                found.append(
                    (place, numbers["initial"], numbers["cap"], numbers.get("least", 1.0), numbers.get("most", 1.0))
                )
    return sorted(found)


def _on_the_page() -> list[tuple[str, float, float, float, float]]:
    table = PAGE.read_text().partition("<!-- backoffs -->")[2].partition("<!-- end of the backoffs -->")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([\d.]+) to ([\d.]+) \| ([\d.]+)(?: to ([\d.]+))? \|", table, re.MULTILINE)
    return sorted((place, float(a), float(b), float(least), float(most or least)) for place, a, b, least, most in rows)


def test_table_of_backoffs_is_what_the_code_does() -> None:
    assert _on_the_page() == _in_the_code()
    assert len(_on_the_page()) == 12
