"""What the SAM template promises, against what the code relies on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubesync.aws.tables import TABLES, TTL_ATTRIBUTE, table_names

ROOT: Final = Path(__file__).resolve().parents[3]


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms: ``!Sub x`` becomes ``{"Fn::Sub": "x"}``."""


def _short_form(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _short_form)


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    loaded = yaml.load((ROOT / "template.yaml").read_text(), _Loader)
    assert isinstance(loaded, dict)
    return loaded


def _resources(template: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {name: entry for name, entry in template["Resources"].items() if entry["Type"] == kind}


def _tables(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Tables of the template by the real name they get for the deployment ``main``."""
    found = _resources(template, "AWS::DynamoDB::Table").values()
    return {entry["Properties"]["TableName"]["Fn::Sub"].replace("${DeploymentId}", "main"): entry for entry in found}


def test_table_names_are_those_of_the_prefix_that_functions_get(template: dict[str, Any]) -> None:
    prefix = template["Globals"]["Function"]["Environment"]["Variables"]["KUBESYNC_TABLE_PREFIX"]["Fn::Sub"]

    assert set(_tables(template)) == set(table_names(prefix.replace("${DeploymentId}", "main")).values())
    assert len(_tables(template)) == 4


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.logical_name)
def test_table_is_what_kubesync_setup_would_make(template: dict[str, Any], table: Any) -> None:
    name = table_names("kubesync-main")[table.logical_name]
    wanted = table.create_request(name)
    entry = _tables(template)[name]
    made = entry["Properties"]

    assert made["KeySchema"] == wanted["KeySchema"]
    assert made["AttributeDefinitions"] == wanted["AttributeDefinitions"]
    assert made["BillingMode"] == "PAY_PER_REQUEST"
    assert made.get("StreamSpecification", {}).get("StreamViewType") == wanted.get("StreamSpecification", {}).get(
        "StreamViewType"
    )
    assert made.get("TimeToLiveSpecification") == (
        {"AttributeName": TTL_ATTRIBUTE, "Enabled": True} if table.expires else None
    )


def test_tables_survive_a_mistake(template: dict[str, Any]) -> None:
    for name, entry in _tables(template).items():
        assert entry["DeletionPolicy"] == "Retain", name
        assert entry["UpdateReplacePolicy"] == "Retain", name
        assert entry["Properties"]["DeletionProtectionEnabled"] is True, name
        assert entry["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}, name
        assert entry["Properties"]["SSESpecification"] == {"SSEEnabled": True}, name


def test_functions_are_never_invoked_again_by_themselves(template: dict[str, Any]) -> None:
    invoke = template["Globals"]["Function"]["EventInvokeConfig"]
    schedule = template["Resources"]["WatchFunction"]["Properties"]["Events"]["EveryMinute"]["Properties"]

    assert invoke == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    assert schedule["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}


def test_functions_run_what_is_tested(template: dict[str, Any]) -> None:
    everywhere = template["Globals"]["Function"]
    functions = _resources(template, "AWS::Serverless::Function")

    assert everywhere["Runtime"] == "python3.13"
    assert everywhere["Handler"] == "app.handler"
    assert everywhere["Layers"] == [{"Ref": "DependenciesLayer"}, {"Ref": "KubesyncLayer"}]
    assert {entry["Properties"]["CodeUri"] for entry in functions.values()} == {"functions/watch", "functions/resync"}
    for entry in _resources(template, "AWS::Serverless::LayerVersion").values():
        assert entry["Metadata"]["BuildMethod"] == "python3.13"
        assert (ROOT / entry["Properties"]["ContentUri"]).is_dir()


def test_timeout_leaves_room_for_a_session_and_its_drain_margin(template: dict[str, Any]) -> None:
    timeout = template["Globals"]["Function"]["Timeout"]

    assert timeout <= 900  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
    assert timeout >= 840 + 15


def test_only_the_watch_function_is_scheduled_and_has_room_for_a_stand_by(template: dict[str, Any]) -> None:
    functions = _resources(template, "AWS::Serverless::Function")

    assert [name for name, entry in functions.items() if "Events" in entry["Properties"]] == ["WatchFunction"]
    assert template["Parameters"]["Schedule"]["Default"] == "rate(1 minute)"
    assert template["Parameters"]["ReservedConcurrency"]["Default"] == 2


def test_role_names_every_action_and_no_table_at_large(template: dict[str, Any]) -> None:
    statements = template["Resources"]["Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    by_sid = {statement["Sid"]: statement for statement in statements if "Sid" in statement}
    actions = [action for statement in by_sid.values() for action in statement["Action"]]

    assert not [action for action in actions if "*" in action]
    assert by_sid["Tables"]["Resource"] == [
        {"Fn::GetAtt": "ControlTable.Arn"},
        {"Fn::GetAtt": "StateTable.Arn"},
        {"Fn::GetAtt": "UpstreamsTable.Arn"},
        {"Fn::GetAtt": "AuditTable.Arn"},
    ]
    assert by_sid["HostedZones"]["Action"] == [
        "route53:ChangeResourceRecordSets",
        "route53:GetHostedZone",
        "route53:ListResourceRecordSets",
    ]
