"""``container/``: what its files allow and name is what the template allows and the command takes."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from harness.wire.template import read_template, resources, with_everything
from kubesync.settings import Settings
from kubesync_local.cli.main import build_parser

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDER: Final = ROOT / "container"
# Lambda's own: its log, its queue and its network interfaces. Secrets have a policy of their own.
_OF_THE_FUNCTION: Final = {"Logs", "DeadLetters", "Subnets", "NetworkInterfacesAreLambdasOwn"}


def _statements() -> dict[str, dict[str, Any]]:
    """Statements of the function's role, with those of its policies for zones and secrets."""
    roles = resources(read_template(), "AWS::IAM::Role")["WatchRole"]["Properties"]["Policies"][0]
    found = list(with_everything(roles["PolicyDocument"])["Statement"])
    for name in ("ReadZonesPolicy", "SecretsPolicy"):
        found += with_everything(read_template()["Resources"][name]["Properties"]["PolicyDocument"])["Statement"]
    return {each["Sid"]: each for each in found}


def test_policy_allows_what_the_functions_own_role_allows_and_no_more() -> None:
    policy = json.loads((FOLDER / "policy.json").read_text())
    allowed = {each["Sid"]: each for each in policy["Statement"]}
    wanted = _statements()
    assert wanted.keys() - allowed.keys() == _OF_THE_FUNCTION | {"SecretsByPrefix"}
    assert allowed.keys() <= wanted.keys()
    for name, statement in allowed.items():
        assert statement["Action"] == wanted[name]["Action"], name
        assert "*" not in re.sub(r"/prod-\*$", "", statement["Resource"]), name
    condition = wanted["WriteZones"]["Condition"]
    names = "route53:ChangeResourceRecordSetsNormalizedRecordNames"
    assert allowed["WriteZones"]["Condition"] == {
        **condition,
        "ForAllValues:StringLike": {names: ["_kubesync-main-*", "*.prod.example.com"]},
    }


def _manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))


def _containers() -> list[tuple[list[str], list[dict[str, str]]]]:
    found = []
    for manifest in _manifests():
        spec = manifest.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", {}).get("template") or spec.get("template")
        found += [(each["args"], each["env"]) for each in (template["spec"]["containers"] if template else ())]
    task = json.loads((FOLDER / "ecs-task.json").read_text())["containerDefinitions"][0]
    return [*found, (task["command"], task["environment"])]


def test_manifests_start_commands_that_there_are_with_settings_that_there_are() -> None:
    assert len(_containers()) == 3
    for words, environment in _containers():
        build_parser().parse_args(words)
        names = {each["name"] for each in environment}
        fields = {name.removeprefix("KUBESYNC_").lower() for name in names if name.startswith("KUBESYNC_")}
        assert fields <= Settings.model_fields.keys()
    (command,) = re.findall(r"^CMD (.+)$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)
    assert build_parser().parse_args(json.loads(command)).listen == ("0.0.0.0", 9090)


def test_whoever_stops_a_process_gives_it_the_time_that_a_session_needs() -> None:
    needed = Settings().drain_margin_seconds + 4  # and the release, see Session
    (deployment,) = [each for each in _manifests() if each["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    task = json.loads((FOLDER / "ecs-task.json").read_text())["containerDefinitions"][0]
    assert min(spec["terminationGracePeriodSeconds"], task["stopTimeout"]) > needed
    assert spec["containers"][0]["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert deployment["spec"]["replicas"] == 2


@pytest.mark.parametrize("text", ["runAsNonRoot: true", "readOnlyRootFilesystem: true", "drop: [ALL]"])
def test_pods_may_do_as_little_as_possible(text: str) -> None:
    assert (FOLDER / "kubernetes.yaml").read_text().count(text) == 2
