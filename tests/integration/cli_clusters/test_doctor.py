"""``kubesync doctor``: a deployment as it is seen from here, and what its function reaches from where it runs."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.cli_stack import TOKEN, CliStack, Ran, a_cli_stack
from harness.dynamodb import dynamodb_url
from harness.wire.lambda_functions import FakeContext, load_handler
from harness.wire.lambda_service import Handler, a_lambda_service
from kubesync.aws.dynamodb.store import CONTROL

FUNCTION: Final = "kubesync-looked-at-watch"
SCHEDULE: Final[dict[str, Any]] = {
    "ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": f"arn:aws:lambda:eu-west-1:123456789012:function:{FUNCTION}", "RoleArn": "arn:aws:iam::123456789012:role/x"},
}  # fmt: skip
PLACE: Final = "check --deployment, --region and --profile"
CONTAINERS: Final = "a deployment in containers has no function: run `kubesync cluster check` there"
NETWORK: Final = (
    "the function's own network, role and secrets decide: `kubesync cluster check` tells whether it works from here"
)


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.environment["KUBESYNC_DEPLOYMENT"] = "looked-at"
        made.environment |= {f"AWS_ENDPOINT_URL_{each}": dynamodb_url() for each in ("SCHEDULER", "SECRETS_MANAGER")}
        secrets = made.boto().client("secretsmanager", endpoint_url=dynamodb_url())
        secrets.create_secret(Name="looked-at", SecretString=TOKEN)
        added = made.call(
            "cluster", "add", "prod", "--server", made.api.url, "--domain", "prod.example.com", "--zone", made.zone_id,
            "--token", "secretsmanager:looked-at",
        )  # fmt: skip
        assert added.status == 0, added.err
        yield made
        secrets.delete_secret(SecretId="looked-at", ForceDeleteWithoutRecovery=True)


@pytest.fixture
def scheduled(stack: CliStack) -> Iterator[CliStack]:
    scheduler = stack.boto().client("scheduler", endpoint_url=dynamodb_url())
    scheduler.create_schedule(Name=FUNCTION, **SCHEDULE)
    yield stack
    scheduler.delete_schedule(Name=FUNCTION)


def watch(event: Any, context: FakeContext) -> Any:
    """The function, in the environment of the command that invokes it."""
    return load_handler("watch")(event, context)


def doctor(stack: CliStack, handler: Handler = watch) -> Ran:
    with a_lambda_service({FUNCTION: handler}) as url:
        return stack.call("doctor", AWS_ENDPOINT_URL_LAMBDA=url)


def items(stack: CliStack) -> list[Any]:
    return list(stack.store.scan(CONTROL))


def test_all_that_a_session_needs_is_tried_and_nothing_is_written(scheduled: CliStack) -> None:
    before, records = items(scheduled), scheduled.route53.records(scheduled.zone_id)
    ran = doctor(scheduled)

    assert ran.out.splitlines() == [
        "ok       tables                1 cluster registered",
        f"ok       schedules             {FUNCTION} enabled",
        "warning  master                no session runs now; if this stays so: docs/runbook.md, NoMaster",
        "ok       alarms                they have a topic",
        f"ok       function              {FUNCTION} answers",
        "ok       function: tables      reached",
        f"ok       function: zone {scheduled.zone_id} reached",
        "ok       function: cluster prod: services reached",
        "ok       function: cluster prod: endpointslices reached",
    ]
    assert (ran.status, ran.lines) == (0, ["deployment looked-at: all tests passed"])
    assert (items(scheduled), scheduled.route53.records(scheduled.zone_id)) == (before, records)


def test_what_the_function_does_not_reach_is_said_with_its_code(scheduled: CliStack) -> None:
    scheduled.api.authority.deny(verb="list", resource="endpointslices")
    ran = doctor(scheduled)

    assert ran.status == 1
    assert [line for line in ran.out.splitlines() if line.startswith("failed")] == [
        "failed   function: cluster prod: endpointslices ERR_REQUEST_DENIED (10): "
        f'{scheduled.api.url.removeprefix("http://")}: HTTP 403: endpointslices.discovery.k8s.io is forbidden: User "admin" cannot list '
        'resource "endpointslices" in API group "discovery.k8s.io" at the cluster scope; ' + NETWORK,
    ]
    assert ran.lines == ["deployment looked-at: 1 step failed"]


def test_stack_without_schedules_and_function(stack: CliStack) -> None:
    with a_lambda_service({}) as url:
        ran = stack.call("doctor", AWS_ENDPOINT_URL_LAMBDA=url)

    assert ran.status == 1
    assert [line for line in ran.out.splitlines() if not line.startswith("ok")] == [
        f"failed   schedules             there are none here: nothing starts a session; {PLACE}; see docs/deploy.md",
        "warning  master                no session runs now; if this stays so: docs/runbook.md, NoMaster",
        f"failed   function              {FUNCTION} cannot be asked: ResourceNotFoundException; {PLACE}; {CONTAINERS}",
        "skipped  from its network      not tried: a step before it failed",
    ]


def test_function_that_fails_and_an_older_release(scheduled: CliStack) -> None:
    def fails(_event: object, _context: object) -> dict[str, Any]:
        raise RuntimeError("Unable to import module 'app'")

    def older(_event: object, _context: object) -> dict[str, Any]:
        return {"session": "abc", "ended": "ERR_NOT_MASTER"}

    assert [
        line
        for handler in (fails, older)
        for line in doctor(scheduled, handler).out.splitlines()
        if line.startswith("failed")
    ] == [
        f"failed   function              {FUNCTION} answered with an error: Unable to import module 'app'; see its log, and docs/runbook.md",
        f"failed   function              {FUNCTION} ran a session instead; the deployed release is older: deploy this one",
    ]


def test_stand_in_has_nothing_to_test(stack: CliStack) -> None:
    ran = stack.call("doctor", AWS_ENDPOINT_URL_SCHEDULER="", AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:1")

    assert (ran.status, ran.lines) == (
        2,
        ["kubesync: no schedule starts sessions here: the tables are on a stand-in"],
    )
