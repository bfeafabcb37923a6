"""Items as releases wrote them, kept in files: every later release has to read them.

``tests/golden/schema-<n>.json`` was written by ``record`` with the code of that schema version. A file is never changed: a release
that writes another form raises ``SCHEMA``, records a file of its own, and goes on reading the old ones.
"""

import base64
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import KEY_ATTRIBUTES, Action, Item, Key, Put, Store, Value
from kubesync.aws.fencing.take_over import raise_fences
from kubesync.aws.tables.audit import AuditTable, Entry
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.aws.tables.control.lease import LeaseTable, lease_check
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.aws.tables.control.resync_requests import ResyncTable, new_request
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import AliasTarget, Node, Problem, RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import (
    Failover,
    Geolocation,
    Geoproximity,
    Latency,
    Multivalue,
    Routing,
    Weighted,
)
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, ObjectKey, Port, Resource, Service
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId, UpstreamState, names_of
from kubesync.domain.upstreams.named import Member, NamedOf, NamedUpstream, named_key, parse_service, parse_static
from kubesync_local.registration.named_upstreams import NamedRegistry
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.registry import ClusterRegistry, ZoneRoles

DIRECTORY: Final = Path(__file__).resolve().parents[2] / "golden"
NOW: Final = 1_800_000_000.0
WEB: Final = ObjectKey("prod", "shop", "web")
API: Final = ObjectKey("prod", "shop", "api")
OLD: Final = ObjectKey("prod", "shop", "old")
NAME: Final = Name("Z1", "web.shop.svc.prod.example.com.")
WEIGHTED: Final = Name("Z1", "blue.example.com.", "prod/shop")
SEAT: Final = Name("Z1", "www.example.com", "", "latency eu-west-1")
TWO_SLICES: Final = 300


def a_web_state() -> KeyState:
    """A Service with everything that a state can hold."""
    service = Service(
        "LoadBalancer",
        ("10.0.0.1", "fd00::1"),
        "",
        (Port("http", "TCP", 80), Port("dns", "UDP", 53)),
        True,
        ("192.0.2.1",),
        ("lb.eu-west-1.elb.amazonaws.com",),
        (("external-dns.alpha.kubernetes.io/hostname", "www.example.com"),),
        "2026-01-02T03:04:05Z",
    )
    endpoints = EndpointsObject(
        "web",
        (
            EndpointGroup(
                (
                    Endpoint("10.1.0.1", True, None, None, "node-1", "eu-west-1a", "web-0", "web-0"),
                    Endpoint("10.1.0.2", False, True, True, "node-2", "", "", "web-1"),
                ),
                (Port("http", "TCP", 8080),),
            ),
        ),
        False,
    )
    plain = RecordKey("Z1", NAME.name, "A")
    weighted = RecordKey("Z1", WEIGHTED.name, "A", WEIGHTED.identifier)
    alias = RecordSet(
        None, (), AliasTarget("Z32O12XQLNTSW2", "lb.eu-west-1.elb.amazonaws.com.", False), routing=Weighted(10)
    )
    return KeyState(
        WEB,
        parts={
            PartId(Resource.SERVICES, "web"): Part("uid-1", 1234, 1, service),
            PartId(Resource.ENDPOINTSLICES, "web-abcde"): Part("uid-2", 1235, 2, endpoints, held=True),
            PartId(Resource.ENDPOINTSLICES, "web-gone"): Part("uid-3", 1236, 1, None, deleted=True),
            PartId(Resource.ENDPOINTSLICES, "web-odd"): Part("uid-4", 1237, 1, None, problem="ports: not a list"),
        },
        intended={plain: RecordSet(30, ("10.0.0.1",)), weighted: alias},
        applied={plain: RecordSet(60, ("10.0.0.9",))},
        upstreams={"prod/shop/web/80/TCP": UpstreamState(3, "d1", 2)},
        problems=(Problem("ttl-invalid", "web", "ttl 'never' is no duration"),),
        claims=frozenset({NAME}),
        waits=frozenset({WEIGHTED}),
        conflicts={Name("Z1", "www.example.com."): "a record set that is not ours stands there"},
        opened=OpenMark(2, NOW + 60, "a foreign record set", "conflict", "watch services/web@1234"),
    )


CONFIG: Final = ClusterConfig(
    name="prod",
    server="https://prod.test:6443",
    domain="prod.example.com",
    zones=(ZoneReference(id="Z1", name="example.com", private=True),),
    token="secretsmanager:kubesync/prod#token",
    ca_pem="-----BEGIN CERTIFICATE-----\n",
    ttl=120,
    load_balancer_alias=True,
)
CHANGE: Final = RecordChange(
    RecordKey("Z1", NAME.name, "A"), RecordSet(60, ("10.0.0.9",)), RecordSet(30, ("10.0.0.1",))
)
NODES: Final = (Node("10.1.0.1", 8080, True, node="node-1", zone="eu-west-1a", hostname="web-0", pod="web-0"),)
SHOP: Final = NamedUpstream(
    "shop",
    (Member(parse_service("prod/shop/web/80"), 3), Member(parse_static("[2001:db8::1]:80"), backup=True)),
)
MAIN: Final = NamedUpstream("main", (Member(NamedOf("shop")),))
NAMED_NODES: Final = (
    Node("10.1.0.1", 8080, True, weight=3),
    Node("2001:db8::1", 80, True, backup=True),
)
CHECKPOINT: Final = Checkpoint(1300, 1, Basis(1, "https://prod.test:6443", 2), 1, NOW)


def write_everything(store: Store) -> None:
    """One item of every kind, in every form that it can have."""
    lease = LeaseTable(store, "0")
    lease.bind("main")
    mine = lease.take(lease.read(), "session-1", lease.draw_epoch(), 1_800_000_015_000)
    raise_fences(
        store, [shard_fence_key("0"), fence_key("prod")], mine.epoch, lease_check("0", mine.epoch, mine.holder)
    )
    lease.renew(mine, 1_800_000_020_000, 1_800_000_840_000)
    lease.signal()
    lease.release(mine, clean=True, at_ms=1_800_000_840_000, unsettled=["Z2"])
    ClusterRegistry(store).put(CONFIG)
    named = NamedRegistry(store)
    for upstream in (SHOP, MAIN):
        named.put(upstream, named.read())
    named.hold("main", "edge-proxies", named.read())
    ZoneRoles(store).put("Z1", ZoneAccess("arn:aws:iam::222222222222:role/dns", "shared-dns"))
    actions: list[Action] = []
    table = StateTable(store)
    before, one_slice = table.put(KeyState(WEB), a_web_state(), "tx-1")
    assert before.slices > 1, "the large key is in slices"
    actions += one_slice
    small = KeyState(
        API, intended={RecordKey("Z1", "api.shop.svc.prod.example.com.", "A"): RecordSet(30, ("10.0.0.2",))}
    )
    actions += table.put(KeyState(API), small, "tx-1")[1]
    tombstone = Part("uid-9", 1238, 1, None, deleted=True)
    gone = KeyState(OLD, parts={PartId(Resource.SERVICES, "old"): tombstone}, opened=OpenMark())
    actions += table.put(KeyState(OLD), gone, "tx-1")[1]
    actions.append(named.mark("0", "prod/shop/web/80/TCP", 7))
    actions += [table.mark_to_plan(API, NAME), table.remember_slice("prod", "shop", "web-abcde", "web")]
    actions += ClaimTable.change(None, Claim(NAME, WEB, 1, 0))
    actions += ClaimTable.change(None, Claim(WEIGHTED, API, 1, 0))
    listeners = ListenerReadings(store)
    actions += [
        listeners.put_checkpoint("prod", Resource.SERVICES, CHECKPOINT, "tx-1"),
        listeners.put_identity("prod", "uid-of-kubernetes"),
        listeners.count_error(
            "prod", Resource.SERVICES, ErrorCode.REQUEST_DENIED,
            {"code": 10, "key": "ERR_REQUEST_DENIED", "message": "HTTP 403", "status": 403}, "2027-01-15T08:00:00.000Z", "session-1",
        ),
        ZoneProblemTable(store, "0", "session-1").put("Z1", "AccessDenied", NOW, "tx-1"),
    ]  # fmt: skip
    batch = Inflight("batch-1", 1, tuple(Unit(ObjectKey("prod", "shop", f"web-{n}"), (CHANGE,)) for n in range(80)))
    actions += InflightTable(store, "0").put("Z1", None, batch, "tx-1")[1]
    actions += InflightTable(store, "0").put("Z2", None, Inflight("", 1, ()), "tx-1")[1]
    actions += UpstreamTable.put("prod/shop/web/80/TCP", None, NODES, NOW)[1]
    actions += UpstreamTable.put(named_key("shop"), None, NAMED_NODES, NOW)[1]
    actions += UpstreamTable.put("prod/shop/old/80/TCP", None, None, NOW)[1]
    audit = AuditTable("session-1")
    entry = Entry(
        "change", {"ttl": 60, "values": ["10.0.0.9"]}, None, "watch services/web@1234", str(WEB), "batch-1", "conflict"
    )
    actions += [
        audit.changes("prod", [entry], 1, NOW, "tx-1"),
        audit.error("prod", {"code": 10, "key": "ERR_REQUEST_DENIED", "message": "HTTP 403"}, NOW),
        audit.session_ended({"code": 4, "key": "ERR_NOT_MASTER", "message": "held"}, NOW),
    ]
    store.transact(actions, "tx-1")
    claim = Claim(NAME, WEB, 1, 0)
    joins = {ClaimTable.waiter_place(NAME, API, "2026-01-02T03:04:06Z"): API}
    store.transact(ClaimTable.change(claim, claim.changed(waiting=1), joins), "tx-2")
    requests = ResyncTable(store, "0")
    requests.store(new_request("r1", "prod", NOW, dry_run=True, force=False))
    answered = new_request("r2", "", NOW, dry_run=False, force=True)
    requests.store(answered)
    report = {"counts": {f"kind-{n}": n for n in range(60)}}
    store.transact(requests.answer(answered, report, "tx-3"), "tx-3")


def write_reports(store: MemoryStore) -> None:
    """What is kept of sessions, recoveries and resyncs: one that has ended, and one that goes on in the next session."""
    audit = AuditTable("session-1")
    lag = {"count": 3.0, "p50": 0.2, "p99": 0.4}
    store.write(
        audit.report(
            "session", {"epoch": 7, "ended": "ERR_MAX_RUNTIME", "lag": lag, "minutes": [[60, 3, 0.2, 0.4]]}, NOW
        )
    )
    store.write(audit.report("recovery", {"dry_run": False, "clusters": [{"cluster": "prod", "claimed": []}]}, NOW))
    requests, results = ResyncTable(store, "0"), ResyncTable(store, "0", 90 * 86_400)
    request = new_request("r3", "", NOW, dry_run=False, force=False)
    requests.store(request)
    part = {"revision": 1, "document": {f"kind-{n}": n for n in range(60)}, "zones": ["Z1"], "done": False}
    store.transact(
        [
            *results.put_progress(request, "session-1", 3, 1, NOW, "tx-4"),
            *results.put_part(request, "prod", part, "tx-4"),
        ],
        "tx-4",
    )
    figures = {"clusters": 1, "errors": 0, "differences": 2, "session": "session-1"}
    ended = new_request("r4", "prod", NOW - 9, dry_run=False, force=True)
    short = {"clusters": [{"cluster": "prod", "counts": {f"kind-{n}": n for n in range(60)}}]}
    store.transact(results.put_result(ended, figures, short, NOW, "tx-5"), "tx-5")


def a_state_with_policies() -> KeyState:
    """A set of each routing policy, which older releases leave out with the whole key: ``v`` is 4."""
    policies: dict[str, Routing] = {
        "checked": Weighted(7, health_check="0a11fe5c"),
        "eu": Latency("eu-west-1"),
        "primary": Failover("PRIMARY", health_check="0a11fe5c"),
        "se": Geolocation(country="SE"),
        "ca": Geolocation(country="US", subdivision="CA"),
        "all": Geolocation(continent="EU"),
        "near": Geoproximity(region="eu-west-1", bias=-5),
        "group": Geoproximity(local_zone_group="us-east-1-bue-1"),
        "point": Geoproximity(coordinates="49.22,-74.01"),
        "many": Multivalue(),
    }
    sets = {
        RecordKey("Z1", f"{each.kind}.example.com", "A", name): RecordSet(30, ("10.0.0.3",), routing=each)
        for name, each in policies.items()
    }
    return KeyState(API, intended=sets, applied=sets, claims=names_of(sets), waits=frozenset({SEAT}))


def write_policies(store: MemoryStore) -> None:
    """A key with every routing policy, a batch with one, and the claim of a region with a key that waits for it."""
    state = a_state_with_policies()
    before, actions = StateTable(store).put(KeyState(API), state, "tx-1")
    assert before.slices > 1
    change = RecordChange(*next((key, None, each) for key, each in state.intended.items() if key.identifier == "eu"))
    batch = Inflight("batch-1", 1, (Unit(API, (change,)),))
    actions += InflightTable(store, "0").put("Z1", None, batch, "tx-1")[1]
    store.transact([*actions, *ClaimTable.change(None, Claim(SEAT, WEB, 1, 0))], "tx-1")
    claim, joins = Claim(SEAT, WEB, 1, 0), {ClaimTable.waiter_place(SEAT, API, "2026-01-02T03:04:06Z"): API}
    store.transact(ClaimTable.change(claim, claim.changed(waiting=1), joins), "tx-2")


FILES: Final[Mapping[str, Callable[[MemoryStore], None]]] = {
    "schema-1.json": write_everything,
    "schema-1-reports.json": write_reports,
    "schema-1-policies.json": write_policies,
}


def record(path: Path) -> None:
    """Write a file of today's schema version: one of ``FILES``."""
    with pytest.MonkeyPatch.context() as patch:
        # Slices of a size that a file can hold.
        patch.setattr("kubesync.aws.tables.items._READABLE_BYTES", TWO_SLICES)
        patch.setattr("kubesync.aws.tables.items.MAX_SLICE_BYTES", TWO_SLICES)
        store = MemoryStore(clock=ManualClock())
        FILES[path.name](store)
    rows = [
        {"table": key.table, **{name: _plain(value) for name, value in item.items()}}
        for key, item in sorted(store.dump().items(), key=lambda kv: (kv[0].table, kv[0].partition, str(kv[0].sort)))
    ]
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=True) + "\n")


def load(schema: int | str, store: Store) -> None:
    """Put the items of a file into a store, as they are."""
    for row in json.loads((DIRECTORY / f"schema-{schema}.json").read_text()):
        table = row.pop("table")
        partition, sort = (row.pop(name) for name in KEY_ATTRIBUTES[table])
        item = {name: _value(value) for name, value in row.items()}
        store.write(Put(Key(table, partition, sort), cast(Item, item)))


def _plain(value: Value) -> Any:
    return {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _value(value: Any) -> Value:
    if isinstance(value, Mapping) and value.keys() == {"bytes"}:
        return base64.b64decode(value["bytes"])
    return cast(Value, value)


if __name__ == "__main__":
    missing = [name for name in FILES if not (DIRECTORY / name).exists()]
    if not missing:
        sys.exit("they are there already: what a release wrote does not change")
    for name in missing:
        record(DIRECTORY / name)
