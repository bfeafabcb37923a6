"""The real session, stepped by hand: the same parts joined by the same code, without threads and without waiting.

thread of the real session         here
--------------------------         ----
lease, renewing                    ``renew`` once a round
listener                           the scripted reflectors are pumped
worker of a cluster                ``SyncRunner.turn``: each window that is open is closed and recorded
writer of a zone                   ``SyncPool.turn``: stepped until it has to wait
composer of named upstreams        ``SyncComposer.step``: composes what is noted
resync, its lists                  ``SyncMaster.beside``: done at once
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.cluster import ScriptedConnector
from kubesync.actors.answer import Answer
from kubesync.actors.scheduler import Thread
from kubesync.cluster.keys.reconciler import Mode
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.errors import ErrorCode, KubesyncError, NotMasterError
from kubesync.session.control import Control
from kubesync.session.lease_keeper import LeaseKeeper
from kubesync.session.master import Master
from kubesync.session.session import Session
from kubesync.upstreams.composer import Composer
from kubesync.zone.pool import ZonePool
from kubesync.zone.writer import ZoneWriter

type Drive = Callable[[SyncSession], bool]
"""Called before each round: lets the world move on. False: the session's time is up."""

_MOVES_IN_A_ROUND = 400
_PATIENT_SECONDS = 4.0


class SyncKeeper(LeaseKeeper):
    """Renews when told to."""

    def start(self, ends_at_epoch: float) -> None:
        self._ends_at_ms = int(ends_at_epoch * 1000)
        self.renew()


class SyncRunner(ClusterRunner):
    """A cluster without listeners' threads and without a worker."""

    def start(self, deadline_monotonic: float, relist: Mode | None = None) -> None:
        self._deadline = deadline_monotonic
        self._begin(relist)

    def _begin(self, relist: Mode | None) -> None:
        super()._begin(relist)
        for listener in self._listeners:
            assert listener.join(10), "a scripted reflector returns at once"

    def turn(self) -> bool:
        """Record what is pending. False: nothing is."""
        closes_at = self.window.closes_at()
        if self._failed or (closes_at is None and not self._promoted):
            return False
        if closes_at is not None:
            self._scheduler.sleep(max(0.0, closes_at - self._scheduler.monotonic()))
        self._guarded()
        return True

    def idle(self) -> None:
        """What a worker does when nothing has happened for long."""
        if not self._failed and self.window.closes_at() is None:
            try:
                self._record(*self.window.close(), flush=False)
            except NotMasterError as error:
                self._lost(error)

    def _guarded(self) -> bool:
        try:
            return self._turn()
        except NotMasterError as error:
            self._lost(error)
            return False

    def _lost(self, error: NotMasterError) -> None:
        self._failed = True
        self._events.not_master(error)

    def join(self, deadline_monotonic: float, *, abandon: bool = False) -> bool:
        self._stopping = True
        self._drain_until = deadline_monotonic
        self._failed = self._failed or abandon
        while self._guarded():
            pass
        return True

    def relist(self, mode: Mode) -> None:
        while self.turn():
            pass
        super().relist(mode)

    def wait_relisted(self, seconds: float) -> bool:
        assert isinstance(self._connector, ScriptedConnector)
        self._connector.pump()
        while self.turn():
            pass
        return super().wait_relisted(0)


class SyncPool(ZonePool):
    """Zone writers without threads. ``renew``: of the lease, while one waits for a zone."""

    renew: Callable[[], None] = staticmethod(lambda: None)

    def _writer(self, zone_id: str) -> ZoneWriter:
        writer = self._writers.get(zone_id)
        if writer is None:
            writer = self._writers[zone_id] = self._new_writer(zone_id)
        return writer

    def between_batches[T](self, zone_id: str, job: Callable[[], T]) -> Answer[T]:
        future = super().between_batches(zone_id, job)
        for _ in range(_MOVES_IN_A_ROUND):
            self.turn()
            if future.done() or self._lost:
                return future
            self._scheduler.sleep(0.5)
            self.renew()
        raise AssertionError(f"zone {zone_id} never comes to rest between two batches")

    def without(self, cluster: str) -> list[Answer[None]]:
        futures = super().without(cluster)
        self.turn()
        return futures

    def turn(self) -> bool:
        """Step every writer until it has to wait. True: something was done."""
        moved = False
        for zone_id in sorted(self._writers):
            for _ in range(_MOVES_IN_A_ROUND):
                if self._step(zone_id) != 0:
                    break
                moved = True
            else:
                raise AssertionError(f"the writer of zone {zone_id} never comes to rest")
        return moved

    def _step(self, zone_id: str) -> float | None:
        if self._stopping and self._lost:
            return None
        try:
            return self._writers[zone_id].step()
        except NotMasterError as error:
            self._lost = True
            self._on_not_master(error)
            return None
        except KubesyncError as error:
            self._writers[zone_id].report.problem = str(error)
            return 5.0

    _lost = False

    def drain(self, deadline_monotonic: float) -> None:
        self._stopping = True
        while not self._lost:
            self.turn()
            left = deadline_monotonic - self._scheduler.monotonic()
            if left <= 0 or self.all_clean:
                break
            self._scheduler.sleep(min(left, 1.0))

    @property
    def all_clean(self) -> bool:
        """No batch is under way in any zone, none has to be settled."""
        return all(writer.clean for writer in self._writers.values())

    @property
    def quiet(self) -> bool:
        self.turn()
        return True


class SyncComposer(Composer):
    """A composer without a thread."""

    def start(self) -> None:
        if not self._begun:
            self._begun = True
            self.wake()

    _begun = False

    def step(self) -> bool:
        """Compose what is noted. False: nothing is. What a busy table kept back is tried again in the next round."""
        if not self._begun or not self.noted or self._abandoned:
            return False
        if self.turn() is not None:
            self.wake()
            return False
        return True

    def stop(self, until_monotonic: float, *, abandon: bool = False) -> None:
        super().stop(until_monotonic, abandon=abandon)
        while self.step():
            pass


class SyncMaster(Master):
    pool_type = SyncPool
    runner_type = SyncRunner
    composer_type = SyncComposer
    reads_at_once = 1

    def release_zones(self) -> None:
        assert isinstance(self.pool, SyncPool)
        self.pool.renew = self._keeper.renew
        super().release_zones()

    def beside(self, name: str, run: Callable[[], None]) -> Thread:
        run()
        return _Done()


class _Done:
    """Implements ``Thread``: what it runs has been run."""

    def start(self) -> None: ...
    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool:
        return False


class SyncSession(Session):
    """A session whose ``run`` is driven round by round."""

    master_type = SyncMaster
    drive: Drive

    def _watch(self, master: Master, deadline: float, remaining: Callable[[], float]) -> None:
        control = Control(master, self._parts)
        self._control_due = control.pending() or self._control_due
        while self._code is None:
            if not self.drive(self):
                self.stop(ErrorCode.MAX_RUNTIME)
                break
            self.round(master, control)

    def renew(self) -> None:
        """As the lease's own thread would."""
        self._keeper.renew()

    def round(self, master: Master, control: Control) -> None:
        """Everything that there is to do now, in the order of its arrival."""
        pool = master.pool
        composer = master.composer
        assert isinstance(pool, SyncPool)
        assert isinstance(composer, SyncComposer)
        assert isinstance(self._parts.connector, ScriptedConnector)
        waited = 0.0
        self._keeper.renew()
        for _ in range(_MOVES_IN_A_ROUND):
            if self._control_due and self._code is None:
                self._control_due = False
                control.run()
            if self._code is not None:
                return
            control.finish_removals()
            self._parts.connector.pump()
            moved = False
            for runner in list(master.runners.values()):
                assert isinstance(runner, SyncRunner)
                moved = runner.turn() or moved
            moved = pool.turn() or moved
            moved = composer.step() or moved
            if moved:
                continue
            if pool.all_clean or waited >= _PATIENT_SECONDS or self._code is not None:
                break
            # A batch is to be repeated, or a zone to be settled, after a pause.
            self._clock.sleep(0.5)
            waited += 0.5
            self._keeper.renew()
        else:
            raise AssertionError("the session never comes to rest")
        for runner in list(master.runners.values()):
            assert isinstance(runner, SyncRunner)
            runner.idle()
