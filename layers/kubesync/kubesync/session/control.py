"""Control of a running master: changed configurations, removals, requested resyncs (DESIGN section 5, step 6)."""

from __future__ import annotations

from typing import Any, Final

from aws_lambda_powertools import Logger

from kubesync.aws.clusters import ClusterConfig
from kubesync.aws.resync_requests import RequestTable, ResyncRequest
from kubesync.domain.errors import ErrorCode, KubesyncError, NotMasterError, StoreError
from kubesync.session.master import Master, MasterParts
from kubesync.session.removal import Removal
from kubesync.session.resync import Resync
from kubesync.session.transactor import StaleStateError

logger = Logger(service="kubesync", child=True)

_RESTART_SECONDS: Final = 10.0
_REMOVAL_SECONDS: Final = 1.0
_ANSWER_FENCES: Final = 5  # one would do; the request is about all clusters


class Control:
    """Acts on what people changed while the master runs."""

    def __init__(self, master: Master, parts: MasterParts) -> None:
        self._master = master
        self._parts = parts
        self._requests = RequestTable(parts.store, parts.settings.shard)
        self._removals: dict[str, Removal] = {}
        self._next_removal_step = 0.0
        for name, ledger in master.ledgers.items():
            if ledger.config.deleting:
                self._removals[name] = Removal(master, ledger.config)

    def pending(self) -> bool:
        """Whether somebody asked for a resync before this session began."""
        return bool(self._requests.pending(self._parts.clock.epoch()))

    def run(self) -> None:
        """Read configurations and requests, and act on what is new."""
        found = self._master.clusters.read(self._parts.settings.shard)
        # What is registered but cannot be read is not deleted: it goes on as it was.
        configs = {
            name: config or self._master.ledgers[name].config
            for name, config in found.items()
            if config or name in self._master.ledgers
        }
        for name in sorted(self._master.ledgers.keys() - configs.keys()):
            self._master.stop_cluster(name, ErrorCode.CONFIG_DELETE, self._soon())
            self._master.forget(name)
            self._removals.pop(name, None)
        for name, config in sorted(configs.items()):
            self._apply(name, config)
        for request in self._requests.pending(self._parts.clock.epoch()):
            self._answer(request)

    def _answer(self, request: ResyncRequest) -> None:
        """Only the master answers: the report is left in a fenced transaction like everything else (I2)."""
        report = self.resync(request)
        fenced = sorted(self._master.fenced)[:_ANSWER_FENCES]
        token = self._master.transactor.token()
        try:
            with self._master.closer.locked(name for name in fenced if name in self._master.ledgers):
                self._master.transactor.run(fenced, self._requests.answer(request, report, token), token)
        except StaleStateError:
            logger.info("nobody waits for the resync any more", request=request.id)

    def _apply(self, name: str, config: ClusterConfig) -> None:
        ledger = self._master.ledgers.get(name)
        begun = name in self._master.runners or name in self._removals
        if ledger is not None and ledger.config.revision == config.revision and begun:
            return
        code = ErrorCode.CONFIG_DELETE if config.deleting else ErrorCode.CONFIG_UPDATE
        self._master.stop_cluster(name, code, self._soon())
        self._master.progress("configuration", {"cluster": name, "key": code.key if ledger else "ADDED"})
        self._master.adopt(config)
        if config.deleting:
            self._removals[name] = Removal(self._master, config)
        else:
            self._master.start_cluster(name)

    def _soon(self) -> float:
        return self._parts.clock.monotonic() + _RESTART_SECONDS

    def finish_removals(self) -> None:
        """One step for each cluster that is being deleted, about once a second."""
        now = self._parts.clock.monotonic()
        if not self._removals or now < self._next_removal_step:
            return
        self._next_removal_step = now + _REMOVAL_SECONDS
        for name, removal in list(self._removals.items()):
            try:
                if removal.step():
                    del self._removals[name]
                    self._master.forget(name)
                    self._master.progress("removed", {"cluster": name})
            except (StoreError, StaleStateError) as error:
                logger.warning("removal goes on later", cluster=name, error=str(error))

    def resync(self, request: ResyncRequest) -> dict[str, Any]:
        """Do a full resync and return its report; never raises for what is wrong with one cluster."""
        names = [request.cluster] if request.cluster else sorted(self._master.ledgers)
        clusters: list[dict[str, Any]] = []
        for name in names:
            ledger = self._master.ledgers.get(name)
            if ledger is None or ledger.config.deleting:
                known = ", ".join(sorted(self._master.ledgers)) or "none"
                clusters.append({"cluster": name, "error": f"no such cluster; registered: {known}"})
                continue
            try:
                clusters.append(Resync(self._master, name, force=request.force).run(dry_run=request.dry_run))
            except NotMasterError:
                raise
            except KubesyncError as error:
                clusters.append({"cluster": name, "error": str(error)})
        return {"dry_run": request.dry_run, "forced": request.force, "clusters": clusters}
