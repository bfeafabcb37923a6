"""I1: a session killed with SIGKILL in the middle of a commit; the next one completes exactly what was begun.

Real processes, real sockets: the killed session is a child, DynamoDB is behind HTTP. Where the child stands when it is
killed is decided by a request that is held: in a proxy in front of DynamoDB, or in Route 53's stand-in.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from harness.cli_stack import call
from harness.seen.persisted_errors import ended_of, errors_of
from harness.session_process import SessionProcess, a_session_process, environment_of
from harness.stack import Stack, a_stack
from harness.waiting import PATIENCE_SECONDS, wait_until
from harness.wire.holding_proxy import HoldingProxy
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name
from kubesync_local.standins.apiserver.objects.resources import SERVICES, Target

FEW, MANY = 4, 55  # closing as many takes two transactions
# No session loses its lease because the machine is busy; that of a killed one expires when the clock is put forward.
LEASE_SECONDS = 3600.0
LONG = {"lease_seconds": LEASE_SECONDS, "lease_write_seconds": LEASE_SECONDS, "max_runtime_seconds": 80_000.0}
FOREIGN = "by-hand.example.com A"


def begin(stack: Stack, services: int) -> None:
    """A registered cluster with so many services, and a set in its zone that is none of kubesync's business."""
    stack.by_hand("CREATE", "by-hand.example.com", "A", "192.0.2.7")
    stack.api.cluster.deploy("default", "web", 2)
    for number in range(services):
        spec = {"ports": [{"port": 80}], "selector": {"app": "web"}}
        stack.api.writer.create(Target(SERVICES, "default"), {"metadata": {"name": f"s{number:02d}"}, "spec": spec})
    stack.api.cluster.reconcile("default")
    stack.add_cluster()


def is_closed(stack: Stack, services: int) -> bool:
    return (
        len(stack.records()) == 3 + services  # the one by hand, A and SRV of the API server's own
        and len(stack.upstreams()) == 1 + services
        and not any(StateTable(stack.store).open_keys("prod"))
    )


def finish(stack: Stack, services: int) -> None:
    """Run a session in this process until everything is done."""
    running = stack.start(**LONG)
    running.wait_for(lambda: running.saw("master") and is_closed(stack, services))
    assert running.end().clean


@cache
def undisturbed(services: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Zone and upstreams as a session leaves them that nothing happens to."""
    with a_stack() as stack:
        begin(stack, services)
        finish(stack, services)
        return stack.records(), stack.upstreams()


# --- where the child stands when it is killed ---


def _inflight(request: dict[str, Any]) -> dict[str, Any] | None:
    for action in request["TransactItems"]:
        item = action.get("Put", {}).get("Item", {})
        if item.get("pk", {}).get("S", "").startswith("inflight#"):
            return dict(item)
    return None


def announces(request: dict[str, Any]) -> bool:
    item = _inflight(request)
    return item is not None and bool(item["batch"]["S"])


def closes_some(request: dict[str, Any]) -> bool:
    """The first transaction of a close that takes several."""
    gone = [a["Delete"]["Key"]["pk"]["S"] for a in request["TransactItems"] if "Delete" in a]
    return any("#open#" in partition for partition in gone) and _inflight(request) is None


@dataclass(frozen=True)
class Moment:
    """When the child is killed.

    ``wanted``, ``after``: the transaction that is held, before or after its effect; None: a batch is held by Route 53.
    ``landed``: whether the batch is in the zone by then.
    """

    wanted: Callable[[dict[str, Any]], bool] | None
    after: bool = False
    landed: bool = False
    services: int = FEW


MOMENTS = {
    "recorded, nothing announced": Moment(announces),
    "announced, no batch sent": Moment(announces, after=True),
    "batch under way": Moment(None),
    "landed, nothing closed": Moment(closes_some, landed=True),
    "landed, half closed": Moment(closes_some, after=True, landed=True, services=MANY),
    "closed, its answer not read": Moment(closes_some, after=True, landed=True),
}


@pytest.fixture
def stack() -> Iterator[Stack]:
    with a_stack(moto=True) as made:
        yield made


def run_until(stack: Stack, moment: Moment, proxy: HoldingProxy) -> SessionProcess:
    """Start a child and let it run until it is held."""
    environment = environment_of(
        proxy.url,
        stack.r53.url,
        stack.clock.ahead_seconds,
        **{"deployment": "test", "table_prefix": stack.prefix, "window_seconds": 0.3, **LONG},
    )
    if moment.wanted is None:
        stack.r53.faults.stall(1)
    else:
        proxy.hold(moment.wanted, after=moment.after)
    return SessionProcess(environment)


# Of the others, three follow one another below, and sections 1 and 4 of the chaos run kill at every call.
OFTEN = {"batch under way"}


@pytest.mark.parametrize(
    "moment",
    [pytest.param(m, id=name, marks=() if name in OFTEN else pytest.mark.thorough) for name, m in MOMENTS.items()],
)
def test_i1_the_next_session_completes_what_a_killed_one_began(moment: Moment, stack: Stack) -> None:
    begin(stack, moment.services)
    assert stack.dynamodb_url is not None
    with HoldingProxy(stack.dynamodb_url) as proxy:
        child = run_until(stack, moment, proxy)
        try:
            if moment.wanted is None:
                wait_until(lambda: stack.r53.held == 1)
            else:
                assert proxy.held.wait(PATIENCE_SECONDS), (child.said, child.errors)
            child.kill()
        finally:
            child.close()
        assert (len(stack.records()) > 1) is moment.landed
        stack.clock.advance(LEASE_SECONDS + 1)
        finish(stack, moment.services)
    stack.r53.faults.clear()
    late = stack.r53.release()
    assert [call.accepted for call in late] == [False] * (moment.wanted is None)

    records, upstreams = undisturbed(moment.services)
    assert stack.records() == records
    assert stack.upstreams() == upstreams
    assert stack.records()[FOREIGN] == {"ttl": 60, "values": ["192.0.2.7"]}
    # Nothing was made twice: every set of ours was created in exactly one batch that took effect.
    created = [
        (change.record_set.key.name, change.record_set.key.type)
        for call in stack.r53.batches()
        if call.accepted
        for change in call.changes
        if change.action == "CREATE" and not change.record_set.key.name.startswith("_kubesync")
    ]
    assert len(created) == len(set(created)) == len(records)
    claims_are_right(stack, moment.services)


def claims_are_right(stack: Stack, services: int) -> None:
    """Every name is claimed by its key, and nothing else is claimed."""
    names = {f"s{n:02d}": f"s{n:02d}.default.svc.prod.example.com" for n in range(services)}
    names["kubernetes"] = "kubernetes.default.svc.prod.example.com"
    srv = "_https._tcp.kubernetes.default.svc.prod.example.com"
    claims = ClaimTable(stack.store).read(Name(stack.zone_id, name) for name in [*names.values(), srv])
    owners = {claim.name.name: claim.owner for claim in claims.values()}
    assert owners == {
        srv: ObjectKey("prod", "default", "kubernetes"),
        **{name: ObjectKey("prod", "default", service) for service, name in names.items()},
    }
    assert all(claim.waiting == 0 for claim in claims.values())
    assert ClaimTable(stack.store).read([Name(stack.zone_id, "by-hand.example.com")]) == {}


def test_i1_a_session_killed_again_and_again_gets_there(stack: Stack) -> None:
    begin(stack, FEW)
    assert stack.dynamodb_url is not None
    for name in ("announced, no batch sent", "landed, nothing closed", "closed, its answer not read"):
        with HoldingProxy(stack.dynamodb_url) as proxy:
            child = run_until(stack, MOMENTS[name], proxy)
            try:
                assert proxy.held.wait(PATIENCE_SECONDS), (child.said, child.errors)
                child.kill()
            finally:
                child.close()
        stack.clock.advance(LEASE_SECONDS + 1)
    finish(stack, FEW)
    assert (stack.records(), stack.upstreams()) == undisturbed(FEW)


def test_code_1_of_a_process_that_is_told_to_end_by_sigterm(stack: Stack) -> None:
    begin(stack, FEW)
    assert stack.dynamodb_url is not None
    environment = environment_of(
        stack.dynamodb_url, stack.r53.url, deployment="test", table_prefix=stack.prefix, **LONG
    )
    with a_session_process(environment) as child:
        child.wait_for("batch")
        assert child.terminate() == 0
        report = child.wait_for("report")
    assert (report["code"], report["ended"], report["clean"]) == (1, "ERR_WORKER_EXITING", True)
    assert ended_of(stack.store)["key"] == "ERR_WORKER_EXITING"
    assert errors_of(stack.store).counts["ERR_WORKER_EXITING"] == 1
    shown = call("errors", "--output", "json", environment=environment)
    assert shown.status == 0, shown.err
    rows = [row for row in shown.json if row["key"] == "ERR_WORKER_EXITING"]
    assert sorted((row["kind"], row["listener"], row["count"]) for row in rows if row["kind"] == "ended") == [
        ("ended", "endpointslices", 1),
        ("ended", "services", 1),
    ]
    assert [row["listener"] for row in rows if row["kind"] == "history"].count("services") == 1
    # What it had read is written, or durably open: the next session has it.
    finish(stack, FEW)
