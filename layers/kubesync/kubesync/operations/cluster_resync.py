"""The full resync of one cluster: compares it with its lists, its upstreams and one zone after another, and makes its report.

dry run   the lists are applied to separate key states; nothing is written
resync    the cluster's listeners list again, and drifted sets of a zone become the known state; normal commits correct them

All states of the cluster are read several times, one after another and never held together:

before the list           which keys have deletions that are held back: the list writes such keys, but does not change them
after the list            the same again, in which zones sets exist, and the names of all upstreams
before each zone's walk   the known sets of the zone. They must be read before the zone (I3)
before the last walk      also held deletions and conflicts, for the report
at the end                keys in conflict and keys that may have drifted, by key

A dry run reads no states before and after its lists, because it plans on states of its own. If an earlier session has listed the cluster,
the resync goes on with the zones.

Batches go on while a zone is walked (all its sets are read), so a set may differ because a batch changed it. After each batch, before the
next one, the states of its keys are written. So the state of the set's key decides:

the key's state      a set that differs from the known set
---------------      -------------------------------------
as before the walk   has drifted: no batch has changed it
written since        the key has *moved*: the zone reads its names between two batches; where many have moved, it is walked once more before

For each zone, ``resync.Resync`` calls ``remember`` ── walk ── ``compare`` ── (``remember_moved`` ── walk ── ``compare``) ── ``finish``.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from functools import partial
from itertools import batched
from typing import Any, Final

from kubesync import messages
from kubesync.actors.answer import Answer
from kubesync.cluster.keys.key_states import KEYS_AT_A_TIME
from kubesync.domain.dns.drift import Baseline, Drift, with_replacements
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import ListenerError, StoreError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import EMPTY, KeyState, Name, UpstreamState
from kubesync.domain.window import Mode
from kubesync.operations.listing import advice, preview_lists
from kubesync.operations.ports import Master, Question, ResyncError, ask_cluster, ask_zone, check_time
from kubesync.operations.record_rows import DryRunForecast, counts_of, drift_row
from kubesync.operations.resync_progress import Part, ResyncProgress, with_counts

_LAST_ERRORS_SECONDS: Final = 1.0
"""How long to wait for the listeners' last errors, once a list was given up."""
_WAITING_SECONDS: Final = 2.0
"""How often to ask, during a list, whether the caller still waits for the resync."""
_ORPHANS_AT_A_TIME: Final = 50
_ROUNDS: Final = 8
"""How often a key is compared that is written meanwhile."""


class ClusterResync:
    """The full resync of one cluster, and what it has found for the report. All methods raise ResyncError, StoreError.

    ``zones``: zones that are not compared yet. ``listed``: an earlier session has listed the cluster. ``moved``: keys that differ from the
    zone that was walked last, and were written since.

    Args:
        progress: says what an earlier session has done.

    Raises:
        ResyncError: there is no such cluster, or it is disabled.
    """

    def __init__(self, master: Master, name: str, progress: ResyncProgress) -> None:
        configs = master.configs
        config = configs.get(name)
        if config is None or config.deleting:
            known = ", ".join(sorted(configs)) or "none"
            raise ResyncError(f"no such cluster; registered: {known}")
        if config.paused:
            raise ResyncError(f"cluster {name} is disabled: `kubesync cluster enable {name}`, then run it again")
        part = progress.begin_cluster(name, config.revision)
        self.listed = bool(part.document)  # a part is stored first when the cluster is listed
        self.zones = set(part.zones) if self.listed else {zone.id for zone in config.zones}
        self._master = master
        self._config = config
        self._progress = progress
        self._document: dict[str, Any] = {"cluster": name, "drift": [], **part.document}  # the report so far
        # Hashes of the names of all upstreams that keys have, sorted (``knows``). None: not read yet, or not needed any more.
        self._upstreams: array[int] | None = None
        # What a dry run would change. None: this is no dry run, or it has not listed yet.
        self._forecast: DryRunForecast | None = None
        self.moved: set[ObjectKey] = set()
        self._known: list[Baseline] = []  # the known sets of the zone that is walked
        self._held: list[dict[str, Any]] = []  # rows of deletions that are held back
        self._conflicts: dict[ObjectKey, Mapping[Name, str]] = {}  # by key, why it cannot have some of its names
        self._reread: set[ObjectKey] = set()  # keys whose conflicts are read once more for the report

    @property
    def name(self) -> str:
        return self._config.name

    @property
    def orphans_removed(self) -> bool:
        """Whether orphaned upstreams were removed already. True in a dry run, which removes none."""
        return self._progress.request.dry_run or "stray_upstreams" in self._document

    def keep(self) -> None:
        """Store what is done so far: once all zones are compared, the complete report, and that the cluster is done.

        Raises what ``ResyncProgress`` raises.
        """
        zones = tuple(sorted(self.zones))
        document = {**self._document} if zones else self._report()
        self._progress.keep(self.name, Part(self._config.revision, document, zones, done=not zones))

    def _report(self) -> dict[str, Any]:
        """Return the complete report. Reads the conflicts of some keys once more, because the comparison may have changed them (``_reread``)."""
        for state in self._master.tables.state.load(sorted(self._reread)).values():
            self._conflicts[state.key] = state.conflicts
        conflicts = {(str(key), name): why for key, names in self._conflicts.items() for name, why in names.items()}
        planned: dict[str, Any] = {}
        if self._forecast is not None:
            conflicts = self._forecast.conflicts | conflicts
            records = self._forecast.rows(self._config.policy, conflicts)
            planned = {"records": records, "plan": counts_of(records, self._document["changes"])}
        document = {
            **self._document,
            **planned,
            "held_deletions": self._held,
            "conflicts": [
                {"service": service, "name": name.name, "zone": name.zone_id, "code": "Conflict", "reason": reason}
                for (service, name), reason in sorted(conflicts.items())
            ],
        }
        return with_counts(document)

    def _check(self) -> None:
        """Raise ResyncError if the session must end (SessionEndsError) or the cluster's configuration was changed or removed.

        Whatever takes long or asks an actor calls it first, and again while it waits.
        """
        check_time(self._master)
        config = self._master.configs.get(self.name)
        if config is None or config.revision != self._config.revision:
            raise ResyncError(f"the configuration of cluster {self.name} was changed meanwhile: run it again")

    def _states(self) -> Iterator[KeyState]:
        """Read all key states of the cluster, one after another."""
        for state in self._master.tables.state.load_all(self.name):
            self._check()
            yield state

    # --- cluster against state and upstreams ---

    def compare_with_lists(self) -> None:
        """List the cluster. A dry run previews the effects of the lists; a resync lets the cluster's actor record them."""
        self._check()
        self._progress.check()
        if self._progress.request.dry_run:
            self._preview()
        else:
            self._relist()

    def _preview(self) -> None:
        """List the cluster, plan on separate key states, and take forecast, held deletions, zones and report from the plan."""
        mode = Mode(forced=self._progress.request.force, reread_upstreams=True)
        preview = preview_lists(self._master, self._config, mode, self._check)
        states = preview.states.values()
        self._forecast = DryRunForecast(preview)
        self._held = [row for state in states for row in _held_rows(state)]
        self.zones |= {key.zone_id for state in states for key in state.applied}
        news = {str(key): why for key, why in preview.news.items()}
        self._document["changes"] = [
            {"what": e.what, "from": e.before, "to": e.after, "why": news.get(e.service, "")} for e in preview.entries
        ]
        self._document["held"] = {resource.value: reason for resource, reason in preview.held.items()}
        if preview.set_aside:
            self._document["set_aside"] = [str(key) for key in preview.set_aside]

    def _relist(self) -> None:
        """Let the cluster's actor list and record. Read all states before and after, to count keys that really changed.

        The states after the list also say in which zones the cluster has sets, and which upstreams its keys have.
        """
        held_before = {state.key for state in self._states() if _held_rows(state)}
        relisted = self._request_lists()
        held_after: set[ObjectKey] = set()
        upstreams: list[int] = []
        for state in self._states():
            self.zones |= {key.zone_id for key in state.applied}
            upstreams += map(hash, state.upstreams)
            if _held_rows(state):
                held_after.add(state.key)
        self._upstreams = array("q", sorted(upstreams))
        # A key whose deletion is held back counts as written, but does not change.
        changed = max(0, relisted.changed_keys - len(held_after - held_before))
        self._document |= {"changed_keys": changed, "missed_keys": relisted.missed, "held": dict(relisted.held)}

    def _request_lists(self) -> messages.Relisted:
        """Ask the cluster's actor to list again, and wait for its answer. If the wait ends in any other way, withdraws the request.

        the wait ends because                            raises
        ---------------------                            ------
        the session ends, or the configuration changed   ResyncError that says so, with the listeners' last errors
        the cluster could not be listed                  ResyncError with their errors and advice
        the cluster is not served now                    ResyncError (``ask_cluster``)
        nobody waits for the resync any more             ResyncWithdrawnError
        of any other error, an interrupt included        this error
        """
        # A session that was started for the resync does not watch the cluster yet.
        deadline = self._master.term.deadline if self._progress.own_session else None
        relist: Question[messages.Relisted] = partial(messages.Relist, self._progress.request.force, deadline)
        try:
            return ask_cluster(self._master, self.name, relist, self._check_lists)
        except BaseException as error:
            # Whatever ended the wait, the cluster's actor may still list. A person forced deletions for this moment only, so lists that
            # come later must be recorded in the normal mode, which holds deletions back (I5).
            last_errors: Answer[Mapping[str, ListenerError]] = Answer(self._master.parts.scheduler)
            withdrawn = self._master.send(self.name, messages.WithdrawRelist(last_errors))
            if not isinstance(error, messages.ListingFailedError | ResyncError):
                raise
            try:
                self._check()  # the session's end is no error of the cluster
            except ResyncError as ended:
                # What the listeners failed with so far: the actor answers the withdrawal with it, if the cluster still has an actor.
                known = withdrawn and last_errors.wait(_LAST_ERRORS_SECONDS)
                said = _in_words(last_errors.result()) if known else ""
                raise ResyncError(f"{ended} (the last error: {said})" if said else str(ended)) from None
            if isinstance(error, ResyncError):
                raise
            raise ResyncError(f"cluster {self.name} could not be listed{_failure_reason(error)}") from error

    def _check_lists(self) -> None:
        """Raise if the wait for the lists must stop: as ``_check``, or nobody waits for the resync any more (asked every _WAITING_SECONDS)."""
        self._check()
        with suppress(StoreError):  # a failed question must not end the list
            self._progress.check(_WAITING_SECONDS)

    # --- upstreams against state ---

    def read_upstreams(self) -> None:
        """Read the names of all upstreams of the keys, unless they are known, or orphans were removed already."""
        if self._upstreams is None and not self.orphans_removed:
            hashes = sorted(hash(name) for state in self._states() for name in state.upstreams)
            self._upstreams = array("q", hashes)

    def knows(self, upstream: str) -> bool:
        """Whether a key had this upstream when the states were read. Call ``read_upstreams`` first.

        Only hashes are kept, 8 bytes each, because the upstreams of all clusters are held at once. If an orphan has the same hash as another
        upstream, it stays: nothing is removed by mistake.
        """
        assert self._upstreams is not None
        at = bisect_left(self._upstreams, hash(upstream))
        return at < len(self._upstreams) and self._upstreams[at] == hash(upstream)

    def remove_orphans(self, orphans: Sequence[tuple[str, UpstreamState]]) -> None:
        """Ask the cluster to remove upstreams that no key knows, which a restored table can bring back.

        The cluster reads each upstream again before it removes the upstream, since a key may have got it meanwhile. Afterwards, the names read by
        ``read_upstreams`` are dropped.

        Args:
            orphans: name and state of each, as found in the table.
        """
        self._check()
        removed = 0
        for some in batched(orphans, _ORPHANS_AT_A_TIME):
            removed += ask_cluster(self._master, self.name, partial(messages.RemoveOrphans, dict(some)), self._check)
        self._document["stray_upstreams"] = removed
        self._upstreams = None

    # --- state against a zone ---

    def remember(self, zone_id: str) -> None:
        """Read the known sets of a zone. Must be done before the zone is walked.

        Also lets the zone check names in conflict. If this is the cluster's last zone, also collects held deletions and conflicts for the report,
        so that no further reading of all states is needed. Of a dry run, ``_preview`` has collected the held deletions.
        """
        self._known = []
        last, dry_run = self.zones == {zone_id}, self._progress.request.dry_run
        in_conflict: list[ObjectKey] = []
        for state in self._states():
            if (known := Baseline.of(state, zone_id)).applied:
                self._known.append(known)
            if any(name.zone_id == zone_id for name in state.conflicts):
                in_conflict.append(state.key)
            if last and not dry_run:
                self._held += _held_rows(state)
            if last and state.conflicts:
                self._conflicts[state.key] = state.conflicts
        self._reread.update(in_conflict)
        if in_conflict and not dry_run:
            self._master.zones.send(zone_id, messages.CheckConflicts(tuple(in_conflict)))

    def remember_moved(self, zone_id: str) -> None:
        """Read the known sets of the keys that have moved, and only of these. Must be done before the zone is walked again. Empties ``moved``."""
        load, moved, self.moved = self._master.tables.state.load, sorted(self.moved), set()
        some_states = (load(some).values() for some in batched(moved, KEYS_AT_A_TIME))
        self._known = [Baseline.of(state, zone_id) for states in some_states for state in states]

    def known_names(self) -> set[Name]:
        """Return the names of the sets that ``remember`` has read. Empty after ``compare``."""
        return {Name.of(key) for known in self._known for key, _ in known.applied}

    def report_forgotten(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add sets that kubesync has lost track of to the report. Their owners may be keys of other clusters, even of removed clusters."""
        if rows:
            self._document["forgotten"] = [*self._document.get("forgotten", ()), *rows]

    def compare(self, zone_id: str, actual: Mapping[RecordKey, RecordSet], unsettled: AbstractSet[RecordKey]) -> None:
        """Compare the known sets with the zone, and forget the known sets. Fills ``moved``.

            the actors of zones                       a known set that differs from the walk
            -------------------                       --------------------------------------
            run: batches may have changed it          is a suspect: the zone itself checks it, between two batches
            do not run (``zones_held``), in a dry     has drifted, unless it is ``unsettled``
              run in a session of its own

        Args:
            zone_id: the zone.
            actual: its sets, walked after ``remember``.
            unsettled: sets that are as a batch left them that is not settled (``as_the_last_batch_left``). They are ours, and did not drift.
        """
        if self._forecast is not None:
            self._forecast.find_conflicts(actual, unsettled)
        # A set of ours that somebody replaced by one with a set identifier counts as changed, not as gone.
        found = with_replacements(actual)
        suspects = [known for known in self._known if known.drifts(found)]
        self._known = []
        if self._progress.zones_held:  # no batch is under way in this session, so the walk decides
            self._check()
            drifts = (drift for known in suspects for drift in known.drifts(found))
            self._add_drifts([drift for drift in drifts if drift.key not in unsettled])
        else:
            self._reread.update(known.service for known in suspects)
            moved = (self._ask(zone_id, known=some, actual=found) for some in batched(suspects, KEYS_AT_A_TIME))
            self.moved = set[ObjectKey]().union(*moved)

    def finish(self, zone_id: str) -> None:
        """Compare the keys that have moved, one by one, and store that the zone is compared."""
        for key in sorted(self.moved):
            self._compare_moved(zone_id, key)
        self.moved = set()
        self.zones.discard(zone_id)
        self.keep()

    def _compare_moved(self, zone_id: str, key: ObjectKey) -> None:
        """Compare a key that was written since the walk: the zone reads its names between two batches.

        If the key is written again between the reading of its state here and the comparison in the zone, it is done once more. Raises
        ResyncError after _ROUNDS tries.
        """
        for _ in range(_ROUNDS):
            state = self._master.tables.state.load([key])[key]
            names = frozenset(each.name for each in state.applied if each.zone_id == zone_id)
            if not names or not self._ask(zone_id, keys=(key,), names=names):
                return
        raise ResyncError(f"{key} was written all the time: run it again")

    def _ask(
        self,
        zone_id: str,
        *,
        known: tuple[Baseline, ...] = (),
        actual: Mapping[RecordKey, RecordSet] = EMPTY,
        keys: tuple[ObjectKey, ...] = (),
        names: frozenset[str] = frozenset(),
    ) -> AbstractSet[ObjectKey]:
        """Let the zone's actor compare keys, and add the drifts that it finds to the report.

        Returns the keys that it did not compare, because they were written after this resync had read their states.

        Give ``known`` and ``actual``: sets and how the walk found them. Or ``keys`` and ``names``: the zone reads these names now
        (``CompareZone``).
        """
        self._check()

        def question(reply: Answer[messages.Compared]) -> messages.CompareZone:
            mend = not self._progress.request.dry_run
            return messages.CompareZone(self.name, reply, known, keys, names, actual, mend=mend)

        compared = ask_zone(self._master, zone_id, question, self._check)
        self._add_drifts(compared.drifts)
        return compared.moved

    def _add_drifts(self, drifts: Sequence[Drift]) -> None:
        """Add sets that somebody changed by hand to the report."""
        self._document["drift"] = [*self._document["drift"], *map(drift_row, drifts)]
        if self._forecast is not None:
            self._forecast.drifts += drifts


def _failure_reason(failed: messages.ListingFailedError) -> str:
    """Return the end of the sentence "cluster X could not be listed", which says why.

    If the cluster's actor knows a ``problem``, or no listener has an error, the time was over: because of the problem, or nobody answered. Else
    the errors are named, with advice.
    """
    if failed.problem or not failed.errors:
        return f" in time ({failed.problem or 'no answer'})"
    tried = f"tried for {failed.seconds:.0f} s: " if failed.seconds >= 1 else ""
    return f": {tried}{_in_words(failed.errors)}; {advice(failed.errors)}, then run it again"


def _held_rows(state: KeyState) -> list[dict[str, Any]]:
    """Return the report's rows for deletions of a key that are held back (I5): of objects that a list lacks, and of record sets that only a
    changed configuration no longer wants (``KeyState.kept``).
    """
    held = [(part_id.resource.value, part_id.name) for part_id, part in state.parts.items() if part.held]
    held += [("configuration", key.label) for key in sorted(state.kept)]
    return [{"service": str(state.key), "listener": of, "object": what, "code": "DeletionHeld"} for of, what in held]


def _in_words(errors: Mapping[str, ListenerError]) -> str:
    """Return the listeners' errors in one line."""
    return "; ".join(f"{resource}: {error.code.key}: {error.message}" for resource, error in sorted(errors.items()))
