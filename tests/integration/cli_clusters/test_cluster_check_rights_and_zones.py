"""``kubesync cluster check``: rights, version, clock and hosted zones, each wrong by a real cause."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.cli_stack import TOKEN, CliStack, a_cli_stack
from harness.fakes.route53 import wire_change
from harness.fakes.shifted_clock import ShiftedClock
from harness.fakes.sts import StsStandIn
from harness.memory_tables import WHERE
from harness.seen.cluster_check import QuickWatches, add, check, only_failure
from kubesync.aws.route53.journal import journal_record_key
from kubesync.domain.dns.records import Zone
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.transport.faults import Answer, Silent, garbage

ROLE = "arn:aws:iam::222222222222:role/dns"


@pytest.fixture(scope="module", params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    with a_cli_stack(in_memory=request.param, api_clock=QuickWatches()) as made:
        made.make_tables()
        yield made


@pytest.fixture
def name(stack: CliStack, request: pytest.FixtureRequest) -> Iterator[str]:
    """A name of its own for each test; what it added to the stand-ins is taken away."""
    yield f"c{abs(hash(request.node.name)) % 10**10}"
    stack.api.faults.clear()
    stack.api.authority.set_tokens({TOKEN: "admin"})


# --- what we may ---


@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize("resource", ["services", "endpointslices"])
def test_one_verb_that_is_not_allowed(stack: CliStack, name: str, verb: str, resource: str) -> None:
    add(stack, name)
    denial = stack.api.authority.deny(verb=verb, resource=resource)
    try:
        found = only_failure(stack, name)
    finally:
        stack.api.authority.allow(denial)
    assert (found["step"], found["code"], found["key"]) == (f"{verb} {resource}", 10, "ERR_REQUEST_DENIED")
    assert f'User "admin" cannot {verb} resource "{resource}"' in found["details"]
    assert found["advice"].startswith(f"allow {verb} on {resource}")


def test_server_without_endpointslices(stack: CliStack, name: str) -> None:
    add(stack, name)
    stack.api.faults.add(Answer(404, "NotFound"), times=None, where=lambda seen: "discovery.k8s.io" in seen.path)
    steps, status = check(stack, name)
    assert status == 1
    assert steps["list endpointslices"]["code"] == steps["watch endpointslices"]["code"] == 11
    assert steps["list endpointslices"]["advice"].endswith("register the cluster with --endpoints-source endpoints")
    assert steps["version"]["details"] == "Kubernetes v1.36.0, without EndpointSlices"


def test_server_that_says_410_to_everything_is_registered_and_said_to_answer_with_an_error(
    stack: CliStack, name: str
) -> None:
    stack.api.faults.add(Answer(410, "Expired"), times=None)
    ran = stack.add_cluster(name)
    stack.api.faults.clear()
    assert (ran.status, "note: " + name + " answers with an error now (ERR_REQUEST_STATUS: " in ran.err) == (0, True), (
        ran.err
    )


def test_server_that_fails(stack: CliStack, name: str) -> None:
    add(stack, name)
    stack.api.faults.add(
        Answer(500), times=None, verb="list", resource="services", where=lambda seen: "limit" in seen.params
    )
    steps, _ = check(stack, name)
    assert (steps["authentication"]["result"], steps["authentication"]["code"]) == ("failed", 11)


def test_watch_that_something_in_between_holds_back(stack: CliStack, name: str) -> None:
    add(stack, name)
    stack.api.faults.add(Silent(), verb="watch", resource="services")
    found = only_failure(stack, name)
    assert (found["step"], found["code"]) == ("watch services", 9)
    assert "a proxy or load balancer in between" in found["advice"]


def test_watch_that_is_none(stack: CliStack, name: str) -> None:
    add(stack, name)
    stack.api.faults.add(garbage(b"<html>\n"), verb="watch", resource="endpointslices")
    found = only_failure(stack, name)
    assert (found["step"], found["code"]) == ("watch endpointslices", 12)
    assert "delays or cuts off" in found["advice"]


def test_events_are_asked_about_where_they_are_written(stack: CliStack, name: str) -> None:
    add(stack, name, "--write-events")

    def answers(*, allowed: bool) -> None:
        body = json.dumps({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}}).encode()
        stack.api.faults.clear()
        stack.api.faults.add(
            Answer(201, body=body), times=None, where=lambda seen: seen.path.endswith("/selfsubjectaccessreviews")
        )

    answers(allowed=False)
    found = only_failure(stack, name)
    assert (found["step"], found["code"]) == ("create events", 10)
    answers(allowed=True)
    assert check(stack, name)[1] == 0


# --- clock ---


@pytest.mark.parametrize(("seconds", "said"), [(3600.0, "s ahead of ours"), (-3600.0, "s behind ours")])
def test_clocks_that_differ(stack: CliStack, name: str, seconds: float, said: str) -> None:
    clock = QuickWatches()
    clock.advance(seconds)
    with ApiServer(tokens={TOKEN: "admin"}, clock=clock) as api:
        add(stack, name, server=api.url)
        found = only_failure(stack, name)
    assert (found["step"], found["code"]) == ("clock", 10)
    assert said in found["details"]
    assert 3590 <= int(found["details"].split(" is ")[1].split(" ")[0]) <= 3610


# --- hosted zones ---


def test_zone_that_may_not_be_read(stack: CliStack, name: str) -> None:
    zone_id = stack.route53.create_zone(f"{name}.example.com")
    add(stack, name, "--zone", zone_id)
    stack.route53.move_to_account(zone_id, "222222222222")
    found = only_failure(stack, name)
    assert (found["step"], found["code"]) == (f"zone {name}.example.com", None)
    assert "AccessDenied" in found["details"]
    assert "route53:ListResourceRecordSets" in found["advice"]


def test_role_that_may_not_be_assumed_any_more(stack: CliStack, name: str) -> None:
    with StsStandIn(ShiftedClock(), {ROLE: ""}) as sts:
        zone = f"{stack.route53.create_zone(f'{name}.example.com')}@{ROLE}"
        zone_id = zone.partition("@")[0]
        stack.route53.move_to_account(zone_id, "222222222222")
        add(stack, name, "--zone", zone, AWS_ENDPOINT_URL_STS=sts.url)
        steps, status = check(stack, name, AWS_ENDPOINT_URL_STS=sts.url)
        assert status == 0
        assert f"{zone_id} read by {ROLE}" in steps[f"zone {name}.example.com"]["details"]
        assert steps["zone example.com"]["details"].endswith("takes host names from annotations only")
        sts.roles.clear()
        found = only_failure(stack, name, AWS_ENDPOINT_URL_STS=sts.url)
    assert f"role {ROLE} cannot be assumed (AccessDenied)" in found["details"]


def test_journal_of_another_owner_and_of_an_epoch_that_the_tables_cannot_know(stack: CliStack, name: str) -> None:
    zone_id = stack.route53.create_zone(f"{name}.example.com")
    add(stack, name, "--zone", zone_id)
    journal = journal_record_key(Zone(zone_id, f"{name}.example.com"), "test", "0").name
    route53: Any = stack.boto().client("route53", endpoint_url=stack.route53.url)

    def stands(action: str, owner: str, epoch: int) -> None:
        value = f'"heritage=kubesync,owner={owner},epoch={epoch},batch={"0" * 32}"'
        change = wire_change(action, journal, "TXT", [value], ttl=60)
        route53.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": [change]})

    stands("CREATE", "another", 1)
    found = only_failure(stack, name)
    assert (found["step"], found["details"]) == (f"zone {name}.example.com", "its journal belongs to another")
    stands("DELETE", "another", 1)
    stands("CREATE", "test", 99_999)
    found = only_failure(stack, name)
    assert "its journal has epoch 99999, our tables have" in found["details"]
    assert found["advice"] == "see `kubesync recover`"
    stands("DELETE", "test", 99_999)
    foreign = wire_change("CREATE", journal, "CNAME", ["elsewhere.example.org."])
    route53.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": [foreign]})
    found = only_failure(stack, name)
    assert (
        found["details"]
        == f"{journal} CNAME already exists and was not created by kubesync: no journal can be made there"
    )
    assert found["advice"] == "remove it, or give this deployment another KUBESYNC_DEPLOYMENT"


# --- the cluster's identity ---


def test_i5_role_in_one_namespace_that_hides_the_clusters_identity_is_said(stack: CliStack, name: str) -> None:
    add(stack, name, "--namespace", "shop")
    denial = stack.api.authority.deny(namespace="default")
    try:
        steps, status = check(stack, name)
    finally:
        stack.api.authority.allow(denial)
    assert (steps["identity"]["result"], steps["identity"]["code"], status) == ("warning", None, 0)
    assert steps["identity"]["details"] == (
        "Service default/kubernetes cannot be read: if another cluster answers at this address, nobody notices, and up to 30 % of the "
        "objects count as deleted at once"
    )
    assert steps["identity"]["advice"] == "let it list Services in namespace default too (docs/cluster-access.yaml)"


@pytest.mark.parametrize("scope", [("--namespace", "shop"), ("--selector", "dns=yes")])
def test_i5_identity_that_can_be_read_beside_the_scope_is_all_right(
    stack: CliStack, name: str, scope: tuple[str, str]
) -> None:
    add(stack, name, *scope)
    steps, status = check(stack, name)
    assert (steps["identity"]["result"], status) == ("ok", 0)


def test_identity_that_a_list_of_the_scope_holds_needs_no_step(stack: CliStack, name: str) -> None:
    add(stack, name)
    assert "identity" not in check(stack, name)[0]
