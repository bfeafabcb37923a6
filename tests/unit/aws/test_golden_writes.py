"""Today's code writes golden items as they were written: what it reads from one, it writes again to the byte.

Deflated bodies are compared inflated: how tightly they are packed is the library's affair.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.golden.golden_items import DIRECTORY, FILES, record
from harness.golden.golden_stage import items_of, names_of_documents, read_document
from harness.golden.item_kinds import KINDS, kind_of_item
from kubesync.aws.dynamodb.store import Action, Item, Key, Put
from kubesync.aws.tables.audit import AuditTable, Entry
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterTable
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.control.resync_requests import RequestTable, ResyncRequest, new_request
from kubesync.aws.tables.control.zone_access import ZoneAccessTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.items import unpack
from kubesync.aws.tables.name_counts import NameCountTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.sources import services
from kubesync.domain.state import KeyState, Name, UpstreamState
from kubesync_local.registration.named_upstreams import NamedRegistry

SCENES: Final = names_of_documents()
# Written by single attributes, as calls move them: ``test_same_calls_write_the_same_items``, and sessions' stories, hold those.
MOVED: Final = {
    "epoch counter",
    "owner of the tables",
    "lease",
    "fence of a shard",
    "fence of a cluster",
    "errors of a listener",
    "version of the named upstreams",
    "named upstream",
}
# ``schema-1-reports.json`` has them, and no scene.
REPORTS: Final = {
    "resync under way", "part of a resync", "result of a resync", "report of a session", "report of a recovery",
}  # fmt: skip  # fmt: skip
# Here no scene has slices: ``schema-1.json`` has.
SLICED: Final = {
    "inflight, slice", "resync request, slice", "part of a resync, slice", "result of a resync, slice", "key, slice", "upstream, slice",
}  # fmt: skip

type Rewrite = Callable[["Scene", Key, Item], list[Action]]


class Scene:
    """The items of one file, in a store."""

    def __init__(self, name: str) -> None:
        self.items = items_of(read_document(name))
        self.store = MemoryStore(clock=ManualClock())
        for key, item in self.items.items():
            self.store.write(Put(key, item))


def seconds(text: object) -> float:
    return datetime.fromisoformat(str(text)).timestamp()


def service_key(cluster: str, path: str) -> ObjectKey:
    return ObjectKey(cluster, *path.split("/", 1))


def a_configuration(scene: Scene, key: Key, _item: Item) -> list[Action]:
    config = ClusterTable(scene.store).get(str(key.sort))
    assert config is not None
    fresh = MemoryStore(clock=ManualClock())
    # What is registered first has revision 1; a later one replaces what is there.
    if config.revision > 1:
        fresh.write(Put(key, {**scene.items[key], "revision": config.revision - 1}))
    ClusterTable(fresh).put(config.model_copy(update={"revision": config.revision - 1}))
    return list(fresh.calls[-1].actions)


def a_checkpoint(scene: Scene, key: Key, item: Item) -> list[Action]:
    cluster, resource = key.partition.removeprefix("cluster#"), Resource(str(key.sort).removeprefix("checkpoint#"))
    found = ListenerTable(scene.store).checkpoints(cluster)[resource]
    return [ListenerTable.put_checkpoint(cluster, resource, found, str(item["tx"]))]


def an_identity(scene: Scene, key: Key, _item: Item) -> list[Action]:
    cluster = key.partition.removeprefix("cluster#")
    uid = ListenerTable(scene.store).remembered({cluster: services.KIND.resources})[cluster].identity
    assert uid is not None
    return [ListenerTable.put_identity(cluster, uid)]


def ends_of_credentials(scene: Scene, key: Key, item: Item) -> list[Action]:
    cluster = key.partition.removeprefix("cluster#")
    found = ListenerTable(scene.store).credentials(cluster)
    assert found is not None
    return [ListenerTable.put_credentials(cluster, found, str(item["tx"]))]


def an_inflight(scene: Scene, key: Key, item: Item) -> list[Action]:
    table = InflightTable(scene.store, key.partition.removeprefix("inflight#"))
    found = table.read(str(key.sort))
    assert found is not None
    before = replace(found, version=found.version - 1) if found.version > 1 else None
    return table.put(str(key.sort), before, found, str(item["tx"]))[1]


def a_note(scene: Scene, key: Key, _item: Item) -> list[Action]:
    shard = key.partition.removeprefix("named-marks#")
    version = NamedUpstreamTable(scene.store).marks(shard)[str(key.sort)]
    return [NamedUpstreamTable.mark(shard, str(key.sort), version)]


def a_request(scene: Scene, key: Key, item: Item) -> list[Action]:
    fresh = MemoryStore(clock=ManualClock())
    table = RequestTable(fresh, key.partition.removeprefix("resync#"))
    fields = (cast(str, item["cluster"]), cast(bool, item["dry_run"]), cast(bool, item["force"]))
    request = ResyncRequest(str(key.sort), *fields, cast(int, item["at_ms"]))
    table.leave(request)
    if item["status"] == "answered":
        report = RequestTable(scene.store, "0").collect(request)
        assert report is not None
        fresh.transact(table.answer(request, report, str(item["tx"])), "t")
    return [Put(key, _without_key(found)) for key, found in fresh.dump().items()]


def an_access(scene: Scene, key: Key, _item: Item) -> list[Action]:
    access = ZoneAccessTable(scene.store).read(str(key.sort))
    fresh = MemoryStore(clock=ManualClock())
    ZoneAccessTable(fresh).put(str(key.sort), access)
    return list(fresh.calls[-1].actions)


def a_problem(scene: Scene, key: Key, item: Item) -> list[Action]:
    table = ZoneProblemTable(scene.store, key.partition.removeprefix("zones#"), str(item["session"]))
    [found] = [each for each in table.current() if each.zone_id == key.sort]
    return [table.put(str(key.sort), found.problem, seconds(found.at), str(item["tx"]))]


def a_conflict_check(scene: Scene, key: Key, item: Item) -> list[Action]:
    table = ZoneProblemTable(scene.store, key.partition.removeprefix("looks#"), "any")
    return [table.put_check(str(key.sort), table.checked_at(str(key.sort)), str(item["tx"]))]


def a_state(scene: Scene, key: Key, item: Item) -> list[Action]:
    table = StateTable(scene.store)
    wanted = service_key(key.partition.partition("#")[0], str(key.sort).removeprefix("key#"))
    after = table.load([wanted])[wanted]
    before = KeyState(wanted, version=after.version - 1)
    return table.put(before, after, str(item["tx"]))[1]


def a_slice(scene: Scene, key: Key, _item: Item) -> list[Action]:
    cluster = key.partition.partition("#")[0]
    namespace, _, name = str(key.sort).removeprefix("slice#").partition("/")
    service = StateTable(scene.store).all_slices(cluster)[namespace, name]
    return [StateTable.remember_slice(cluster, namespace, name, service)]


def an_open_mark(scene: Scene, key: Key, _item: Item) -> list[Action]:
    cluster = key.partition.partition("#")[0]
    wanted = service_key(cluster, str(key.sort))
    return [StateTable.mark_open(wanted, StateTable(scene.store).queued(cluster).marks[wanted])]


def a_promotion(scene: Scene, key: Key, _item: Item) -> list[Action]:
    cluster = key.partition.partition("#")[0]
    path, _, name = str(key.sort).partition("#heir#")
    assert service_key(cluster, path) in StateTable(scene.store).queued(cluster).promoted
    zone_id, _, rest = name.partition("/")
    return [StateTable.mark_promoted(service_key(cluster, path), Name(zone_id, rest))]


def names_asked_for(scene: Scene, key: Key, _item: Item) -> list[Action]:
    cluster = key.partition.partition("#")[0]
    table = NameCountTable(scene.store)
    held = table.held(cluster, str(key.sort))
    assert table.all_held(cluster)[str(key.sort)] == held
    return [NameCountTable.correct(cluster, str(key.sort), None, held)]


def tombstones(scene: Scene, key: Key, _item: Item) -> list[Action]:
    cluster = key.partition.partition("#")[0]
    wanted = service_key(cluster, str(key.sort).removesuffix("#gone"))
    table = StateTable(scene.store)
    assert wanted in table.queued(cluster).unswept
    return table.put(KeyState(wanted), table.load([wanted])[wanted], "any")[1]


def a_claim(scene: Scene, key: Key, _item: Item) -> list[Action]:
    """As it was gained, then moved by each that came to wait."""
    name = _name_of(key)
    found = ClaimTable(scene.store).read([name])[name]
    fresh = MemoryStore(clock=ManualClock())
    table = ClaimTable(fresh)
    fresh.transact(table.gain(name, found.owner), "gain")
    for number in range(found.version - 1):
        coming = number < found.waiting
        now = table.read([name])[name]
        waiter = ObjectKey("any", "any", f"w{number}")
        fresh.transact(table.wait(now, waiter, "") if coming else table.requeue(now, waiter, "x", []), f"w{number}")
    return [Put(place, _without_key(item)) for place, item in fresh.dump().items()]


def a_waiter(scene: Scene, key: Key, _item: Item) -> list[Action]:
    claim_sort, _, rest = str(key.sort).partition("#wait#")
    name = _name_of(replace(key, sort=claim_sort))
    table = ClaimTable(scene.store)
    [(waiter, place)] = [found for found in table.waiters(name) if found[1] == key]
    created_at = rest.removesuffix(f"#{waiter}")
    assert place == key
    return table.wait(table.read([name])[name], waiter, created_at)


def an_upstream(scene: Scene, key: Key, _item: Item) -> list[Action]:
    found = UpstreamTable(scene.store).read(key.partition)
    assert found is not None
    before = UpstreamState(found.version - 1, "", 1) if found.version > 1 else None
    if found.deleted:
        return UpstreamTable.remove(key.partition, before, seconds(found.updated_at))
    nodes = [Node(**node) for node in found.nodes]
    return UpstreamTable.put(key.partition, before, nodes, seconds(found.updated_at))[1]


def changes(scene: Scene, key: Key, item: Item) -> list[Action]:
    entries = [Entry(*row) for row in unpack(cast("str | bytes", item["body"]))]
    token = str(key.sort).rpartition("#")[2]
    table = AuditTable(str(item["session"]))
    return [table.changes(key.partition.split("#")[1], entries, cast(int, item["epoch"]), seconds(item["at"]), token)]


def an_error(scene: Scene, key: Key, item: Item) -> list[Action]:
    fields = {name: value for name, value in item.items() if name not in ("v", "at", "session", "expires_at")}
    table = AuditTable(str(item["session"]))
    return [table.error(key.partition.split("#")[1], fields, seconds(item["at"]))]


def an_end(scene: Scene, _key: Key, item: Item) -> list[Action]:
    fields = {name: value for name, value in item.items() if name not in ("v", "at", "session", "expires_at")}
    return [AuditTable(str(item["session"])).session_ended(fields, seconds(item["at"]))]


REWRITES: Final[Mapping[str, Rewrite]] = {
    "configuration": a_configuration,
    "checkpoint": a_checkpoint,
    "identity of a cluster": an_identity,
    "ends of credentials": ends_of_credentials,
    "inflight": an_inflight,
    "note for the composer": a_note,
    "resync request": a_request,
    "access to a zone": an_access,
    "problem of a zone": a_problem,
    "conflict checks of a zone": a_conflict_check,
    "key": a_state,
    "service of an EndpointSlice": a_slice,
    "open mark": an_open_mark,
    "promotion note": a_promotion,
    "note of tombstones": tombstones,
    "names asked for": names_asked_for,
    "claim": a_claim,
    "claim of a set identifier": a_claim,
    "waiter": a_waiter,
    "upstream": an_upstream,
    "changes": changes,
    "history of errors": an_error,
    "end of a session": an_end,
}


def test_every_kind_is_rewritten_moved_or_sliced() -> None:
    assert KINDS.keys() == REWRITES.keys() | MOVED | SLICED | REPORTS
    assert not REWRITES.keys() & (MOVED | SLICED | REPORTS)


@pytest.mark.parametrize("name", SCENES)
def test_what_is_read_is_written_again_to_the_byte(name: str) -> None:
    scene = Scene(name)
    for key, item in scene.items.items():
        kind = kind_of_item(key)
        if kind in REWRITES:
            again = {each.key: each.item for each in REWRITES[kind](scene, key, item) if isinstance(each, Put)}
            assert key in again, f"{kind}: {key} is not written"
            assert canonical(again[key]) == canonical(item), key


def test_named_upstreams_are_written_again_to_the_byte() -> None:
    scene = Scene("named-upstreams")
    registry = NamedUpstreamTable(scene.store).read()
    assert registry.version == 6
    fresh = MemoryStore(clock=ManualClock())
    table = NamedRegistry(fresh)
    for name in ("shop", "main", "more"):
        entry = replace(registry.entries[name], held_by=())
        table.put(entry, table.read())
        for who in registry.entries[name].held_by:
            table.hold(name, who, table.read())
    written, wanted = (
        {
            key: dict(item)
            for key, item in items.items()
            if key.partition == "named-upstreams" and key.sort != "#registry"
        }
        for items in (fresh.dump(), scene.store.dump())
    )
    for item in (*written.values(), *wanted.values()):
        del item["revision"]  # one more was registered there, and removed
    assert written == wanted


@pytest.mark.parametrize("name", FILES)
def test_same_calls_write_the_same_items(tmp_path: Path, name: str) -> None:
    """All that the file was recorded with, slices and what calls move by single attributes included."""
    record(tmp_path / name)
    now, then = (_joined(json.loads((folder / name).read_text())) for folder in (tmp_path, DIRECTORY))
    assert now == then


def test_report_of_a_resync_over_100_kb_is_in_slices() -> None:
    store = MemoryStore(clock=ManualClock())
    table = RequestTable(store, "0")
    request = new_request("r1", "prod", 1_800_000_000.0, dry_run=False, force=False)
    table.leave(request)
    report = {f"key-{n}": sha256(str(n).encode()).hexdigest() for n in range(4000)}
    store.transact(table.answer(request, report, "tx-1"), "t")
    place = "2027-01-15T08:00:00.000Z#r1"
    found = {str(key.sort): _without_key(item) for key, item in store.dump().items()}
    assert found.keys() == {place, f"{place}#001"}
    assert {name: value for name, value in found[place].items() if name != "report"} == {
        "v": 1, "cluster": "prod", "dry_run": False, "force": False, "status": "answered", "at_ms": 1_800_000_000_000,
        "expires_at": 1_800_003_600, "slices": 2, "tx": "tx-1",
    }  # fmt: skip
    assert found[f"{place}#001"].keys() == {"v", "body", "expires_at"}
    assert (found[f"{place}#001"]["v"], found[f"{place}#001"]["expires_at"]) == (1, 1_800_003_600)
    whole = zlib.decompress(cast(bytes, found[place]["report"]) + cast(bytes, found[f"{place}#001"]["body"]))
    assert (len(whole), sha256(whole).hexdigest()) == WHOLE_REPORT


WHOLE_REPORT: Final = (310_891, "5c5360939b69ba7aeb983f19e8b8435a00398def98506bd9a15d3a4b459f2124")


def canonical(item: Mapping[str, object]) -> dict[str, object]:
    """Deflated bodies inflated, as text."""
    return {
        name: zlib.decompress(value).decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value
        for name, value in item.items()
    }


def _joined(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a file whose bodies are deflated in slices of a few bytes: inflated at their heads, left out of slices."""
    bodies: dict[tuple[str, str], bytes] = {}
    for row in sorted(rows, key=lambda row: str(row.get("sk", ""))):
        for name in ("body", "report"):
            if isinstance(row.get(name), dict):
                head = _head_of(row)
                bodies[head] = bodies.get(head, b"") + base64.b64decode(row.pop(name)["bytes"])
    inflated = {head: zlib.decompress(body).decode("utf-8", "surrogatepass") for head, body in bodies.items()}
    return [{**row, "inflated": inflated.get(_head_of(row), "")} for row in rows]


def _head_of(row: Mapping[str, Any]) -> tuple[str, str]:
    sort = str(row.get("sk", ""))
    head, _, number = sort.rpartition("#")
    return (str(row.get("pk", "")), head if number.isdigit() and len(number) == 3 else sort)


def _name_of(key: Key) -> Name:
    name, _, identifier = str(key.sort).partition("#set#")
    return Name(key.partition.split("#")[1], name, identifier.replace("%2F", "/"))


def _without_key(item: Item) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("pk", "sk")}
