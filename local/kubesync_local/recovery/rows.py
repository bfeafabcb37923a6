"""How a report shows record sets: every property in which two sets can differ. How much of a report is kept."""

from collections.abc import Mapping
from typing import Any, Final

from kubesync.aws.tables.items import MAX_SLICE_BYTES, pack
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.operations.record_rows import side

_ROWS: Final = 100
"""How many rows of each list of a report are kept. If the report does not fit, half as many, and so on."""


def row(key: RecordKey, record_set: RecordSet, service: str = "") -> dict[str, Any]:
    """One set that stands in a zone."""
    return {
        "zone": key.zone_id,
        "name": key.name,
        "type": key.type,
        **({"identifier": key.identifier} if key.identifier else {}),
        "service": service,
        "stands": side(record_set),
    }


def differing(
    key: RecordKey, record_set: RecordSet, wanted_key: RecordKey, wanted: RecordSet, service: str
) -> dict[str, Any]:
    """One set that is in the way of a wanted one."""
    return {
        **row(key, record_set, service),
        "wanted": side(wanted),
        "wanted_type": wanted_key.type,
        **({"wanted_identifier": wanted_key.identifier} if wanted_key.identifier else {}),
        "differs": differences(key, record_set, wanted_key, wanted),
    }


def differences(key: RecordKey, stands: RecordSet, wanted_key: RecordKey, wanted: RecordSet) -> list[str]:
    """Every property in which two sets differ, for people."""
    kinds = {stands.routing.kind, wanted.routing.kind}
    found = {
        "type": key.type != wanted_key.type,
        "set identifier": key.identifier != wanted_key.identifier,
        "weight": stands.routing != wanted.routing and "weighted" in kinds,
        "routing": stands.foreign_form != wanted.foreign_form
        or (stands.routing != wanted.routing and kinds - {"simple", "weighted"}),
    }
    if stands.alias is None and wanted.alias is None:
        found |= {"ttl": stands.ttl != wanted.ttl, "values": stands.values != wanted.values}
    elif stands.alias is None or wanted.alias is None:
        found["alias"] = True
    else:
        one, other = stands.alias, wanted.alias
        found["alias target"] = (one.zone_id, one.name) != (other.zone_id, other.name)
        found["evaluate-health"] = one.evaluate_health != other.evaluate_health
    return [property_ for property_, differs in found.items() if differs]


def recovery_in_short(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a recovery, cut to one item: of each list its length, and the first rows."""
    rows = _ROWS
    while True:
        found: dict[str, Any] = _cut(report, rows)
        if rows == 0 or len(pack(found)) <= MAX_SLICE_BYTES:
            return found
        rows //= 2


def _cut(value: Any, rows: int) -> Any:
    """A value with at most so many rows of each list, and the lengths of cut lists in ``counts``. Lists of clusters stay complete."""
    if isinstance(value, Mapping):
        lists = {name: len(each) for name, each in value.items() if isinstance(each, list) and len(each) > rows}
        lists.pop("clusters", None)
        cut = {name: each if name not in lists else each[:rows] for name, each in value.items()}
        found = {name: _cut(each, rows) for name, each in cut.items()}
        return {**found, "counts": lists} if lists else found
    return [_cut(each, rows) for each in value] if isinstance(value, list) else value
