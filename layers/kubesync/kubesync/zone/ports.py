"""What every zone uses of its session."""

from collections.abc import Callable
from dataclasses import dataclass

from kubesync.actors.scheduler import Scheduler
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.domain.batches import BatchLimits
from kubesync.domain.errors import NotMasterError
from kubesync.messages import Message


@dataclass(frozen=True, slots=True)
class ZonePorts:
    """Clients, tables and callbacks that all zones of a session share.

    Args:
        to_cluster: sends a message to a cluster's actor. False: there is no such cluster here.
        check_holds_lease: asks the lease itself; raises NotMasterError.
        not_master: called when a zone has met another master.
        progress: called for each batch that has landed.
    """

    client: ZoneClient
    inflight: InflightTable
    fenced_writer: FencedWriter
    to_cluster: Callable[[str, Message], bool]
    scheduler: Scheduler
    deployment: str
    shard: str
    limits: BatchLimits
    problems: ZoneProblemTable
    check_holds_lease: Callable[[], object]
    not_master: Callable[[NotMasterError], None]
    progress: Callable[[str, dict[str, object]], None] = lambda _what, _details: None
