"""docs/explain.md says what ``kubesync explain`` can say."""

import ast
import re
from pathlib import Path
from typing import Final

from kubesync.domain.reasons import ADVICE

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = (ROOT / "docs/explain.md").read_text()
OUTLOOK: Final = ROOT / "local/kubesync_local/documents/outlook.py"


def test_every_state_stands_on_the_page_with_its_reasons() -> None:
    calls = [node for node in ast.walk(ast.parse(OUTLOOK.read_text())) if isinstance(node, ast.Call)]
    made = [call.args for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Finding"]
    states = {state.value for state, *_ in made if isinstance(state, ast.Constant)}
    rows = re.findall(r"^\| `(\w+)` \|(.*?)\| .* \|$", PAGE.partition("## JSON")[0], re.MULTILINE)

    assert {state for state, _ in rows} == states
    named = {code for _, codes in rows for code in re.findall(r"`(\w+)`", codes)}
    assert named <= ADVICE.keys()
    codes = {code.value for _, code, *_ in made if isinstance(code, ast.Constant) and code.value}
    assert codes <= named
