"""Full resync of one cluster: compares cluster, state, zone and upstream table, and mends every difference.

cluster against state     both listeners list anew; the lists are taken like any other, guard included (I5)
state against upstreams   what really stands in the table is read, key by key
state against zone        what really stands in the zone is walked while no batch is under way; a set of ours that was changed or
                          deleted by hand becomes the known value, from which the ordinary commit leads back (I3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from typing import Any, Final

from kubesync.aws.audit import describe
from kubesync.domain.errors import KubesyncError, ListenerError
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.records import RecordKey, RecordSet
from kubesync.domain.state import KeyState, Name
from kubesync.domain.window import WindowContent
from kubesync.session.ledger import Ledger
from kubesync.session.master import Master
from kubesync.session.recorder import Mode, Preview, Recorder
from kubesync.session.refusals import why_foreign

LIST_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 0.2  # a session that has to end must not wait for a resync


class ResyncError(KubesyncError):
    """A resync could not be done; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A record set of ours that is not in the zone as we know it."""

    state: KeyState
    key: RecordKey
    known: RecordSet
    stands: RecordSet | None

    def document(self) -> dict[str, Any]:
        kind = "missing" if self.stands is None else "foreign" if self.stands.foreign_form else "changed"
        return {
            "drift": kind,
            "name": self.key.name,
            "type": self.key.type,
            "zone": self.key.zone_id,
            "service": str(self.state.key),
            "known": describe(self.known),
            "stands": describe(self.stands),
        }


class Resync:
    """One resync of one cluster, run from the session's own thread."""

    def __init__(self, master: Master, cluster: str, *, force: bool) -> None:
        self._master = master
        self._cluster = cluster
        self._ledger = master.ledgers[cluster]
        self._mode = Mode(forced=force, distrust_upstreams=True)
        self._previewed: list[KeyState] = []
        self._foreseen: dict[tuple[str, Name], str] = {}

    def run(self, *, dry_run: bool) -> dict[str, Any]:
        """Do it, or only say what would be done.

        Raises:
            ResyncError: the cluster could not be listed, or a zone not be read, in time.
        """
        report: dict[str, Any] = {"cluster": self._cluster}
        report |= self._preview() if dry_run else self._relist()
        drifts: list[dict[str, Any]] = []
        zones = {zone.id for zone in self._ledger.rules.zones} | {
            key.zone_id for state in self._states() for key in state.applied
        }
        for zone_id in sorted(zones):
            drifts += [drift.document() for drift in self._compare(zone_id, mend=not dry_run)]
        report["drift"] = drifts
        report["held_deletions"] = [
            {"service": str(state.key), "listener": part_id.resource.value, "object": part_id.name}
            for state in (self._previewed if dry_run else self._states())
            for part_id, part in state.parts.items()
            if part.held
        ]
        known = {(str(s.key), name): reason for s in self._states() for name, reason in s.conflicts.items()}
        report["conflicts"] = [
            {"service": service, "name": name.name, "zone": name.zone_id, "reason": reason}
            for (service, name), reason in sorted((self._foreseen | known).items())
        ]
        return report

    def _states(self) -> Iterator[KeyState]:
        return self._master.tables.state.load_all(self._cluster)

    # --- cluster against state and upstreams ---

    def _relist(self) -> dict[str, Any]:
        runner = self._master.runners.get(self._cluster)
        before = 0 if runner is None else runner.report.changed_keys
        held_before = self._held_keys()
        if runner is None:
            runner = self._master.start_cluster(self._cluster, self._mode)
        else:
            runner.relist(self._mode)
        try:
            self._wait(lambda seconds: runner.wait_relisted(seconds) or bool(runner.refused))
        except ResyncError as ended:
            said = _in_words(runner.last_errors)
            raise ResyncError(f"{ended} (the last error: {said})" if said else str(ended)) from None
        if not runner.wait_relisted(0):
            if refused := _in_words(runner.refused):
                raise ResyncError(f"cluster {self._cluster} could not be listed: {refused}")
            why = _in_words(runner.last_errors) or "no answer"
            raise ResyncError(f"cluster {self._cluster} could not be listed in time ({why})")
        # A key whose deletion is held back is written as well, but stays as it is.
        marked = len(self._held_keys() - held_before)
        changed = max(0, runner.report.changed_keys - before - marked)
        return {"changed_keys": changed, "held": dict(runner.report.held)}

    def _held_keys(self) -> set[ServiceKey]:
        return {state.key for state in self._states() if any(part.held for part in state.parts.values())}

    def _preview(self) -> dict[str, Any]:
        preview = preview_lists(self._master, self._cluster, self._mode)
        self._previewed = list(preview.states.values())
        changes = [{"what": e.what, "from": e.before, "to": e.after} for e in preview.entries]
        return {"changes": changes, "held": {resource.value: reason for resource, reason in preview.held.items()}}

    # --- state against zone ---

    def _compare(self, zone_id: str, *, mend: bool) -> list[Drift]:
        assert self._master.pool is not None
        future = self._master.pool.between_batches(zone_id, lambda: self._walk(zone_id, mend=mend))
        if not self._wait(lambda seconds: bool(wait([future], timeout=seconds).done)):
            raise ResyncError(f"zone {zone_id} could not be compared in time")
        return future.result()

    def _wait(self, done: Callable[[float], bool]) -> bool:
        """Wait for something, but no longer than the session may, and not once it has to end."""
        clock = self._master.parts.clock
        until = min(clock.monotonic() + LIST_SECONDS, self._master.deadline)
        while not done(_LOOK_SECONDS):
            if self._master.ending():
                raise ResyncError("the session ended before the resync was done: ask again")
            if clock.monotonic() >= until:
                return False
        return True

    def _walk(self, zone_id: str, *, mend: bool) -> list[Drift]:
        """Runs in the zone's own thread, between two batches."""
        standing = dict(self._master.parts.zones.walk(zone_id))
        drifts = [
            Drift(state, key, known, standing.get(key))
            for state in self._states()
            for key, known in sorted(state.applied.items(), key=lambda item: item[0])
            if key.zone_id == zone_id and standing.get(key) != known
        ]
        if mend and drifts:
            self._take_as_known(drifts)
        if not mend:
            self._foreseen |= foreseen_conflicts(self._previewed, zone_id, standing)
        return drifts

    def _take_as_known(self, drifts: list[Drift]) -> None:
        by_key: dict[Any, list[Drift]] = {}
        for drift in drifts:
            by_key.setdefault(drift.state.key, []).append(drift)

        def pairs() -> Iterator[tuple[KeyState, KeyState]]:
            for key, state in self._ledger.states(by_key).items():
                yield state, _as_it_stands(state, by_key[key])

        recorder = self._master.recorders[self._cluster]
        self._master.follow_up(self._cluster, recorder.transform(pairs, "resync"))


def foreseen_conflicts(
    states: Sequence[KeyState], zone_id: str, standing: Mapping[RecordKey, RecordSet]
) -> dict[tuple[str, Name], str]:
    """Where sets that are to be made will meet foreign ones (I3): service and name, and why."""
    ours = {key for state in states for key in state.applied}
    foreign: dict[str, list[RecordKey]] = {}
    for key in standing.keys() - ours:
        foreign.setdefault(key.name, []).append(key)
    found: dict[tuple[str, Name], str] = {}
    for state in states:
        for key in state.intended.keys() - state.applied.keys():
            if key.zone_id != zone_id:
                continue
            # A CNAME stands alone at its name (RFC 1034 section 3.6.2).
            for other in sorted(foreign.get(key.name, ())):
                if other.type == key.type or "CNAME" in (other.type, key.type):
                    found[str(state.key), Name(zone_id, key.name)] = why_foreign(other, standing[other])
    return found


def _in_words(errors: Mapping[str, str]) -> str:
    return "; ".join(f"{resource}: {error}" for resource, error in sorted(errors.items()))


def list_now(master: Master, cluster: str) -> WindowContent:
    """Complete lists of both listeners' resources, outside of any watch.

    Raises:
        ResyncError: the cluster could not be listed.
    """
    ledger, connector = master.ledgers[cluster], master.parts.connector
    try:
        snapshots = {resource: connector.snapshot(ledger.config, resource) for resource in ledger.sources}
    except ListenerError as error:
        raise ResyncError(f"cluster {cluster} could not be listed: {error.message}") from error
    versions: dict[Resource, int] = {resource: snapshot.resource_version for resource, snapshot in snapshots.items()}
    return WindowContent((), snapshots, versions, master.parts.clock.monotonic(), 0)


def preview_lists(master: Master, cluster: str, mode: Mode) -> Preview:
    """What taking complete lists now would come to, on a ledger of its own; nothing is written."""
    known = master.ledgers[cluster]
    ledger = Ledger(known.config, master.tables.state)
    ledger.configure(known.config, master.listeners.checkpoints(cluster))
    ledger.identity = known.identity
    return Recorder(ledger, master.means(known.config)).preview(list_now(master, cluster), mode)


def _as_it_stands(state: KeyState, drifts: list[Drift]) -> KeyState:
    applied = dict(state.applied)
    conflicts = dict(state.conflicts)
    for drift in drifts:
        if drift.stands is None:
            applied.pop(drift.key, None)
        elif drift.stands.foreign_form:
            # Somebody replaced it by a set of a form that we never make: theirs now.
            applied.pop(drift.key, None)
            name = Name(drift.key.zone_id, drift.key.name)
            conflicts[name] = f"{drift.key.name} {drift.key.type} was replaced ({drift.stands.foreign_form})"
        else:
            applied[drift.key] = drift.stands
    return replace(state, applied=applied, conflicts=conflicts)
