"""One thread for each hosted zone that has something to do."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

from aws_lambda_powertools import Logger

from kubesync.clock import Clock
from kubesync.domain.errors import KubesyncError, NotMasterError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.records import Zone
from kubesync.domain.state import KeyState
from kubesync.session.zone_ground import ZoneMeans
from kubesync.session.zone_writer import ZoneWriter

logger = Logger(service="kubesync", child=True)

_AFTER_A_FAULT_SECONDS = 5.0


def zones_of(state: KeyState) -> set[str]:
    """Zones in which a key's applied sets are not its intended ones."""
    keys = state.intended.keys() | state.applied.keys()
    return {key.zone_id for key in keys if state.intended.get(key) != state.applied.get(key)}


class ZonePool:
    """Makes a writer and a thread per zone when it first has something to do.

    Args:
        clean: the last master ended cleanly: zones need no settling.
        zones: zones whose names are known from configurations.
        on_not_master: called when a writer found another master.
    """

    def __init__(
        self,
        means: ZoneMeans,
        clock: Clock,
        *,
        clean: bool,
        zones: Mapping[str, Zone],
        on_not_master: Callable[[NotMasterError], None],
    ) -> None:
        self._means = means
        self._clock = clock
        self._clean = clean
        self._zones = zones
        self._on_not_master = on_not_master
        self._changed = threading.Condition()
        self._writers: dict[str, ZoneWriter] = {}
        self._woken: set[str] = set()
        self._idle: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._stopping = False
        self._drain_until = 0.0

    def settle(self, zone_ids: Iterable[str]) -> None:
        """Start the writers of zones that have to be settled, whether or not there is anything to write."""
        with self._changed:
            for zone_id in zone_ids:
                self._writer(zone_id)

    def add(self, states: Iterable[KeyState], since: float | None = None) -> None:
        """Queue open keys in all their zones."""
        by_zone: dict[str, list[ServiceKey]] = defaultdict(list)
        for state in states:
            for zone_id in zones_of(state):
                by_zone[zone_id].append(state.key)
        with self._changed:
            for zone_id, keys in by_zone.items():
                self._writer(zone_id).add(keys, since)
                self._woken.add(zone_id)
            self._changed.notify_all()

    def between_batches[T](self, zone_id: str, job: Callable[[], T]) -> Future[T]:
        """Run a job while the zone has no batch under way; its result or error comes with the future."""
        future: Future[T] = Future()

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

    def _writer(self, zone_id: str) -> ZoneWriter:
        writer = self._writers.get(zone_id)
        if writer is None:
            writer = ZoneWriter(zone_id, self._means, settled=self._clean, zone=self._zones.get(zone_id))
            self._writers[zone_id] = writer
            thread = threading.Thread(target=self._run, args=(zone_id, writer), name=f"zone {zone_id}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return writer

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
                now = self._clock.monotonic()
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

    def drain(self, deadline_monotonic: float) -> bool:
        """Let every writer do what can be done now, and end their threads. True: all ended, no outcome unknown."""
        with self._changed:
            self._stopping = True
            self._drain_until = deadline_monotonic
            self._woken |= set(self._writers)
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, deadline_monotonic - self._clock.monotonic()))
        return not any(thread.is_alive() for thread in self._threads) and all(
            writer.clean for writer in self._writers.values()
        )

    @property
    def quiet(self) -> bool:
        """No writer has anything to do right now."""
        with self._changed:
            return self._idle >= set(self._writers) and not self._woken

    @property
    def writers(self) -> Mapping[str, ZoneWriter]:
        return dict(self._writers)
