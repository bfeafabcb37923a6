"""The policies of docs/security.md against the AWS calls that the commands make: nothing missing, nothing unused."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from harness import memory_tables
from harness.cli_stack import CliStack, a_cli_stack
from harness.dynamodb import dynamodb_url
from harness.page_visitor import a_visited_page
from harness.seen.permissions import Permission, granted
from harness.wire.aws_calls import AwsCalls
from harness.wire.eks import CA_PEM, an_eks
from harness.wire.lambda_service import a_lambda_service
from harness.wire.template import ROOT, read_template
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key, Put
from kubesync.aws.sessions import aws_session

READING: Final = [
    ["status"], ["records"], ["records", "--cluster", "prod"], ["upstreams"], ["upstreams", "--cluster", "prod"], ["errors"], ["audit"],
    ["explain", "prod/default/kubernetes"], ["explain", "prod/default/away"], ["cluster", "list"], ["cluster", "show", "prod"],
    ["upstream", "list"], ["upstream", "show", "mixed"],
]  # fmt: skip
READY: Final[dict[str, object]] = {
    "endpoint": "https://ABC.gr7.eu-west-1.eks.amazonaws.com",
    "certificateAuthority": {"data": base64.b64encode(CA_PEM.encode()).decode()},
    "status": "ACTIVE",
}
_RESOURCES: Final = {
    "table/kubesync-main-control": "control",
    "table/kubesync-main-state": "state",
    "table/kubesync-main-upstreams": "upstreams",
    "table/kubesync-main-audit": "audit",
    "hostedzone/Z0123456789ABCDEFGHIJ": "HostedZoneArns",
    "cluster/*": "EksClusters",
    "schedule/default/kubesync-main-watch": "watch",
    "schedule/default/kubesync-main-resync": "resync",
    "schedule/default/kubesync-main-watch-shard*": "watch-shardN",
    "schedule/default/kubesync-main-resync-shard*": "resync-shardN",
    "role/kubesync-SchedulerRole-*": "SchedulerRole",
    "kubesync-main-watch": "kubesync-main-watch",
    "kubesync-main-NoMaster": "NoMaster",
    "kubesync-main-NoMaster-shard*": "NoMaster-shardN",
}


def policy(name: str) -> set[Permission]:
    """The policy below a heading of the page."""
    page = (ROOT / "docs/security.md").read_text()
    found = re.search(rf"### {name}\n.*?```json\n(.*?)```", page, re.DOTALL)
    assert found, name
    given: set[Permission] = set()
    for statement in json.loads(found[1])["Statement"]:
        assert statement["Effect"] == "Allow"
        for arn in statement["Resource"]:
            place = _RESOURCES[arn.rpartition(":")[2]]
            given |= {(action, place) for action in statement["Action"]}
    return given


@contextmanager
def recorded(patch: pytest.MonkeyPatch) -> Iterator[AwsCalls]:
    """What the commands within the block ask of AWS."""
    calls = AwsCalls()
    tables = memory_tables.memory_tables
    with patch.context() as each:
        each.setattr(memory_tables, "memory_tables", lambda prefix: calls.recording(tables(prefix)))
        each.setattr("kubesync_local.workplace.workplace.aws_session", lambda: calls.record(aws_session()))
        yield calls


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.api.cluster.deploy("shop", "web", 2)
        made.api.cluster.expose("shop", "web", {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}})
        wanted = {"external-dns.kubernetes.io/hostname": "web.shop.svc.prod.example.com"}
        made.api.cluster.expose("shop", "waits", {"ports": [{"port": 80}]}, annotations=wanted)
        yield made


def add(stack: CliStack, patch: dict[str, str] | None = None, *options: str) -> None:
    ran = stack.call("cluster", "add", "prod", "--template", "default", "--server", stack.api.url, "--token", "env:KUBESYNC_TEST_TOKEN", "--domain",
                     "prod.example.com", "--zone", stack.zone_id, *options, **(patch or {}))  # fmt: skip
    assert ran.status == 0, ran.err


def call(stack: CliStack, *command: str, **changes: str) -> Any:
    ran = stack.call(*command, **changes)
    assert ran.status == 0, ran.err
    return ran


def _as_registered(stack: CliStack) -> None:
    add(stack)
    assert stack.session().json["clean"]
    call(stack, "upstream", "add", "mixed", "--service", "prod/shop/web/80", "--static", "10.0.0.9:80")
    assert stack.session().json["clean"]


def _difference(calls: AwsCalls, name: str, *others: str) -> tuple[list[Permission], list[Permission]]:
    """What is missing in a policy and those that are given with it, and what nothing uses of it."""
    given = policy(name)
    with_it = {permission for other in others for permission in policy(other)}
    assert not given & with_it, "it repeats what another policy gives"
    return sorted(calls.needed - given - with_it), sorted(given - calls.needed)


def test_reading(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    _as_registered(stack)
    with recorded(monkeypatch) as calls:
        for command in READING:
            stack.call(*command)
        call(stack, "explain", "prod/shop/waits")
        items = [item for item in stack.store.scan(CONTROL) if not str(item["pk"]).startswith("lease")]
        places = [Key(CONTROL, str(item["pk"]), str(item["sk"])) for item in items]
        for place in places:
            stack.store.write(Delete(place))
        call(stack, "status")  # looks for what is lost
        for place, item in zip(places, items, strict=True):
            stack.store.write(Put(place, item))

    assert _difference(calls, "Reading") == ([], [])


def test_readers_of_upstreams_see_their_namespace_and_cannot_scan() -> None:
    page = (ROOT / "docs/security.md").read_text().partition("### Readers of upstreams\n")[2]
    (statement,) = json.loads(page.partition("```json\n")[2].partition("```")[0])["Statement"]
    assert statement["Action"] == ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"]
    assert statement["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["prod/shop/*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},  # else a request that names no key would be allowed
    }


def test_page_needs_no_more_than_reading(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    _as_registered(stack)
    with recorded(monkeypatch) as calls, a_visited_page(stack.environment) as (visitor, _):
        for path in (
            "/",
            "/cluster/prod",
            "/zones",
            f"/zone/{stack.zone_id}",
            "/service/prod/shop/waits",
            "/changes",
            "/search?q=10.",
        ):
            assert visitor.get(path).status == 200

    assert ("route53:ListResourceRecordSets", "HostedZoneArns") in calls.needed
    assert sorted(calls.needed - policy("Reading")) == []


def test_registering(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(monkeypatch) as calls, an_eks(ready=READY) as url:
        add(stack)
        call(stack, "cluster", "check", "prod")
        call(stack, "cluster", "add", "eks", "--template", "default", "--eks", "ready", "--domain", "eks.example.com", "--zone", stack.zone_id,
             "--endpoints-source", "endpointslices", AWS_ENDPOINT_URL_EKS=url)  # fmt: skip
        call(stack, "cluster", "remove", "eks")
        call(stack, "upstream", "add", "mixed", "--service", "prod/shop/web/80", "--static", "10.0.0.9:80")
        call(stack, "upstream", "hold", "mixed", "--by", "edge")
        call(stack, "upstream", "release", "mixed", "--by", "edge")
        add(stack, None, "--replace", "--ttl", "60")
        call(stack, "cluster", "disable", "prod")
        call(stack, "cluster", "enable", "prod")
        call(stack, "upstream", "add", "mixed", "--replace", "--static", "10.0.0.9:80")
        call(stack, "upstream", "remove", "mixed")
        call(stack, "cluster", "remove", "prod")

    assert _difference(calls, "Registering", "Reading") == ([], [])


@pytest.fixture
def scheduled(stack: CliStack) -> Iterator[CliStack]:
    """A deployment of two shards, with its schedules."""
    scheduler = stack.boto().client("scheduler", endpoint_url=dynamodb_url())
    names = [f"kubesync-main-{name}" for name in ("watch", "resync", "watch-shard1", "resync-shard1")]
    for name in names:
        scheduler.create_schedule(
            Name=name, ScheduleExpression="rate(1 minute)", FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": f"arn:aws:lambda:eu-west-1:123456789012:function:{name}", "RoleArn": "arn:aws:iam::123456789012:role/x"},
        )  # fmt: skip
    places = {f"AWS_ENDPOINT_URL_{each}": dynamodb_url() for each in ("SCHEDULER", "CLOUDWATCH")}
    stack.environment |= {"KUBESYNC_DEPLOYMENT": "main", **places}
    yield stack
    for name in names:
        scheduler.delete_schedule(Name=name)


def test_testing_a_deployment(scheduled: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_lambda_service({"kubesync-main-watch": lambda _event, _context: {"reach": []}}) as url:
        scheduled.environment["AWS_ENDPOINT_URL_LAMBDA"] = url
        with recorded(monkeypatch) as calls:
            call(scheduled, "doctor")

    given = policy("Testing a deployment")
    assert sorted(calls.needed - given - policy("Reading")) == []
    assert sorted(given - calls.needed) == []


def test_pausing(scheduled: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(monkeypatch) as calls:
        call(scheduled, "pause")
        call(scheduled, "status")
        call(scheduled, "resume")

    given = policy("Pausing")
    assert not given & policy("Reading"), "it repeats what another policy gives"
    assert sorted(calls.needed - given - policy("Reading")) == []
    assert sorted(given - calls.needed) == []


def test_operating(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    _as_registered(stack)
    with recorded(monkeypatch) as calls:
        stack.api.cluster.expose("shop", "later", {"ports": [{"port": 80}]})
        stack.api.cluster.scale("shop", "web", 700)
        assert stack.session().json["clean"]
        stack.api.cluster.scale("shop", "web", 1)
        call(stack, "resync")
        call(stack, "resync", "--dry-run")
        call(stack, "recover", "--apply")

    with_it = policy("Registering") | policy("Reading")
    may = policy("Operating") | with_it
    assert not policy("Operating") & with_it, "it repeats what another policy gives"
    assert sorted(calls.needed - may) == []
    # What nothing of this play used is what the function needs for the same work; its own test plays more.
    own = {each for each in granted("ResyncRole") if each[0].startswith(("dynamodb:", "route53:"))}
    assert sorted(own - may) == []
    assert sorted(policy("Operating") - own) == []


_MADE_BY: Final = {
    "AWS::Serverless::Function": {"lambda:CreateFunction", "lambda:DeleteFunction", "lambda:UpdateFunctionCode"},
    "AWS::Serverless::LayerVersion": {"lambda:PublishLayerVersion", "lambda:GetLayerVersion"},
    "AWS::Scheduler::Schedule": {"scheduler:CreateSchedule", "scheduler:UpdateSchedule", "scheduler:DeleteSchedule"},
    "AWS::SQS::Queue": {"sqs:CreateQueue", "sqs:SetQueueAttributes", "sqs:DeleteQueue"},
    "AWS::IAM::Role": {"iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:PassRole", "iam:DeleteRole"},
    "AWS::IAM::ManagedPolicy": {"iam:CreatePolicy", "iam:CreatePolicyVersion", "iam:DeletePolicy"},
    "AWS::Logs::LogGroup": {"logs:CreateLogGroup", "logs:PutRetentionPolicy", "logs:DeleteLogGroup"},
    "AWS::DynamoDB::Table": {"dynamodb:CreateTable", "dynamodb:UpdateTable", "dynamodb:UpdateContinuousBackups", "dynamodb:UpdateTimeToLive"},
    "AWS::CloudWatch::Alarm": {"cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms"},
    "AWS::CloudWatch::Dashboard": {"cloudwatch:PutDashboard", "cloudwatch:DeleteDashboards"},
}  # fmt: skip


def test_deploying_makes_every_type_of_the_template_under_its_names_and_deletes_no_table() -> None:
    """No AWS is asked: CloudFormation calls these for each type of resource."""
    statements = json.loads((ROOT / "docs/deployer-policy.json").read_text())["Statement"]
    given = {action for statement in statements for action in statement["Action"]}
    types = {each["Type"] for each in read_template()["Resources"].values()}

    assert set(_MADE_BY) == types
    assert [(kind, _MADE_BY[kind] - given) for kind in types if _MADE_BY[kind] - given] == []
    assert "dynamodb:DeleteTable" not in given
    anywhere = [statement["Action"] for statement in statements if statement["Resource"] == ["*"]]
    assert [action for actions in anywhere for action in actions if not re.search(r":(Describe|Get)", action)] == []
    named = ("kubesync", "BUCKET", "transform/Serverless-2016-10-31")
    assert [
        arn for each in statements for arn in each["Resource"] if arn != "*" and not any(name in arn for name in named)
    ] == []
