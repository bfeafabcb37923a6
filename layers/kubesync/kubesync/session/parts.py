"""The outside world of a session, as ``bootstrap`` joins it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubesync.actors.scheduler import Scheduler
from kubesync.aws.store import Store
from kubesync.aws.store_calls import StoreCalls
from kubesync.aws.zones import ZoneClient
from kubesync.clock import Clock
from kubesync.session.ports import Connector
from kubesync.settings import Settings


@dataclass(frozen=True, slots=True)
class MasterParts:
    """What bootstrap joins: the outside world of a session."""

    store: Store
    zones: ZoneClient
    connector: Connector
    settings: Settings
    scheduler: Scheduler
    counted: StoreCalls = field(default_factory=StoreCalls)

    @property
    def clock(self) -> Clock:
        return self.scheduler
