"""Converts a key to a JSON document and back. It uses lists rather than objects: there is one document per key.

Rows. Of names and sets, what is empty at the end is left out:

    name          zone id, name, set identifier, seat
    key           zone id, name, type; or in place of the type: [type, set identifier]
    set           TTL, values, alias [zone id, name, evaluate health] or null, routing policy
    record set    the fields of the key, then those of the set
    change        the fields of the key, then two rows: the set before and the set after; null: none
    part          see ``_encode_part``
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from kubesync.aws.tables.items import SCHEMA, SCHEMA_OF_TURNING, SCHEMA_OF_TYPES, pack
from kubesync.domain.dns.records import AliasTarget, Problem, RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import POLICIES, decode_routing, encode_routing
from kubesync.domain.objects import ObjectKey, Resource, texts_of
from kubesync.domain.sources.registry import SOURCES
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId, Reference, UpstreamState, turning

# A transaction of 4 MB holds these, and an upstream of 24 slices of 100 KB.
_MAX_PARTS_BYTES: Final = 1_400_000
# A key may have thousands of these: dataclasses compare slowly.
_OF_NAME: Final = attrgetter("zone_id", "name", "identifier", "seat")
_OF_KEY: Final = attrgetter("zone_id", "name", "type", "identifier")
# So many characters of the stored form come to each text: quotes, commas, brackets, numbers.
_TEXT_CHARACTERS: Final = 15
_TOO_LARGE: Final = (
    "it is too large to be stored with the others of its Service: shorten the names of nodes, zones, hosts and pods"
)


def encode_state(state: KeyState) -> dict[str, object]:
    """The document of a key, without the open mark and the item's own attributes (key and version)."""
    closed = state.applied == state.intended
    return {
        "parts": [_encode_part(part_id, part) for part_id, part in sorted(state.parts.items())],
        "intended": encode_sets(state.intended),
        "applied": None if closed else encode_sets(state.applied),
        "upstreams": {key: [u.version, u.digest, u.slices] for key, u in sorted(state.upstreams.items())},
        "problems": [[p.code, p.subject, p.message] for p in state.problems],
        "claims": [_encode_name(n) for n in sorted(state.claims, key=_OF_NAME)],
        "waits": [_encode_name(n) for n in sorted(state.waits)],
        # Here the reason stands third, before the identifier and the seat of the name.
        "conflicts": [[n.zone_id, n.name, why, *_encode_name(n)[2:]] for n, why in sorted(state.conflicts.items())],
        **({"reads": sorted(reference.path for reference in state.reads)} if state.reads else {}),
        **({"kept": [_encode_key(key) for key in sorted(state.kept)]} if state.kept else {}),
        **({"shared": [_encode_name(n) for n in sorted(state.shared)]} if state.shared else {}),
        **({"passing": [_encode_key(key) for key in sorted(state.passing)]} if state.passing else {}),
    }


def decode_state(
    key: ObjectKey, version: int, document: Mapping[str, Any], opened: OpenMark | None, slices: int
) -> KeyState:
    """The inverse of ``encode_state``."""
    intended = decode_sets(document["intended"])
    applied = intended if document["applied"] is None else decode_sets(document["applied"])
    return KeyState(
        key,
        version,
        dict(map(_decode_part, document["parts"])),
        intended,
        applied,
        {name: UpstreamState(*fields) for name, fields in document["upstreams"].items()},
        tuple(Problem(*fields) for fields in document["problems"]),
        frozenset(Name(*fields) for fields in document["claims"]),
        frozenset(Name(*fields) for fields in document["waits"]),
        {Name(zone_id, name, *identifier): why for zone_id, name, why, *identifier in document["conflicts"]},
        opened,
        slices,
        frozenset(map(Reference.at, document.get("reads", ()))),
        frozenset(map(_decode_key, document.get("kept", ()))),
        frozenset(Name(*fields) for fields in document.get("shared", ())),
        frozenset(map(_decode_key, document.get("passing", ()))),
    )


def bounded(state: KeyState) -> KeyState:
    """A key whose parts fit a transaction, beside one full upstream (I4).

    If they do not fit, the largest parts lose their values until the others fit. Such a part keeps that its object exists, and a problem. Only
    somebody who writes texts that do not deflate gets there: real endpoints are far below.
    """
    # 1. Nearly always they fit, even if nothing deflates. To count characters is fast.
    if sum(_characters(part.value) for part in state.parts.values()) <= _MAX_PARTS_BYTES:
        return state
    # 2. The sizes as they are stored.
    sizes = {part_id: len(pack(_encode_part(part_id, part))) for part_id, part in state.parts.items()}
    left, parts = sum(sizes.values()), dict(state.parts)
    for part_id in sorted(sizes, key=lambda each: (-sizes[each], each)):
        if left <= _MAX_PARTS_BYTES:
            break
        left -= sizes[part_id]
        parts[part_id] = replace(parts[part_id], value=None, problem=_TOO_LARGE)
    return replace(state, parts=parts)


def _characters(value: object) -> int:
    """About how many characters the stored form of a part's value has before it is deflated."""
    return sum(_TEXT_CHARACTERS + len(text) for text in texts_of(value) if text)


def encode_sets(sets: Mapping[RecordKey, RecordSet]) -> list[list[object]]:
    """Record sets as rows, sorted."""
    return [[*_encode_key(k), *_encode_set(s)] for k, s in sorted(sets.items(), key=lambda kv: _OF_KEY(kv[0]))]


def decode_sets(rows: Sequence[Sequence[Any]]) -> dict[RecordKey, RecordSet]:
    """The inverse of ``encode_sets``."""
    return {_decode_key(row): _decode_set(row[3:]) for row in rows}


def encode_change(change: RecordChange) -> list[object]:
    """A change of one record set as a row."""
    sides = [None if s is None else _encode_set(s) for s in (change.before, change.after)]
    return [*_encode_key(change.key), *sides]


def decode_change(row: Sequence[Any]) -> RecordChange:
    """The inverse of ``encode_change``."""
    before, after = (None if side is None else _decode_set(side) for side in row[3:5])
    return RecordChange(_decode_key(row), before, after)


def _encode_name(name: Name) -> list[str]:
    of_set = [name.identifier, name.seat] if name.seat else [name.identifier] if name.identifier else []
    return [name.zone_id, name.name, *of_set]


def _encode_key(key: RecordKey) -> list[object]:
    """Zone, name and type. If the set has an identifier, type and identifier together replace the type."""
    return [key.zone_id, key.name, [key.type, key.identifier] if key.identifier else key.type]


def _decode_key(row: Sequence[Any]) -> RecordKey:
    record_type, identifier = (row[2], "") if isinstance(row[2], str) else row[2]
    return RecordKey(row[0], row[1], record_type, identifier)


def schema_of(state: KeyState) -> int:
    """The schema version of a key's item: the highest that something in it needs. A release that does not know it leaves the key alone.

    An older release would misread a routing policy that it does not know, of a set or of a seat, and names that are shared by types
    (``SCHEMA_OF_TYPES``). It would also change at once what has to wait for sets of other keys, to change in one batch with them
    (``SCHEMA_OF_TURNING``).
    """
    of_sets = (each.routing.schema for sets in (state.intended, state.applied) for each in sets.values())
    # A seat, which is a place within a routing policy, begins with the policy: "latency eu-west-1".
    of_seats = (POLICIES[name.seat.split(" ")[0]].since for name in (*state.claims, *state.waits) if name.seat)
    of_names = (SCHEMA_OF_TURNING if turning(state) else 0, SCHEMA_OF_TYPES if state.shared else 0)
    return max((SCHEMA, *of_sets, *of_seats, *of_names))


def _encode_set(record_set: RecordSet) -> list[object]:
    alias, routing = record_set.alias, encode_routing(record_set.routing)
    row: list[object] = [record_set.ttl, list(record_set.values)]
    if alias is not None or routing is not None:
        row.append(None if alias is None else [alias.zone_id, alias.name, alias.evaluate_health])
    return row if routing is None else [*row, routing]


def _decode_set(row: Sequence[Any]) -> RecordSet:
    alias = AliasTarget(*row[2]) if len(row) > 2 and row[2] is not None else None
    return RecordSet(row[0], tuple(row[1]), alias, routing=decode_routing(row[3] if len(row) > 3 else None))


def _encode_part(part_id: PartId, part: Part) -> list[object]:
    """A part as a row. Its flags are letters. D: deleted, so it is a tombstone. H: held: a list lacked the object, but its deletion waits until a
    person confirms it."""
    flags = ("D" if part.deleted else "") + ("H" if part.held else "")
    return [
        part_id.resource.value,
        part_id.name,
        part.uid,
        part.resource_version,
        part.generation,
        flags,
        part.problem,
        None if part.value is None else SOURCES[part_id.resource].encode(part.value),
    ]


def _decode_part(row: Sequence[Any]) -> tuple[PartId, Part]:
    """The inverse of ``_encode_part``."""
    resource, name, uid, version, generation, flags, problem, value = row
    part_id = PartId(Resource(resource), name)
    decoded = None if value is None else SOURCES[part_id.resource].decode(value)
    return part_id, Part(uid, version, generation, decoded, deleted="D" in flags, problem=problem, held="H" in flags)
