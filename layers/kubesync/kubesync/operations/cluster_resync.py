"""The full resync of one cluster: its lists and upstreams, what was found, and the report. ``zone_comparison`` compares it with its zones.

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
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import batched
from typing import Any, Final

from kubesync.actors.answer import Answer
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.domain.dns.drift import Drift
from kubesync.domain.errors import ListenerError, StoreError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, Name, UpstreamState
from kubesync.domain.window import Mode
from kubesync.messages import (
    ListingFailedError,
    Relist,
    Relisted,
    RemoveOrphans,
    WithdrawRelist,
)
from kubesync.operations.asking import Question, ResyncError, ask_cluster, check_time
from kubesync.operations.listing import advice, preview_lists
from kubesync.operations.ports import Master
from kubesync.operations.record_rows import DryRunForecast, counts_of, drift_row
from kubesync.operations.resync_progress import Part
from kubesync.operations.resync_report import with_counts

_LAST_ERRORS_SECONDS: Final = 1.0
_WAITING_SECONDS: Final = 2.0
"""How often to ask, during a list, whether the caller still waits for the resync."""
_ORPHANS_AT_A_TIME: Final = 50


class ClusterResync:
    """The full resync of one cluster: compares its lists and upstreams, and collects what was found for the report.

    ``zones``: zones that are not compared yet. ``listed``: an earlier session has listed the cluster.
    ``forecast``: what a dry run would change. None: this is no dry run, or it has not listed yet.
    ``held``: the report's rows of deletions that are held back. ``conflicts``: by key, its names in conflict.
    ``reread``: keys whose conflicts are read once more for the report.

    Args:
        own_session: see ``Resync``.
        part: what an earlier session has done.
        check_waiting: raises once the caller no longer waits for the resync. Gets the least time (seconds) between two questions.

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
        self.master = master
        self.own_session = own_session
        self.listed = listed = bool(part.document) and part.revision == config.revision
        self.zones = set(part.zones) if listed else {zone.id for zone in config.zones}
        self.forecast: DryRunForecast | None = None
        self.held: list[dict[str, Any]] = []
        self.conflicts: dict[ObjectKey, Mapping[Name, str]] = {}
        self.reread: set[ObjectKey] = set()
        self._config = config
        self._request = request
        self._check_waiting = check_waiting
        self._document: dict[str, Any] = {**part.document} if listed else {"cluster": name}
        self._drift: list[dict[str, Any]] = list(self._document.pop("drift", ()))
        self._upstreams: array[int] | None = None

    @property
    def name(self) -> str:
        return self._config.name

    @property
    def dry_run(self) -> bool:
        return self._request.dry_run

    @property
    def orphans_removed(self) -> bool:
        """Whether orphaned upstreams were removed already. True in a dry run, which removes none."""
        return self.dry_run or "stray_upstreams" in self._document

    def part(self) -> Part:
        """Return what is done so far, as it is stored."""
        return Part(self._config.revision, {**self._document, "drift": self._drift}, tuple(sorted(self.zones)))

    def final_part(self) -> Part:
        """Return the complete report as a part, once all zones are compared. Reads the keys of ``reread``. Raises ResyncError, StoreError."""
        for state in self.master.tables.state.load(sorted(self.reread)).values():
            self.conflicts[state.key] = state.conflicts
        conflicts = {(str(key), name): why for key, names in self.conflicts.items() for name, why in names.items()}
        planned: dict[str, Any] = {}
        if self.forecast is not None:
            conflicts = self.forecast.conflicts | conflicts
            records = self.forecast.rows(self._config.policy, conflicts)
            planned = {"records": records, "plan": counts_of(records, self._document["changes"])}
        document = {
            **self._document,
            **planned,
            "drift": self._drift,
            "held_deletions": self.held,
            "conflicts": [
                {"service": service, "name": name.name, "zone": name.zone_id, "code": "Conflict", "reason": reason}
                for (service, name), reason in sorted(conflicts.items())
            ],
        }
        return Part(self._config.revision, with_counts(document), (), done=True)

    def add_drifts(self, drifts: Sequence[Drift]) -> None:
        """Add sets that somebody changed by hand to the report."""
        self._drift += map(drift_row, drifts)
        if self.forecast is not None:
            self.forecast.drifts += drifts

    def report_forgotten(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add sets that kubesync has lost track of to the report. Their owners may be keys of other clusters, even of removed clusters."""
        if rows:
            self._document["forgotten"] = [*self._document.get("forgotten", ()), *rows]

    def check(self) -> None:
        """Raise ResyncError if the session must end or the configuration was changed."""
        check_time(self.master)
        config = self.master.configs.get(self.name)
        if config is None or config.revision != self._config.revision:
            raise ResyncError(f"the configuration of cluster {self.name} was changed meanwhile: run it again")

    def states(self) -> Iterator[KeyState]:
        """Read all key states of the cluster, one after another. Raises what ``check`` raises."""
        for state in self.master.tables.state.load_all(self.name):
            self.check()
            yield state

    # --- cluster against state and upstreams ---

    def compare_with_lists(self) -> None:
        """List the cluster, and apply the lists or preview their effects. Raises ResyncError, StoreError."""
        self.check()
        self._check_waiting(0.0)
        if self.dry_run:
            self._preview()
        else:
            self._relist()

    def _preview(self) -> None:
        """List the cluster, plan on separate key states, and take forecast, held deletions, zones and report from the plan."""
        mode = Mode(forced=self._request.force, reread_upstreams=True)
        preview = preview_lists(self.master, self._config, mode, self.check)
        states = preview.states.values()
        self.forecast = DryRunForecast(preview)
        self.held = [row for state in states for row in held_rows(state)]
        self.zones |= {key.zone_id for state in states for key in state.applied}
        news = {str(key): why for key, why in preview.news.items()}
        self._document["changes"] = [
            {"what": e.what, "from": e.before, "to": e.after, "why": news.get(e.service, "")} for e in preview.entries
        ]
        self._document["held"] = {resource.value: reason for resource, reason in preview.held.items()}
        if preview.set_aside:
            self._document["set_aside"] = [str(key) for key in preview.set_aside]

    def _relist(self) -> None:
        """Let the cluster's actor list and record. Read all states before and after, to count keys that really changed."""
        held_before = {state.key for state in self.states() if held_rows(state)}
        relisted = self._request_lists()
        held_after: set[ObjectKey] = set()
        upstreams: list[int] = []
        for state in self.states():
            self.zones |= {key.zone_id for key in state.applied}
            upstreams += map(hash, state.upstreams)
            if held_rows(state):
                held_after.add(state.key)
        self._upstreams = array("q", sorted(upstreams))
        # A key whose deletion is held back counts as written, but does not change.
        changed = max(0, relisted.changed_keys - len(held_after - held_before))
        self._document |= {"changed_keys": changed, "missed_keys": relisted.missed, "held": dict(relisted.held)}

    def _request_lists(self) -> Relisted:
        """Ask the cluster's actor to list again, and wait for its answer. If the wait ends early, withdraws the request."""
        # A session that was started for the resync does not watch the cluster yet.
        deadline = self.master.term.deadline if self.own_session else None
        relist: Question[Relisted] = partial(Relist, self._request.force, deadline)
        try:
            return ask_cluster(self.master, self.name, relist, self._check_lists)
        except BaseException as error:
            # A person forced deletions at this moment. The lists must not be recorded at any later time (I5).
            self._withdraw_relist()
            if not isinstance(error, ListingFailedError):
                raise
            self._check_lists()  # raises if the session ends: then the failed list is no error of the cluster
            raise ResyncError(f"cluster {self.name} could not be listed{_failure_reason(error)}") from error

    def _check_lists(self) -> None:
        """Raise if the wait for the lists must stop. If the session ends it, the error also names the listeners' last errors."""
        try:
            self.check()
        except ResyncError as ended:
            errors = self._withdraw_relist()
            said = _in_words(errors.result()) if errors.wait(_LAST_ERRORS_SECONDS) else ""
            raise ResyncError(f"{ended} (the last error: {said})" if said else str(ended)) from None
        with suppress(StoreError):  # a failed question must not end the list
            self._check_waiting(_WAITING_SECONDS)

    def _withdraw_relist(self) -> Answer[Mapping[str, ListenerError]]:
        """Tell the cluster's actor that nobody waits for the lists any more. The actor answers with its listeners' last errors."""
        errors: Answer[Mapping[str, ListenerError]] = Answer(self.master.parts.scheduler)
        if not self.master.send(self.name, WithdrawRelist(errors)):
            errors.set_result({})
        return errors

    # --- upstreams against state ---

    def read_upstreams(self) -> None:
        """Read the names of all upstreams of the keys, unless ``_relist`` has read them."""
        if self._upstreams is None:
            hashes = sorted(hash(name) for state in self.states() for name in state.upstreams)
            self._upstreams = array("q", hashes)

    def knows(self, upstream: str) -> bool:
        """Whether a key had this upstream when the states were read. Call ``read_upstreams`` first.

        Only hashes are kept, 8 bytes each, because the upstreams of all clusters are held at once.
        """
        assert self._upstreams is not None
        at = bisect_left(self._upstreams, hash(upstream))
        return at < len(self._upstreams) and self._upstreams[at] == hash(upstream)

    def remove_orphans(self, orphans: Sequence[tuple[str, UpstreamState]]) -> None:
        """Ask the cluster to remove upstreams that no key knows, which a restored table can bring back.

        The cluster reads each upstream again before it removes the upstream. Afterwards, the names read by ``read_upstreams`` are dropped.
        """
        self.check()
        removed = 0
        for some in batched(orphans, _ORPHANS_AT_A_TIME):
            removed += ask_cluster(self.master, self.name, partial(RemoveOrphans, dict(some)), self.check)
        self._document["stray_upstreams"] = removed
        self._upstreams = None


def _failure_reason(failed: ListingFailedError) -> str:
    """Return the end of a sentence that says why a cluster could not be listed, with advice."""
    if failed.problem or not failed.errors:
        return f" in time ({failed.problem or 'no answer'})"
    tried = f"tried for {failed.seconds:.0f} s: " if failed.seconds >= 1 else ""
    return f": {tried}{_in_words(failed.errors)}; {advice(failed.errors)}, then run it again"


def held_rows(state: KeyState) -> list[dict[str, Any]]:
    """Return the report's rows for deletions of a key that are held back."""
    held = [(part_id.resource.value, part_id.name) for part_id, part in state.parts.items() if part.held]
    held += [("configuration", key.label) for key in sorted(state.kept)]
    return [{"service": str(state.key), "listener": of, "object": what, "code": "DeletionHeld"} for of, what in held]


def _in_words(errors: Mapping[str, ListenerError]) -> str:
    """Return the listeners' errors in one line."""
    return "; ".join(f"{resource}: {error.code.key}: {error.message}" for resource, error in sorted(errors.items()))
