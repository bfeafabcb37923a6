"""What the audit says of why something changed: the object that was seen, its version, the batch, and what was in the way."""

from __future__ import annotations

from typing import Any

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.audit import AuditTable, Span
from kubesync.cluster.keys.reconciler import Mode
from kubesync.domain.state import OpenMark
from support.builders import a_service, an_endpoints
from support.manual_clock import ManualClock
from support.recording import SLICES, World, a_list, identity, saw
from support.zone_bench import ZoneBench

WEB = a_service(ports=())
HEADLESS = a_service(headless=True, ports=())
NAME = "web.shop.svc.prod.example.com"


def entries(store: Store, clock: ManualClock, *columns: str) -> list[tuple[Any, ...]]:
    """The audit of cluster ``prod``, oldest first."""
    now = clock.epoch()
    rows = list(AuditTable(store, "").read_changes("prod", now, Span(now - 3600, now)))
    return [tuple(row[column] for column in columns) for row in reversed(rows)]


def test_record_set_carries_the_event_that_led_to_it_from_intention_to_batch() -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(WEB, 5))
    world.clock.advance(1)
    desk.land()
    world.clock.advance(1)
    desk.record(saw(a_service(cluster_ips=("10.0.0.9",), ports=()), 21))
    world.clock.advance(1)
    desk.land()

    assert entries(world.store, world.clock, "kind", "name", "why", "object", "resource_version", "epoch") == [
        ("intended", NAME, "list", "services/web", 5, 1),
        ("record", NAME, "list", "services/web", 5, 1),
        ("intended", NAME, "watch", "services/web", 21, 1),
        ("record", NAME, "watch", "services/web", 21, 1),
    ]


def test_newest_of_several_objects_that_were_seen_is_named() -> None:
    world = World()
    desk = world.session()
    desk.begin(
        saw(HEADLESS, 5), slices=[saw(an_endpoints("10.1.0.1"), 6, "web-1"), saw(an_endpoints("10.1.0.2"), 8, "web-2")]
    )
    world.clock.advance(1)
    desk.land()
    world.clock.advance(1)
    desk.record(saw(an_endpoints("10.1.0.3"), 30, "web-1"))

    assert entries(world.store, world.clock, "kind", "why", "object", "resource_version") == [
        ("intended", "list", "endpointslices/web-2", 8),
        ("record", "list", "endpointslices/web-2", 8),
        ("intended", "watch", "endpointslices/web-1", 30),
    ]


def test_deletion_names_the_version_at_which_the_object_went() -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(WEB, 5))
    world.clock.advance(1)
    desk.land()
    world.clock.advance(1)
    desk.record(saw(None, 22, deleted=True))
    world.clock.advance(1)
    desk.land()

    assert entries(world.store, world.clock, "kind", "to", "object", "resource_version")[2:] == [
        ("intended", None, "services/web", 22),
        ("record", None, "services/web", 22),
    ]


def test_full_resync_is_told_from_an_ordinary_list() -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(WEB, 5))
    lists = (
        a_list(30, identity(), saw(a_service(cluster_ips=("10.0.0.9",), ports=()), 25)),
        a_list(30, resource=SLICES),
    )
    world.clock.advance(1)
    desk.record(lists=lists, mode=Mode(distrust_upstreams=True))

    assert entries(world.store, world.clock, "kind", "why", "resource_version") == [
        ("intended", "list", 5),
        ("intended", "resync", 25),
    ]


def test_batch_is_the_one_that_the_journal_holds() -> None:
    bench = ZoneBench()
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run()

    ((kind, batch),) = entries(bench.store, bench.clock, "kind", "batch")
    assert kind == "record"
    assert bench.zone.journal == f'"heritage=kubesync,owner=test,epoch=5,batch={batch}"'


def test_refusal_carries_its_code_and_the_key_does_too() -> None:
    bench = ZoneBench()
    bench.zone.by_hand("CREATE", "bad.example.com", "A", "192.0.2.1")
    bench.want("bad", {"bad A": ["10.0.0.1"]})
    bench.run()

    ((kind, reason, message, service),) = entries(bench.store, bench.clock, "kind", "reason", "message", "service")
    assert (kind, reason, service) == ("refused", "Conflict", "prod/default/bad")
    assert (
        message == "bad.example.com A stands there and is not ours (192.0.2.1): "
        "take it over (`kubesync recover`), remove it, or choose another name"
    )
    mark = bench.state("bad").opened
    assert mark is not None
    assert (mark.code, mark.attempts) == ("Conflict", 1)


def test_set_changed_by_hand_carries_its_code() -> None:
    bench = ZoneBench()
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run()
    bench.clock.advance(1)
    bench.zone.by_hand("DELETE", "web.example.com", "A", "10.0.0.1", ttl=60)
    bench.want("web", {"web A": ["10.0.0.2"]})
    bench.run()

    assert entries(bench.store, bench.clock, "kind", "reason") == [("record", None), ("refused", "ChangedByHand")]


def test_cause_of_an_open_key_outlives_the_session() -> None:
    world = World()
    world.session().begin(saw(WEB, 5))

    assert world.session().state().opened == OpenMark(cause="list services/web@5")
