"""Every kind of item that stands in the four tables, told by its key; and which attributes items of a kind have."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, cast

from harness.fakes.memory_store import Call
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, KEY_ATTRIBUTES, STATE, UPSTREAMS, Key, Put, Update
from kubesync.aws.tables.items import SCHEMA

_GOLDEN: Final = Path(__file__).resolve().parents[2] / "golden"

_RESOURCE: Final = "(services|endpoints|endpointslices|ingresses)"
_CLUSTER: Final = "[-a-z0-9]+"
_TIME: Final = r"[-0-9]+T[:.0-9]+Z"
_DAY: Final = r"\d{4}-\d\d-\d\d"
_OBJECT: Final = "[^/#]+/[^/#]+"
_SLICE: Final = r"#\d{3,}"

# Table, partition, sort key.
KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "epoch counter": (CONTROL, "lease", "epoch"),
    "owner of the tables": (CONTROL, "lease", "deployment"),
    "lease": (CONTROL, r"lease#\w+", "lease"),
    "fence of a shard": (CONTROL, r"lease#\w+", "fence"),
    "fence of a cluster": (CONTROL, f"cluster#{_CLUSTER}", "fence"),
    "checkpoint": (CONTROL, f"cluster#{_CLUSTER}", f"checkpoint#{_RESOURCE}"),
    "errors of a listener": (CONTROL, f"cluster#{_CLUSTER}", f"errors#{_RESOURCE}"),
    "identity of a cluster": (CONTROL, f"cluster#{_CLUSTER}", "identity"),
    "ends of credentials": (CONTROL, f"cluster#{_CLUSTER}", "credentials"),
    "configuration": (CONTROL, "clusters", _CLUSTER),
    "inflight": (CONTROL, r"inflight#\w+", "[^#]+"),
    "inflight, slice": (CONTROL, r"inflight#\w+", f"[^#]+{_SLICE}"),
    "version of the named upstreams": (CONTROL, "named-upstreams", "#registry"),
    "named upstream": (CONTROL, "named-upstreams", "[^#]+"),
    "note for the composer": (CONTROL, r"named-marks#\w+", ".+/.+"),
    "resync request": (CONTROL, r"resync#\w+", f"{_TIME}#[^#]+"),
    "resync request, slice": (CONTROL, r"resync#\w+", f"{_TIME}#[^#]+{_SLICE}"),
    "resync under way": (CONTROL, r"resync#\w+", f"{_TIME}#[^#]+#underway"),
    "part of a resync": (CONTROL, f"resync-parts#{_TIME}#[^#]+", _CLUSTER),
    "part of a resync, slice": (CONTROL, f"resync-parts#{_TIME}#[^#]+", f"{_CLUSTER}{_SLICE}"),
    "result of a resync": (CONTROL, r"resynced#\w+", f"{_TIME}#[^#]+"),
    "result of a resync, slice": (CONTROL, r"resynced#\w+", f"{_TIME}#[^#]+{_SLICE}"),
    "access to a zone": (CONTROL, "zones", "[^#]+"),
    "heir in another shard": (CONTROL, "heirs", f"{_CLUSTER}/.+#[^#]+/.+"),
    "problem of a zone": (CONTROL, r"zones#\w+", "[^#]+"),
    "conflict checks of a zone": (CONTROL, r"looks#\w+", "[^#]+"),
    "key": (STATE, f"{_CLUSTER}#[0-9a-f]", f"key#{_OBJECT}"),
    "key, slice": (STATE, f"{_CLUSTER}#[0-9a-f]", f"key#{_OBJECT}{_SLICE}"),
    "service of an EndpointSlice": (STATE, f"{_CLUSTER}#[0-9a-f]", f"slice#{_OBJECT}"),
    "open mark": (STATE, f"{_CLUSTER}#open#[0-3]", _OBJECT),
    "promotion note": (STATE, f"{_CLUSTER}#open#[0-3]", f"{_OBJECT}#heir#.+"),
    "note of tombstones": (STATE, f"{_CLUSTER}#open#[0-3]", f"{_OBJECT}#gone"),
    "names asked for": (STATE, f"{_CLUSTER}#(asked|waits|sets)", "[^/#]+"),
    "claim": (STATE, "names#[^#]+#[0-9a-f]", "[^#]+"),
    "claim of a set identifier": (STATE, "names#[^#]+#[0-9a-f]", "[^#]+#set#[^#]+"),
    "claim of a seat": (STATE, "names#[^#]+#[0-9a-f]", "[^#]+#is#[^#]+"),
    "waiter": (STATE, "names#[^#]+#[0-9a-f]", "[^#]+(#(set|is)#[^#]+)?#wait#[^#]*#.+"),
    "upstream": (UPSTREAMS, ".+", "0"),
    "upstream, slice": (UPSTREAMS, ".+", "[1-9][0-9]*"),
    "changes": (AUDIT, f"changes#({_CLUSTER}|@named)#{_DAY}", f"{_TIME}#[^#]+#[^#]+"),
    "history of errors": (AUDIT, f"errors#{_CLUSTER}", f"{_TIME}#[^#]+#[^#]+"),
    "report of a session": (AUDIT, "reports#session", f"{_TIME}#[^#]+"),
    "report of a recovery": (AUDIT, "reports#recovery", f"{_TIME}#[^#]+"),
    "end of a session": (AUDIT, "sessions", f"{_TIME}#[^#]+"),
}
# Attributes that goldens of the first releases do not have.
_LATER: Final[Mapping[str, frozenset[str]]] = {
    "configuration": frozenset({"allowed_deletions"}),
    "checkpoint": frozenset({"believed", "limit", "pending", "holding", "unwanted"}),
    "lease": frozenset({"clusters", "lag", "resynced_at_ms", "silent", "turn"}),
    "owner of the tables": frozenset({"schema"}),
    "resync request": frozenset({"scheduled"}),
}
_COUNT: Final = re.compile(r"count_ERR_[A-Z_]+")


def kind_of_item(key: Key) -> str:
    """The kind of item that stands at a key.

    Raises:
        LookupError: nothing of what is known stands at such a key.
    """
    for kind, (table, partition, sort) in KINDS.items():
        if table == key.table and re.fullmatch(partition, key.partition) and re.fullmatch(sort, str(key.sort)):
            return kind
    raise LookupError(f"no kind of item that has a golden stands at {key.table} {key.partition}/{key.sort}")


def attributes_of(table: str, names: Iterable[str]) -> frozenset[str]:
    """Attribute names without those of the key; counts of errors go by one name."""
    return frozenset(_COUNT.sub("count_<error key>", name) for name in names if name not in KEY_ATTRIBUTES[table])


@cache
def golden_forms() -> Mapping[str, frozenset[frozenset[str]]]:
    """By kind: which sets of attributes the golden items have. One file holds items with long values cut short."""
    found: dict[str, set[frozenset[str]]] = {}
    for path in (
        sorted(_GOLDEN.glob("schema-*.json")) + sorted(_GOLDEN.glob("tables/*")) + sorted(_GOLDEN.glob("large/*"))
    ):
        document = json.loads(path.read_text())
        rows = document if isinstance(document, list) else document.get("tables") or document["in_short"]
        for row in rows:
            partition, sort = (row[name] for name in KEY_ATTRIBUTES[row["table"]])
            key = Key(row["table"], partition, sort)
            found.setdefault(kind_of_item(key), set()).add(attributes_of(key.table, row.keys() - {"table"}))
    return {kind: frozenset(forms) for kind, forms in found.items()}


def why_unknown(calls: Iterable[Call]) -> str:
    """The first write of these calls whose like no golden is, in one line; empty where there is none."""
    for call in calls:
        for action in call.actions:
            if isinstance(action, Put | Update) and (why := _why_unknown(action)):
                return f"{action.key.table} {action.key.partition}/{action.key.sort}: {why}"
    return ""


def _why_unknown(action: Put | Update) -> str:
    fields = action.item if isinstance(action, Put) else {**action.set, **action.add}
    if cast(int, fields.get("v", SCHEMA)) > SCHEMA:
        return ""  # a test plays a newer release
    try:
        kind = kind_of_item(action.key)
    except LookupError as error:
        return str(error)
    if kind not in golden_forms():
        return ""
    forms = golden_forms()[kind]
    written = attributes_of(action.key.table, fields) - _LATER.get(kind, frozenset())
    missing = frozenset.intersection(*forms) - written if isinstance(action, Put) else frozenset[str]()
    odd = sorted(written - frozenset.union(*forms)) + sorted(missing)
    return f"no golden of a {kind!r} is written with, or without, {', '.join(odd)}" if odd else ""
