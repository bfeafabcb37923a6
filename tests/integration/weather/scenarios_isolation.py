"""What is wrong with one change, zone or cluster holds up no other (I3, I4)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2
from typing import Any, Final

import pytest

from harness.fakes.route53 import wire_change
from harness.seen.persisted_errors import last_of
from harness.seen.raw_objects import put_raw, raw_service
from harness.stack import TOKEN, Stack, a_stack
from kubesync.aws.route53.client import build_route53_client
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.state import OpenMark
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.apiserver.transport.faults import Delay, ErrorEvent, Fault, Silent
from kubesync_local.standins.apiserver.transport.request_log import RecordedRequest
from kubesync_local.standins.route53 import Limits

# A set of more values is refused with a message that names no record set, as one of Route 53's limits is.
_VALUES_OF_SET: Final = 3
_TOO_MANY: Final = [f"10.68.1.{n}" for n in range(1, 6)]


def open_marks(stack: Stack, cluster: str = "prod") -> dict[ObjectKey, OpenMark]:
    """The durable work queue."""
    return dict(StateTable(stack.store).open_keys(cluster))


def play_bad_among_many(bad: int, many: int = 499) -> str:
    """``bad`` changes that the zone rejects, without saying which, evenly among ``many``; how many batches that took."""
    culprits = {n * many // bad for n in range(bad)}
    with a_stack(limits=Limits(values_of_set=_VALUES_OF_SET)) as stack:
        stack.add_cluster(srv=False)
        for n in range(many):
            ips = _TOO_MANY if n in culprits else [f"10.69.{n // 250}.{n % 250 + 1}"]
            put_raw(stack.api, raw_service(f"s{n:03d}", spec={"clusterIPs": ips}))
        stack.clock.hold_epoch()
        running = stack.start()
        names = {f"s{n:03d}.shop.svc.prod.example.com A" for n in range(many) if n not in culprits}
        running.wait_for(lambda: names <= stack.records().keys())
        running.wait_for(lambda: [mark.attempts for mark in open_marks(stack).values()] == [1] * bad)
        marks = open_marks(stack)
        report = running.end()
        batches = stack.r53.batches(stack.zone_id)
        most = 2 * bad * ceil(log2(many)) + 1
        assert len(batches) <= most, f"{len(batches)} batches, at most {most} are allowed"
        assert {key.name for key in marks} == {f"s{n:03d}" for n in culprits}
        assert all("Route 53 rejects it: Cannot have more than 3 records" in mark.reason for mark in marks.values())
        assert report.clean
        assert sum(1 for what, _ in running.events if what == "window") <= 2, "it took windows of its own"
        return f"{bad} bad among {many} changes: {len(batches)} batches, at most {most} allowed"


@dataclass(frozen=True)
class Trouble:
    """What is wrong with a zone, how it is mended, and what the session says about it."""

    begin: Callable[[Stack, str], None]
    end: Callable[[Stack, str], None]
    says: str
    most_calls: int | None = None  # to Route 53 for the zone in trouble, in a session of less than a minute


def _client(stack: Stack) -> Any:
    return build_route53_client(stack.boto, stack.r53.url)


def _change(stack: Stack, zone_id: str, *changes: Any) -> None:
    _client(stack).change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": list(changes)})


def _fill(stack: Stack, zone_id: str, action: str = "CREATE") -> None:
    room = 30 - 2  # SOA and NS
    sets = [wire_change(action, f"f{n}.a.example.net", "A", ["192.0.2.1"]) for n in range(room)]
    _change(stack, zone_id, *sets)


def _foreign_journal(stack: Stack, zone_id: str, action: str = "CREATE") -> None:
    value = '"heritage=kubesync,owner=another,epoch=3,batch=00000000000000000000000000000000"'
    _change(stack, zone_id, wire_change(action, "_kubesync-test-0.a.example.net", "TXT", [value]))


def _in_the_journals_place(stack: Stack, zone_id: str, action: str = "CREATE") -> None:
    _change(stack, zone_id, wire_change(action, "_kubesync-test-0.a.example.net", "CNAME", ["elsewhere.example.org."]))


def _delete(stack: Stack, zone_id: str) -> None:
    stack.r53.account.delete(zone_id)


def _nothing(_stack: Stack, _zone_id: str) -> None: ...


TROUBLES: Final[dict[str, Trouble]] = {
    "throttled": Trouble(
        lambda stack, zone: stack.r53.faults.throttle(None, when=lambda call: call.zone_id == zone),
        lambda stack, zone: stack.r53.faults.clear(),
        "Throttling",
    ),
    "without answers": Trouble(
        lambda stack, zone: stack.r53.faults.drop_before(None, when=lambda call: call.zone_id == zone),
        lambda stack, zone: stack.r53.faults.clear(),
        "",
    ),
    "denied": Trouble(
        lambda stack, zone: stack.r53.faults.deny(None, when=lambda call: call.zone_id == zone),
        lambda stack, zone: stack.r53.faults.clear(),
        "AccessDenied",
    ),
    "full": Trouble(_fill, lambda stack, zone: _fill(stack, zone, "DELETE"), "full"),
    "of another owner": Trouble(
        _foreign_journal, lambda stack, zone: _foreign_journal(stack, zone, "DELETE"), "belongs to another"
    ),
    "without a place for the journal": Trouble(
        _in_the_journals_place,
        lambda stack, zone: _in_the_journals_place(stack, zone, "DELETE"),
        "_kubesync-test-0.a.example.net CNAME stands in zone",
        # GetHostedZone, what stands there, and a minute later again; the test's own change.
        most_calls=5,
    ),
    "deleted": Trouble(_delete, _nothing, "zone"),
}


def play_zone_in_trouble(title: str) -> None:
    """Two clusters share an API server; one publishes in the zone in trouble and in another one, the second in the other."""
    trouble = TROUBLES[title]
    with a_stack(limits=Limits(sets_of_zone=30)) as stack:
        bad_zone = stack.add_zone("a.example.net")
        trouble.begin(stack, bad_zone)
        both = (ZoneReference(id=bad_zone, name="a.example.net"), ZoneReference(id=stack.zone_id, name="example.com"))
        stack.add_cluster("alpha", zones=both, domain="a.example.net", srv=False)
        stack.add_cluster("beta", domain="beta.example.com", srv=False)
        running = stack.start(drain_margin_seconds=1)
        # The trouble lasts until the test ends it: what the others get, they get beside it.
        hostname = {"external-dns.kubernetes.io/hostname": "web.alpha.example.com"}
        for n in range(2):
            metadata = {"annotations": hostname} if n == 0 else {}
            put_raw(stack.api, raw_service(f"web{n}", metadata=metadata))
            wanted = {f"web{n}.shop.svc.beta.example.com A", "web.alpha.example.com A"}
            running.wait_for(lambda wanted=wanted: wanted <= stack.records().keys())  # type: ignore[misc]
        running.wait_for(lambda: len(open_marks(stack, "alpha")) >= 2)
        running.wait_for(lambda: open_marks(stack, "beta") == {})
        report = running.end()
        (zone,) = [zone for zone in report.zones if zone["zone"] == bad_zone]
        assert trouble.says in zone["problem"], zone
        assert open_marks(stack, "beta") == {}
        if trouble.most_calls is not None:
            assert sum(call.zone_id == bad_zone for call in stack.r53.calls) <= trouble.most_calls
            assert {mark.code for mark in open_marks(stack, "alpha").values()} == {""}, "keys are refused"
        if title == "deleted":
            return
        trouble.end(stack, bad_zone)
        assert not any(name.startswith("web") for name in stack.records(bad_zone))
        stack.clock.advance(120)
        healed = stack.start()
        healed.wait_for(
            lambda: {"web0.shop.svc.a.example.net A", "web1.shop.svc.a.example.net A"} <= stack.records(bad_zone).keys()
        )
        healed.wait_for(lambda: open_marks(stack, "alpha") == {})
        assert healed.end().clean


SLOW: Final[dict[str, tuple[Fault, str | None]]] = {
    "silent": (Silent(), None),
    "slow to list": (Delay(3600.0), "list"),
    "slow to watch": (Delay(3600.0), "watch"),
}


def play_cluster_in_trouble(title: str) -> None:
    """One cluster cannot be reached, or answers too late; the other one shares zone and session with it."""
    with a_stack() as stack, ApiServer(tokens={TOKEN: "admin"}) as other:
        if title == "unreachable":
            other.stop()
        else:
            fault, verb = SLOW[title]
            other.faults.add(fault, verb=verb, times=None)
        stack.add_cluster("alpha", server=other.url, domain="alpha.example.com")
        stack.add_cluster("beta", domain="beta.example.com")
        # No timeout and no margin helps: what goes on, goes on beside it, and what ends, ends without it.
        patient = {"read_timeout_seconds": 7200, "drain_margin_seconds": 7200}
        running = stack.start(**patient)
        for n in range(2):
            put_raw(stack.api, raw_service(f"web{n}"))
            wanted = f"web{n}.shop.svc.beta.example.com A"
            running.wait_for(lambda wanted=wanted: wanted in stack.records())  # type: ignore[misc]
        if title == "unreachable":
            for resource in (Resource.SERVICES, Resource.ENDPOINTSLICES):
                running.wait_for(lambda resource=resource: bool(last_of(stack.store, "alpha", resource)))  # type: ignore[misc]
        report = running.end()
        assert report.clean
        if title == "unreachable":
            errors = [each.errors for each in report.listeners if each.cluster == "alpha"]
            assert all("ERR_CONNECT_FAILED" in each for each in errors), errors


def _asks_who_it_is(request: RecordedRequest) -> bool:
    return request.path == "/api/v1/namespaces/default/services"


def play_identity_that_is_not_answered() -> None:
    """A list of endpoints alone makes us ask whose cluster it is; that answer does not come.

    The zone is shared, and a change of that cluster is in its queue.
    """
    with (
        a_stack(limits=Limits(values_of_set=_VALUES_OF_SET)) as stack,
        ApiServer(ServerOptions(), tokens={TOKEN: "admin"}) as other,
        pytest.MonkeyPatch.context() as patch,
    ):
        stack.add_cluster("alpha", server=other.url, domain="alpha.example.com", endpoints_source="endpoints")
        stack.add_cluster("beta", domain="beta.example.com")
        put_raw(other, raw_service("one"))
        put_raw(other, raw_service("bad", spec={"clusterIPs": _TOO_MANY}))
        running = stack.start()
        running.wait_for(lambda: "one.shop.svc.alpha.example.com A" in stack.records())
        running.wait_for(lambda: {mark.attempts for mark in open_marks(stack, "alpha").values()} == {1})
        running.end()
        other.faults.add(ErrorEvent(410), resource="endpoints", verb="watch")
        other.faults.add(Silent(), times=None, where=_asks_who_it_is)
        # Nothing but the test ends the question: neither that of a reader, nor that of who asks.
        patch.setattr("kubesync.bootstrap.application._IDENTITY_SECONDS", 7200.0)
        running = stack.start(read_timeout_seconds=7200)
        other.requests.wait_for(lambda seen: any(map(_asks_who_it_is, seen)))
        put_raw(stack.api, raw_service("web"))
        running.wait_for(lambda: "web.shop.svc.beta.example.com A" in stack.records())
        other.faults.clear()
        other.sever()
        assert running.end().clean
