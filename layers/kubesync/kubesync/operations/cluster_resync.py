"""The full resync of one cluster: first its lists, then each of its zones, then the report.

dry run   the lists are applied to a separate ledger; nothing is written
resync    the cluster's listeners list again, and drifted sets of a zone become the known state; normal commits correct them
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import batched
from typing import Any, Final

from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.cluster.keys.committer import KEYS_AT_A_TIME
from kubesync.cluster.keys.reconciler import Mode
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import KeyState, Name
from kubesync.operations.drift import Coming, Drift, Known, as_it_stands, drifts_of, replacements
from kubesync.operations.listing import CHECK_SECONDS, LIST_SECONDS, ResyncError, advice, check_time, preview_lists
from kubesync.operations.orphan_upstreams import remove_orphans
from kubesync.operations.ports import Master
from kubesync.zone.reader import ZoneReader

# A cluster whose lists fail for this long is given up. The listeners retry all that time.
GIVE_UP_SECONDS: Final = 15.0


class ClusterResync:
    """The full resync of one cluster.

    Raises:
        ResyncError: there is no such cluster, or it is disabled.
    """

    def __init__(self, master: Master, name: str, request: ResyncRequest, *, own_session: bool) -> None:
        ledger = master.ledgers.get(name)
        if ledger is None or ledger.config.deleting:
            known = ", ".join(sorted(master.ledgers)) or "none"
            raise ResyncError(f"no such cluster; registered: {known}")
        if ledger.config.paused:
            raise ResyncError(f"cluster {name} is disabled: `kubesync cluster enable {name}`, then run it again")
        self.name = name
        self.zones = {zone.id for zone in ledger.rules.zones}
        self._master = master
        self._ledger = ledger
        self._revision = ledger.config.revision
        self._dry_run = request.dry_run
        self._own_session = own_session
        self._mode = Mode(forced=request.force, distrust_upstreams=True)
        self._document: dict[str, Any] = {"cluster": name}
        self._drifts: list[dict[str, Any]] = []
        self._held: list[dict[str, Any]] = []
        self._coming = Coming((), frozenset())
        self._known: list[Known] = []
        self._moved: set[ServiceKey] = set()
        self._unsettled: AbstractSet[RecordKey] = frozenset()
        self._foreseen: dict[tuple[str, Name], str] = {}

    def document(self) -> dict[str, Any]:
        """The cluster's report, once all zones were compared. Raises ResyncError, StoreError."""
        held: list[dict[str, Any]] = []
        known: dict[tuple[str, Name], str] = {}
        for state in self._states():
            held += _held_in(state)
            known |= {(str(state.key), name): reason for name, reason in state.conflicts.items()}
        return {
            **self._document,
            "drift": self._drifts,
            "held_deletions": self._held if self._dry_run else held,
            "conflicts": [
                {"service": service, "name": name.name, "zone": name.zone_id, "code": "Conflict", "reason": reason}
                for (service, name), reason in sorted((self._foreseen | known).items())
            ],
        }

    def check(self) -> None:
        """Raise ResyncError if the session must end or the configuration was changed."""
        check_time(self._master)
        if self._master.ledgers.get(self.name) is not self._ledger or self._ledger.config.revision != self._revision:
            raise ResyncError(f"the configuration of cluster {self.name} was changed meanwhile: run it again")

    def _states(self) -> Iterator[KeyState]:
        for state in self._master.tables.state.load_all(self.name):
            self.check()
            yield state

    # --- cluster against state and upstreams ---

    def compare_with_lists(self) -> None:
        """List the cluster, and apply the lists or preview their effects. Raises ResyncError, StoreError."""
        self.check()
        if self._dry_run:
            self._preview()
        else:
            self._relist()

    def _preview(self) -> None:
        preview = preview_lists(self._master, self.name, self._mode, self.check)
        states = preview.states.values()
        self._coming = Coming.of(states)
        self._held = [row for state in states for row in _held_in(state)]
        self.zones |= {key.zone_id for state in states for key in state.applied}
        changes = [{"what": e.what, "from": e.before, "to": e.after} for e in preview.entries]
        held = {resource.value: reason for resource, reason in preview.held.items()}
        self._document |= {"changes": changes, "held": held}

    def _relist(self) -> None:
        held_before = {state.key for state in self._states() if _held_in(state)}
        runner = self._master.runners.get(self.name)
        before = 0 if runner is None else runner.report.changed_keys
        if runner is not None:
            runner.relist(self._mode)
        elif self._own_session:
            runner = self._master.start_cluster(self.name, self._mode)
        else:
            raise ResyncError(f"the configuration of cluster {self.name} is being changed: run it again")
        try:
            self._wait_relisted(runner)
        except BaseException:
            # A person requested this mode for now. It must not apply to lists that come at any later time (I5).
            runner.withdraw_relist()
            raise
        held_after: set[ServiceKey] = set()
        for state in self._states():
            self.zones |= {key.zone_id for key in state.applied}
            if _held_in(state):
                held_after.add(state.key)
        # A key whose deletion is held back counts as written, but does not change.
        changed = max(0, runner.report.changed_keys - before - len(held_after - held_before))
        orphans = remove_orphans(self._master, self.name, self.check)
        self._document |= {"changed_keys": changed, "stray_upstreams": orphans, "held": dict(runner.report.held)}

    def _wait_relisted(self, runner: ClusterRunner) -> None:
        clock = self._master.parts.clock
        began = clock.monotonic()
        while not runner.wait_relisted(CHECK_SECONDS):
            try:
                self.check()
                if self._master.runners.get(self.name) is not runner:
                    raise ResyncError(f"the configuration of cluster {self.name} was changed meanwhile: run it again")
            except ResyncError as ended:
                said = _in_words(runner.last_errors)
                raise ResyncError(f"{ended} (the last error: {said})" if said else str(ended)) from None
            lasted = clock.monotonic() - began
            if failing := runner.refused or (runner.failing if lasted >= GIVE_UP_SECONDS else {}):
                tried = f"tried for {lasted:.0f} s: " if lasted >= 1 else ""
                said = f"{tried}{_in_words(failing)}; {advice(failing)}, then run it again"
                raise ResyncError(f"cluster {self.name} could not be listed: {said}")
            if lasted >= LIST_SECONDS or runner.failed:
                why = runner.report.problem or _in_words(runner.last_errors) or "no answer"
                raise ResyncError(f"cluster {self.name} could not be listed in time ({why})")

    # --- state against zone ---

    def remember_zone(self, zone_id: str) -> None:
        """Read the known sets of a zone, before the zone is walked: see ``drift_checks``."""
        self._known = []
        in_conflict: list[ServiceKey] = []
        for state in self._states():
            if (known := Known.of(state, zone_id)).applied:
                self._known.append(known)
            if any(name.zone_id == zone_id for name in state.conflicts):
                in_conflict.append(state.key)
        if in_conflict and self._master.pool is not None and not self._dry_run:
            self._master.pool.look_again(zone_id, in_conflict)

    def drift_checks(
        self, zone_id: str, standing: Mapping[RecordKey, RecordSet], unsettled: AbstractSet[RecordKey] = frozenset()
    ) -> Iterator[Callable[[], None]]:
        """Jobs for the zone's thread, each for a few keys, between two batches. Other batches run before and after each job.

        Batches went on during the walk, so a set may differ because one of them changed it. After a batch has landed, the states
        of its keys are written, before the next batch. So the key's state decides:

            the key's state      a set that differs from the known one
            ---------------      -------------------------------------
            as before the walk   no batch has changed it: it drifted
            written since        this walk cannot decide: ``moved``

        Args:
            standing: the sets of the zone, walked after ``remember_zone``.
            unsettled: see ``landed``; these sets neither drifted nor are they foreign.
        """
        self._unsettled = unsettled
        if self._dry_run:
            others = {key: record_set for key, record_set in standing.items() if key not in unsettled}
            self._foreseen |= self._coming.conflicts(zone_id, others)
        found = replacements(standing)
        suspects = [known for known in self._known if known.drifts(found)]
        self._known = []
        for some in batched(suspects, KEYS_AT_A_TIME):
            yield partial(self._check_drift, found, some)

    @property
    def moved(self) -> bool:
        """Whether keys that may have drifted were written meanwhile. The next walk or ``final_checks`` decides them."""
        return bool(self._moved)

    def remember_moved(self, zone_id: str) -> None:
        """As ``remember_zone``, but only for the ``moved`` keys."""
        states = self._master.tables.state.load(sorted(self._moved)).values()
        self._known = [Known.of(state, zone_id) for state in states]
        self._moved = set()

    def final_checks(self, zone_id: str) -> Iterator[Callable[[], None]]:
        """Jobs as in ``drift_checks``, one for each key that is written all the time. These read the zone themselves."""
        for key in sorted(self._moved):
            yield partial(self._check_key_now, zone_id, key)
        self._moved = set()

    def _check_drift(self, standing: Mapping[RecordKey, RecordSet], some: Sequence[Known]) -> None:
        states = self._states_of([known.service for known in some])
        still = [known for known in some if known.still(states[known.service])]
        self._moved |= {known.service for known in some}.difference(known.service for known in still)
        self._drifted([drift for known in still for drift in known.drifts(standing)])

    def _check_key_now(self, zone_id: str, key: ServiceKey) -> None:
        state = self._states_of([key])[key]
        names = {each.name for each in state.applied if each.zone_id == zone_id}
        reader = ZoneReader(self._master.parts.zones, zone_id, self._master.parts.clock)
        standing = replacements(reader.read_sets(names))
        self._drifted(drifts_of(state, zone_id, standing))

    def _states_of(self, keys: Iterable[ServiceKey]) -> Mapping[ServiceKey, KeyState]:
        self.check()
        with self._ledger.lock:
            return self._ledger.states(keys)

    def _drifted(self, found: Sequence[Drift]) -> None:
        drifts = [drift for drift in found if drift.key not in self._unsettled]
        self._drifts += [drift.document() for drift in drifts]
        if drifts and not self._dry_run:
            self._take_as_known(drifts)

    def _take_as_known(self, drifts: Sequence[Drift]) -> None:
        by_key: dict[ServiceKey, list[Drift]] = {}
        for drift in drifts:
            by_key.setdefault(drift.service, []).append(drift)

        def pairs() -> Iterator[tuple[KeyState, KeyState]]:
            self.check()
            for key, state in self._ledger.states(by_key).items():
                yield state, as_it_stands(state, by_key[key])

        reconciler = self._master.reconcilers[self.name]
        self._master.follow_up(self.name, reconciler.transform(pairs, "resync"))


def _held_in(state: KeyState) -> list[dict[str, Any]]:
    return [
        {
            "service": str(state.key),
            "listener": part_id.resource.value,
            "object": part_id.name,
            "code": "DeletionHeld",
        }
        for part_id, part in state.parts.items()
        if part.held
    ]


def _in_words(errors: Mapping[str, ListenerError]) -> str:
    return "; ".join(f"{resource}: {error.code.key}: {error.message}" for resource, error in sorted(errors.items()))
