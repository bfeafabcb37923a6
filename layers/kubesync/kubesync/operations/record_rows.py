"""Rows about record sets in the report of a resync: sets that drifted, sets that are forgotten, and what a dry run would change.

The report of a dry run has one row for each set that would change in the zone:

the key's state, and the zone                     the row
-----------------------------                     -------
applied and intended differ                       from ``applied`` to ``intended``
the set was changed or deleted by hand            from what stands in the zone
a foreign set stands there                        with ``conflict``: it stays undone
the cluster's policy forbids the change           none
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Set as AbstractSet
from dataclasses import replace
from typing import Any, Final, cast

from kubesync.aws.tables.audit import describe
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.aws.tables.of_clusters import Tables
from kubesync.cluster.keys.key_writes import Preview
from kubesync.domain.dns.drift import Drift, Stands, as_found_in_zone, why_foreign
from kubesync.domain.dns.records import RecordKey, RecordSet, in_the_way
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Policy, changes_of
from kubesync.domain.state import KeyState, Name


def drift_row(drift: Drift) -> dict[str, Any]:
    """Return a drift as a row of a report."""
    return {
        "drift": drift.what.value,
        **_set_of(drift.key, drift.service),
        "known": describe(drift.known),
        "stands": describe(drift.stands),
    }


def as_the_last_batch_left(inflight: Inflight | None, actual: Mapping[RecordKey, RecordSet]) -> frozenset[RecordKey]:
    """Return the keys of sets that are now as the zone's last batch left them: created with its value, or gone.

    If a session ended before it settled this batch, the key states do not know these sets yet, and a dry run does not settle. So these sets
    have not drifted, and are not foreign.

    Args:
        inflight: the inflight item of the zone. None: there is none.
        actual: all sets of the zone.
    """
    if inflight is None:
        return frozenset()
    # Those of the batch, and those of earlier batches that a cluster has not closed yet (``unclosed``, by cluster).
    units = [*inflight.units, *(unit for unclosed in inflight.unclosed.values() for unit in unclosed.units)]
    changes = [change for unit in units for change in unit.changes]
    return frozenset(change.key for change in changes if actual.get(change.key) == change.after)


def lost_sets(tables: Tables, actual: Mapping[RecordKey, RecordSet], others: Collection[str]) -> list[dict[str, Any]]:
    """Return rows for sets that kubesync may have made and lost track of. Nothing proves it, so a person decides (I3).

    A set is reported if a key owns its name, but the key's state has no set at this name: somebody deleted the key's item, or restored an
    older one. A set of another type at a name that the state has is not reported: it may be anybody's.

    Args:
        actual: sets of a zone that no cluster knew before the zone was walked.
        others: clusters whose keys are not read: this session does not serve them.
    """
    claims = tables.claims.read({Name.of(key) for key in actual})
    owners = {name: claim.owner for name, claim in claims.items() if claim.owner.cluster not in others}
    states = tables.state.load(set(owners.values()))
    had = {(key, Name.of(each)) for key, state in states.items() for each in (*state.intended, *state.applied)}
    return [
        {**_set_of(key, owner), "stands": describe(stands)}
        for key, stands in actual.items()
        if (owner := owners.get(Name.of(key))) and (owner, Name.of(key)) not in had
    ]


WAITING: Final = "waiting"
"""The reason in a row whose change was planned earlier and is not written yet. Other reasons: ``Preview.news`` and ``_BY_HAND``."""
_BY_HAND: Final = {
    Stands.CHANGED: "changed by hand",
    Stands.GONE: "deleted by hand",
    Stands.FOREIGN: "replaced by hand",
}


def side(record_set: RecordSet) -> dict[str, Any]:
    """Return one side of a row: the set before or after the change. It shows more than an audit entry does (``describe``): the zone of an
    alias, whether the alias follows health, the routing, and the form of a foreign set.
    """
    found = dict(cast("dict[str, Any]", describe(record_set)))
    if record_set.alias is not None:
        found |= {"alias_zone": record_set.alias.zone_id, "evaluate_health": record_set.alias.evaluate_health}
    found |= record_set.routing.report_fields
    if record_set.foreign_form:
        found["foreign_form"] = record_set.foreign_form
    return found


class DryRunForecast:
    """What a resync of one cluster would change in zones. Of the preview it keeps only key states that change, without their parts.

    Call ``find_conflicts`` for each zone, and add to ``drifts``; then ``rows``.

        the set                                            in
        -------                                            --
        is intended, and not applied                       ``_coming``, by zone id and name
        is applied, at a name where another one is coming  ``_ours``: it is no foreign set in the way
        was left by a batch that nobody has settled        ``_unsettled``, with how it stands in the zone; None: it is gone
        was changed by hand                                ``drifts``

    ``drifts``: sets that were changed by hand. ``conflicts``: by service and name, why a set that is to be made cannot be.
    """

    def __init__(self, preview: Preview) -> None:
        self.drifts: list[Drift] = []
        self.conflicts: dict[tuple[str, Name], str] = {}
        known = list(preview.states.values())
        # By zone id and name, the sets that are to be made there: the Service or Ingress, the set's key, and the set.
        self._coming: dict[tuple[str, str], list[tuple[str, RecordKey, RecordSet]]] = defaultdict(list)
        for state in known:
            for key in sorted(state.intended.keys() - state.applied.keys()):
                self._coming[key.place].append((str(state.key), key, state.intended[key]))
        # Of applied sets only those are kept that stand at a name where another one is coming: ``find_conflicts`` looks at no other name.
        self._ours = {key for state in known for key in state.applied if key.place in self._coming}
        self._states = {
            state.key: KeyState(state.key, intended=state.intended, applied=state.applied)
            for state in known
            if state.intended != state.applied
        }
        # Why the preview changes a key; a key that is not in it changes for an earlier reason (WAITING).
        self._why = {key: preview.news[key] for key in self._states if key in preview.news}
        self._unsettled: dict[RecordKey, RecordSet | None] = {}

    def find_conflicts(self, actual: Mapping[RecordKey, RecordSet], unsettled: AbstractSet[RecordKey]) -> None:
        """Find foreign sets in a zone that are in the way of sets to be made, and add them to ``conflicts``.

        Also remembers how ``unsettled`` sets stand: ``rows`` counts those that stand as intended as applied.

        Args:
            actual: all sets of the zone.
            unsettled: sets as a batch left them that nobody has settled (``as_the_last_batch_left``). They are ours.
        """
        self._unsettled |= {key: actual.get(key) for key in unsettled}
        for other, stands in actual.items():
            if other in self._ours or other in unsettled:
                continue
            for service, key, wanted in self._coming.get(other.place, ()):
                if in_the_way(other, stands, key, wanted):
                    self.conflicts[service, Name.of(key)] = why_foreign(other, stands, key)

    def rows(self, policy: Policy, conflicts: Mapping[tuple[str, Name], str]) -> list[dict[str, Any]]:
        """Return one row for each set that would change, in the order of record keys. The head of this file says which rows there are.

        Args:
            policy: the cluster's: which changes it forbids.
            conflicts: by service and name, why a set cannot be made: ``self.conflicts``, and what the keys' states say.
        """
        drifted: dict[ObjectKey, dict[RecordKey, Drift]] = defaultdict(dict)
        for drift in self.drifts:
            drifted[drift.service][drift.key] = drift
        found: list[tuple[RecordKey, str, dict[str, Any]]] = []
        for key in self._states.keys() | drifted.keys():
            of_key = drifted.get(key, {})  # its sets that were changed by hand
            # 1. The key's state, as if what is applied were what stands in the zone: the changes lead from there to what is intended.
            # A key of which the preview changes nothing wants what was applied.
            known = {drift.key: drift.known for drift in of_key.values()}
            state = self._states.get(key) or KeyState(key, intended=known, applied=known)
            for change in changes_of(as_found_in_zone(self._settled(state), of_key.values()), policy):
                # 2. A row for each change: why it comes, and, if the set cannot be made, what is in the way.
                row = _row(key, change.key, change.before, change.after)
                by_hand = of_key.get(change.key)  # None: nobody has changed this set
                row["why"] = (self._why.get(key) or WAITING) if by_hand is None else _BY_HAND[by_hand.what]
                reason = conflicts.get((str(key), Name.of(change.key)))
                if by_hand is not None and by_hand.stands is not None and by_hand.what is Stands.FOREIGN:
                    reason = why_foreign(by_hand.key, by_hand.stands)
                if reason and change.before is None:  # a conflict keeps out only sets that are to be added
                    row["conflict"] = reason
                found.append((change.key, str(key), row))
        return [row for _, _, row in sorted(found, key=lambda each: each[:2])]

    def _settled(self, state: KeyState) -> KeyState:
        """Return a key's state as if its sets of an unsettled batch had been settled: a set that stands as intended counts as applied.

        So it is no change of the forecast any more. A set that is gone (None), and no longer intended, leaves ``applied``.
        """
        touched = (state.applied.keys() | state.intended.keys()) & self._unsettled.keys()
        landed = {key: self._unsettled[key] for key in touched if self._unsettled[key] == state.intended.get(key)}
        applied = {key: known for key, known in state.applied.items() if key not in landed}
        return replace(state, applied=applied | {key: stands for key, stands in landed.items() if stands is not None})


def counts_of(records: Iterable[Mapping[str, Any]], changes: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Count the record sets and upstreams that are to be added, changed and deleted, without those in conflict. For the ``plan`` of a dry run.

    ``records``: rows of ``DryRunForecast.rows``. ``changes``: audit entries; those of upstreams begin with "upstream".
    """
    upstreams = (row for row in changes if str(row["what"]).startswith("upstream "))
    return {
        "records": _count_kinds(row for row in records if "conflict" not in row),
        "upstreams": _count_kinds(upstreams),
    }


def _count_kinds(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count rows with nothing before (add), nothing after (delete), or both (change)."""
    found = Counter("add" if row["from"] is None else "delete" if row["to"] is None else "change" for row in rows)
    return {kind: found[kind] for kind in ("add", "change", "delete")}


def _row(service: ObjectKey, key: RecordKey, before: RecordSet | None, after: RecordSet | None) -> dict[str, Any]:
    sides = {"from": None if before is None else side(before), "to": None if after is None else side(after)}
    return _set_of(key, service) | sides


def _set_of(key: RecordKey, service: ObjectKey) -> dict[str, Any]:
    """Which set a row is about, and whose."""
    identifier = {"identifier": key.identifier} if key.identifier else {}
    return {"name": key.name, "type": key.type, **identifier, "zone": key.zone_id, "service": str(service)}
