"""The real session, stepped by hand: the same parts joined by the same code, without threads and without waiting.

thread of the real session         here
--------------------------         ----
lease, renewing                    ``renew`` once a round
listener                           the scripted reflectors are pumped
worker of a cluster                ``SyncRunner.turn``: each window that is open is closed and recorded
writer of a zone                   ``SyncPool.turn``: stepped until it has to wait
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.cluster import ScriptedConnector
from kubesync.domain.errors import ErrorCode, KubesyncError, NotMasterError
from kubesync.session.cluster_runner import ClusterRunner
from kubesync.session.control import Control
from kubesync.session.lease_keeper import LeaseKeeper
from kubesync.session.master import Master
from kubesync.session.recorder import Mode
from kubesync.session.session import Session
from kubesync.session.zone_pool import ZonePool
from kubesync.session.zone_writer import ZoneWriter

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
        if self._failed or (closes_at is None and not self._heirs):
            return False
        if closes_at is not None:
            self._clock.sleep(max(0.0, closes_at - self._clock.monotonic()))
        self._guarded()
        return True

    def idle(self) -> None:
        """What a worker does when nothing has happened for long."""
        if not self._failed and self.window.closes_at() is None:
            try:
                self._record(self.window.close(), flush=False)
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

    def wait_relisted(self, seconds: float) -> bool:
        assert isinstance(self._connector, ScriptedConnector)
        self._connector.pump()
        while self.turn():
            pass
        return self._relisted.is_set()


class SyncPool(ZonePool):
    """Zone writers without threads."""

    def _writer(self, zone_id: str) -> ZoneWriter:
        writer = self._writers.get(zone_id)
        if writer is None:
            writer = ZoneWriter(zone_id, self._means, settled=self._clean, zone=self._zones.get(zone_id))
            self._writers[zone_id] = writer
        return writer

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

    def drain(self, deadline_monotonic: float) -> bool:
        self._stopping = True
        while not self._lost:
            self.turn()
            left = deadline_monotonic - self._clock.monotonic()
            if left <= 0 or self.all_clean:
                break
            self._clock.sleep(min(left, 1.0))
        return self.all_clean and not self._lost

    @property
    def all_clean(self) -> bool:
        """No batch is under way in any zone, none has to be settled."""
        return all(writer.clean for writer in self._writers.values())

    @property
    def quiet(self) -> bool:
        self.turn()
        return True


class SyncMaster(Master):
    pool_type = SyncPool
    runner_type = SyncRunner


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

    def round(self, master: Master, control: Control) -> None:
        """Everything that there is to do now, in the order of its arrival."""
        pool = master.pool
        assert isinstance(pool, SyncPool)
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
