"""Today's code writes golden items as they were written: the same calls write the same items, to the byte.

Deflated bodies are compared inflated: how tightly they are packed is the library's affair.
"""

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.golden.golden_items import DIRECTORY, FILES, record
from harness.golden.golden_stage import items_of, names_of_documents, read_document
from harness.golden.item_kinds import KINDS, kind_of_item
from kubesync.aws.dynamodb.store import KEY_ATTRIBUTES, Action, Item, Key, Put
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.control.resync_requests import ResyncTable, new_request
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.name_counts import NAMES, NameCountTable
from kubesync_local.registration.named_upstreams import NamedRegistry
from kubesync_local.workplace.readings import ListenerReadings

SCENES: Final = names_of_documents()
type Rewrite = Callable[["Scene", Key, Item], list[Action]]


class Scene:
    """The items of one file, in a store."""

    def __init__(self, name: str) -> None:
        self.items = items_of(read_document(name))
        self.store = MemoryStore(clock=ManualClock())
        for key, item in self.items.items():
            self.store.write(Put(key, item))


def ends_of_credentials(scene: Scene, key: Key, item: Item) -> list[Action]:
    cluster = key.partition.removeprefix("cluster#")
    found = ListenerReadings(scene.store).credentials(cluster)
    assert found is not None
    return [ListenerReadings.put_credentials(cluster, found, str(item["tx"]))]


def a_conflict_check(scene: Scene, key: Key, item: Item) -> list[Action]:
    table = ZoneProblemTable(scene.store, key.partition.removeprefix("looks#"), "any")
    return [table.put_check(str(key.sort), table.checked_at(str(key.sort)), str(item["tx"]))]


def names_asked_for(scene: Scene, key: Key, _item: Item) -> list[Action]:
    cluster = key.partition.partition("#")[0]
    table = NameCountTable(scene.store)
    place = NAMES, str(key.sort)
    held = table.stored(cluster, place)
    assert table.all_stored(cluster)[place] == held
    return [NameCountTable.correct(cluster, place, None, held)]


REWRITES: Final[Mapping[str, Rewrite]] = {
    "ends of credentials": ends_of_credentials,
    "conflict checks of a zone": a_conflict_check,
    "names asked for": names_asked_for,
}
"""What only scenes have: ``test_same_calls_write_the_same_items`` holds all other kinds, slices of some included."""


def test_every_kind_is_written_by_calls_or_rewritten() -> None:
    rows = [row for name in FILES for row in json.loads((DIRECTORY / name).read_text())]
    by_calls = {kind_of_item(Key(row["table"], *(row[name] for name in KEY_ATTRIBUTES[row["table"]]))) for row in rows}
    assert KINDS.keys() == by_calls | REWRITES.keys() | SLICED | {"heir in another shard"}
    assert not by_calls & REWRITES.keys()


# ``test_report_of_a_resync_over_100_kb_is_in_slices`` has such, and the sessions of ``test_golden_tables``.
SLICED: Final = {"resync request, slice", "result of a resync, slice", "upstream, slice"}


@pytest.mark.parametrize("name", SCENES)
def test_what_is_read_is_written_again_to_the_byte(name: str) -> None:
    scene = Scene(name)
    for key, item in scene.items.items():
        if (kind := kind_of_item(key)) in REWRITES:
            again = {each.key: each.item for each in REWRITES[kind](scene, key, item) if isinstance(each, Put)}
            assert canonical(again[key]) == canonical(item), key


def test_named_upstreams_are_written_again_to_the_byte() -> None:
    scene = Scene("named-upstreams")
    registry = NamedUpstreamTable(scene.store).read()
    assert registry.version == 6
    fresh = MemoryStore(clock=ManualClock())
    table = NamedRegistry(fresh)
    for name in ("shop", "main", "more"):
        entry = replace(registry.named[name], held_by=())
        table.put(entry, table.read())
        for who in registry.named[name].held_by:
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
    table = ResyncTable(store, "0")
    request = new_request("r1", "prod", 1_800_000_000.0, dry_run=False, force=False)
    table.store(request)
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


def _without_key(item: Item) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("pk", "sk")}
