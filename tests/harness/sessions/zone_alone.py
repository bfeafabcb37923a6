"""The actor of one zone, alone: its clusters, its zone and its tables are played here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import batched

from harness.fakes.fencing import raise_fence, raise_shard_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.actors.actor import AT_ONCE
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.cluster.served_keys import KEYS_AT_A_TIME
from kubesync.domain.batches import BatchLimits, Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet, Zone
from kubesync.domain.errors import BatchRefusedError, NotMasterError
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Intent
from kubesync.messages import (
    Closed,
    Compare,
    Compared,
    ConflictsChecked,
    Decision,
    Drain,
    Landed,
    Publish,
    Refused,
    Want,
)
from kubesync.zone.actor import ZoneActor
from kubesync.zone.ports import ZonePorts

ZONE = "Z1"
LISTED = frozenset({Resource.SERVICES})
type SetsOfZone = dict[RecordKey, RecordSet]


def a_key(name: str, cluster: str = "prod") -> ObjectKey:
    return ObjectKey(cluster, "default", name)


def record(name: str) -> RecordKey:
    return RecordKey(ZONE, f"{name}.example.com", "A")


def a_set(address: str) -> RecordSet:
    return RecordSet(60, (address,))


class PlayedZone:
    """Route 53. ``trouble`` is raised by the next change; ``lands`` says whether it is applied all the same."""

    def __init__(self) -> None:
        self.sets: SetsOfZone = {}
        self.batches: list[Sequence[BatchChange]] = []
        self.trouble: list[tuple[Exception, bool]] = []
        self.denied: Exception | None = None
        self.unreadable: Exception | None = None
        self.reads = Counter[str]()

    def zone(self, zone_id: str) -> Zone:
        return Zone(zone_id, "example.com")

    def change(self, _zone_id: str, changes: Sequence[BatchChange], _comment: str = "") -> None:
        if self.denied:
            raise self.denied
        error, lands = self.trouble.pop(0) if self.trouble else (None, True)
        if lands:
            self._apply(changes)
        if error is not None:
            raise error

    def _apply(self, changes: Sequence[BatchChange]) -> None:
        after, messages = dict(self.sets), []
        for change in changes:
            where = f"[name='{change.key.name}.', type='{change.key.type}']"
            if change.action == "DELETE" and after.pop(change.key, None) != change.record_set:
                messages.append(f"Tried to delete resource record set {where} but it was not found")
            if change.action == "CREATE":
                if change.key in after:
                    messages.append(f"Tried to create resource record set {where} but it already exists")
                after[change.key] = change.record_set
        if messages:
            raise BatchRefusedError(tuple(messages))
        self.batches.append(changes)
        self.sets = after

    def read(self, _zone_id: str, name: str) -> SetsOfZone:
        if self.unreadable:
            raise self.unreadable
        self.reads[name] += 1
        return {key: found for key, found in self.sets.items() if key.name == name}

    def walk(self, _zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        yield from self.sets.items()

    @property
    def ours(self) -> dict[str, str]:
        return {key.name.split(".")[0]: found.values[0] for key, found in self.sets.items() if key.type == "A"}


class PlayedCluster:
    """One cluster's side: it closes what has landed, and takes for a conflict what stands where it knows of nothing."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.intended: dict[ObjectKey, SetsOfZone] = {}
        self.applied: dict[ObjectKey, SetsOfZone] = {}
        self.conflicts: dict[ObjectKey, frozenset[str]] = {}
        self.attempts: Counter[ObjectKey] = Counter()
        self.retry_at: dict[ObjectKey, float] = {}
        self.asked: list[object] = []
        self.silent = False

    def intent(self, key: ObjectKey) -> Intent:
        before, after = self.applied.get(key, {}), self.intended.get(key, {})
        changes = [
            RecordChange(at, before.get(at), after.get(at))
            for at in sorted(before.keys() | after.keys())
            if before.get(at) != after.get(at)
        ]
        attempts = self.attempts[key]
        conflicts = self.conflicts.get(key, frozenset())
        return Intent(key, tuple(changes), conflicts, attempts, self.retry_at.get(key, 0.0), attempts >= 11, LISTED)

    def want(self, name: str, address: str = "") -> ObjectKey:
        key = a_key(name, self.name)
        self.intended[key] = {record(name): a_set(address)} if address else {}
        return key

    def publish(self, name: str, address: str = "") -> None:
        key = self.want(name, address)
        now = self.world.clock.monotonic()
        self.world.actor.receive(Publish(self.name, (self.intent(key),), since=now, listed=LISTED))

    def publish_all(self, keys: Iterable[ObjectKey], listed: frozenset[Resource] = LISTED) -> None:
        """Publish keys that were open before this session, as many at a time as a cluster does."""
        for some in batched(keys, KEYS_AT_A_TIME):
            intents = tuple(map(self.intent, some))
            self.world.actor.receive(Publish(self.name, intents, inherited=True, listed=listed))

    def take(self, message: object) -> None:
        self.asked.append(message)
        if not self.silent:
            self.answer(message)

    def answer(self, message: object) -> None:
        send = self.world.to_zone
        match message:
            case Want():
                self._close(message.question, message.keys)
            case Landed():
                for unit in message.units:
                    self._apply(unit)
                self._close(message.question, {unit.key for unit in message.units})
            case Refused():
                decisions = []
                for refusal in message.refusals:
                    key = refusal.unit.key
                    foreign = not refusal.code and any(at not in self.applied.get(key, {}) for at in refusal.actual)
                    if foreign:
                        self.conflicts[key] = self.conflicts.get(key, frozenset()) | {refusal.unit.name}
                    self._postpone(key)
                    code = "Conflict" if foreign else refusal.code or "Rejected"
                    decisions.append(Decision(refusal.unit, code, self.retry_at[key], foreign))
                self._close(message.question, {r.unit.key for r in message.refusals}, tuple(decisions))
            case ConflictsChecked():
                for key, names in message.actual.items():
                    free = {name for name, sets in names.items() if not sets}
                    self.conflicts[key] = self.conflicts.get(key, frozenset()) - free
                    if self.conflicts[key]:
                        self._postpone(key)
                    else:
                        self.attempts[key] = 0
                self._close(message.question, set(message.actual))
            case Compare():
                send(Closed(self.name, message.question, compared=Compared(moved=frozenset(message.asked.keys))))
            case _:
                pass

    def _apply(self, unit: Unit) -> None:
        applied = self.applied.setdefault(unit.key, {})
        for change in unit.changes:
            applied.pop(change.key, None)
            if change.after is not None:
                applied[change.key] = change.after

    def _postpone(self, key: ObjectKey) -> None:
        self.attempts[key] += 1
        self.retry_at[key] = self.world.clock.epoch_seconds() + 5.0 * 2 ** min(9, self.attempts[key] - 1)

    def _close(self, question: int, keys: Collection[ObjectKey], decisions: tuple[Decision, ...] = ()) -> None:
        intents = tuple(self.intent(key) for key in sorted(keys))
        self.world.to_zone(Closed(self.name, question, intents, decisions))


class World:
    def __init__(self, *clusters: str, limits: BatchLimits | None = None) -> None:
        self.limits = limits or BatchLimits()
        self.clock = ManualClock()
        self.store = MemoryStore(clock=self.clock)
        self.zone = PlayedZone()
        self.clusters = {name: PlayedCluster(self, name) for name in clusters or ("prod",)}
        self.mailbox: list[object] = []
        self.to_zone: Callable[[object], None] = self.mailbox.append
        self.not_master: list[NotMasterError] = []
        self.inflight = InflightTable(self.store, "0")
        self.epoch = 0
        self.begin(clean=True)

    @property
    def prod(self) -> PlayedCluster:
        return self.clusters["prod"]

    def begin(self, *, clean: bool) -> None:
        """A session begins; what the last one had in memory is gone."""
        self.epoch += 1
        raise_shard_fence(self.store, self.epoch)
        for name in self.clusters:
            raise_fence(self.store, name, self.epoch)
        self.ports = ports = ZonePorts(
            client=self.zone,
            inflight=self.inflight,
            fenced_writer=FencedWriter(self.store, self.epoch, lambda: None, self.clock, "0"),
            to_cluster=self._to_cluster,
            scheduler=self.clock,
            deployment="test",
            shard="0",
            limits=self.limits,
            problems=ZoneProblemTable(self.store, "0", "session"),
            check_holds_lease=lambda: None,
            not_master=self.not_master.append,
        )
        self.mailbox.clear()
        self.ended = False
        self.actor = ZoneActor(ZONE, ports, settled=clean)

    def _to_cluster(self, name: str, message: object) -> bool:
        if name not in self.clusters:
            return False
        self.clusters[name].take(message)
        return True

    def pass_time(self, seconds: float = 1.0, steps: int = 10_000) -> None:
        until = self.clock.monotonic() + seconds
        for _ in range(steps):
            wait: float | None
            try:
                while self.mailbox:
                    self.actor.receive(self.mailbox.pop(0))
                wait = self.actor.step()
            except Exception as error:  # noqa: BLE001 - as the host does
                wait = self.actor.handle_error(error)
            if wait is None:
                self.ended = True
                return
            if wait == AT_ONCE or self.mailbox:
                continue
            left = until - self.clock.monotonic()
            if left <= 0:
                return
            self.clock.advance(min(wait, left))
        raise AssertionError("the zone does not come to rest")

    def item(self) -> Inflight:
        found = self.inflight.read(ZONE)
        assert found is not None
        return found

    def end(self) -> bool:
        self.actor.receive(Drain(self.clock.monotonic() + 10))
        self.pass_time(20)
        assert self.ended
        return self.actor.figures().clean


def asked(cluster: PlayedCluster, kind: type) -> list[object]:
    return [message for message in cluster.asked if type(message) is kind]
