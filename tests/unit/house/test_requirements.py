"""What is installed is pinned by hash, and the same on Lambda and in tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
LAYER: Final = ROOT / "layers/dependencies/requirements.txt"
DEV: Final = ROOT / "requirements/dev.txt"
SAM: Final = ROOT / "requirements/sam.txt"
BENCH: Final = ROOT / "requirements/bench.txt"
RUNTIME: Final = ROOT / "requirements/runtime.txt"
SCREENSHOTS: Final = ROOT / "requirements/screenshots.txt"
_PIN: Final = re.compile(
    r"(?P<name>[a-z0-9.-]+)==(?P<version>[^ ;]+)(?: ; [^\\]*)? \\\n(?P<hashes>(?:    --hash=.*\n?)+)"
)
_HASH_LINE: Final = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")


def _pins(path: Path) -> dict[str, str]:
    return {match["name"]: match["version"] for match in _PIN.finditer(path.read_text())}


@pytest.mark.parametrize(
    "path", [LAYER, DEV, SAM, BENCH, RUNTIME, SCREENSHOTS], ids=lambda path: path.parent.name + "/" + path.name
)
def test_every_requirement_is_pinned_with_hashes_and_nothing_else_is_said(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    names = [line for line in lines if not line.startswith(" ")]

    assert names
    assert len(_pins(path)) == len(names)
    assert [line for line in lines if line.startswith(" ") and not _HASH_LINE.fullmatch(line)] == []


@pytest.mark.parametrize("path", [DEV, BENCH], ids=lambda path: path.name)
def test_tests_and_benches_run_on_the_versions_that_lambda_gets(path: Path) -> None:
    shipped, used = _pins(LAYER), _pins(path)

    assert {name: used.get(name) for name in shipped} == shipped


def test_layer_ships_only_the_four_libraries_and_what_they_need() -> None:
    text = (ROOT / "layers/dependencies/requirements.in").read_text()

    wanted = [line for line in text.splitlines() if not line.startswith("#")]
    assert wanted == ["aws-lambda-powertools", "boto3", "pydantic", "requests"]
    assert {"boto3", "botocore"} <= _pins(LAYER).keys()


def test_layer_keeps_the_models_of_every_service_that_code_opens_a_client_of() -> None:
    opened = {
        node.args[0].value
        for path in (ROOT / "layers/kubesync/kubesync").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "client"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    kept = re.search(r"SERVICES: Final = frozenset\((\{.*\})\)", (ROOT / "layers/dependencies/trim.py").read_text())

    assert {"dynamodb", "route53", "sts"} <= opened
    assert kept is not None
    # By name, not by constant: clients of tokens (secrets.SecretService).
    assert opened | {"secretsmanager", "ssm"} <= ast.literal_eval(kept[1])
