"""All that decides about the future of a world, in one form that can be compared."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import CONTROL, STATE, Item, Key, Store
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from simulation.zones import MemoryRoute53


def normal_form(store: MemoryStore, route53: MemoryRoute53, clusters: Iterable[str]) -> dict[str, object]:
    """Record sets, keys, upstreams and items, one entry each: item versions, tokens and times left out."""
    found: dict[str, object] = {}
    for zone_id in route53.ids:
        for key, record_set in route53.records(zone_id).items():
            journal = key.name.startswith("_kubesync-")
            label = f"zone {zone_id} {key.name} {key.type} {key.identifier}".rstrip()
            found[label] = "journal" if journal else record_set
    found |= _states(store, clusters)
    for upstream in UpstreamTable(store).read_all():
        assert upstream.complete, f"upstream {upstream.upstream} is torn"
        nodes = tuple(tuple(sorted(node.items())) for node in upstream.nodes)
        found[f"upstream {upstream.upstream}"] = "deleted" if upstream.deleted else nodes
    for place, item in store.dump().items():
        if place.table == STATE:
            found |= _of_state(place, item)
        elif place.table == CONTROL:
            found |= _of_control(place, item)
    return found


def _states(store: Store, clusters: Iterable[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    table = StateTable(store)
    for name in clusters:
        for state in table.load_all(name):
            upstreams = {upstream: known.digest for upstream, known in state.upstreams.items()}
            plain = replace(state, version=0, slices=0, upstreams={}, opened=None)
            found[f"key {state.key}"] = (plain, upstreams, state.opened is not None)
    return found


def _of_state(key: Key, item: Item) -> dict[str, object]:
    sort = str(key.sort)
    if sort.startswith("key#"):
        return {}
    if key.partition.startswith("names#"):
        value: object = item.get("key", (item.get("owner"), item.get("waiting")))
        return {f"claim {key.partition} {sort}": value}
    if key.partition.endswith(("#waits", "#sets")):
        return {}  # written in steps, and when a session ends: a count lags behind the keys, which are here
    if key.partition.endswith("#asked"):
        return {f"names asked for {key.partition} {sort}": item["count"]}
    if "#open#" in key.partition:
        return {f"mark {key.partition} {sort}": "heir" if "#heir#" in sort else "open"}
    return {f"slice {key.partition} {sort}": item.get("service")}


def _of_control(key: Key, item: Item) -> dict[str, object]:
    sort = str(key.sort)
    if sort.startswith("checkpoint#"):
        return {f"{key.partition} {sort}": (item["resource_version"], item["generation"], item["revision"])}
    if sort == "identity":
        return {f"{key.partition} identity": item["uid"]}
    if key.partition.startswith("zones#") and item["problem"]:
        return {f"problem noted of zone {sort}": item["problem"]}
    if key.partition.startswith("named-marks#"):
        return {f"note {sort}": "to be composed"}
    if key.partition.startswith("inflight#"):
        # An announced batch stays until the next one; whether it is closed, its keys say.
        return {f"inflight {sort}": "known"} if "batch" in item else {}
    return {}


def differences(found: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    """What is not as it should be, one line each."""
    return [
        f"{place}: {_short(found.get(place))} instead of {_short(wanted.get(place))}"
        for place in sorted(found.keys() | wanted.keys())
        if found.get(place) != wanted.get(place)
    ]


def _short(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 1500 else text[:1500] + "…"
