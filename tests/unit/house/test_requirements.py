"""What is installed is pinned by hash, and the same on Lambda and in tests."""

import ast
import re
import sys
import tomllib
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
TOOLS: Final = ROOT / "requirements/tools.txt"
PROXIES: Final = ROOT / "requirements/proxies.txt"
COMMAND: Final = ROOT / "requirements/command.txt"
DEMO: Final = ROOT / "requirements/demo.txt"
AWS: Final = ROOT / "requirements/aws.txt"
DOCS: Final = ROOT / "requirements/docs.txt"
CONTAINER: Final = ROOT / "requirements/container.txt"
ALL: Final = [AWS, CONTAINER, DOCS, LAYER, DEV, SAM, BENCH, RUNTIME, TOOLS, COMMAND, DEMO, SCREENSHOTS, PROXIES]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES: Final = ("layers/kubesync/kubesync", "local/kubesync_local")
# Where the name to import is not the name to install.
DISTRIBUTIONS: Final = {
    "aws_lambda_powertools": "aws-lambda-powertools",
    "flask_cors": "flask-cors",
    "prometheus_client": "prometheus-client",
    "yaml": "pyyaml",
}
# Each always comes with another, which needs it.
CARRIED: Final = {
    "pydantic_core": "pydantic",
    "botocore": "boto3",
    "werkzeug": "flask",
    "jinja2": "flask",
    "markupsafe": "flask",
}
_PIN: Final = re.compile(
    r"(?P<name>[a-z0-9.-]+)==(?P<version>[^ ;]+)(?: ; [^\\]*)? \\\n(?P<hashes>(?:    --hash=.*\n?)+)"
)
_HASH_LINE: Final = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")


def _pins(path: Path) -> dict[str, str]:
    return {match["name"]: match["version"] for match in _PIN.finditer(path.read_text())}


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.parent.name + "/" + path.name)
def test_every_requirement_is_pinned_with_hashes_and_nothing_else_is_said(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    names = [line for line in lines if not line.startswith(" ")]

    assert names
    assert len(_pins(path)) == len(names)
    assert [line for line in lines if line.startswith(" ") and not _HASH_LINE.fullmatch(line)] == []


def test_every_requirements_file_is_checked_here() -> None:
    assert sorted(path for path in ALL if path != LAYER) == sorted((ROOT / "requirements").glob("*.txt"))


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


def _imported(path: Path) -> set[str]:
    """The distributions that a module imports, less the standard library and our own."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    ours = {"kubesync", "kubesync_local"}
    # For type checkers only: no program imports these.
    typing_only = {name for name in names if name.startswith(("mypy_boto3_", "_typeshed"))}
    foreign = names - ours - typing_only - sys.stdlib_module_names
    return {CARRIED.get(name, DISTRIBUTIONS.get(name, name)) for name in foreign}


def _declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[>=<~!; ]", each)[0] for each in requirements}


def test_command_depends_on_what_it_imports_and_its_extras_on_what_page_metrics_and_stand_ins_import() -> None:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    imported = {path: _imported(path) for path in files}
    dependencies = _declared(PROJECT["dependencies"])
    others = {path: names - dependencies for path, names in imported.items() if names - dependencies}
    page = {path: names for path, names in others.items() if "kubesync_local/page" in str(path)}
    metrics = {path: names for path, names in others.items() if "kubesync_local/container" in str(path)}
    standin = {path: names for path, names in others.items() if path not in {**page, **metrics}}

    assert set().union(*imported.values()) >= dependencies
    assert set().union(*page.values()) == _declared(PROJECT["optional-dependencies"]["ui"]) == {"flask"}
    assert (
        set().union(*metrics.values())
        == _declared(PROJECT["optional-dependencies"]["metrics"])
        == {"prometheus-client"}
    )
    assert {str(path.relative_to(ROOT)) for path in standin} == {"local/kubesync_local/standins/dynamodb.py"}
    # flask-cors is imported by moto's server.
    assert _declared(PROJECT["optional-dependencies"]["demo"]) == {"flask", "flask-cors", "moto"}
    assert set().union(*standin.values()) == {"flask", "moto"}


def test_every_dependency_has_a_lower_bound_that_the_pins_are_above() -> None:
    def number(version: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", version)]

    pins = _pins(DEMO) | _pins(CONTAINER)
    extras = PROJECT["optional-dependencies"]
    given = [*PROJECT["dependencies"], *extras["ui"], *extras["metrics"], *extras["demo"]]
    bounds = {re.split(r"[\[>]", each)[0]: each.rpartition(">=")[2] for each in given}

    assert len(bounds) == 14
    assert {name for name, bound in bounds.items() if number(pins[name]) < number(bound)} == set()


def test_command_without_its_extra_is_installed_without_the_stand_ins() -> None:
    assert _pins(COMMAND).keys().isdisjoint({"moto", "flask", "flask-cors", "werkzeug"})
    assert {"moto", "flask", "flask-cors"} <= _pins(DEMO).keys()
    assert (
        _pins(COMMAND).items()
        <= _pins(DEMO).items()
        <= _pins(DEV).items() | {(name, version) for name, version in _pins(DEMO).items() if name not in _pins(DEV)}
    )


def test_container_gets_the_command_and_its_metrics_and_neither_stand_ins_nor_does_the_layer_get_metrics() -> None:
    assert _pins(CONTAINER).items() >= _pins(COMMAND).items()
    assert _pins(CONTAINER).keys() - _pins(COMMAND).keys() == {"prometheus-client"}
    assert "prometheus-client" not in _pins(LAYER)
    assert "-r /tmp/container.txt" in (ROOT / "container/Dockerfile").read_text()


def test_client_says_the_version_of_the_project() -> None:
    client = (ROOT / "layers/kubesync/kubesync/kubernetes/transport/client.py").read_text()

    assert re.findall(r'^VERSION: Final = "(.+)"', client, re.MULTILINE) == [PROJECT["version"]]
