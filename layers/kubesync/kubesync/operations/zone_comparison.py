"""Compares one cluster's known sets with the sets of one zone, for a full resync.

Batches go on while the zone is walked (all its sets are read), so a set may differ because a batch changed it. After each batch, before the
next one, the states of its keys are written. So the state of the set's key decides:

the key's state      a set that differs from the known set
---------------      -------------------------------------
as before the walk   has drifted: no batch has changed it
written since        cannot be decided by this walk: the key has ``moved``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import batched
from typing import Final

from kubesync.actors.answer import Answer
from kubesync.cluster.keys.key_states import KEYS_AT_A_TIME
from kubesync.domain.dns.drift import Known, with_replacements
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import EMPTY
from kubesync.messages import CheckConflicts, Compared, CompareZone
from kubesync.operations.asking import ResyncError, ask_zone
from kubesync.operations.cluster_resync import ClusterResync, held_rows

_FINAL_ROUNDS: Final = 8


class ZoneComparison:
    """Compares one cluster's known sets with one zone. Call ``remember``, walk the zone, then call ``compare``.

    If keys ``moved``, call ``remember_moved``, walk and ``compare`` again; at last call ``compare_moved``.

    All methods raise ResyncError, StoreError. ``moved``: keys that may have drifted, but were written meanwhile.
    """

    def __init__(self, cluster: ClusterResync, zone_id: str) -> None:
        self.cluster = cluster
        self.moved: set[ObjectKey] = set()
        self._zone_id = zone_id
        self._known: list[Known] = []

    def remember(self) -> None:
        """Read the known sets of the zone. Must be done before the zone is walked.

        Also lets the zone check names in conflict. If this is the cluster's last zone, also collects held deletions and conflicts for the report.
        """
        cluster, zone_id = self.cluster, self._zone_id
        self._known = []
        last = cluster.zones == {zone_id}
        in_conflict: list[ObjectKey] = []
        for state in cluster.states():
            if (known := Known.of(state, zone_id)).applied:
                self._known.append(known)
            if any(name.zone_id == zone_id for name in state.conflicts):
                in_conflict.append(state.key)
            if last and not cluster.dry_run:
                cluster.held += held_rows(state)
            if last and state.conflicts:
                cluster.conflicts[state.key] = state.conflicts
        cluster.reread.update(in_conflict)
        if in_conflict and not cluster.dry_run:
            cluster.master.zones.send(zone_id, CheckConflicts(tuple(in_conflict)))

    def known_sets(self) -> Iterator[RecordKey]:
        """Return the keys of the sets that ``remember`` has read. Empty after ``compare``."""
        return (key for known in self._known for key, _ in known.applied)

    def compare(self, actual: Mapping[RecordKey, RecordSet], unsettled: AbstractSet[RecordKey]) -> None:
        """Compare the known sets with the zone, and forget the known sets. The zone itself checks suspected drift, between two batches.

        Adds drifts to the cluster's report, and keys that cannot be decided to ``moved``.

        Args:
            actual: the sets of the zone, walked after ``remember``.
            unsettled: sets that are as a batch left them that is not settled (``as_the_last_batch_left``). They are ours, and did not drift.
        """
        cluster = self.cluster
        if cluster.forecast is not None:
            cluster.forecast.find_conflicts(self._zone_id, actual, unsettled)
        found = with_replacements(actual)
        suspects = [known for known in self._known if known.drifts(found)]
        self._known = []
        if cluster.own_session and cluster.dry_run:  # no batch is under way in this session, so the walk decides
            cluster.check()
            cluster.add_drifts(
                [drift for known in suspects for drift in known.drifts(found) if drift.key not in unsettled]
            )
            return
        cluster.reread.update(known.service for known in suspects)
        for some in batched(suspects, KEYS_AT_A_TIME):
            self.moved |= self._ask(known=some, actual=found).moved

    def remember_moved(self) -> None:
        """Read the known sets of the keys that ``moved``, and empty ``moved``. Must be done before the zone is walked again."""
        states = self.cluster.master.tables.state.load(sorted(self.moved)).values()
        self._known = [Known.of(state, self._zone_id) for state in states]
        self.moved = set()

    def compare_moved(self) -> None:
        """Compare each key that still ``moved``: the zone reads its names between two batches. Raises ResyncError after too many tries."""
        for key in sorted(self.moved):
            for _ in range(_FINAL_ROUNDS):
                state = self.cluster.master.tables.state.load([key])[key]
                names = frozenset(each.name for each in state.applied if each.zone_id == self._zone_id)
                if not names or not self._ask(keys=(key,), names=names).moved:
                    break
            else:
                raise ResyncError(f"{key} was written all the time: run it again")

    def _ask(
        self,
        *,
        known: tuple[Known, ...] = (),
        actual: Mapping[RecordKey, RecordSet] = EMPTY,
        keys: tuple[ObjectKey, ...] = (),
        names: frozenset[str] = frozenset(),
    ) -> Compared:
        """Let the zone's actor compare these sets or keys, and add drifts to the report. See ``CompareZone``."""
        cluster = self.cluster
        cluster.check()

        def question(reply: Answer[Compared]) -> CompareZone:
            return CompareZone(cluster.name, reply, known, keys, names, actual, mend=not cluster.dry_run)

        compared = ask_zone(cluster.master, self._zone_id, question, cluster.check)
        cluster.add_drifts(compared.drifts)
        return compared
