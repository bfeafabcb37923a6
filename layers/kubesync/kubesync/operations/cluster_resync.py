"""The full resync of one cluster: first its lists, then each of its zones, then the report.

dry run   the lists are applied to separate key states; nothing is written
resync    the cluster's listeners list again, and drifted sets of a zone become the known state; normal commits correct them

All states of the cluster are read, one after another and never held together:

before the list    what was held back already: such keys count as written in the list, but do not change
after the list     what is held back now, in which zones sets stand, and the names of all upstreams
before each walk   what is known in this zone. It must be read before the walk (I3). Before the last walk also held deletions and
                   conflicts, for the report. Keys in conflict, and keys that may have drifted, are read once more, by key

A dry run reads no states around its lists, because it plans on states of its own. Whoever goes on with a cluster that an earlier
session has listed begins with its zones.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from itertools import batched
from typing import Any, Final

from kubesync.actors.answer import Answer
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.cluster.keys.key_states import KEYS_AT_A_TIME
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.standing import Drift, Known, with_replacements
from kubesync.domain.errors import ListenerError, StoreError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import EMPTY, KeyState, Name, UpstreamState
from kubesync.domain.window import Mode
from kubesync.messages import (
    CheckConflicts,
    Compared,
    CompareZone,
    ListingFailedError,
    Relist,
    Relisted,
    RemoveOrphans,
    WithdrawRelist,
)
from kubesync.operations.asking import Question, ResyncError, ask_cluster, ask_zone, check_time
from kubesync.operations.listing import advice, preview_lists
from kubesync.operations.ports import Master
from kubesync.operations.record_rows import Coming, ForeseenChanges, counts_of, document_of
from kubesync.operations.resync_progress import Part
from kubesync.operations.resync_report import with_counts

_LAST_ERRORS_SECONDS: Final = 1.0
_WAITING_SECONDS: Final = 2.0
"""While a list is waited for, ask so often whether somebody still waits for the resync."""
_ORPHANS_AT_A_TIME: Final = 50
_FINAL_ROUNDS: Final = 8


class ClusterResync:
    """The full resync of one cluster. ``own_session``: as in ``Resync``. ``part``: what an earlier session has done.

    ``check_waiting``: raises once nobody waits for the resync. It is called with how often it may ask, in seconds.

    ``zones``: those that are not compared yet. ``listed``: an earlier session has listed it. ``swept``: orphaned upstreams are removed.

    Raises:
        ResyncError: there is no such cluster, or it is disabled.
    """

    def __init__(
        self,
        master: Master,
        name: str,
        request: ResyncRequest,
        *,
        own_session: bool,
        part: Part,
        check_waiting: Callable[[float], None],
    ) -> None:
        configs = master.configs
        config = configs.get(name)
        if config is None or config.deleting:
            known = ", ".join(sorted(configs)) or "none"
            raise ResyncError(f"no such cluster; registered: {known}")
        if config.paused:
            raise ResyncError(f"cluster {name} is disabled: `kubesync cluster enable {name}`, then run it again")
        self.name = name
        self.listed = listed = bool(part.document) and part.revision == config.revision
        self.zones = set(part.zones) if listed else {zone.id for zone in config.zones}
        self.swept = (listed and "stray_upstreams" in part.document) or request.dry_run
        self._master = master
        self._config = config
        self._forced = request.force
        self._dry_run = request.dry_run
        self._own_session = own_session
        self._check_waiting = check_waiting
        self._document: dict[str, Any] = {**part.document} if listed else {"cluster": name}
        self._drift: list[dict[str, Any]] = list(self._document.pop("drift", ()))
        self._held: list[dict[str, Any]] = []
        self._coming = Coming((), frozenset())
        self._known: list[Known] = []
        self._moved: set[ObjectKey] = set()
        self._foreseen: dict[tuple[str, Name], str] = {}
        self._conflicts: dict[ObjectKey, Mapping[Name, str]] = {}
        self._again: set[ObjectKey] = set()
        self._upstreams: array[int] | None = None
        self._changes = ForeseenChanges({}, {})
        self._landed: dict[RecordKey, RecordSet | None] = {}
        self._drifts: list[Drift] = []  # of a dry run

    def part(self) -> Part:
        """What is done so far."""
        return Part(self._config.revision, {**self._document, "drift": self._drift}, tuple(sorted(self.zones)))

    def finished(self) -> Part:
        """The report, once all zones were compared. Raises ResyncError, StoreError."""
        for state in self._master.tables.state.load(sorted(self._again)).values():
            self._conflicts[state.key] = state.conflicts
        known = {(str(key), name): why for key, names in self._conflicts.items() for name, why in names.items()}
        document = {
            **self._document,
            **self._plan(self._foreseen | known),
            "drift": self._drift,
            "held_deletions": self._held,
            "conflicts": [
                {"service": service, "name": name.name, "zone": name.zone_id, "code": "Conflict", "reason": reason}
                for (service, name), reason in sorted((self._foreseen | known).items())
            ],
        }
        return Part(self._config.revision, with_counts(document), (), done=True)

    def _plan(self, conflicts: Mapping[tuple[str, Name], str]) -> dict[str, Any]:
        """What a dry run says besides: the record sets as the zones would change, and how many there are."""
        if not self._dry_run:
            return {}
        records = self._changes.rows(self._config.policy, self._drifts, conflicts, self._landed)
        return {"records": records, "plan": counts_of(records, self._document["changes"])}

    def _add(self, drifts: Sequence[Drift]) -> None:
        self._drift += map(document_of, drifts)
        if self._dry_run:
            self._drifts += drifts

    def check(self) -> None:
        """Raise ResyncError if the session must end or the configuration was changed."""
        check_time(self._master)
        config = self._master.configs.get(self.name)
        if config is None or config.revision != self._config.revision:
            raise ResyncError(f"the configuration of cluster {self.name} was changed meanwhile: run it again")

    def _states(self) -> Iterator[KeyState]:
        for state in self._master.tables.state.load_all(self.name):
            self.check()
            yield state

    # --- cluster against state and upstreams ---

    def compare_with_lists(self) -> None:
        """List the cluster, and apply the lists or preview their effects. Raises ResyncError, StoreError."""
        self.check()
        self._check_waiting(0.0)
        if self._dry_run:
            self._preview()
        else:
            self._relist()

    def _preview(self) -> None:
        mode = Mode(forced=self._forced, distrust_upstreams=True)
        preview = preview_lists(self._master, self._config, mode, self.check)
        states = preview.states.values()
        self._coming = Coming.of(states)
        self._held = [row for state in states for row in _held_in(state)]
        self.zones |= {key.zone_id for state in states for key in state.applied}
        self._changes = ForeseenChanges.of(preview)
        news = {str(key): why for key, why in preview.news.items()}
        self._document["changes"] = [
            {"what": e.what, "from": e.before, "to": e.after, "why": news.get(e.service, "")} for e in preview.entries
        ]
        self._document["held"] = {resource.value: reason for resource, reason in preview.held.items()}
        if preview.set_aside:
            self._document["set_aside"] = [str(key) for key in preview.set_aside]

    def _relist(self) -> None:
        held_before = {state.key for state in self._states() if _held_in(state)}
        relisted = self._relisted()
        held_after: set[ObjectKey] = set()
        upstreams: list[int] = []
        for state in self._states():
            self.zones |= {key.zone_id for key in state.applied}
            upstreams += map(hash, state.upstreams)
            if _held_in(state):
                held_after.add(state.key)
        self._upstreams = array("q", sorted(upstreams))
        # A key whose deletion is held back counts as written, but does not change.
        changed = max(0, relisted.changed_keys - len(held_after - held_before))
        self._document |= {"changed_keys": changed, "missed_keys": relisted.missed, "held": dict(relisted.held)}

    def _relisted(self) -> Relisted:
        # A session that was started for the resync does not watch the cluster yet.
        deadline = self._master.term.deadline if self._own_session else None
        relist: Question[Relisted] = partial(Relist, self._forced, deadline)
        try:
            return ask_cluster(self._master, self.name, relist, self._check_lists)
        except BaseException as error:
            # A person requested the lists for now. Forced, they must not be recorded at any later time (I5).
            self._withdraw()
            if not isinstance(error, ListingFailedError):
                raise
            self._check_lists()  # a failure because the session ends is no error of the cluster
            raise ResyncError(f"cluster {self.name} could not be listed{_why(error)}") from error

    def _check_lists(self) -> None:
        try:
            self.check()
        except ResyncError as ended:
            errors = self._withdraw()
            said = _in_words(errors.result()) if errors.wait(_LAST_ERRORS_SECONDS) else ""
            raise ResyncError(f"{ended} (the last error: {said})" if said else str(ended)) from None
        with suppress(StoreError):  # that alone ends no list
            self._check_waiting(_WAITING_SECONDS)

    def _withdraw(self) -> Answer[Mapping[str, ListenerError]]:
        errors: Answer[Mapping[str, ListenerError]] = Answer(self._master.parts.scheduler)
        if not self._master.send(self.name, WithdrawRelist(errors)):
            errors.set_result({})
        return errors

    # --- upstreams against state ---

    def read_upstreams(self) -> None:
        """Read which upstreams the keys know, unless that was done after the list."""
        if self._upstreams is None:
            hashes = sorted(hash(name) for state in self._states() for name in state.upstreams)
            self._upstreams = array("q", hashes)

    def knows(self, upstream: str) -> bool:
        """Whether a key knew an upstream when its cluster was read. 8 bytes an upstream: those of all clusters are known at once."""
        assert self._upstreams is not None
        at = bisect_left(self._upstreams, hash(upstream))
        return at < len(self._upstreams) and self._upstreams[at] == hash(upstream)

    def remove_orphans(self, orphans: Sequence[tuple[str, UpstreamState]]) -> None:
        """Remove upstreams that no key knows: a restored table can bring them back. The cluster looks again before it removes one."""
        self.check()
        removed = 0
        for some in batched(orphans, _ORPHANS_AT_A_TIME):
            removed += ask_cluster(self._master, self.name, partial(RemoveOrphans, dict(some)), self.check)
        self._document["stray_upstreams"] = removed
        self.swept = True
        self._upstreams = None

    # --- state against zone ---

    def remember_zone(self, zone_id: str) -> None:
        """Read the known sets of a zone, before the zone is walked: see ``compare_zone``."""
        self._known = []
        last = self.zones == {zone_id}
        in_conflict: list[ObjectKey] = []
        for state in self._states():
            if (known := Known.of(state, zone_id)).applied:
                self._known.append(known)
            if any(name.zone_id == zone_id for name in state.conflicts):
                in_conflict.append(state.key)
            if last and not self._dry_run:
                self._held += _held_in(state)
            if last and state.conflicts:
                self._conflicts[state.key] = state.conflicts
        self._again.update(in_conflict)
        if in_conflict and not self._dry_run:
            self._master.zones.send(zone_id, CheckConflicts(tuple(in_conflict)))

    def compare_zone(
        self, zone_id: str, standing: Mapping[RecordKey, RecordSet], unsettled: AbstractSet[RecordKey]
    ) -> None:
        """Compare the known sets with the zone: a few keys at a time, between two batches.

        Batches went on during the walk, so a set may differ because one of them changed it. After a batch has landed, the states
        of its keys are written, before the next batch. So the key's state decides:

            the key's state      a set that differs from the known one
            ---------------      -------------------------------------
            as before the walk   no batch has changed it: it drifted
            written since        this walk cannot decide: ``moved``

        Args:
            standing: the sets of the zone, walked after ``remember_zone``.
            unsettled: sets as a batch left them that nobody has settled (``drift.landed``): they neither drifted nor are they foreign.
        """
        if self._dry_run:
            others = {key: record_set for key, record_set in standing.items() if key not in unsettled}
            self._foreseen |= self._coming.conflicts(zone_id, others)
            self._landed |= {key: standing.get(key) for key in unsettled}
        found = with_replacements(standing)
        suspects = [known for known in self._known if known.drifts(found)]
        self._known = []
        if self._own_session and self._dry_run:  # this session writes nothing: what was read is what stands
            self.check()
            drifts = [drift for known in suspects for drift in known.drifts(found) if drift.key not in unsettled]
            self._add(drifts)
            return
        self._again.update(known.service for known in suspects)
        for some in batched(suspects, KEYS_AT_A_TIME):
            self._moved |= self._ask(zone_id, known=some, standing=found).moved

    def known_sets(self) -> Iterator[RecordKey]:
        """The sets that ``remember_zone`` has read."""
        return (key for known in self._known for key, _ in known.applied)

    def report_forgotten(self, rows: Sequence[dict[str, Any]]) -> None:
        """Sets of a zone that kubesync has lost track of. The owners may be of other clusters, also of some that are removed."""
        if rows:
            self._document["forgotten"] = [*self._document.get("forgotten", ()), *rows]

    @property
    def moved(self) -> bool:
        """Whether keys that may have drifted were written meanwhile. The next walk or ``compare_moved`` decides them."""
        return bool(self._moved)

    def remember_moved(self, zone_id: str) -> None:
        """As ``remember_zone``, but only for the ``moved`` keys."""
        states = self._master.tables.state.load(sorted(self._moved)).values()
        self._known = [Known.of(state, zone_id) for state in states]
        self._moved = set()

    def compare_moved(self, zone_id: str) -> None:
        """Compare each key that is written all the time. The zone is read between two batches, at the key's names only."""
        moved, self._moved = self._moved, set()
        for key in sorted(moved):
            for _ in range(_FINAL_ROUNDS):
                state = self._master.tables.state.load([key])[key]
                names = frozenset(each.name for each in state.applied if each.zone_id == zone_id)
                if not names or not self._ask(zone_id, keys=(key,), names=names).moved:
                    break
            else:
                raise ResyncError(f"{key} was written all the time: run it again")

    def _ask(
        self,
        zone_id: str,
        *,
        known: tuple[Known, ...] = (),
        standing: Mapping[RecordKey, RecordSet] = EMPTY,
        keys: tuple[ObjectKey, ...] = (),
        names: frozenset[str] = frozenset(),
    ) -> Compared:
        self.check()

        def question(reply: Answer[Compared]) -> CompareZone:
            return CompareZone(self.name, reply, known, keys, names, standing, mend=not self._dry_run)

        compared = ask_zone(self._master, zone_id, question, self.check)
        self._add(compared.drifts)
        return compared


def _why(failed: ListingFailedError) -> str:
    if failed.problem or not failed.errors:
        return f" in time ({failed.problem or 'no answer'})"
    tried = f"tried for {failed.seconds:.0f} s: " if failed.seconds >= 1 else ""
    return f": {tried}{_in_words(failed.errors)}; {advice(failed.errors)}, then run it again"


def _held_in(state: KeyState) -> list[dict[str, Any]]:
    held = [(part_id.resource.value, part_id.name) for part_id, part in state.parts.items() if part.held]
    held += [("configuration", key.label) for key in sorted(state.kept)]
    return [{"service": str(state.key), "listener": of, "object": what, "code": "DeletionHeld"} for of, what in held]


def _in_words(errors: Mapping[str, ListenerError]) -> str:
    return "; ".join(f"{resource}: {error.code.key}: {error.message}" for resource, error in sorted(errors.items()))
