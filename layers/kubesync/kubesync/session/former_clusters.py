"""Clusters that this master serves no more, or never did, and of which batches may still be under way.

No outcome of a batch is dropped: what has landed is ours, and what we do not know as ours is foreign for ever (I3).

    why it is not served                            how its batch is closed
    --------------------                            -----------------------
    forgotten while a batch was under way           with its ledger, which is kept here
    in flight since the last master, and not        its fence is raised, and it is given a ledger: its state
    registered, or not readable by this release     is right when it is registered or readable again
    in flight, and another shard serves it          not at all, that shard's fence is above ours; logged
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
    """Ledgers of clusters that are not served, by name. One that is served again takes its ledger along: its lock goes on.

    Args:
        fence: raises the fence of a cluster; NotMasterError where a later one stands.
    """

    def __init__(self, table: StateTable, fence: Callable[[str], None], scheduler: Scheduler) -> None:
        self.ledgers: dict[str, Ledger] = {}
        self._table = table
        self._fence = fence
        self._scheduler = scheduler

    def keep(self, name: str, ledger: Ledger) -> None:
        """It is served no more. Raises LedgerBusyError where that has to wait for who is writing: nothing was done."""
        with ledger.briefly():
            ledger.forget()
        self.ledgers[name] = ledger

    def prepare(self, name: str, zone_id: str) -> None:
        """Be able to close what was in flight in a zone for a cluster that is not served."""
        if name in self.ledgers:
            return
        try:
            self._fence(name)
        except NotMasterError as error:
            logger.warning("what was in flight for a cluster cannot be closed", cluster=name, reason=str(error))
            return
        zone = ZoneReference(id=zone_id, name=_NOWHERE)
        config = ClusterConfig(name=name, server=f"https://{_NOWHERE}", domain=_NOWHERE, zones=(zone,))
        self.ledgers[name] = Ledger(config, self._table, self._scheduler)

    def prepare_all(self, inflight: Inflight | None, zone_id: str, served: frozenset[str]) -> None:
        """The same for every cluster that has something in flight in a zone."""
        for name in inflight.clusters if inflight is not None else ():
            if name not in served:
                self.prepare(name, zone_id)
