"""What the SAM template promises, against what the code relies on. Its roles: tests/integration/policies."""

import json
import re
from typing import Any

import pytest

from harness.wire.template import ROOT, read_template, resolved, resources
from kubesync.aws.dynamodb.store import table_names
from kubesync.settings import Settings
from kubesync_local.workplace.tables import TABLES, TTL_ATTRIBUTE


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return read_template()


def _tables(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Tables of the template by the real name they get for the deployment ``main``."""
    found = resources(template, "AWS::DynamoDB::Table").values()
    return {entry["Properties"]["TableName"]["Fn::Sub"].replace("${DeploymentId}", "main"): entry for entry in found}


def _variables(template: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template["Globals"]["Function"]["Environment"]["Variables"]
    return found


# --- tables ---


def test_table_names_are_those_of_the_prefix_that_functions_get(template: dict[str, Any]) -> None:
    prefix = _variables(template)["KUBESYNC_TABLE_PREFIX"]["Fn::Sub"]

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


def test_only_upstreams_have_a_stream(template: dict[str, Any]) -> None:
    assert [name for name, entry in _tables(template).items() if "StreamSpecification" in entry["Properties"]] == [
        "kubesync-main-upstreams"
    ]


def test_tables_survive_a_mistake(template: dict[str, Any]) -> None:
    for name, entry in _tables(template).items():
        assert entry["DeletionPolicy"] == "Retain", name
        assert entry["UpdateReplacePolicy"] == "Retain", name
        assert entry["Properties"]["DeletionProtectionEnabled"] is True, name
        assert entry["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}, name
        assert entry["Properties"]["SSESpecification"] == {"SSEEnabled": True}, name


# --- functions ---


def test_functions_run_what_is_tested(template: dict[str, Any]) -> None:
    everywhere = template["Globals"]["Function"]
    functions = resources(template, "AWS::Serverless::Function")

    assert everywhere["Runtime"] == "python3.13"
    assert everywhere["Architectures"] == [{"Ref": "Architecture"}]
    assert everywhere["Handler"] == "app.handler"
    assert everywhere["Layers"] == [
        {"Fn::If": ["IsArm", {"Ref": "DependenciesLayerArm"}, {"Ref": "DependenciesLayer"}]},
        {"Ref": "KubesyncLayer"},
    ]
    assert {entry["Properties"]["CodeUri"] for entry in functions.values()} == {"functions/watch", "functions/resync"}


def test_layers_are_kept_and_built_by_the_target_of_their_name(template: dict[str, Any]) -> None:
    layers = resources(template, "AWS::Serverless::LayerVersion")

    assert layers.keys() == {"DependenciesLayer", "DependenciesLayerArm", "KubesyncLayer"}
    for name, entry in layers.items():
        assert entry["Properties"]["RetentionPolicy"] == "Retain"
        assert entry["Properties"]["CompatibleRuntimes"] == ["python3.13"]
        assert entry["Metadata"]["BuildMethod"] == "makefile"
        makefile = (ROOT / entry["Properties"]["ContentUri"] / "Makefile").read_text()
        assert re.search(rf"^build-{name}\b.*:", makefile, re.MULTILINE)


def test_timeout_leaves_room_for_a_session_and_its_drain_margin(template: dict[str, Any]) -> None:
    timeout = template["Globals"]["Function"]["Timeout"]
    runtime = template["Parameters"]["MaximumRuntimeSeconds"]
    settings = Settings()

    assert timeout <= 900  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
    assert runtime["Default"] == settings.max_runtime_seconds
    assert runtime["MaxValue"] + settings.drain_margin_seconds + 4 < timeout


def test_endpoints_are_declared_for_sam_local_and_empty(template: dict[str, Any]) -> None:
    endpoints = {name: value for name, value in _variables(template).items() if name.startswith("AWS_")}

    assert endpoints == {
        "AWS_ENDPOINT_URL_DYNAMODB": "",
        "AWS_ENDPOINT_URL_ROUTE_53": "",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": "",
        "AWS_ENDPOINT_URL_SSM": "",
        "AWS_ENDPOINT_URL_STS": "",
        "AWS_ENDPOINT_URL_EKS": "",
    }


def test_settings_of_the_functions_are_known_ones(template: dict[str, Any]) -> None:
    names = [name for name in _variables(template) if name.startswith("KUBESYNC_")]

    assert {name.removeprefix("KUBESYNC_").lower() for name in names} <= Settings.model_fields.keys()


# --- when they run ---


def test_functions_are_never_invoked_again_by_themselves(template: dict[str, Any]) -> None:
    invoke = template["Globals"]["Function"]["EventInvokeConfig"]
    dead_letters = {"Fn::GetAtt": "DeadLetters.Arn"}

    assert (invoke["MaximumRetryAttempts"], invoke["MaximumEventAgeInSeconds"]) == (0, 60)
    assert invoke["DestinationConfig"]["OnFailure"] == {"Type": "SQS", "Destination": dead_letters}
    for schedule in resources(template, "AWS::Scheduler::Schedule").values():
        target = schedule["Properties"]["Target"]
        assert target["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
        assert target["DeadLetterConfig"] == {"Arn": dead_letters}


def test_sessions_run_every_minute_and_a_resync_every_day_unless_it_is_switched_off(template: dict[str, Any]) -> None:
    schedules = resources(template, "AWS::Scheduler::Schedule")
    parameters = template["Parameters"]

    assert {name: entry["Properties"]["Target"]["Arn"] for name, entry in schedules.items()} == {
        "WatchSchedule": {"Fn::GetAtt": "WatchFunction.Arn"},
        "ResyncEvery": {"Fn::GetAtt": "ResyncFunction.Arn"},
    }
    assert (parameters["Schedule"]["Default"], parameters["ResyncSchedule"]["Default"]) == (
        "rate(1 minute)", "rate(1 day)",
    )  # fmt: skip
    assert schedules["ResyncEvery"]["Condition"] == "HasResyncSchedule"
    assert re.fullmatch(parameters["ResyncSchedule"]["AllowedPattern"], "")


def test_reserved_concurrency_lets_a_stand_by_in_and_no_resync_waits_for_it(template: dict[str, Any]) -> None:
    functions = resources(template, "AWS::Serverless::Function")

    assert template["Parameters"]["ReservedConcurrency"]["Default"] == 3
    assert [name for name, entry in functions.items() if "ReservedConcurrentExecutions" in entry["Properties"]] == [
        "WatchFunction"
    ]


# --- parameters ---


def test_every_parameter_is_described_and_grouped(template: dict[str, Any]) -> None:
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]

    assert sorted(grouped) == sorted(template["Parameters"])
    for name, parameter in template["Parameters"].items():
        assert parameter["Description"], name
        constrained = parameter.keys() & {"AllowedPattern", "AllowedValues", "MinValue"}
        assert constrained, name
        assert ("AllowedPattern" in parameter) == ("ConstraintDescription" in parameter), name


def test_hosted_zones_have_to_be_named(template: dict[str, Any]) -> None:
    zones = template["Parameters"]["HostedZoneArns"]

    assert "Default" not in zones
    assert re.fullmatch(zones["AllowedPattern"], "arn:aws-cn:route53:::hostedzone/Z0123456789ABCDEFGHIJ")
    assert not re.fullmatch(zones["AllowedPattern"], "arn:aws:route53:::hostedzone/*")


@pytest.mark.parametrize(
    ("parameter", "arn"),
    [
        ("SecretArns", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:kubesync/prod-a1B2c3"),
        ("ParameterArns", "arn:aws:ssm:eu-west-1:123456789012:parameter/kubesync/prod"),
        ("SecretKeyArns", "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"),
        ("RoleArns", "arn:aws:iam::123456789012:role/dns/kubesync-zones"),
    ],
)
def test_lists_of_arns_may_be_empty_and_hold_no_wildcard(parameter: str, arn: str, template: dict[str, Any]) -> None:
    pattern = template["Parameters"][parameter]["AllowedPattern"]

    assert template["Parameters"][parameter]["Default"] == ""
    assert re.fullmatch(pattern, "")
    assert re.fullmatch(pattern, arn)
    assert not re.fullmatch(pattern, f"{arn}*")
    assert not re.fullmatch(pattern, "*")


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("", True),
        ("*.prod.example.com", True),
        ("prod.example.com", True),
        (r"\052.prod.example.com", True),
        ("_acme-challenge.*", True),
        ("*", True),
        ("*.prod.example.com.", False),
        ("*.Prod.example.com", False),
        ("*.prod.example.com ", False),
        ("*.prod.example.com,apex.example.org", True),
        ("*.prod.example.com,", False),
        ("${aws:username}.example.com", False),
    ],
)
def test_record_names_are_normalized(pattern: str, template: dict[str, Any], *, fits: bool) -> None:
    allowed = template["Parameters"]["RecordNames"]["AllowedPattern"]

    assert bool(re.fullmatch(allowed, pattern)) == fits


# --- what costs ---


def test_new_stacks_take_the_cheap_architecture_and_memory_and_keep_metrics_unless_they_say_so(
    template: dict[str, Any],
) -> None:
    parameters = template["Parameters"]
    assert (parameters["Architecture"]["Default"], parameters["MemorySize"]["Default"]) == ("arm64", 512)
    assert parameters["MemorySize"]["MinValue"] == 512
    # A stack that has these parameters not yet takes their defaults when it is updated.
    assert [parameters[name]["Default"] for name in ("ClusterMetrics", "WithDashboard")] == ["true", "true"]
    for name, given in (
        ("NoMasterMinutes", "KUBESYNC_NO_MASTER_MINUTES"),
        ("ClusterMetrics", "KUBESYNC_CLUSTER_METRICS"),
        ("WithDashboard", "KUBESYNC_DASHBOARD_METRICS"),
    ):
        assert _variables(template)[given] == {"Ref": name}
    assert template["Resources"]["Dashboard"]["Condition"] == "HasDashboard"
    assert template["Outputs"]["DashboardName"]["Condition"] == "HasDashboard"
    for wanted, there in (("true", True), ("false", False)):
        assert resolved({"Condition": "HasDashboard"}, {"WithDashboard": wanted}) is there


def test_command_for_new_stacks_names_parameters_and_values_that_there_are(template: dict[str, Any]) -> None:
    page = (ROOT / "docs/deploy.md").read_text()
    given = dict(
        re.findall(
            r"(ClusterMetrics|WithDashboard|Architecture|MemorySize)=(\w+)", page.partition("## 1. The stack")[2]
        )
    )
    assert given == {"ClusterMetrics": "false", "WithDashboard": "false"}


# --- shards ---


def _numbered(value: Any, shard: int) -> Any:
    """What is of this shard, as it would be of shard 1."""
    return json.loads(
        json.dumps(value)
        .replace(f'hard{shard}"', 'hard1"')
        .replace(f"shard {shard} ", "shard 1 ")
        .replace(f'shard {shard}"', 'shard 1"')
        .replace(f'\\"shard\\": \\"{shard}\\"', '\\"shard\\": \\"1\\"')
        .replace(f'"Value": "{shard}"', '"Value": "1"')
    )


@pytest.mark.parametrize("shards", [1, 4, 16])
def test_each_shard_has_its_schedules_and_its_alarm_and_shard_0_what_it_always_had(
    template: dict[str, Any], shards: int
) -> None:
    schedules = resources(template, "AWS::Scheduler::Schedule", shards)
    alarms = resources(template, "AWS::CloudWatch::Alarm", shards)

    assert len(schedules) == 2 * shards
    assert len(alarms) == len(resources(template, "AWS::CloudWatch::Alarm")) + shards - 1
    assert "Input" not in schedules["WatchSchedule"]["Properties"]["Target"]
    assert "shard" not in schedules["ResyncEvery"]["Properties"]["Target"]["Input"]
    for shard in range(1, shards):
        of_shard = {kind: f"{kind}Shard{shard}" for kind in ("WatchSchedule", "ResyncEvery")}
        for kind, name in of_shard.items():
            assert json.loads(schedules[name]["Properties"]["Target"]["Input"])["shard"] == str(shard)
            assert _numbered(schedules[name], shard) == schedules[f"{kind}Shard1"]
        assert _numbered(alarms[f"NoMasterShard{shard}Alarm"], shard) == alarms["NoMasterShard1Alarm"]
    # But for names, numbers and conditions they are those of shard 0.
    for name in ("WatchScheduleShard1", "ResyncEveryShard1") if shards > 1 else ():
        mine, first = (each["Properties"] for each in (schedules[name], schedules[name.removesuffix("Shard1")]))
        differ = {key for key in mine.keys() | first.keys() if mine.get(key) != first.get(key)}
        assert differ == {"Name", "Description", "Target"}
        assert {key for key in mine["Target"] if mine["Target"][key] != first["Target"].get(key)} == {"Input"}


def test_conditions_say_which_shards_there_are(template: dict[str, Any]) -> None:
    parameters = template["Parameters"]["Shards"]
    assert (parameters["Default"], parameters["MinValue"], parameters["MaxValue"]) == (1, 1, 16)
    for shards in range(1, 17):
        for resyncs in ("rate(1 day)", ""):
            given = {"Shards": shards, "ResyncSchedule": resyncs}
            for shard in range(1, 16):
                assert resolved({"Condition": f"HasShard{shard}"}, given) is (shard < shards)
                assert resolved({"Condition": f"ResyncsShard{shard}"}, given) is (shard < shards and bool(resyncs))


@pytest.mark.parametrize(
    ("given", "shards", "reserved"), [(3, 1, 3), (3, 4, 12), (3, 16, 48), (0, 1, None), (0, 4, None), (10, 4, 10)]
)
def test_default_of_the_reserved_concurrency_is_for_each_shard_and_other_values_stay(
    template: dict[str, Any], given: int, shards: int, reserved: int | None
) -> None:
    wanted = template["Resources"]["WatchFunction"]["Properties"]["ReservedConcurrentExecutions"]
    mapping, key, name = wanted["Fn::If"][1]["Fn::FindInMap"]
    assert key == {"Ref": "Shards"}
    found = resolved(wanted, {"Shards": shards, "ReservedConcurrency": given})
    if isinstance(found, dict) and "Fn::FindInMap" in found:
        found = template["Mappings"][mapping][str(shards)][name]
    assert found == ({"Ref": "AWS::NoValue"} if reserved is None else reserved)
