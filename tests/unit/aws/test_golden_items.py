"""What earlier releases wrote in slices is read by this one; ``test_golden_reads`` has every other kind of item.

The files are never changed: see ``harness.golden.golden_items``.
"""

import json
from dataclasses import replace

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.golden.golden_items import (
    API,
    CHANGE,
    DIRECTORY,
    NAME,
    OLD,
    SEAT,
    WEB,
    WEIGHTED,
    a_state_with_policies,
    a_web_state,
    load,
)
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.items import SCHEMA, SchemaGuard
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Resource
from kubesync.domain.state import OpenMark, PartId

SCHEMAS = range(1, SCHEMA + 1)


@pytest.fixture(params=SCHEMAS, ids="schema-{}".format)
def store(request: pytest.FixtureRequest) -> Store:
    made = MemoryStore(clock=ManualClock())
    load(request.param, made)
    return SchemaGuard(made)


def test_every_schema_version_has_its_file() -> None:
    names = {"-".join(path.stem.split("-")[:2]) for path in DIRECTORY.glob("*.json")}
    assert sorted(names) == [f"schema-{n}" for n in SCHEMAS]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_file_holds_items_of_its_version_only(schema: int) -> None:
    rows = json.loads((DIRECTORY / f"schema-{schema}.json").read_text())
    without = {row["sk"] for row in rows if "v" not in row}
    # These have one form for good: they are what tells a release that it must not go on.
    assert without == {"lease", "epoch", "deployment", "fence"}
    assert {row["v"] for row in rows if "v" in row} == {schema}


def test_lease_that_leaves_a_zone_unsettled_and_fences_are_read(store: Store) -> None:
    lease = LeaseTable(store, "0").read()
    assert (lease.holder, lease.epoch, lease.renewal, lease.signal) == ("session-1", 1, 3, 1)
    assert (lease.released, lease.clean, lease.to_settle) == (True, False, ("Z2",))
    assert (lease.ends_at_ms, lease.released_at_ms) == (1_800_000_840_000, 1_800_000_840_000)
    LeaseTable(store, "0").bind("main")
    for key in (fence_key("prod"), shard_fence_key("0")):
        fence = store.get(key)
        assert fence is not None
        assert fence["epoch"] == 1


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
    assert (queued.to_plan, queued.unswept) == ({API}, {WEB, OLD})
    assert dict(table.all_slices("prod")) == {("shop", "web-abcde"): "web"}


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


def test_key_and_batch_with_other_policies_are_read_and_older_releases_leave_them_out() -> None:
    made = MemoryStore(clock=ManualClock())
    load("1-policies", made)
    held = a_state_with_policies()
    key = StateTable(SchemaGuard(made)).load([API])[API]
    assert key == replace(held, version=1, slices=2)
    assert {each.identifier: found.routing.words for each, found in key.applied.items()} == {
        "checked": "weighted 7, health check 0a11fe5c",
        "eu": "latency eu-west-1",
        "primary": "failover PRIMARY, health check 0a11fe5c",
        "se": "geolocation country SE",
        "ca": "geolocation country US subdivision CA",
        "all": "geolocation continent EU",
        "near": "geoproximity eu-west-1 bias -5",
        "group": "geoproximity us-east-1-bue-1 bias 0",
        "point": "geoproximity 49.22,-74.01 bias 0",
        "many": "multivalue",
    }
    assert ClaimTable(made).read([SEAT]) == {SEAT: Claim(SEAT, WEB, 2, 1)}
    assert [waiter for waiter, _ in ClaimTable(made).waiters(SEAT)] == [API]
    # A release that knows no policy but weights leaves out an item with a greater number.
    assert {str(at.sort): item["v"] for at, item in made.dump().items() if item["v"] != 1} == {
        "key#shop/api": 4,
        "Z1": 4,
    }
