"""Hosted zones of other AWS accounts: registered with a role, tested, shown, and written with it."""

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, Ran, a_cli_stack
from harness.fakes.sts import StsStandIn
from harness.memory_tables import WHERE
from kubesync.actors.threads import ThreadScheduler

ROLE = "arn:aws:iam::222222222222:role/dns,zones"


@pytest.fixture(scope="module", params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    with a_cli_stack(in_memory=request.param) as made, StsStandIn(ThreadScheduler(), {ROLE: "shared-dns"}) as sts:
        made.make_tables()
        made.environment["AWS_ENDPOINT_URL_STS"] = sts.url
        made.route53.move_to_account(made.zone_id, "222222222222")
        yield made


def add(stack: CliStack, zone: str, *options: str) -> Ran:
    return stack.call(
        "cluster", "add", "prod", "--template", "default", "--server", stack.api.url, "--token", "env:KUBESYNC_TEST_TOKEN",
        "--domain", "prod.example.com", "--zone", zone, *options,
    )  # fmt: skip


def test_zone_of_another_account_is_refused_without_its_role(stack: CliStack) -> None:
    ran = add(stack, stack.zone_id)
    assert ran.status == 1
    assert len(ran.lines) == 1
    assert "AccessDenied" in ran.err


@pytest.mark.parametrize("external_id", ["", "#another"])
def test_role_that_cannot_be_assumed_is_refused(stack: CliStack, external_id: str) -> None:
    ran = add(stack, f"{stack.zone_id}@{ROLE}{external_id}")
    assert ran.status == 1
    assert len(ran.lines) == 1
    assert f"role {ROLE} cannot be assumed (AccessDenied): allow sts:AssumeRole on it to kubesync's role" in ran.err


def test_role_whose_account_lacks_the_zone_is_refused(stack: CliStack) -> None:
    ran = add(stack, f"Z0123456789@{ROLE}#shared-dns")
    assert ran.status == 2
    assert "there is no hosted zone Z0123456789 in AWS account 222222222222" in ran.err


def test_one_zone_cannot_have_two_roles(stack: CliStack) -> None:
    ran = add(stack, stack.zone_id, "--zone", f"{stack.zone_id}@{ROLE}")
    assert (ran.status, ran.lines) == (2, [f"kubesync: --zone {stack.zone_id} is given twice, with different roles"])


def test_zone_is_written_with_the_role_it_was_registered_with_also_when_the_cluster_goes(stack: CliStack) -> None:
    ran = add(stack, f"{stack.zone_id}@{ROLE}#shared-dns")
    assert ran.status == 0, ran.err
    shown = stack.call("cluster", "show", "prod", "--output", "json").json
    assert shown["zones"] == [{"id": stack.zone_id, "name": "example.com", "private": False, "role": ROLE}]
    assert f"{stack.zone_id} by {ROLE}" in stack.call("cluster", "show", "prod").out

    assert stack.session().json["clean"]
    assert stack.zone_records()["kubernetes.default.svc.prod.example.com A"] == ["10.68.0.1"]
    assert {batch.access_key[:17] for batch in stack.route53.batches()} == {"ASIA-222222222222"}

    # The configuration names the zone no more, but what was left in it is taken away with its role.
    own = stack.route53.create_zone("prod.example.com")
    ran = add(stack, own, "--replace")
    assert ran.status == 0, ran.err
    assert stack.session().json["clean"]
    assert stack.zone_records() == {}
    assert {batch.access_key for batch in stack.route53.batches(own)} == {"test"}

    assert add(stack, f"{stack.zone_id}@{ROLE}#shared-dns", "--replace").status == 0
    assert stack.session().json["clean"]
    assert stack.zone_records()["kubernetes.default.svc.prod.example.com A"] == ["10.68.0.1"]
    assert stack.call("cluster", "remove", "prod").status == 0
    assert stack.session().json["clean"]
    assert stack.zone_records() == {}
