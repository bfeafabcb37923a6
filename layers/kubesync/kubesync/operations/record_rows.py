"""What a dry run's resync would do to record sets, for a report: one row for each, as the zone would change.

the key's state, and the zone                     the row
-----------------------------                     -------
applied and intended differ                       from ``applied`` to ``intended``
the set was changed or deleted by hand            from what stands in the zone
a foreign set stands there                        with ``conflict``: it stays undone
the cluster's policy forbids the change           none
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from kubesync.aws.tables.audit import describe
from kubesync.cluster.keys.reconciler import Preview
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.standing import Drift, Stands, what_stands, why_foreign
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Policy, changes_of
from kubesync.domain.state import KeyState, Name

WAITING: Final = "waiting"
"""Why a set changes that was planned earlier and is not written yet. Others: ``Preview.news``, and what somebody did by hand."""
_BY_HAND: Final = {
    Stands.CHANGED: "changed by hand",
    Stands.GONE: "deleted by hand",
    Stands.FOREIGN: "replaced by hand",
}


def side(record_set: RecordSet) -> dict[str, Any]:
    """A set as audit entries show it, and what they leave out: an alias' zone and health check, weight, foreign routing."""
    found = dict(cast("dict[str, Any]", describe(record_set)))
    if record_set.alias is not None:
        found |= {"alias_zone": record_set.alias.zone_id, "evaluate_health": record_set.alias.evaluate_health}
    found |= record_set.routing.fields
    if record_set.foreign_form:
        found["foreign_form"] = record_set.foreign_form
    return found


@dataclass(frozen=True, slots=True)
class ForeseenChanges:
    """Keys whose applied and intended sets differ, without their parts, and why each of them changes."""

    states: Mapping[ObjectKey, KeyState]
    why: Mapping[ObjectKey, str]

    @classmethod
    def of(cls, preview: Preview) -> ForeseenChanges:
        """Keep of a preview only what changes: it must not hold all states of a cluster."""
        slim = {
            key: KeyState(key, intended=state.intended, applied=state.applied)
            for key, state in preview.states.items()
            if state.intended != state.applied
        }
        return cls(slim, {key: preview.news[key] for key in slim if key in preview.news})

    def rows(
        self,
        policy: Policy,
        drifts: Sequence[Drift],
        conflicts: Mapping[tuple[str, Name], str],
        landed: Mapping[RecordKey, RecordSet | None],
    ) -> list[dict[str, Any]]:
        """One row for each set, in the order of zones and names.

        Args:
            conflicts: by service and name, why.
            landed: sets as a batch left them that nobody has settled (``drift.landed``).
        """
        drifted: dict[ObjectKey, dict[RecordKey, Drift]] = defaultdict(dict)
        for drift in drifts:
            drifted[drift.service][drift.key] = drift
        found: list[tuple[RecordKey, str, dict[str, Any]]] = []
        for key in self.states.keys() | drifted.keys():
            of_key = drifted.get(key, {})
            state = self.states.get(key)
            if state is None:  # it wants what was applied
                known = {drift.key: drift.known for drift in of_key.values()}
                state = KeyState(key, intended=known, applied=known)
            mended = replace(state, applied=_as_it_stands(state, of_key.values(), landed))
            for change in changes_of(mended, policy):
                row = _row(str(key), change.key, change.before, change.after)
                row["why"] = _why(of_key.get(change.key)) or self.why.get(key) or WAITING
                reason = _conflict(of_key.get(change.key)) or conflicts.get((str(key), Name.of(change.key)))
                if reason and change.before is None:
                    row["conflict"] = reason
                found.append((change.key, str(key), row))
        return [row for _, _, row in sorted(found, key=lambda each: each[:2])]


def counts_of(records: Iterable[Mapping[str, Any]], changes: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many record sets and upstreams are to be added, changed and deleted, without those in conflict."""
    upstreams = (row for row in changes if str(row["what"]).startswith("upstream "))
    return {
        "records": _counted(row for row in records if "conflict" not in row),
        "upstreams": _counted(upstreams),
    }


def _counted(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    found = Counter("add" if row["from"] is None else "delete" if row["to"] is None else "change" for row in rows)
    return {kind: found[kind] for kind in ("add", "change", "delete")}


def _as_it_stands(
    state: KeyState, drifts: Iterable[Drift], landed: Mapping[RecordKey, RecordSet | None]
) -> dict[RecordKey, RecordSet]:
    found = dict(state.applied)
    for key in (state.applied.keys() | state.intended.keys()) & landed.keys():
        wanted = state.intended.get(key)
        if landed[key] == wanted and wanted is None:
            del found[key]
        elif landed[key] == wanted and wanted is not None:
            found[key] = wanted
    for drift in drifts:
        if drift.stands is None or what_stands(drift.known, drift.stands) is Stands.FOREIGN:
            found.pop(drift.key, None)
        else:
            found[drift.key] = drift.stands
    return found


def _row(service: str, key: RecordKey, before: RecordSet | None, after: RecordSet | None) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": key.type,
        **({"identifier": key.identifier} if key.identifier else {}),
        "zone": key.zone_id,
        "service": service,
        "from": None if before is None else side(before),
        "to": None if after is None else side(after),
    }


def _why(drift: Drift | None) -> str:
    return "" if drift is None else _BY_HAND[what_stands(drift.known, drift.stands)]


def _conflict(drift: Drift | None) -> str:
    """Why a set that somebody put in the place of ours stays."""
    if drift is None or drift.stands is None or what_stands(drift.known, drift.stands) is not Stands.FOREIGN:
        return ""
    return why_foreign(drift.key, drift.stands)
