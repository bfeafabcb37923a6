"""The table of ``kubesync recover``: every row that a person has to look at, and every difference in it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

COLUMNS: Final = ("name", "type", "what", "current", "wanted", "differs", "why", "registered_for", "service", "cluster")
WHAT: Final = {
    "claimed": "exists as wanted: {would_be}taken over",
    "unproven": "exists as wanted, in a zone that kubesync has not written yet: {would_be}not taken over",
    "differing": "exists in another form: you decide",
    "registered": "external-dns keeps it, kubesync does not want it: you decide",
    "unwanted": "no cluster of this deployment wants it{unlisted}: you decide",
}
RECORD_COLUMNS: Final = ("name", "identifier", "covers", "what", "registered_for")
_MAY_GO: Final = "external-dns' own: may go after external-dns is switched off"
_NEEDED: Final = "external-dns' own: needed until kubesync holds what it covers"
_UNMATCHED: Final = "external-dns' own: covers nothing that stands under this name"
_SHARED: Final = "external-dns' own value may go after external-dns is switched off; the other values stay"
_VALUES_SHOWN: Final = 6


def rows_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a recovery's report, without external-dns' TXT records."""
    known = {_id(row) for kind in ("registered", "registry_records") for row in found[kind]}
    by_kind = {
        kind: [
            {"cluster": cluster["cluster"], **row}
            for cluster in found["clusters"]
            for row in cluster.get(kind, [])
            if kind != "unwanted" or _id(row) not in known
        ]
        for kind in ("claimed", "unproven", "differing", "unwanted")
    }
    by_kind["registered"] = found["registered"]
    would_be = "would be " if found.get("dry_run") else ""
    return [
        {"what": text.format(would_be=would_be, unlisted=_unlisted(row)), **row, **_shown(row)}
        for kind, text in WHAT.items()
        for row in by_kind[kind]
    ]


def _unlisted(row: Mapping[str, Any]) -> str:
    names = ", ".join(row.get("unlisted", ()))
    return f", as far as is known (not listed in this run: {names})" if names else ""


def unwanted_only(found: Mapping[str, Any], cluster: Mapping[str, Any]) -> int:
    """How many sets of a cluster's domain nobody wants, without those that external-dns registered."""
    known = {_id(row) for kind in ("registered", "registry_records") for row in found[kind]}
    return sum(_id(row) not in known for row in cluster["unwanted"])


def _id(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return row["zone"], row["name"], row["type"], row.get("identifier", "")


def record_rows_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of external-dns' TXT records: what each covers, and whether it may go."""
    return [
        {**row, "what": _what_becomes(row), "registered_for": _registered_for(row)} for row in found["registry_records"]
    ]


def _what_becomes(row: Mapping[str, Any]) -> str:
    if not row["covers"]:
        return _UNMATCHED
    if not row["held"]:
        return _NEEDED
    return _MAY_GO if row["alone"] else _SHARED


def _registered_for(row: Mapping[str, Any]) -> str:
    owner = f" (owner {row['owner']})" if row["owner"] else ""
    return f"{row['resource'] or 'nothing named'}{owner}"


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    stands, wanted = row["stands"], row.get("wanted")
    shown = {"current": side_in_full(stands, row.get("identifier", ""), wanted)}
    if wanted is not None:
        type_ = f"{row['wanted_type']} " if row["wanted_type"] != row["type"] else ""
        shown["wanted"] = type_ + side_in_full(wanted, row.get("wanted_identifier", ""), stands)
    if "resource" in row:
        shown["registered_for"] = _registered_for(row)
    return shown


def side_in_full(side: Mapping[str, Any], identifier: str, other: Mapping[str, Any] | None) -> str:
    """A set with everything in which it can differ from another: also weight, routing, and an alias' zone and health check.

    Args:
        other: the set that it is compared with, if any. Of more than six values, those are shown that the other does not have.
    """
    if "alias" in side:
        health = "yes" if side["evaluate_health"] else "no"
        what = f"alias {side['alias']} (zone {side['alias_zone']}, evaluate-health {health})"
    else:
        values = _values(side["values"], [] if other is None else other.get("values", []), compared=other is not None)
        what = f"{values} ttl {side['ttl']}"
    marks = [f"set identifier {identifier}"] if identifier else []
    marks += [side["routing"]] if "routing" in side else [f"weight {side['weight']}"] if "weight" in side else []
    marks += [side["foreign_form"]] if "foreign_form" in side else []
    return f"{what} [{', '.join(marks)}]" if marks else what


def _values(values: Sequence[str], others: Sequence[str], *, compared: bool) -> str:
    if len(values) <= _VALUES_SHOWN:
        return ", ".join(values)
    shown = [value for value in values if value not in set(others)] if compared else list(values[:_VALUES_SHOWN])
    more = len(values) - len(shown)
    rest = f"{more} {'that are the same' if compared else 'more'}"
    if not shown:
        return rest
    return ", ".join(shown) + (f" and {rest}" if more else "")
