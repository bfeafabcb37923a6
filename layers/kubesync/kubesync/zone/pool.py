"""One thread for each hosted zone that has something to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from aws_lambda_powertools import Logger

from kubesync.actors.answer import Answer
from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.domain.dns.records import Zone
from kubesync.domain.errors import KubesyncError, NotMasterError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import KeyState
from kubesync.zone.journal import ZoneMeans
from kubesync.zone.writer import ZoneWriter

logger = Logger(service="kubesync", child=True)

_AFTER_A_FAULT_SECONDS = 5.0
# Threads end by themselves at the deadline: that much later they are taken to hang.
_ENDING_SECONDS = 0.1


def zones_of(state: KeyState) -> set[str]:
    """Zones in which a key's applied sets are not its intended ones."""
    keys = state.intended.keys() | state.applied.keys()
    return {key.zone_id for key in keys if state.intended.get(key) != state.applied.get(key)}


class ZonePool:
    """Makes a writer and a thread per zone when it first has something to do.

    Args:
        clean: the last master ended cleanly: zones need no settling, but those that it left ``unsettled``.
        zones: zones whose names are known from configurations.
        on_not_master: called when a writer found another master.
    """

    def __init__(
        self,
        means: ZoneMeans,
        scheduler: Scheduler,
        *,
        clean: bool,
        unsettled: Iterable[str] = (),
        zones: Mapping[str, Zone],
        on_not_master: Callable[[NotMasterError], None],
    ) -> None:
        self._means = means
        self._scheduler = scheduler
        self._clean = clean
        self._inherited = frozenset(unsettled)
        self._zones = zones
        self._on_not_master = on_not_master
        self._changed = scheduler.condition()
        self._writers: dict[str, ZoneWriter] = {}
        self._woken: set[str] = set()
        self._idle: set[str] = set()
        self._threads: dict[str, Thread] = {}
        self._stopping = False
        self._drain_until = 0.0

    def settle(self, zone_ids: Iterable[str]) -> None:
        """Start the writers of zones that have to be settled, whether or not there is anything to write."""
        with self._changed:
            for zone_id in sorted(zone_ids):
                self._writer(zone_id)

    def add(self, states: Iterable[KeyState], since: float | None = None, *, inherited: bool = False) -> None:
        """Queue open keys in all their zones; ``inherited``: from an earlier session."""
        by_zone: dict[str, list[ServiceKey]] = defaultdict(list)
        waits: dict[ServiceKey, float] = {}
        for state in states:
            mark = state.opened
            if mark is None or not mark.attempts:
                waits[state.key] = 0.0
            elif inherited:
                waits[state.key] = mark.retry_at
            for zone_id in sorted(zones_of(state)):
                by_zone[zone_id].append(state.key)
        with self._changed:
            for zone_id, keys in by_zone.items():
                self._writer(zone_id).add(keys, since, waits)
                self._woken.add(zone_id)
            self._changed.notify_all()

    def look_again(self, zone_id: str, keys: Collection[ServiceKey]) -> None:
        """Look at names of open keys that are in conflict in a zone as soon as may be: a person asks for it."""
        with self._changed:
            self._writer(zone_id).look_again(keys)
            self._woken.add(zone_id)
            self._changed.notify_all()

    def between_batches[T](self, zone_id: str, job: Callable[[], T]) -> Answer[T]:
        """Run a job while the zone has no batch under way; its result or error comes with the future."""
        future: Answer[T] = Answer(self._scheduler)

        def run() -> None:
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
                future.set_exception(error)

        with self._changed:
            self._writer(zone_id).between_batches(run)
            self._woken.add(zone_id)
            self._changed.notify_all()
        return future

    def without(self, cluster: str) -> list[Answer[None]]:
        """One future for each writer, done as soon as nothing that is under way in its zone is of this cluster."""
        futures: list[Answer[None]] = []
        with self._changed:
            for zone_id, writer in self._writers.items():
                future: Answer[None] = Answer(self._scheduler)
                writer.without(cluster, partial(future.set_result, None))
                futures.append(future)
                self._woken.add(zone_id)
            self._changed.notify_all()
        return futures

    def _writer(self, zone_id: str) -> ZoneWriter:
        writer = self._writers.get(zone_id)
        if writer is None:
            writer = self._writers[zone_id] = self._new_writer(zone_id)
            thread = self._scheduler.thread(f"zone {zone_id}", partial(self._run, zone_id, writer))
            if not (self._stopping and self._scheduler.monotonic() >= self._drain_until):
                self._threads[zone_id] = thread
                thread.start()
        return writer

    def _new_writer(self, zone_id: str) -> ZoneWriter:
        settled = self._clean and zone_id not in self._inherited
        return ZoneWriter(zone_id, self._means, settled=settled, zone=self._zones.get(zone_id))

    def _run(self, zone_id: str, writer: ZoneWriter) -> None:
        while True:
            try:
                wait = writer.step()
            except NotMasterError as error:
                self._on_not_master(error)
                return
            except KubesyncError as error:
                logger.warning("zone writer failed, trying again", zone=zone_id, error=str(error))
                writer.report.problem = str(error)
                wait = _AFTER_A_FAULT_SECONDS
            except Exception as error:  # a fault of ours in one zone must not stop the others
                logger.exception("zone writer failed, trying again", zone=zone_id)
                writer.report.problem = str(error)
                wait = _AFTER_A_FAULT_SECONDS
            if wait == 0:
                continue
            with self._changed:
                now = self._scheduler.monotonic()
                if self._stopping and now >= self._drain_until:
                    return
                if zone_id in self._woken:  # keys came while the writer was looking for some
                    self._woken.discard(zone_id)
                    continue
                if self._stopping:
                    if writer.clean or writer.blocked:
                        return  # a zone that nobody may write is not waited for; what is unknown there stays so
                    left = self._drain_until - now
                    self._changed.wait_for(lambda: zone_id in self._woken, left if wait is None else min(wait, left))
                    continue
                self._idle.add(zone_id)
                self._changed.notify_all()
                self._changed.wait_for(lambda: zone_id in self._woken or self._stopping, timeout=wait)
                self._idle.discard(zone_id)
                self._woken.discard(zone_id)

    def drain(self, deadline_monotonic: float) -> None:
        """Let every writer do what can be done now, and end their threads; see ``unsettled`` for what that left."""
        with self._changed:
            self._stopping = True
            self._drain_until = deadline_monotonic
            self._woken |= set(self._writers)
            self._changed.notify_all()
        until = max(deadline_monotonic, self._scheduler.monotonic()) + _ENDING_SECONDS  # for all of them together
        for thread in list(self._threads.values()):
            thread.join(max(0.0, until - self._scheduler.monotonic()))

    @property
    def unsettled(self) -> frozenset[str]:
        """Zones that the next master has to settle: an outcome is unknown, or what the last master left could not be settled.

        Also those whose thread hangs in a call: once this master has given up writing, what that call sent is all that can land.
        """
        left = {zone_id for zone_id, writer in self._writers.items() if not writer.clean}
        hanging = {zone_id for zone_id, thread in self._threads.items() if thread.is_alive()}
        return frozenset(left | hanging | (self._inherited - self._writers.keys()))

    @property
    def quiet(self) -> bool:
        """No writer has anything to do right now."""
        with self._changed:
            return self._idle >= set(self._writers) and not self._woken

    @property
    def writers(self) -> Mapping[str, ZoneWriter]:
        return dict(self._writers)
