"""Who has a name when several want it, and what happens to names where somebody else's record sets stand (I3, I4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from harness.fakes.memory_store import Call, MemoryStore
from harness.fakes.shifted_clock import ShiftedClock
from harness.fakes.store_faults import StoreFaults
from harness.stack import TOKEN, Stack, a_stack
from kubesync.aws.dynamodb.store import STATE, Put
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import ErrorCode, NotMasterError
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.route53 import Limits

HOSTNAME = "external-dns.kubernetes.io/hostname"
WWW = "www.example.com A"
# The clock can be put forward by hours: only retries become due.
PATIENT: Mapping[str, Any] = {
    "max_runtime_seconds": 80_000.0,
    "lease_seconds": 90_000.0,
    "lease_write_seconds": 90_000.0,
    "bookmark_interval_seconds": 90_000.0,
}


def expose(api: ApiServer, name: str, address: str, *hostnames: str, **spec: Any) -> None:
    """A ClusterIP service with a known address, which wants these names besides its own."""
    annotations = {HOSTNAME: ",".join(hostnames)} if hostnames else {}
    body = {"ports": [{"port": 80}], "clusterIP": address, "ipFamilies": ["IPv4"], **spec}
    api.cluster.expose("default", name, body, annotations=annotations)


def want(api: ApiServer, name: str, *hostnames: str) -> None:
    """Change which names a service wants."""
    annotations = {HOSTNAME: ",".join(hostnames) or None}
    api.cluster.change_service("default", name, {"metadata": {"annotations": annotations}})


def address_of(stack: Stack, record: str) -> str | None:
    found = stack.records().get(record)
    return None if found is None else ",".join(found["values"])


@contextmanager
def a_dated_stack() -> Iterator[Stack]:
    """A stack whose API server's clock can be put forward: creation timestamps have whole seconds."""
    with a_stack(api_clock=ShiftedClock()) as stack:
        yield stack


def an_hour_later(stack: Stack) -> None:
    assert isinstance(stack.api.clock, ShiftedClock)
    stack.api.clock.advance(3600)


@pytest.mark.parametrize("arrival", ["list", "window", "one after the other"])
def test_of_two_that_want_a_name_the_older_has_it_and_the_other_gets_it_when_it_is_let_go(arrival: str) -> None:
    with a_dated_stack() as stack:
        running = None
        stack.add_cluster()
        if arrival != "list":
            running = stack.start(window_seconds=0.1 if arrival == "one after the other" else 0.5)
            running.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stack.records())
        # The older one comes last in the order of names and, in a window, of events.
        expose(stack.api, "zebra", "10.68.0.20", "www.example.com")
        if arrival == "one after the other":
            assert running is not None
            running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.20")
        an_hour_later(stack)
        expose(stack.api, "ant", "10.68.0.10", "www.example.com", "ant.example.com")
        if running is None:
            running = stack.start()
        running.wait_for(lambda: address_of(stack, "ant.example.com A") == "10.68.0.10")
        running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.20")
        running.wait_for(lambda: stack.problems() == {"default/ant": {"NameTaken"}})
        stack.api.cluster.delete_service("default", "zebra")
        running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.10")
        running.wait_for(lambda: stack.problems() == {})
        running.end()


def test_waiters_get_a_name_in_the_order_of_their_age_and_only_while_they_want_it() -> None:
    with a_dated_stack() as stack:
        stack.add_cluster()
        for number, name in enumerate(("d", "c", "b", "a")):
            expose(stack.api, name, f"10.68.0.{10 + number}", "www.example.com")
            an_hour_later(stack)
        running = stack.start()
        running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.10")
        running.wait_for(lambda: set(stack.problems()) == {"default/a", "default/b", "default/c"})
        want(stack.api, "c")
        running.wait_for(lambda: set(stack.problems()) == {"default/a", "default/b"})
        want(stack.api, "d", "d.example.com")
        running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.12")
        assert address_of(stack, "d.example.com A") == "10.68.0.10"
        running.wait_for(lambda: stack.problems() == {"default/a": {"NameTaken"}})
        stack.api.cluster.delete_service("default", "b")
        running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.13")
        stack.api.cluster.delete_service("default", "a")
        running.wait_for(lambda: address_of(stack, WWW) is None)
        running.end()


def test_younger_service_whose_endpoints_alone_changed_does_not_get_ahead_of_an_older_one() -> None:
    with a_dated_stack() as stack:
        stack.add_cluster()
        cluster = stack.api.cluster
        cluster.expose("default", "old", {"ports": [{"port": 80}], "clusterIP": "10.68.0.30", "ipFamilies": ["IPv4"]})
        an_hour_later(stack)
        headless = {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"app": "young"}}
        cluster.expose("default", "young", headless, annotations={HOSTNAME: "www.example.com"})
        running = stack.start()
        running.wait_for(lambda: "prod/default/young/80/TCP" in stack.upstreams())
        running.wait_for(stack.at_rest)
        assert running.end().clean
        # In one window, which the session's end closes: the young one's first address, and the old one's wish.
        cluster.deploy("default", "young", 1)
        want(stack.api, "old", "www.example.com")
        running = stack.start(window_seconds=60)
        running.wait_for(lambda: running.delivered(Resource.SERVICES) > 0)
        running.wait_for(lambda: running.delivered(Resource.ENDPOINTSLICES) > 0)
        assert running.end().clean
        running = stack.start()
        running.wait_for(lambda: "young.default.svc.prod.example.com A" in stack.records())
        running.wait_for(lambda: WWW in stack.records())
        assert address_of(stack, WWW) == "10.68.0.30"
        running.wait_for(lambda: stack.problems() == {"default/young": {"NameTaken"}})
        running.end()


def test_name_goes_to_another_cluster_that_shares_the_zone() -> None:
    with a_dated_stack() as stack, ApiServer(tokens={TOKEN: "admin"}) as other:
        stack.add_cluster("prod")
        stack.add_cluster("stage", server=other.url)
        expose(stack.api, "web", "10.68.0.10", "www.example.com")
        running = stack.start()
        running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.10")
        expose(other, "web", "10.68.0.99", "www.example.com")
        running.wait_for(lambda: stack.problems("stage") == {"default/web": {"NameTaken"}})
        stack.api.cluster.delete_service("default", "web")
        running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.99")
        running.wait_for(lambda: stack.problems("stage") == {})
        # Both clusters have a service of this name; each has its own record.
        assert "web.default.svc.prod.example.com A" not in stack.records()
        assert address_of(stack, "web.default.svc.stage.example.com A") == "10.68.0.99"
        assert running.end().clean


def test_name_is_handed_over_when_the_session_ends_in_between() -> None:
    with a_dated_stack() as stack:
        stack.add_cluster()
        expose(stack.api, "zebra", "10.68.0.20", "www.example.com")
        an_hour_later(stack)
        expose(stack.api, "ant", "10.68.0.10", "www.example.com")
        first = stack.start()
        first.wait_for(lambda: stack.problems() == {"default/ant": {"NameTaken"}})
        first.wait_for(lambda: address_of(stack, WWW) == "10.68.0.20")
        first.end()
        stack.api.cluster.delete_service("default", "zebra")
        second = stack.start()
        second.wait_for(lambda: address_of(stack, WWW) == "10.68.0.10")
        second.end()
        assert stack.problems() == {}


def dies_after(stack: Stack, last: str) -> StoreFaults:
    """The master hears that it is none any more, and writes nothing after the first transaction that touches ``last``."""
    assert isinstance(stack.store, MemoryStore)
    faults = StoreFaults()
    died: list[Call] = []

    def touches(call: Call) -> bool:
        return any(isinstance(a, Put) and a.key.table == STATE and last in str(a.key.sort) for a in call.actions)

    def die(call: Call) -> None:
        died.append(call)
        raise NotMasterError("played: taken for dead")

    def dead(call: Call) -> bool:
        lease = any(action.key.partition.startswith("lease") for action in call.actions)
        return bool(died) and bool(call.actions) and not lease

    faults.do(touches, die, after=True)
    faults.do(dead, die, times=None)
    stack.store.faults = faults
    return faults


def test_name_is_handed_over_when_the_master_dies_between_release_and_heir() -> None:
    with a_dated_stack() as stack:
        stack.add_cluster()
        expose(stack.api, "zebra", "10.68.0.20", "www.example.com")
        an_hour_later(stack)
        expose(stack.api, "ant", "10.68.0.10", "www.example.com")
        first = stack.start()
        first.wait_for(lambda: stack.problems() == {"default/ant": {"NameTaken"}})
        first.wait_for(lambda: address_of(stack, WWW) == "10.68.0.20")
        faults = dies_after(stack, "#heir#")
        stack.api.cluster.delete_service("default", "zebra")
        assert first.join().code == ErrorCode.NOT_MASTER
        assert address_of(stack, WWW) is None
        faults.clear()
        second = stack.start()
        second.wait_for(lambda: address_of(stack, WWW) == "10.68.0.10")
        assert second.end().took_over == "unclean end"


def test_wish_for_a_name_that_was_taken_in_the_same_window_survives_the_death_of_the_master() -> None:
    """I1: who wanted the name and came second is known durably as soon as the checkpoint is past its event."""
    with a_dated_stack() as stack:
        stack.add_cluster()
        first = stack.start(window_seconds=0.5)
        first.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stack.records())
        faults = dies_after(stack, "key#default/")
        expose(stack.api, "zebra", "10.68.0.20", "www.example.com")
        an_hour_later(stack)
        expose(stack.api, "ant", "10.68.0.10", "www.example.com")
        assert first.join().code == ErrorCode.NOT_MASTER
        faults.clear()
        second = stack.start()
        second.wait_for(lambda: address_of(stack, WWW) == "10.68.0.20")
        second.wait_for(lambda: address_of(stack, "ant.default.svc.prod.example.com A") == "10.68.0.10")
        stack.api.cluster.delete_service("default", "zebra")
        second.wait_for(lambda: address_of(stack, WWW) == "10.68.0.10")
        second.end()


def test_changed_hostname_moves_in_one_batch_and_leaves_nothing_behind() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        expose(stack.api, "web", "10.68.0.10", "old.example.com")
        running = stack.start()
        running.wait_for(stack.at_rest)
        assert address_of(stack, "old.example.com A") == "10.68.0.10"
        before = len(stack.r53.batches())
        want(stack.api, "web", "new.example.com")
        running.wait_for(lambda: address_of(stack, "new.example.com A") == "10.68.0.10")
        running.wait_for(stack.at_rest)
        assert address_of(stack, "old.example.com A") is None
        assert len(stack.r53.batches()) == before + 1
        running.end()


FOREIGN: Mapping[str, tuple[str, str]] = {
    "equal": ("A", "10.68.0.10"),
    "another value": ("A", "192.0.2.1"),
    "CNAME": ("CNAME", "elsewhere.example.net."),
}


@pytest.mark.parametrize("form", sorted(FOREIGN))
def test_i3_foreign_set_is_never_touched_and_the_name_heals_when_it_has_gone(form: str) -> None:
    """I3: it may even be equal. I4: nothing else waits for it."""
    record_type, value = FOREIGN[form]
    with a_stack() as stack:
        stack.by_hand("CREATE", "www.example.com", record_type, value)
        stands = {f"www.example.com {record_type}": {"ttl": 60, "values": [value]}}
        stack.add_cluster()
        expose(stack.api, "web", "10.68.0.10", "www.example.com")
        expose(stack.api, "other", "10.68.0.11")
        running = stack.start(**PATIENT)
        running.wait_for(lambda: stack.problems() == {"default/web": {"Conflict"}})
        running.wait_for(lambda: "other.default.svc.prod.example.com A" in stack.records())
        running.wait_for(lambda: "web.default.svc.prod.example.com A" in stack.records())
        # Whatever else is to be written is: the refused batch was sent again in parts.
        running.wait_for(lambda: {k.name for k, _ in StateTable(stack.store).open_keys("prod")} == {"web"})
        # Tried again with the foreign set still there: it is read, not touched.
        batches = len(stack.r53.batches())
        stack.clock.advance(1800)
        expose(stack.api, "poke", "10.68.0.12")
        running.wait_for(lambda: "poke.default.svc.prod.example.com A" in stack.records())
        assert {key: record for key, record in stack.records().items() if key.startswith("www.")} == stands
        assert [batch.accepted for batch in stack.r53.batches()[batches:]] == [True]
        stack.by_hand("DELETE", "www.example.com", record_type, value)
        stack.clock.advance(1800)
        expose(stack.api, "again", "10.68.0.13")
        running.wait_for(lambda: address_of(stack, WWW) == "10.68.0.10")
        running.wait_for(lambda: stack.problems() == {})
        assert running.end().clean


def test_foreign_set_at_a_name_is_no_reason_to_lose_the_claim_to_nobody() -> None:
    """While a name is in conflict its owner has no claim: another service that wants it finds the same conflict."""
    with a_stack() as stack:
        stack.by_hand("CREATE", "www.example.com", "A", "192.0.2.1")
        stack.add_cluster()
        expose(stack.api, "web", "10.68.0.10", "www.example.com")
        running = stack.start(**PATIENT)
        running.wait_for(lambda: stack.problems() == {"default/web": {"Conflict"}})
        expose(stack.api, "rival", "10.68.0.11", "www.example.com")
        running.wait_for(lambda: stack.problems().get("default/rival") == {"Conflict"})
        stack.by_hand("DELETE", "www.example.com", "A", "192.0.2.1")
        stack.clock.advance(1800)
        expose(stack.api, "poke", "10.68.0.12")
        running.wait_for(lambda: address_of(stack, WWW) in ("10.68.0.10", "10.68.0.11"))
        running.wait_for(lambda: sorted(stack.problems().values(), key=sorted) == [{"NameTaken"}])
        running.end()


def test_value_that_the_zone_rejects_holds_up_no_other_in_the_same_window() -> None:
    """I4: the message names no record set, so the batch is halved until the culprit is alone."""
    with a_stack(limits=Limits(values_of_set=2)) as stack:
        stack.add_cluster()
        running = stack.start(window_seconds=0.5)
        running.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stack.records())
        for number in range(12):
            expose(stack.api, f"web-{number}", f"10.68.0.{10 + number}")
        stack.api.cluster.deploy("default", "many", 3)
        headless = {"clusterIP": "None", "selector": {"app": "many"}, "ports": [{"port": 80}]}
        stack.api.cluster.expose("default", "many", headless)
        names = {f"web-{number}.default.svc.prod.example.com A" for number in range(12)}
        running.wait_for(lambda: names <= stack.records().keys())
        running.wait_for(lambda: len(stack.upstreams()["prod/default/many/80/TCP"]) == 3)
        assert "many.default.svc.prod.example.com A" not in stack.records()
        # It is retried by itself, and heals with its cause.
        stack.api.cluster.scale("default", "many", 2)
        running.wait_for(lambda: "many.default.svc.prod.example.com A" in stack.records())
        assert running.end().clean
