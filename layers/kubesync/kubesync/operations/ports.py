"""The outside world of a session, its time, the master as operations see it, and how they ask its actors."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kubesync.actors.answer import Answer
from kubesync.actors.directory import Directory
from kubesync.actors.scheduler import Clock, Scheduler
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncTable
from kubesync.aws.tables.of_clusters import Tables
from kubesync.cluster.keys.reconciler import Reconciler
from kubesync.cluster.ports import Connector, Progress
from kubesync.domain.errors import ErrorCode, KubesyncError, NotMasterError, ZoneError
from kubesync.domain.report import ResyncEnded
from kubesync.kubernetes.list_room import ListRoom
from kubesync.messages import Message
from kubesync.settings import Settings
from kubesync.upstreams.actor import NamedUpstreams
from kubesync.zone.progress import ZoneFigures

LIST_SECONDS: Final = 300.0
"""A resync gives up a list, or a zone's answer, that takes longer. The session may end earlier."""
CHECK_SECONDS: Final = 0.2
"""An operation that waits for an answer checks so often whether it must stop."""


class Term:
    """The term of a master: until when a session works, what ends it sooner, and what others report to it meanwhile.

    Any thread may call its methods, and so may signal handlers.

    ``deadline`` (monotonic): nothing is read after it; 0 before the session is master. ``code`` and ``message``: why the session ends; None: it
    goes on.
    ``resynced``: full resyncs of all clusters that have ended. ``progress``: called for a person who watches. ``pause_seconds``: the time
    between the last session and this one, by this one's clock.
    """

    def __init__(self, scheduler: Scheduler, progress: Progress) -> None:
        self.progress = progress
        self.resynced: deque[ResyncEnded] = deque()
        self._clock: Clock = scheduler
        self._wakeup = scheduler.wakeup()
        self.deadline = self.pause_seconds = 0.0
        self.code: ErrorCode | None = None
        self.message = ""

    def stop(self, code: ErrorCode, message: str = "") -> None:
        """Let the session end soon. The first reason counts, but a lost lease replaces any other."""
        if self.code is None or (code is ErrorCode.NOT_MASTER and self.code is not code):
            self.code, self.message = code, message
        self._wakeup.set()

    def not_master(self, error: NotMasterError) -> None:
        """Let the session end, because another master writes."""
        self.stop(ErrorCode.NOT_MASTER, str(error))

    @property
    def over(self) -> bool:
        """Whether the session has to end."""
        return self.code is not None

    @property
    def time_is_up(self) -> bool:
        """Whether the session has to end, or its deadline has passed."""
        return self.over or self._clock.monotonic() >= self.deadline

    def wake(self) -> None:
        """Wake the session's thread from ``wait``."""
        self._wakeup.set()

    def wait(self, seconds: float) -> None:
        """Wait until somebody calls ``wake`` or ``stop``, or this time is over."""
        self._wakeup.wait(seconds)


@dataclass(frozen=True, slots=True)
class MasterParts:
    """The outside world of a session. ``bootstrap`` builds it.

    ``session``: its id. ``zones``: the client of Route 53. ``counted``: counts of all requests to DynamoDB, which grow.
    """

    session: str
    store: Store
    zones: ZoneClient
    connector: Connector
    settings: Settings
    scheduler: Scheduler
    counted: StoreCalls = field(default_factory=StoreCalls)

    @property
    def resyncs(self) -> ResyncTable:
        """The table of resync requests, their progress and results."""
        return ResyncTable(self.store, self.settings.shard, self.settings.audit_retention_seconds)

    @property
    def inflight(self) -> InflightTable:
        """The table of batches under way."""
        return InflightTable(self.store, self.settings.shard)


class Master(Protocol):
    """The running master, as operations see it. ``session.master`` implements it.

    ``configs``: of the clusters that are served now, also of those that are being deleted. The session's thread replaces it.
    ``zones`` and ``named``: actors that start when they are first needed. ``room``: how much memory lists may take, all clusters together.
    """

    parts: MasterParts
    tables: Tables
    fenced_writer: FencedWriter
    zones: Directory[ZoneFigures]
    named: NamedUpstreams
    room: ListRoom
    term: Term

    @property
    def configs(self) -> Mapping[str, ClusterConfig]: ...

    def send(self, cluster: str, message: Message) -> bool:
        """Send to a cluster's actor. False: the cluster is not served here."""

    def previewer(self, config: ClusterConfig) -> Reconciler:
        """A reconciler with key states of its own, read from the tables, for a preview."""


class Recovering(Protocol):
    """A recovery that has read the zones' journals."""

    dry_run: bool

    def run(self, master: Master) -> dict[str, Any]:
        """Recover, in the session's thread, and store the report. Returns the report."""


class Recovery(Protocol):
    """A person's request to recover lost or restored tables. The command implements it."""

    def begin(self, parts: MasterParts, lease: LeaseTable) -> Recovering:
        """Read the zones' journals, and raise the counter of epochs above them, unless this is a dry run."""


def unpaused(configs: Mapping[str, ClusterConfig]) -> list[str]:
    """Return the names of clusters that are not disabled (``ClusterConfig.paused``), in order. Clusters that are being deleted are included."""
    return sorted(name for name, config in configs.items() if not config.paused)


# --- how an operation asks an actor, and waits for the answer ---


class ResyncError(KubesyncError):
    """A resync could not be done. The message says why in one line."""


class SessionEndsError(ResyncError):
    """The session ends before the resync is done. A normal resync goes on in the next session; a forced one and a dry run have failed."""


def check_time(master: Master, what: str = "the resync") -> None:
    """Raise SessionEndsError once the session must end or its time is over."""
    if master.term.time_is_up:
        raise SessionEndsError(f"the session ended before {what} was done: run it again")


def wait_for[T](answer: Answer[T], check: Callable[[], None]) -> T:
    """Wait for an answer, and return it or raise it. ``check`` is called every CHECK_SECONDS, and raises if the wait must stop.

    An answer that comes later is dropped.
    """
    while not answer.wait(CHECK_SECONDS):
        check()
    return answer.result()


type Question[T] = Callable[[Answer[T]], Message]
"""Makes the message to send. It is called with the answer into which the actor is to reply."""


def ask_cluster[T](master: Master, cluster: str, question: Question[T], check: Callable[[], None]) -> T:
    """Send a question to a cluster's actor, and wait for the answer. ``check`` raises if the wait must stop.

    Raises:
        ResyncError: the cluster is not served now.
        Exception: what the actor answers with.
    """
    answer: Answer[T] = Answer(master.parts.scheduler)
    if not master.send(cluster, question(answer)):
        raise ResyncError(f"the configuration of cluster {cluster} is being changed: run it again")
    return wait_for(answer, check)


def ask_zone[T](master: Master, zone_id: str, question: Question[T], check: Callable[[], None]) -> T:
    """Send a question to a zone's actor, and wait for the answer, for LIST_SECONDS at most. ``check`` raises if the wait must stop sooner.

    Raises:
        ResyncError: nothing may be written to the zone, or it does not answer in time.
        Exception: what the actor answers with.
    """
    clock = master.parts.scheduler
    answer: Answer[T] = Answer(clock)
    master.zones.send(zone_id, question(answer))
    until = clock.monotonic() + LIST_SECONDS

    def go_on() -> None:
        check()
        if clock.monotonic() >= until:
            raise ResyncError(f"zone {zone_id} could not be compared in time")

    try:
        return wait_for(answer, go_on)
    except ZoneError as error:
        said = f"zone {zone_id} could not be compared: {error}; run it again once that is mended"
        raise ResyncError(said) from error
