"""What the formal model found about settling a zone, held against the code (see docs/proof/README.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pytest

from harness.fakes.fencing import NO_LEASE, raise_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.fencing.take_over import Fencing
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.route53.journal import journal_swap
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.fences import raise_fences, shard_fence_key
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.keys.outcomes import Outcomes
from kubesync.cluster.keys.planner import Tables
from kubesync.domain.batches import BatchLimits, Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet, Zone
from kubesync.domain.errors import NotMasterError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import KeyState, Name, OpenMark
from kubesync.zone.journal import ZoneJournal, ZoneMeans
from kubesync.zone.writer import ZoneWriter
from simulation.zones import MemoryRoute53

ZONE = Zone("Z1", "example.com")
KEY = ServiceKey("late", "default", "web")
SET = RecordKey("Z1", "web.default.svc.late.example.com", "A")
WANTED = RecordSet(30, ("10.0.0.1",))
UNIT = Unit(KEY, (RecordChange(SET, None, WANTED),))


class Client:
    """A zone client of one session."""

    def __init__(self, route53: MemoryRoute53, session: str) -> None:
        self._route53 = route53
        self._session = session

    def zone(self, zone_id: str) -> Zone:
        return self._route53.zone(zone_id)

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        self._route53.change(zone_id, changes, comment, self._session)

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        return self._route53.at_name(zone_id, name)

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        yield from self._route53.records(zone_id).items()


def _not_master() -> None:
    raise NotMasterError("the lease was lost to another session")


class World:
    """One store, one zone; masters are made by epoch. Nobody's clock tells him that he is no master any more."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(clock=self.clock)
        self.states = StateTable(self.store)
        self.route53 = MemoryRoute53()
        self.route53.create(ZONE.id, ZONE.name)

    def master(self, epoch: int, *clusters: str) -> ZoneMeans:
        """A master that has raised the fences of these clusters."""
        fenced_writer = FencedWriter(self.store, epoch, lambda: None, self.clock)
        ledgers: dict[str, Ledger] = {}
        tables = Tables(
            self.states,
            ClaimTable(self.store),
            UpstreamTable(self.store),
            ListenerTable(self.store),
            AuditTable(self.store, f"s{epoch}", 86_400),
        )

        def committer(name: str) -> Committer | None:
            known = ledgers.get(name)
            return None if known is None else Committer(known, tables, fenced_writer, self.clock, set(clusters))

        means = ZoneMeans(
            client=Client(self.route53, f"s{epoch}"),
            inflight=InflightTable(self.store, "0"),
            fenced_writer=fenced_writer,
            outcomes=Outcomes(committer, self.clock.random, lambda _keys: None),
            reclaim=lambda _zone, states, _not_before: {state.key: state for state in states},
            ledgers=ledgers,
            scheduler=self.clock,
            deployment="test",
            shard="0",
            limits=BatchLimits(),
            problems=ZoneProblemTable(self.store, "0", f"s{epoch}"),
            truly_master=_not_master,
        )
        with contextlib.suppress(NotMasterError):  # his successor's stands
            raise_fences(self.store, [shard_fence_key("0")], epoch, NO_LEASE)
        for cluster in clusters:
            ledgers[cluster] = self.adopted(epoch, cluster)
        return means

    def adopted(self, epoch: int, cluster: str) -> Ledger:
        """A cluster whose fence this epoch has raised."""
        raise_fence(self.store, cluster, epoch)
        reference = ZoneReference(id=ZONE.id, name=ZONE.name)
        config = ClusterConfig(
            name=cluster, server="https://api.example.com", domain=f"{cluster}.example.com", zones=(reference,)
        )
        return Ledger(config, self.states, self.clock)

    def open_key(self, means: ZoneMeans) -> None:
        """Record that the key wants its set; nothing is applied yet."""
        name = frozenset({Name(SET.zone_id, SET.name)})
        wanting = KeyState(KEY, intended={SET: WANTED}, claims=name, opened=OpenMark())
        _, actions = self.states.put(KeyState(KEY), wanting, "t0")
        means.fenced_writer.run([KEY.cluster], actions, "t0")

    def state(self) -> KeyState:
        return self.states.load([KEY])[KEY]


def test_i2_a_fenced_out_master_does_not_settle_what_its_successor_sends() -> None:
    world = World()
    paused = ZoneJournal("Z1", world.master(1, "late"), ZONE)  # paused between its fence and everything else
    successor = ZoneJournal("Z1", world.master(2, "late"), ZONE)
    # No inflight item, nothing to settle: the journal is not swapped.
    assert successor.settle(lambda _inflight: None)
    successor.announce("b" * 32, (UNIT,))
    with pytest.raises(NotMasterError):
        paused.settle(lambda _inflight: None)
    assert world.route53.accepted == []


def test_i2_who_is_shut_out_of_the_shard_writes_nothing_about_its_zones() -> None:
    world = World()
    # The only cluster that he knows is another shard's by now, or gone: his successor does not raise its fence.
    means = world.master(1, "moved")
    paused = ZoneJournal("Z1", means, ZONE)
    paused.announce("a" * 32, (UNIT,))
    table = LeaseTable(world.store, "0")
    table.take(table.read(), "successor", 2, 10_000)
    Fencing(world.store, "0", 2, lambda call: call()).take_over([])
    before = world.store.dump()
    with pytest.raises(NotMasterError):
        paused.note_problem("it is blocked")
    with pytest.raises(NotMasterError):
        paused.nothing_under_way()
    assert world.store.dump() == before


def test_i1_an_inflight_item_that_moved_under_a_writer_is_settled_not_overwritten() -> None:
    world = World()
    means = world.master(2, "prod")
    writer = ZoneWriter("Z1", means, settled=False, zone=ZONE)
    assert writer.step() == 0.0  # nothing was ever sent
    # A predecessor wakes up, adopts a cluster that the new master has not fenced yet, and writes for it.
    old = world.master(1, "late")
    world.open_key(old)
    ground = ZoneJournal("Z1", old, ZONE)
    ground.announce("b" * 32, (UNIT,))
    swap = journal_swap(ground.journal_key(), None, ground.following("b" * 32))
    old.client.change("Z1", [*swap, BatchChange("CREATE", SET, WANTED)])
    # The new master adopts that cluster too, and finds the key open.
    ledgers = means.ledgers
    assert isinstance(ledgers, dict)
    ledgers["late"] = world.adopted(2, "late")
    writer.add([KEY])
    for _ in range(20):
        world.clock.advance(writer.step() or 0.0)
    assert (world.state().applied, dict(world.state().conflicts), world.state().opened) == ({SET: WANTED}, {}, None)
