"""The actor of one zone, alone: its clusters, its zone and its tables are played here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace

import pytest

from harness.fakes.fencing import raise_fence, raise_shard_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.waiting import wait_until
from kubesync.actors.actor import AT_ONCE, Activity
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.domain.batches import BatchLimits, Unit, units_of
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet, Zone
from kubesync.domain.errors import (
    BatchRefusedError,
    NotMasterError,
    StoreBusyError,
    ZoneError,
    ZoneOutcomeUnknownError,
    ZoneUnavailableError,
)
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.plan import Wish
from kubesync.messages import (
    CheckConflicts,
    Closed,
    Compare,
    Compared,
    CompareZone,
    Decision,
    Drain,
    Forget,
    Forgotten,
    Landed,
    Publish,
    Reach,
    Refused,
    Standing,
    Want,
    Wishes,
)
from kubesync.zone import conversations
from kubesync.zone.actor import ZoneActor
from kubesync.zone.pool import Zones
from kubesync.zone.ports import ZonePorts

ZONE = "Z1"
LISTED = frozenset({Resource.SERVICES})
type SetsOfZone = dict[RecordKey, RecordSet]


def a_key(name: str, cluster: str = "prod") -> ServiceKey:
    return ServiceKey(cluster, "default", name)


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
        self.intended: dict[ServiceKey, SetsOfZone] = {}
        self.applied: dict[ServiceKey, SetsOfZone] = {}
        self.conflicts: dict[ServiceKey, frozenset[str]] = {}
        self.attempts: Counter[ServiceKey] = Counter()
        self.retry_at: dict[ServiceKey, float] = {}
        self.asked: list[object] = []
        self.silent = False

    def wish(self, key: ServiceKey) -> Wish:
        before, after = self.applied.get(key, {}), self.intended.get(key, {})
        changes = [
            RecordChange(at, before.get(at), after.get(at))
            for at in sorted(before.keys() | after.keys())
            if before.get(at) != after.get(at)
        ]
        attempts = self.attempts[key]
        conflicts = self.conflicts.get(key, frozenset())
        return Wish(key, tuple(changes), conflicts, attempts, self.retry_at.get(key, 0.0), attempts >= 11)

    def want(self, name: str, address: str = "") -> ServiceKey:
        key = a_key(name, self.name)
        self.intended[key] = {record(name): a_set(address)} if address else {}
        return key

    def publish(self, name: str, address: str = "") -> None:
        key = self.want(name, address)
        now = self.world.clock.monotonic()
        self.world.actor.receive(Publish(self.name, (self.wish(key),), since=now, listed=LISTED))

    def take(self, message: object) -> None:
        self.asked.append(message)
        if not self.silent:
            self.answer(message)

    def answer(self, message: object) -> None:
        send = self.world.to_zone
        match message:
            case Want():
                send(Wishes(self.name, tuple(map(self.wish, message.keys))))
            case Landed():
                for unit in message.units:
                    self._apply(unit)
                self._close(message.question, {unit.key for unit in message.units})
            case Refused():
                decisions = []
                for refusal in message.refusals:
                    key = refusal.unit.key
                    foreign = not refusal.code and any(at not in self.applied.get(key, {}) for at in refusal.standing)
                    if foreign:
                        self.conflicts[key] = self.conflicts.get(key, frozenset()) | {refusal.unit.name}
                    self._postpone(key)
                    code = "Conflict" if foreign else refusal.code or "Rejected"
                    decisions.append(Decision(refusal.unit, code, self.retry_at[key], foreign))
                self._close(message.question, {r.unit.key for r in message.refusals}, tuple(decisions))
            case Standing():
                for key, names in message.standing.items():
                    free = {name for name, sets in names.items() if not sets}
                    self.conflicts[key] = self.conflicts.get(key, frozenset()) - free
                    if self.conflicts[key]:
                        self._postpone(key)
                    else:
                        self.attempts[key] = 0
                self._close(message.question, set(message.standing))
            case Compare():
                send(Closed(self.name, message.question, compared=Compared(moved=frozenset(message.keys))))
            case _:
                pass

    def _apply(self, unit: Unit) -> None:
        applied = self.applied.setdefault(unit.key, {})
        for change in unit.changes:
            applied.pop(change.key, None)
            if change.after is not None:
                applied[change.key] = change.after

    def _postpone(self, key: ServiceKey) -> None:
        self.attempts[key] += 1
        self.retry_at[key] = self.world.clock.epoch() + 5.0 * 2 ** min(9, self.attempts[key] - 1)

    def _close(self, question: int, keys: Collection[ServiceKey], decisions: tuple[Decision, ...] = ()) -> None:
        wishes = tuple(self.wish(key) for key in sorted(keys))
        self.world.to_zone(Closed(self.name, question, wishes, decisions))


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
            truly_master=lambda: None,
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
                wait = self.actor.failed(error)
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
        return self.actor.clean


def asked(cluster: PlayedCluster, kind: type) -> list[object]:
    return [message for message in cluster.asked if type(message) is kind]


def test_batch_lands_is_closed_and_its_item_is_cleared_before_the_end() -> None:
    world = World("prod", "test")
    world.prod.publish("web", "10.0.0.1")
    world.clusters["test"].publish("api", "10.0.0.2")
    world.pass_time()
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.2"}
    assert len(world.zone.batches) == 1
    assert world.prod.applied == world.prod.intended
    assert world.item().batch
    assert len(world.actor.report.lags) == 2
    assert world.end()
    assert not world.item().batch


def test_zone_starts_nothing_for_5_s_before_all_clusters_have_closed_then_goes_on_without_the_late_one() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time()
    world.prod.publish("more", "10.0.0.3")
    test.publish("other", "10.0.0.4")
    world.pass_time(3)
    assert "more" not in world.zone.ours
    world.pass_time(2)
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.2", "more": "10.0.0.3"}
    assert {name: owed.units[0].name for name, owed in world.item().owed.items()} == {"test": "api.example.com"}
    assert not world.actor.clean
    test.silent = False
    test.answer(test.asked[-1])
    world.pass_time()
    assert world.zone.ours["other"] == "10.0.0.4"
    assert world.end()
    assert not world.item().owed


def test_zone_waits_for_clusters_that_owe_more_than_its_item_can_hold_beside_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "_MOST_OWED_ELEMENTS", 4)
    world = World("prod", "one", "two", "three", limits=BatchLimits(elements=4, characters=32_000))
    for name in ("one", "two", "three"):
        world.clusters[name].silent = True
        world.clusters[name].publish(f"{name}-a", "10.0.0.2")
        world.clusters[name].publish(f"{name}-b", "10.0.0.2")
        world.pass_time(10)
    world.prod.publish("web", "10.0.0.1")
    world.pass_time(100)
    assert len(world.zone.ours) == 6
    assert {name: len(owed.units) for name, owed in world.item().owed.items()} == {"one": 2, "two": 2}
    world.clusters["two"].silent = False
    world.clusters["two"].answer(world.clusters["two"].asked[-1])
    world.pass_time(10)
    assert world.zone.ours["web"] == "10.0.0.1"
    assert set(world.item().owed) == {"one", "three"}
    assert not world.end()


def test_i4_cluster_that_owes_holds_up_no_comparison_of_another() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time(6)
    others: Future[Compared] = Future()
    own: Future[Compared] = Future()
    world.actor.receive(CompareZone("test", own, keys=(a_key("api", "test"),), names=frozenset({"api.example.com"})))
    world.actor.receive(CompareZone("prod", others, keys=(a_key("web"),), names=frozenset({"web.example.com"})))
    world.pass_time(10)
    assert others.done()
    assert not own.done()
    assert set(world.item().owed) == {"test"}, "the clearing before the comparison carries what is owed"
    test.silent = False
    test.answer(test.asked[-1])
    world.pass_time()
    assert own.done()


def test_zone_that_is_denied_and_whose_item_owes_ends_at_once() -> None:
    world = World("prod", "test")
    world.clusters["test"].silent = True
    world.prod.publish("web", "10.0.0.1")
    world.clusters["test"].publish("api", "10.0.0.2")
    world.pass_time(6)
    world.prod.publish("more", "10.0.0.3")
    world.pass_time()
    assert world.item().owed
    world.begin(clean=False)
    world.zone.unreadable = ZoneUnavailableError("denied")
    world.pass_time(60)
    before = world.clock.monotonic()
    assert not world.end()
    assert world.clock.monotonic() - before < 1.0


def test_i1_zone_that_swaps_its_journal_has_said_before_who_owes_what() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time()
    world.actor.failed(RuntimeError("a fault of ours"))
    world.zone.trouble = [(ZoneOutcomeUnknownError("no answer to the swap"), True)]
    world.pass_time(10.2)
    assert world.actor.report.unknown == 1
    test.silent = False
    world.begin(clean=False)
    world.pass_time()
    assert test.applied == test.intended
    assert world.end()


def test_i2_zone_whose_cluster_has_not_closed_is_left_unsettled_and_the_next_session_closes() -> None:
    world = World()
    world.prod.silent = True
    world.prod.publish("web", "10.0.0.1")
    assert not world.end()
    world.prod.silent = False
    world.begin(clean=False)
    world.pass_time()
    assert world.prod.applied == world.prod.intended
    assert not world.item().batch
    assert world.end()


def test_unknown_outcome_is_repeated_unchanged_and_may_have_landed() -> None:
    world = World()
    world.zone.trouble = [(ZoneOutcomeUnknownError("no answer"), True)]
    world.prod.publish("web", "10.0.0.1")
    world.pass_time(10)
    assert world.zone.ours == {"web": "10.0.0.1"}
    assert world.prod.applied == world.prod.intended
    assert (world.actor.report.unknown, len(world.zone.batches)) == (1, 1)


def test_i4_foreign_set_is_judged_by_its_cluster_and_checked_again() -> None:
    world = World()
    world.zone.sets[record("web")] = a_set("10.9.9.9")
    for name in ("web", "api"):
        world.prod.publish(name, "10.0.0.1")
    world.pass_time()
    assert world.zone.ours == {"web": "10.9.9.9", "api": "10.0.0.1"}
    assert world.actor.report.reasons == {"Conflict": 1}
    world.pass_time(60)
    assert 2 <= len(asked(world.prod, Standing)) <= 5
    del world.zone.sets[record("web")]
    world.actor.receive(CheckConflicts((a_key("web"),)))
    world.pass_time()
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.1"}


def test_keys_known_by_name_are_asked_for_and_thousands_that_wait_are_not_i7() -> None:
    world = World()
    keys = [world.prod.want(f"s{n:04d}", "10.0.0.1") for n in range(1500)]
    world.actor.receive(Publish("prod", names=tuple(keys), inherited=True, listed=LISTED))
    world.pass_time(5)
    assert len(world.zone.ours) == 1500
    assert all(len(message.keys) <= 200 for message in world.prod.asked if isinstance(message, Want))
    assert len(asked(world.prod, Want)) <= 12


def test_keys_in_conflict_of_a_cluster_that_is_not_listed_are_asked_for_once_i7() -> None:
    world = World()
    keys = [world.prod.want(f"s{n:04d}", "10.0.0.1") for n in range(600)]
    for key in keys:
        world.prod.conflicts[key] = frozenset({record(key.name).name})
        world.prod.attempts[key] = 3
    world.actor.receive(Publish("prod", names=tuple(keys), inherited=True))
    world.pass_time(300)
    assert (len(asked(world.prod, Want)), len(asked(world.prod, Standing))) == (3, 0)
    world.actor.receive(Publish("prod", listed=LISTED))
    world.pass_time(5)
    assert len(asked(world.prod, Standing)) == 3
    assert len(world.zone.ours) == 600


def test_inherited_keys_in_conflict_are_asked_for_once_until_their_mark_says_i7() -> None:
    world = World()
    key = world.prod.want("web", "10.0.0.1")
    world.prod.conflicts[key], world.prod.attempts[key] = frozenset({record("web").name}), 4
    world.prod.retry_at[key] = world.clock.epoch() + 40
    world.actor.receive(Publish("prod", names=(key,), inherited=True, listed=LISTED))
    world.pass_time(39)
    assert (len(asked(world.prod, Want)), len(asked(world.prod, Standing))) == (1, 0)
    world.pass_time(2)
    assert world.zone.ours == {"web": "10.0.0.1"}


def test_settled_keys_are_checked_hourly_and_noted_i6() -> None:
    world = World()
    world.zone.sets[record("web")] = a_set("10.9.9.9")
    key = world.prod.want("web", "10.0.0.1")
    world.prod.conflicts[key], world.prod.attempts[key] = frozenset({record("web").name}), 11
    world.actor.receive(Publish("prod", names=(key,), inherited=True, listed=LISTED))
    world.pass_time(3 * 3600)
    assert 3 <= len(asked(world.prod, Standing)) <= 4
    assert ZoneProblemTable(world.store, "0", "session").checked_at(ZONE) > 0


def test_i4_cluster_that_does_not_answer_holds_up_no_other() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    key = test.want("api", "10.0.0.2")
    world.actor.receive(Publish("test", names=(key,), listed=LISTED))
    world.prod.publish("web", "10.0.0.1")
    world.pass_time(6)
    assert world.zone.ours == {"web": "10.0.0.1"}
    world.pass_time(30)
    assert len(asked(test, Want)) == 4
    test.silent = False
    world.pass_time(11)
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.2"}


def test_keys_of_a_cluster_that_is_not_here_are_left_alone() -> None:
    world = World()
    world.actor.receive(Publish("gone", names=(a_key("api", "gone"),)))
    world.prod.publish("web", "10.0.0.1")
    world.pass_time(10)
    assert world.zone.ours == {"web": "10.0.0.1"}


def test_refused_unit_waits_as_its_cluster_says_i4() -> None:
    world = World()
    refusal = BatchRefusedError(("[name='web.example.com.', type='A'] is not permitted",))
    world.zone.trouble = [(refusal, False)]
    for name in ("web", "api"):
        world.prod.publish(name, "10.0.0.1")
    world.pass_time(1)
    assert world.zone.ours == {"api": "10.0.0.1"}
    world.pass_time(6)
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.1"}


def test_culprit_whose_cluster_is_late_goes_again_a_little_later() -> None:
    world = World()
    world.zone.sets[record("web")] = a_set("10.9.9.9")
    world.prod.publish("web", "10.0.0.1")
    world.prod.silent = True
    world.pass_time(4)
    assert len(asked(world.prod, Refused)) == 1
    world.pass_time(20)
    assert len(asked(world.prod, Refused)) == 1
    late = world.prod.asked[0]
    world.prod.silent = False
    world.prod.answer(late)
    world.pass_time(60)
    assert world.prod.conflicts
    assert world.zone.ours == {"web": "10.9.9.9"}


def test_unit_that_nobody_wants_any_more_does_not_go_again() -> None:
    world = World()
    world.zone.trouble = [(BatchRefusedError(("no idea",)), False)]
    world.prod.publish("web", "10.0.0.1")
    world.prod.publish("api", "10.0.0.1")
    for _ in range(2):  # announced, and refused: two halves go again
        assert world.actor.step() == AT_ONCE
    world.prod.publish("web")
    world.pass_time()
    assert world.zone.ours == {"api": "10.0.0.1"}
    assert {change.key for batch in world.zone.batches for change in batch if change.key.type == "A"} == {record("api")}


def test_full_zone_lets_deletions_through_and_probes() -> None:
    world = World()
    full = BatchRefusedError(("MAX_RRSETS_BY_ZONE: limit of 10000 record sets",))
    world.zone.trouble = [(full, False), (full, False), (full, False)]
    names = [world.prod.want(f"s{n}", "10.0.0.1") for n in range(5)]
    world.actor.receive(Publish("prod", names=tuple(names), listed=LISTED))
    world.pass_time(1)
    assert "the zone is full" in world.actor.report.problem
    world.pass_time(60)
    assert len(world.zone.ours) == 5


def test_inherited_key_waits_as_its_mark_says_and_news_end_that() -> None:
    world = World()
    key = world.prod.want("web", "10.0.0.1")
    world.prod.attempts[key], world.prod.retry_at[key] = 2, world.clock.epoch() + 100
    world.actor.receive(Publish("prod", names=(key,), inherited=True, listed=LISTED))
    world.pass_time(50)
    assert world.zone.ours == {}
    world.prod.attempts[key] = 0
    world.prod.publish("web", "10.0.0.2")
    world.pass_time(1)
    assert world.zone.ours == {"web": "10.0.0.2"}


def test_inherited_key_goes_when_its_mark_says() -> None:
    world = World()
    key = world.prod.want("web", "10.0.0.1")
    world.prod.attempts[key], world.prod.retry_at[key] = 2, world.clock.epoch() + 100
    world.actor.receive(Publish("prod", (world.prod.wish(key),), inherited=True, listed=LISTED))
    world.pass_time(99)
    assert world.zone.ours == {}
    world.pass_time(2)
    assert world.zone.ours == {"web": "10.0.0.1"}


# --- who waits for a quiet zone ---


def test_compare_comes_between_batches_with_a_clear_item() -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    reply: Future[Compared] = Future()
    key = a_key("web")
    world.actor.receive(CompareZone("prod", reply, keys=(key,), names=frozenset({record("web").name})))
    world.pass_time()
    assert reply.result(0).moved == {key}
    (question,) = [message for message in world.prod.asked if isinstance(message, Compare)]
    assert question.standing == {record("web"): a_set("10.0.0.1")}
    assert not world.item().batch


def test_compare_of_a_cluster_that_is_silent_or_gone_fails() -> None:
    world = World()
    world.prod.silent = True
    late: Future[Compared] = Future()
    gone: Future[Compared] = Future()
    world.actor.receive(CompareZone("prod", late))
    world.actor.receive(CompareZone("gone", gone))
    world.pass_time(61)
    assert isinstance(late.exception(0), StoreBusyError)
    assert isinstance(gone.exception(0), ZoneError)


def test_blocked_zone_tells_who_waits() -> None:
    world = World()
    first: Future[None] = Future()
    world.zone.denied = ZoneUnavailableError("denied")
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    assert world.actor.blocked
    world.actor.receive(Reach(first))
    assert str(first.exception(0)) == "denied"
    world.zone.denied = None
    world.pass_time(61)
    assert world.zone.ours == {"web": "10.0.0.1"}
    reached: Future[None] = Future()
    world.actor.receive(Reach(reached))
    world.pass_time()
    assert reached.result(0) is None


def test_forget_waits_for_what_is_under_way_and_clears_the_item() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time()
    world.actor.receive(Forget("prod"))
    world.pass_time()
    assert not asked(world.prod, Forgotten), "the batch is not closed by all"
    test.silent = False
    test.answer(test.asked[-1])
    world.pass_time()
    assert asked(world.prod, Forgotten) == [Forgotten(ZONE)]
    assert not world.item().batch


def test_forget_does_not_wait_for_a_blocked_zone() -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    world.zone.denied = ZoneUnavailableError("denied")
    world.prod.publish("api", "10.0.0.2")
    world.pass_time()
    assert world.actor.blocked
    world.actor.receive(Forget("prod"))
    world.pass_time()
    assert not asked(world.prod, Forgotten), "its batch is under way"
    world.zone.denied = None
    world.pass_time(61)
    assert asked(world.prod, Forgotten)


# --- faults ---


def test_fault_of_ours_settles_the_zone_and_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    with monkeypatch.context() as patch:
        patch.setattr(world.zone, "change", lambda *_: 1 / 0)
        world.prod.publish("api", "10.0.0.2")
        world.pass_time(4)
    assert not world.actor.clean
    world.pass_time(10)
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.2"}
    assert world.end()


def test_fault_after_the_batch_has_landed_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.prod.silent = True
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    world.actor.failed(RuntimeError("a fault"))
    world.prod.silent = False
    world.pass_time(10)
    assert world.prod.applied == world.prod.intended
    assert world.end()


def test_i2_fenced_out_zone_ends() -> None:
    world = World()
    raise_fence(world.store, "prod", 7)
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    assert world.ended
    assert world.not_master
    assert world.zone.ours == {}


def test_i1_item_that_moved_is_settled_not_overwritten() -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    item = world.item()
    _, actions = world.inflight.put(ZONE, item, replace(item, batch=item.batch), "x")
    world.store.transact(actions, "x")
    world.prod.publish("other", "10.0.0.2")
    world.pass_time(20)
    assert len(world.zone.ours) == 2
    assert len(asked(world.prod, Landed)) == 2, "the first was closed already"


def test_unit_larger_than_a_batch_is_refused_and_holds_up_no_other() -> None:
    world = World()
    key = a_key("big")
    values = tuple(f"10.0.{n // 250}.{n % 250}" for n in range(1001))
    world.prod.intended[key] = {record("big"): RecordSet(60, values)}
    world.actor.receive(Publish("prod", (world.prod.wish(key),), listed=LISTED))
    world.prod.publish("web", "10.0.0.1")
    world.pass_time(3)
    assert world.zone.ours == {"web": "10.0.0.1"}
    assert world.actor.report.reasons == {"TooLargeForBatch": 1}
    assert units_of(key, world.prod.wish(key).changes)


def test_zones_are_made_when_they_are_needed_and_drained() -> None:
    world = World()
    scheduler = ThreadScheduler()
    zones = Zones(
        replace(world.ports, scheduler=scheduler),
        Activity(scheduler),
        clean=True,
        unsettled=("Z9",),
        zones={ZONE: Zone(ZONE, "example.com")},
    )
    world.to_zone = lambda message: zones.send(ZONE, message)
    key = world.prod.want("web", "10.0.0.1")
    zones.send(ZONE, Publish("prod", (world.prod.wish(key),), listed=LISTED))
    wait_until(lambda: world.prod.applied == world.prod.intended)
    zones.drain(scheduler.monotonic() + 5.0)
    assert zones.hosted == (ZONE,)
    assert zones.unsettled == {"Z9"}
    assert not world.item().batch
    assert zones.writers[ZONE].report.batches == 1


def test_hundreds_of_conflicts_are_checked_together_and_heal_i7() -> None:
    world = World()
    keys = [world.prod.want(f"s{n:04d}", "10.0.0.1") for n in range(900)]
    for key in keys[::3]:
        world.zone.sets[record(key.name)] = a_set("10.9.9.9")
    for n, key in enumerate(keys[::6]):
        world.prod.conflicts[key], world.prod.attempts[key] = frozenset({record(key.name).name}), n % 13
        world.prod.retry_at[key] = world.clock.epoch() + n % 50
    world.actor.receive(Publish("prod", names=tuple(keys), inherited=True, listed=LISTED))
    world.pass_time(600)
    assert sum(address == "10.0.0.1" for address in world.zone.ours.values()) == 600
    assert len(asked(world.prod, Want)) < 250
    world.zone.sets = {key: found for key, found in world.zone.sets.items() if found != a_set("10.9.9.9")}
    world.pass_time(2 * 3600)
    assert len(world.zone.ours) == 900
    assert set(world.zone.ours.values()) == {"10.0.0.1"}
    assert world.end()
