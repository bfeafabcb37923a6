"""The world of a resync, played by a test: it says what clusters and zones answer, and sees what they are asked."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_config, a_key
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.named_upstreams import NamedReferrals
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable, new_request
from kubesync.aws.tables.of_clusters import Tables
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import (
    NotMasterError,
    TransactionRefusedError,
)
from kubesync.domain.report import ResyncEnded
from kubesync.domain.state import KeyState
from kubesync.messages import (
    CheckConflicts,
    Compared,
    CompareNamed,
    CompareZone,
    Reach,
    Relist,
    Relisted,
    RemoveOrphans,
    WithdrawRelist,
)
from kubesync.operations.ports import Master
from kubesync.operations.requests import ResyncWorker
from kubesync.operations.resync import Resync
from kubesync.operations.resync_progress import ResyncProgress
from kubesync.settings import Settings
from kubesync_local.documents.last_resync import last_resyncs
from kubesync_local.workplace.registry import ClusterRegistry

WEB = a_key()
A = RecordKey("Z1", "web.shop.svc.example.com", "A")
ONE, TWO = RecordSet(30, ("192.0.2.1",)), RecordSet(30, ("192.0.2.2",))
RELISTED = Relisted(3, {"services": "too many"}, 1)


class Zones:
    """A zone without a writer of its own."""

    def __init__(self, answer: Callable[[object], None]) -> None:
        self._answer = answer

    def send(self, zone_id: str, message: object) -> None:
        assert zone_id == "Z1"
        self._answer(message)


class Named:
    """Named upstreams, as a resync asks them. ``ask`` takes a message."""

    def __init__(self, answer: Callable[[object], None]) -> None:
        self.ask = answer


class Writer:
    """A writer whose fences always hold. ``writing`` is called before each transaction."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._tokens = 0
        self.writing: Callable[[], None] = lambda: None

    def token(self) -> str:
        self._tokens += 1
        return f"token {self._tokens}"

    def run(self, _clusters: object, actions: Sequence[Action], token: str) -> None:
        self.writing()
        try:
            self._store.transact(actions, token)
        except TransactionRefusedError as refused:
            raise StaleStateError(()) from refused


class Played:
    """A master whose actors answer at once. ``said``: the messages; an answer of ``None``: none comes."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.store = MemoryStore(clock=clock)
        self.resyncs = ResyncTable(self.store, "0")
        self.fenced_writer = Writer(self.store)
        self.tables = Tables.of(self.store, AuditTable("played"), NamedReferrals())
        self.clusters = ClusterRegistry(self.store)
        self.inflight = InflightTable(self.store, "0")
        config = a_config()
        self.configs: dict[str, ClusterConfig] = {"prod": config}
        self.standing: dict[RecordKey, RecordSet] = {}
        self.parts = self.term = cast("Any", self)
        self.settings = Settings(deployment="test")
        self.scheduler, self.clock = clock, clock
        self.deadline = clock.monotonic() + 100
        self.over = False
        self.said: list[object] = []
        self.relisted: Relisted | BaseException | None = RELISTED
        self.relisting: Callable[[], None] = lambda: None
        self.compared: list[Compared | BaseException] = []
        self.reached: BaseException | None = None
        self.last_errors: dict[str, Any] = {}
        self.lost: list[Exception] = []
        self.session = "s1"
        self.resynced: deque[ResyncEnded] = deque()
        self.zones = cast("Any", Zones(self.answer))
        self.zones.walk = self.walk
        self.named = Named(self.answer)

    def walk(self, _zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        yield from self.standing.items()

    def end(self) -> None:
        self.over = True

    @property
    def time_is_up(self) -> bool:
        return self.over or self.clock.monotonic() >= self.deadline

    def not_master(self, error: NotMasterError) -> None:
        self.lost.append(error)

    def progress(self, _what: str, _details: object) -> None: ...

    def send(self, cluster: str, message: object) -> bool:
        if cluster in self.configs:
            self.answer(message)
        return cluster in self.configs

    def answer(self, message: object) -> None:
        self.said.append(message)
        match message:
            case Relist(reply=reply):
                self.relisting()
                _give(reply, self.relisted)
            case WithdrawRelist(reply=reply):
                reply.set_result(self.last_errors)
            case RemoveOrphans(upstreams, reply):
                reply.set_result(len(upstreams))
            case Reach(reply):
                _give(reply, self.reached or ())
            case CompareZone(reply=reply):
                _give(reply, self.compared.pop(0) if self.compared else Compared())
            case CompareNamed(reply=reply):
                reply.set_result([])
            case _:
                assert isinstance(message, CheckConflicts)

    def of(self, kind: type) -> list[Any]:
        return [message for message in self.said if isinstance(message, kind)]

    def known(self, state: KeyState) -> None:
        token = self.clock.token_hex(16)
        before = self.tables.state.load([state.key])[state.key]
        self.store.transact(self.tables.state.put(before, state, token)[1], token)

    def resync(self, *, dry_run: bool = False, force: bool = False, own_session: bool = False) -> dict[str, Any]:
        """The report of the cluster."""
        request = ResyncRequest("", "prod", dry_run, force, 0)
        report = Resync(cast("Master", self), nothing_kept(self, request, own_session=own_session)).run()
        return cast("dict[str, Any]", report["clusters"][0])

    def error(self, **options: bool) -> str:
        return str(self.resync(**options)["error"])

    # --- requests that are stored ---

    def serve(self, *names: str) -> None:
        self.configs = {name: a_config().model_copy(update={"name": name}) for name in names}

    def change(self, name: str, **update: object) -> None:
        self.configs = {**self.configs, name: self.configs[name].model_copy(update=update)}

    @property
    def results(self) -> ResyncTable:
        return ResyncTable(self.store, "0", 90 * 86_400)

    def ask(self, *, force: bool = False, dry_run: bool = False) -> ResyncRequest:
        """A request for all clusters."""
        request = new_request("asked", "", self.clock.epoch_seconds(), dry_run=dry_run, force=force)
        self.resyncs.store(request)
        return request

    @property
    def worker(self) -> ResyncWorker:
        return ResyncWorker(cast("Master", self))

    def result(self) -> dict[str, Any]:
        (found,) = last_resyncs(self.store, "0", 5)
        return found


def errors_in(report: dict[str, Any]) -> dict[str, str | None]:
    return {each["cluster"]: each.get("error") for each in report["clusters"]}


def nothing_kept(played: Played, request: ResyncRequest, *, own_session: bool = False) -> ResyncProgress:
    """As of a resync that nobody has stored."""
    return ResyncProgress(cast("Master", played), request, stored=False, own_session=own_session)


def _give(reply: Any, answer: object) -> None:
    if isinstance(answer, BaseException):
        reply.set_exception(answer)
    elif answer is not None:
        reply.set_result(answer)
