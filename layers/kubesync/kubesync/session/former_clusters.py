"""Clusters that this master does not serve, but whose batches may still be under way.

Every outcome of a batch is recorded. A landed record set is ours; if its outcome were dropped, it would count as foreign (I3).

    why the cluster is not served                   how its batch is closed
    -----------------------------                   -----------------------
    forgotten while a batch was under way           with its ledger, which is kept here
    in flight since the last master, and either     its fence is raised, and it gets a ledger. Its state is
    unregistered or unreadable by this release      correct once it is registered or readable again
    in flight, and another shard serves it          not closed: that shard's fence is above ours. Logged
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.scheduler import Scheduler
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.key_states import Ledger
from kubesync.domain.errors import NotMasterError

logger = Logger(service="kubesync", child=True)

_NOWHERE: Final = "not-served.invalid"


class FormerClusters:
    """Ledgers of clusters that are not served, by name. A cluster that is served again gets its ledger back, with its lock.

    Args:
        fence: raises a cluster's fence. Raises NotMasterError if a newer fence exists.
    """

    def __init__(self, table: StateTable, fence: Callable[[str], None], scheduler: Scheduler) -> None:
        self.ledgers: dict[str, Ledger] = {}
        self._table = table
        self._fence = fence
        self._scheduler = scheduler

    def keep(self, name: str, ledger: Ledger) -> None:
        """Keep the ledger of a cluster that is no longer served. Raises LedgerBusyError if a writer holds it."""
        with ledger.briefly():
            ledger.forget()
        self.ledgers[name] = ledger

    def prepare(self, name: str, zone_id: str) -> None:
        """Prepare to settle a zone's batch for a cluster that is not served."""
        if name in self.ledgers:
            return
        try:
            self._fence(name)
        except NotMasterError as error:
            logger.warning("cannot close a batch of this cluster", cluster=name, reason=str(error))
            return
        zone = ZoneReference(id=zone_id, name=_NOWHERE)
        config = ClusterConfig(name=name, server=f"https://{_NOWHERE}", domain=_NOWHERE, zones=(zone,))
        self.ledgers[name] = Ledger(config, self._table, self._scheduler)

    def prepare_all(self, inflight: Inflight | None, zone_id: str, served: frozenset[str]) -> None:
        """Prepare to settle a zone's batch for each of its clusters that is not served."""
        for name in inflight.clusters if inflight is not None else ():
            if name not in served:
                self.prepare(name, zone_id)
