"""What earlier releases wrote is read by this one, item by item. The files are never changed: see ``harness.golden.golden_items``."""

from __future__ import annotations

import json

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.golden.golden_items import (
    API,
    CHANGE,
    CHECKPOINT,
    CONFIG,
    DIRECTORY,
    MAIN,
    NAME,
    NOW,
    OLD,
    SHOP,
    WEB,
    WEIGHTED,
    a_web_state,
    load,
)
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.clusters import ClusterTable
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable, Registration, Registry
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable
from kubesync.aws.tables.control.zone_access import ZoneAccess, ZoneAccessTable
from kubesync.aws.tables.control.zone_problems import ZoneProblem, ZoneProblemTable
from kubesync.aws.tables.items import SCHEMA
from kubesync.aws.tables.schema_guard import SchemaGuard
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Resource
from kubesync.domain.sources import services
from kubesync.domain.state import OpenMark, PartId
from kubesync_local.documents.audit_log import AuditLog, Span

SCHEMAS = range(1, SCHEMA + 1)
AT = "2027-01-15T08:00:00.000Z"


@pytest.fixture(params=SCHEMAS, ids="schema-{}".format)
def store(request: pytest.FixtureRequest) -> Store:
    made = MemoryStore(clock=ManualClock())
    load(request.param, made)
    return SchemaGuard(made)


def test_every_schema_version_has_its_file() -> None:
    names = {path.name.partition("-reports")[0].removesuffix(".json") for path in DIRECTORY.glob("*.json")}
    assert sorted(names) == [f"schema-{n}" for n in SCHEMAS]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_file_holds_items_of_its_version_only(schema: int) -> None:
    rows = json.loads((DIRECTORY / f"schema-{schema}.json").read_text())
    without = {row["sk"] for row in rows if "v" not in row}
    # These have one form for good: they are what tells a release that it must not go on.
    assert without == {"lease", "epoch", "deployment", "fence"}
    assert {row["v"] for row in rows if "v" in row} == {schema}


def test_lease_and_fences_are_read(store: Store) -> None:
    lease = LeaseTable(store, "0").read()
    assert (lease.holder, lease.epoch, lease.renewal, lease.signal) == ("session-1", 1, 3, 1)
    assert (lease.released, lease.clean, lease.to_settle) == (True, False, ("Z2",))
    assert (lease.ends_at_ms, lease.released_at_ms) == (1_800_000_840_000, 1_800_000_840_000)
    LeaseTable(store, "0").bind("main")
    for key in (fence_key("prod"), shard_fence_key("0")):
        fence = store.get(key)
        assert fence is not None
        assert fence["epoch"] == 1


def test_configurations_and_ways_to_zones_are_read(store: Store) -> None:
    assert ClusterTable(store).all() == [CONFIG.model_copy(update={"revision": 1})]
    assert ZoneAccessTable(store).read("Z1") == ZoneAccess("arn:aws:iam::222222222222:role/dns", "shared-dns")
    assert ZoneProblemTable(store, "0", "any").current() == [ZoneProblem("Z1", "AccessDenied", AT)]


def test_what_listeners_left_is_read(store: Store) -> None:
    table = ListenerTable(store)
    found = table.remembered({"prod": services.KIND.resources})["prod"]
    assert found.checkpoints == {Resource.SERVICES: CHECKPOINT}
    assert found.checkpoints[Resource.SERVICES].works_since == NOW
    assert found.identity == "uid-of-kubernetes"
    errors = table.errors("prod")[Resource.SERVICES]
    assert errors.counts == {"ERR_REQUEST_DENIED": 1}
    assert errors.last == {
        "code": 10, "key": "ERR_REQUEST_DENIED", "message": "HTTP 403", "status": 403, "at": AT, "session": "session-1",
    }  # fmt: skip


def test_states_marks_and_slices_are_read(store: Store) -> None:
    table = StateTable(store)
    web = table.load([WEB])[WEB]
    expected = a_web_state()
    for part_id, part in expected.parts.items():
        assert web.parts[part_id] == part, part_id
    assert (web.intended, web.applied, web.opened) == (expected.intended, expected.applied, expected.opened)
    assert (web.upstreams, web.problems, web.conflicts) == (expected.upstreams, expected.problems, expected.conflicts)
    assert (web.claims, web.waits, web.version) == (frozenset({NAME}), frozenset({WEIGHTED}), 1)
    assert web.slices > 1
    sets = {RecordKey("Z1", "api.shop.svc.prod.example.com.", "A"): RecordSet(30, ("10.0.0.2",))}
    api = table.load([API])[API]
    assert (api.intended, api.applied, api.opened) == (sets, {}, None)
    old = table.load([OLD])[OLD]
    assert old.parts[PartId(Resource.SERVICES, "old")].deleted
    queued = table.queued("prod")
    assert queued.marks == {WEB: expected.opened, OLD: OpenMark()}
    assert (queued.promoted, queued.unswept) == ({API}, {WEB, OLD})
    assert table.all_slices("prod") == {("shop", "web-abcde"): "web"}


def test_claims_and_those_who_wait_are_read(store: Store) -> None:
    table = ClaimTable(store)
    assert table.read([NAME, WEIGHTED]) == {NAME: Claim(NAME, WEB, 2, 1), WEIGHTED: Claim(WEIGHTED, API, 1, 0)}
    assert [key for key, _ in table.waiters(NAME)] == [API]


def test_what_was_in_flight_is_read(store: Store) -> None:
    table = InflightTable(store, "0")
    assert table.zones() == ["Z1", "Z2"]
    found = table.read("Z1")
    assert found is not None
    assert (found.batch, found.epoch, found.version, len(found.units)) == ("batch-1", 1, 1, 80)
    assert found.slices > 1
    assert {unit.changes for unit in found.units} == {(CHANGE,)}
    # What tells a table that was restored from a backup: a journal that it cannot know.
    assert [(found.journal_epoch, found.knows(1), found.knows(2))] == [(1, True, False)]
    assert [zone.journal_epoch for zone in (table.read("Z2"),) if zone is not None] == [1]


def test_upstreams_are_read(store: Store) -> None:
    named, live, removed = sorted(UpstreamTable(store).read_all(), key=lambda each: (each.deleted, each.upstream))
    assert (live.upstream, live.version, live.complete) == ("prod/shop/web/80/TCP", 1, True)
    node = {"ip": "10.1.0.1", "port": 8080, "ready": True, "node": "node-1", "zone": "eu-west-1a"}
    assert [dict(each) for each in live.nodes] == [{**node, "hostname": "web-0", "pod": "web-0"}]
    assert (removed.upstream, removed.deleted, removed.nodes) == ("prod/shop/old/80/TCP", True, ())
    assert (named.upstream, named.version, named.complete) == ("named/shop", 1, True)
    assert [dict(each) for each in named.nodes] == [
        {"ip": "10.1.0.1", "port": 8080, "ready": True, "weight": 3},
        {"ip": "2001:db8::1", "port": 80, "ready": True, "backup": True},
    ]


def test_named_upstreams_their_holders_and_notes_are_read(store: Store) -> None:
    table = NamedUpstreamTable(store)
    registry = table.read()
    assert registry == Registry(
        3, {"shop": Registration(SHOP, "0"), "main": Registration(MAIN, "0", ("edge-proxies",))}, frozenset()
    )
    assert table.marks("0") == {"named/main": 2, "named/shop": 1, "prod/shop/web/80/TCP": 7}


def test_requests_and_answers_are_read(store: Store) -> None:
    table = ResyncTable(store, "0")
    at_ms = int(NOW * 1000)
    assert table.due(NOW) == [ResyncRequest(f"{AT}#r1", "prod", True, False, at_ms)]
    answer = table.collect(ResyncRequest(f"{AT}#r2", "", False, True, at_ms))
    assert answer is not None
    assert (len(answer["counts"]), answer["counts"]["kind-59"]) == (60, 59)


def test_audit_is_read(store: Store) -> None:
    table = AuditLog(store)
    [change] = table.read_changes("prod", NOW, Span(NOW - 60, NOW + 60))
    assert (change["service"], change["from"], change["to"]) == (str(WEB), {"ttl": 60, "values": ["10.0.0.9"]}, None)
    assert (change["object"], change["resource_version"], change["batch"]) == ("services/web", 1234, "batch-1")
    assert [item["key"] for item in table.read_errors("prod", NOW, 10)] == ["ERR_REQUEST_DENIED"]
    assert [item["key"] for item in table.read_sessions(NOW, 10)] == ["ERR_NOT_MASTER"]
