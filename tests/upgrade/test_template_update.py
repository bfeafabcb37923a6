"""A stack of the release before, updated with the parameters that it has: nothing that costs or alarms changes."""

import subprocess
from collections.abc import Mapping
from typing import Any, Final

import pytest
import yaml

from harness.wire.template import ROOT, TemplateLoader, read_template, resolved
from upgrade.release_before import COMMIT

ZONE: Final = "arn:aws:route53:::hostedzone/Z0123456789ABCDEFGHIJ"
_COSTS_OR_ALARMS: Final = {
    *("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::DynamoDB::Table", "AWS::Scheduler::Schedule"),
    *("AWS::Serverless::Function", "AWS::Logs::LogGroup", "AWS::SQS::Queue"),
}
# What people read, what the resync function is told, and variables that a release before does not know.
_FOR_PEOPLE: Final = {"Description", "AlarmDescription", "DashboardBody", "Input"}
_NEW_VARIABLES: Final = {
    *(
        "KUBESYNC_ALARMS_NOTIFY",
        "KUBESYNC_NO_MASTER_MINUTES",
        "KUBESYNC_SHARDS",
        "KUBESYNC_CLUSTER_METRICS",
        "KUBESYNC_DASHBOARD_METRICS",
        "MALLOC_ARENA_MAX",
    )
}


def _present(template: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The resources that a stack has with these parameters, as CloudFormation fills them in."""
    conditions, mappings = template["Conditions"], template.get("Mappings", {})
    found = {}
    for name, entry in template["Resources"].items():
        if entry["Type"] not in _COSTS_OR_ALARMS:
            continue
        if "Condition" in entry and not resolved({"Condition": entry["Condition"]}, given, conditions):
            continue
        properties = resolved(entry["Properties"], given, conditions)
        found[name] = entry["Type"], _looked_up(properties, mappings)
    return found


def _looked_up(value: Any, mappings: Mapping[str, Any]) -> Any:
    match value:
        case {"Fn::FindInMap": [name, key, inner]}:
            return mappings[name][str(key)][inner]
        case dict():
            return {key: _looked_up(each, mappings) for key, each in value.items() if key not in _FOR_PEOPLE}
        case list():
            return [_looked_up(each, mappings) for each in value]
    return value


def test_stack_of_the_release_before_keeps_what_costs_and_alarms() -> None:
    shown = subprocess.run(
        ["git", "show", f"{COMMIT}:template.yaml"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if shown.returncode:
        pytest.skip(f"this clone lacks commit {COMMIT[:12]}, the release before: run `git fetch --unshallow`")
    before, now = yaml.load(shown.stdout, TemplateLoader), read_template()
    assert isinstance(before, dict)
    previous = {name: entry.get("Default") for name, entry in before["Parameters"].items()} | {"HostedZoneArns": [ZONE]}
    added = {name: entry["Default"] for name, entry in now["Parameters"].items() if name not in previous}
    for choice in ({}, {"ReservedConcurrency": 0}, {"ReservedConcurrency": 7}, {"Architecture": "arm64"}):
        old, new = _present(before, previous | choice), _present(now, added | previous | choice)
        assert {name: new.get(name) for name in old} == old
        # Alarms that came since are features of their own in the changelog.
        assert {new[name][0] for name in new.keys() - old.keys()} <= {"AWS::CloudWatch::Alarm"}
        function, older = (resolved(each["Globals"]["Function"], added | previous | choice) for each in (now, before))
        variables, known = (each["Environment"].pop("Variables") for each in (function, older))
        assert {name: value for name, value in variables.items() if name not in _NEW_VARIABLES} == known
        assert function == older
