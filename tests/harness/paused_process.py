"""A process that is paused at a chosen call, as a frozen Lambda environment is: nothing of it goes on until it is resumed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Unpack, cast

from harness.stack import RunningSession, Stack, StackApplication
from harness.waiting import PATIENCE_SECONDS
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import (
    CONTROL,
    STATE,
    UPSTREAMS,
    Action,
    Item,
    Key,
    Put,
    QueryOptions,
    Store,
    Update,
    Write,
)
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.route53.zones import BatchChange, ZoneClient
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.upstreams.named import is_named
from simulation.writes import kind_of as written_kind

if TYPE_CHECKING:
    from kubesync.settings import Settings


READS = ("read", "read zone")


def kind_of(actions: Sequence[Action]) -> str:
    """What a write is for: ``record``, ``announce`` and ``clear`` (the inflight item), ``close``, ``renew``, ``compose``, or ``other``."""
    for action in actions:
        if action.key.table == UPSTREAMS and is_named(action.key.partition):
            return "compose"
        if action.key.partition.startswith("inflight#") and isinstance(action, Put) and "batch" in action.item:
            return "announce" if action.item["batch"] else "clear"
        if action.key.partition.startswith("lease#") and isinstance(action, Update) and "expires_at_ms" in action.set:
            return "renew" if "holder" not in action.set else "take"
    if written_kind(actions) == "batch closed":
        return "close"
    if any(action.key.table == STATE and isinstance(action, Put) for action in actions):
        return "record"
    return "other"


class Gate:
    """Shut by the chosen call; every later call of the process waits at it.

    Args:
        kind: the call: as of ``kind_of``, or ``batch`` for a change of a zone.
        after: pause when the call has had its effect, its answer not yet read.
        armed: whether the first such call is the one; else ``arm`` says from when.
        skip: so many such calls pass first.
        kind_of: names the kind of a write.
    """

    def __init__(
        self,
        kind: str,
        *,
        after: bool,
        armed: bool = True,
        skip: int = 0,
        kind_of: Callable[[Sequence[Action]], str] = kind_of,
    ) -> None:
        self.kind_of = kind_of
        self._kind = kind
        self._after = after
        self._armed = armed
        self._skip = skip
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        self._effects: list[str] = []
        self.reached = threading.Event()
        self.paused_at = 0.0
        self.paused_seconds = 0.0

    def arm(self) -> None:
        self._armed = True

    def around[T](self, kind: str, call: Callable[[], T]) -> T:
        self._pass(kind, after=False)
        late = self.reached.is_set()
        try:
            answer = call()
            if late:
                self._effects.append(kind)
            return answer
        finally:
            self._pass(kind, after=True)

    @property
    def effects(self) -> list[str]:
        """Writes and batches that were made, and not refused, by calls that began after the pause."""
        return [kind for kind in list(self._effects) if kind not in READS]

    def _pass(self, kind: str, *, after: bool) -> None:
        with self._lock:
            chosen = self._armed and not self.reached.is_set() and (kind, after) == (self._kind, self._after)
            if chosen and self._skip:
                self._skip -= 1
            elif chosen:
                self.paused_at = ThreadScheduler().monotonic()
                self._open.clear()
                self.reached.set()
        assert self._open.wait(2 * PATIENCE_SECONDS), "nobody resumed the process"

    def wait_until_paused(self) -> None:
        assert self.reached.wait(PATIENCE_SECONDS), f"no such call: {self._kind}"

    def resume(self) -> None:
        with self._lock:
            self.paused_seconds = ThreadScheduler().monotonic() - self.paused_at
            self._open.set()


class StoppedClock(ThreadScheduler):
    """Does not know of the pause: what a process sees whose machine was suspended. Fences alone can help against it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def monotonic(self) -> float:
        if self._gate.reached.is_set() and not self._gate.paused_seconds:
            return self._gate.paused_at
        return super().monotonic() - self._gate.paused_seconds

    def epoch_seconds(self) -> float:
        return super().epoch_seconds() - self._gate.paused_seconds


class GatedStore:
    """Implements ``Store``."""

    def __init__(self, store: Store, gate: Gate) -> None:
        self._store = store
        self._gate = gate

    def get(self, key: Key) -> Item | None:
        return self._gate.around("read", lambda: self._store.get(key))

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        return self._gate.around("read", lambda: self._store.batch_get(keys))

    def query(self, table: str, partition: str, **wanted: Unpack[QueryOptions]) -> Iterator[Item]:
        found = self._store.query(table, partition, **wanted)
        return iter(self._gate.around("read", lambda: list(found)))

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        return iter(self._gate.around("read", lambda: list(self._store.scan(table, limit))))

    def write(self, action: Write) -> Item:
        return self._gate.around(self._gate.kind_of([action]), lambda: self._store.write(action))

    def transact(self, actions: Sequence[Action], token: str) -> None:
        self._gate.around(self._gate.kind_of(actions), lambda: self._store.transact(actions, token))


class GatedZones:
    """Implements ``ZoneClient``."""

    def __init__(self, zones: ZoneClient, gate: Gate) -> None:
        self._zones = zones
        self._gate = gate

    def zone(self, zone_id: str) -> Zone:
        return self._gate.around("read zone", lambda: self._zones.zone(zone_id))

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        self._gate.around("batch", lambda: self._zones.change(zone_id, changes, comment))

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        return self._gate.around("read zone", lambda: self._zones.read(zone_id, name))

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        return iter(self._gate.around("read zone", lambda: list(self._zones.walk(zone_id))))


class GatedApplication(StackApplication):
    """An application of a stack whose calls all go through a gate."""

    def __init__(self, settings: Settings, stack: Stack, gate: Gate, *, knows_of_the_pause: bool) -> None:
        super().__init__(settings, stack)
        self._gate = gate
        if not knows_of_the_pause:
            self.scheduler = StoppedClock(gate)

    def store(self, counted: StoreCalls | None = None) -> Store:
        return cast(Store, GatedStore(super().store(counted), self._gate))

    def lease_store(self, counted: StoreCalls | None = None) -> Store:
        return cast(Store, GatedStore(super().lease_store(counted), self._gate))

    def zones(self) -> ZoneClient:
        return cast(ZoneClient, GatedZones(super().zones(), self._gate))


def take_for_dead(stack: Stack) -> None:
    """Put the clock forward: to whoever starts now, the lease of a paused process has expired.

    The paused process knows of it too, unless its clock stood still.
    """
    stack.clock.advance(stack.settings().lease_seconds + 1)


def start_gated(stack: Stack, gate: Gate, *, knows_of_the_pause: bool, **settings: float) -> RunningSession:
    """Run a session behind a gate in a thread."""
    application = GatedApplication(stack.settings(**settings), stack, gate, knows_of_the_pause=knows_of_the_pause)
    return stack.start_application(application)


def items_but_the_lease(store: Store) -> dict[str, Item]:
    """Everything that is stored, less what a living master's renewals change."""
    from harness.fakes.memory_store import MemoryStore

    assert isinstance(store, MemoryStore)
    return {
        str(key): item for key, item in store.dump().items() if not (key.table == CONTROL and "lease#" in key.partition)
    }
