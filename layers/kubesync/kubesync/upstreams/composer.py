"""Keeps named upstreams up to date: reads marks of changes, composes, writes, and removes the marks.

marks ── registry, if it changed ── upstreams of Services ── compose ── transactions, the last one removes the marks

It runs in its own thread and never delays clusters or zones. Its transactions check the shard's fence (I2).
A change after a mark was read makes a new mark, and the round is repeated, at most twice. Then the composer writes what it read
and leaves the new mark: otherwise Services that change all the time would prevent every write. If the master dies before
the end, the mark stays for the next master (I1). An upstream that is already right is not written (I6).

When a named upstream is new, a reconciler that does not know it yet may be planning one of its Services, and would leave no
mark. So the composer takes those clusters' locks once before it reads anything for the new upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger

from kubesync.actors.backoff import Backoff
from kubesync.actors.parallel import Map
from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.aws.dynamodb.store import Action, Put
from kubesync.aws.fencing.writer import FencedWriter, StaleStateError
from kubesync.aws.tables.audit import NAMED, AuditTable, Entry
from kubesync.aws.tables.control.named_referrals import NamedReferrals
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable, Registry, is_mark
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.key_states import Ledger
from kubesync.domain.errors import KubesyncError, NotMasterError, StoreBusyError
from kubesync.domain.named_upstreams import PREFIX, index_of, is_named, named_key
from kubesync.upstreams.recomposition import Recomposed, Rewrite, recompose

logger = Logger(service="kubesync", child=True)

# In one transaction, in addition to the fence check and the audit. Puts are slices of about 100 KB; the limit is 4 MB.
_MAX_ACTIONS: Final = 90
_MAX_PUTS: Final = 30
_ATTEMPTS: Final = 8
_STRICT_ATTEMPTS: Final = 3
_COLLECT_SECONDS: Final = 0.2
_BACKOFF: Final = Backoff(initial=0.5, cap=30.0)
_LOCK_SECONDS: Final = 5.0
_JOIN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ComposerPorts:
    """What composing needs. ``ledgers``: of the served clusters. ``reads``: reads many upstreams in parallel."""

    shard: str
    table: NamedUpstreamTable
    upstreams: UpstreamTable
    referrals: NamedReferrals
    fenced_writer: FencedWriter
    audit: AuditTable
    scheduler: Scheduler
    ledgers: Mapping[str, Ledger]
    not_master: Callable[[NotMasterError], None]
    reads: Map


@dataclass(slots=True)
class ComposerReport:
    """Of a session: named upstreams of the shard, writes, and the problem that stops the composer now."""

    registered: int = 0
    written: int = 0
    problem: str = ""


class Composer:
    """The composer of one session. Call ``load`` before anything is recorded, then ``start``, ``stop``, ``join``."""

    def __init__(self, ports: ComposerPorts) -> None:
        self.report = ComposerReport()
        self._ports = ports
        self._registry = Registry()
        self._unverified: frozenset[str] = frozenset()
        self._one_at_a_time = ports.scheduler.lock()
        self._changed = ports.scheduler.condition()
        self._marked = False
        self._stopping = False
        self._abandoned = False
        self._until = 0.0
        self._failures = 0
        self._thread: Thread | None = None
        ports.referrals.on_note = self.wake

    # --- life ---

    def load(self) -> None:
        """Read the registry. From now on reconcilers leave marks. Raises StoreError."""
        self._follow(self._ports.table.read())
        self._unverified = frozenset()  # nothing is being recorded yet

    def start(self) -> None:
        """Compose for the marks that exist, then for each new one. Only the first call has an effect."""
        if self._thread is None:
            self.wake()
            self._thread = self._ports.scheduler.thread("composer", self._work)
            self._thread.start()

    def wake(self) -> None:
        """Check for marks soon. Any thread may call it."""
        with self._changed:
            self._marked = True
            self._changed.notify_all()

    def stop(self, until_monotonic: float, *, abandon: bool = False) -> None:
        """Compose for the marks that exist, as long as there is time, and end.

        Args:
            abandon: write nothing more.
        """
        with self._changed:
            self._stopping, self._abandoned, self._until = True, self._abandoned or abandon, until_monotonic
            self._changed.notify_all()

    def join(self) -> bool:
        """Whether it has ended within the time that ``stop`` has set, or a moment later."""
        if self._thread is None:
            return True
        left = self._until - self._ports.scheduler.monotonic()
        self._thread.join(_JOIN_SECONDS if self._abandoned else max(_JOIN_SECONDS, left))
        return not self._thread.is_alive()

    def _work(self) -> None:
        pause: float | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._marked or self._stopping, pause)
                # A list is recorded in many transactions, each with marks: one round serves several of them.
                self._changed.wait_for(lambda: self._stopping, _COLLECT_SECONDS)
                stopping, due = self._stopping, self._marked or pause is not None
            if self._abandoned or (stopping and not due):
                return
            pause = self.turn()
            if stopping and pause is not None:
                # What is not composed by then stays marked for the next master.
                if self._ports.scheduler.monotonic() + pause >= self._until:
                    return
                self._ports.scheduler.sleep(pause)

    @property
    def marked(self) -> bool:
        """Whether there may be marks that were not read yet."""
        return self._marked

    def turn(self) -> float | None:
        """Do one turn of work. Returns the seconds until the next try. None: wait until woken."""
        with self._changed:
            self._marked = False
        try:
            with self._one_at_a_time:
                self._rounds()
        except NotMasterError as error:
            self._abandoned = self._stopping = True
            self._ports.not_master(error)
            return None
        except Exception as error:  # noqa: BLE001 - a bug of ours must stop neither clusters nor zones (I4)
            known = isinstance(error, KubesyncError)
            self.report.problem = str(error) if known else f"{type(error).__name__}: {error}"
            (logger.warning if known else logger.exception)("composing failed, trying again", error=self.report.problem)
            self._failures += 1
            return _BACKOFF.delay(self._failures)
        self.report.problem, self._failures = "", 0
        return None

    # --- marks ---

    def _rounds(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            marks = self._ports.table.marks(self._ports.shard)
            if not marks:
                return
            try:
                self._round(marks, all_or_nothing=attempt <= _STRICT_ATTEMPTS)
            except StaleStateError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return

    def _round(self, marks: Mapping[str, int], *, all_or_nothing: bool) -> None:
        registry = self._current()
        whys: dict[str, str] = {}
        for upstream, version in sorted(marks.items()):
            why = "configuration" if is_named(upstream) else f"upstream {upstream} version {version}"
            whys |= dict.fromkeys(self._names_of(upstream), why)
        found = self._recomposed(registry, whys)
        kept = {upstream for upstream in marks if not found.stuck.keys().isdisjoint(self._names_of(upstream))}
        # A newer release composes what it registered: its marks stay.
        kept |= {named_key(name) for name in registry.unreadable}
        table, shard = self._ports.table, self._ports.shard
        done = [table.unmark(shard, up, version) for up, version in sorted(marks.items()) if up not in kept]
        self._write(found.rewrites, done, all_or_nothing=all_or_nothing)
        if found.stuck:
            said = ", ".join(sorted(set(found.stuck.values())))
            raise StoreBusyError(f"cannot be read whole: {said}; `kubesync resync` mends what was changed by hand")

    def _recomposed(self, registry: Registry, whys: Mapping[str, str]) -> Recomposed:
        ports = self._ports
        return recompose(ports.upstreams, registry, ports.shard, whys, ports.scheduler.epoch(), ports.reads)

    def _names_of(self, upstream: str) -> Iterable[str]:
        """The named upstreams that are made of an upstream. A named one that is no longer registered stands for itself."""
        names = self._ports.referrals.index.get(upstream, frozenset())
        own = {upstream.removeprefix(PREFIX)} if is_named(upstream) else set[str]()
        return sorted((names | own) - self._registry.unreadable)

    def _current(self) -> Registry:
        if self._ports.table.version() != self._registry.version:
            self._follow(self._ports.table.read())
        while self._unverified:
            # A reconciler that planned one of these before the referral has written it when it releases the lock.
            cluster = min(upstream.partition("/")[0] for upstream in self._unverified)
            ledger = self._ports.ledgers.get(cluster)
            if ledger is not None:
                if not ledger.lock.acquire(timeout=_LOCK_SECONDS):
                    raise StoreBusyError(f"cluster {cluster} is busy recording")
                ledger.lock.release()
            self._unverified = frozenset(u for u in self._unverified if u.partition("/")[0] != cluster)
        return self._registry

    def _follow(self, registry: Registry) -> None:
        shard = self._ports.shard
        ours = {name: entry.upstream for name, entry in registry.entries.items() if entry.shard == shard}
        self._registry = registry
        self.report.registered = len(ours)
        self._unverified |= self._ports.referrals.follow(index_of(ours))

    # --- writing ---

    def _write(self, rewrites: Sequence[Rewrite], last: Sequence[Action] = (), *, all_or_nothing: bool = True) -> None:
        """Write each named upstream in one transaction, several together if they fit. ``last`` comes after all of them.

        Args:
            last: removals of marks. Unless ``all_or_nothing``, marks that were renewed since they were read stay.
        """
        actions: list[Action] = []
        entries: list[Entry] = []
        for rewrite in rewrites:
            if len(actions) + len(rewrite.actions) > _MAX_ACTIONS or _puts([*actions, *rewrite.actions]) > _MAX_PUTS:
                self._run(actions, entries)
                actions, entries = [], []
            actions += rewrite.actions
            entries.append(rewrite.entry)
        for action in last:
            if len(actions) >= _MAX_ACTIONS:
                self._run(actions, entries, all_or_nothing=all_or_nothing)
                actions, entries = [], []
            actions.append(action)
        self._run(actions, entries, all_or_nothing=all_or_nothing)

    def _run(self, actions: Sequence[Action], entries: Sequence[Entry], *, all_or_nothing: bool = True) -> None:
        fenced_writer, now = self._ports.fenced_writer, self._ports.scheduler.epoch()
        while actions:
            token = fenced_writer.token()
            audit = [self._ports.audit.changes(NAMED, entries, fenced_writer.epoch, now, token)] if entries else []
            try:
                fenced_writer.run([], [*actions, *audit], token)
            except StaleStateError as stale:
                renewed = {action.key for action in actions if is_mark(action)}.intersection(stale.places)
                if all_or_nothing or not renewed or not renewed.issuperset(stale.places):
                    raise
                actions = [action for action in actions if action.key not in renewed]
                self.wake()
            else:
                self.report.written += len(entries)
                return

    # --- full resync ---

    def compare(self, request: ResyncRequest, check: Callable[[], None]) -> list[dict[str, Any]]:
        """Compare named upstreams (of one cluster, or all) and correct them. Returns one row for each that differed unmarked.

        A comparison of all includes unregistered ones (it scans the table). Only a forced resync removes those: a registry
        that was lost, or restored from a backup, does not prove that they are unwanted (I5).

        Args:
            check: raises if the resync must stop.

        Raises:
            StoreError, StaleStateError: some could not be compared.
        """
        with self._one_at_a_time:
            if not request.dry_run:
                self._rounds()
            marked = self._ports.table.marks(self._ports.shard).keys()
            for left in reversed(range(_ATTEMPTS)):
                check()
                registry = self._current()
                found = self._recomposed(registry, dict.fromkeys(self._to_compare(request.cluster, registry), "resync"))
                wanted = [each for each in found.rewrites if each.drift != "stray" or request.force]
                try:
                    if not request.dry_run:
                        self._write(wanted)
                    break
                except StaleStateError:
                    if not left:
                        raise
        # Marked upstreams are composed anyway.
        coming = {name for upstream in marked for name in self._names_of(upstream)}
        drifts = {each.name: each.drift for each in found.rewrites if each.name not in coming}
        drifts |= dict.fromkeys(found.stuck, "unknown")
        return [{"upstream": named_key(name), "drift": drift} for name, drift in sorted(drifts.items())]

    def _to_compare(self, cluster: str, registry: Registry) -> Collection[str]:
        index = self._ports.referrals.index
        if cluster:
            return sorted({name for up, names in index.items() if up.partition("/")[0] == cluster for name in names})
        standing = {
            stored.upstream.removeprefix(PREFIX)
            for stored in self._ports.upstreams.read_all()
            if is_named(stored.upstream) and not stored.deleted
        }
        ours = {name for name, entry in registry.entries.items() if entry.shard == self._ports.shard}
        return sorted(ours | (standing - registry.entries.keys() - registry.unreadable))


def _puts(actions: Iterable[Action]) -> int:
    return sum(isinstance(action, Put) for action in actions)
