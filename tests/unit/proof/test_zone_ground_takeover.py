"""What the formal model found about settling a zone, held against the code (see docs/proof/README.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from chaos.zones import MemoryRoute53
from kubesync.aws.audit import AuditTable
from kubesync.aws.claims import ClaimTable
from kubesync.aws.clusters import ClusterConfig
from kubesync.aws.fences import raise_fence
from kubesync.aws.inflight import Inflight, InflightTable
from kubesync.aws.journal import read_journal
from kubesync.aws.state import StateTable
from kubesync.aws.upstreams import UpstreamTable
from kubesync.aws.zone_problems import ZoneProblemTable
from kubesync.aws.zones import BatchChange
from kubesync.domain.batches import BatchLimits, Unit
from kubesync.domain.errors import NotMasterError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.records import RecordChange, RecordKey, RecordSet, Zone
from kubesync.domain.state import KeyState, Name, OpenMark
from kubesync.session.closer import Closer
from kubesync.session.ledger import Ledger
from kubesync.session.planner import Tables
from kubesync.session.transactor import Transactor
from kubesync.session.zone_ground import ZoneGround, ZoneMeans
from kubesync.session.zone_writer import ZoneWriter
from support.manual_clock import ManualClock
from support.memory_store import MemoryStore

ZONE = Zone("Z1", "example.com")
KEY = ServiceKey("prod", "default", "web")
NAME = RecordKey("Z1", "web.default.svc.prod.example.com", "A")
WANTED = RecordSet(30, ("10.0.0.1",))


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


class World:
    """One store, one zone; masters are made by epoch. Nobody's clock tells him that he is no master any more."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(clock=self.clock)
        self.route53 = MemoryRoute53()
        self.route53.create(ZONE.id, ZONE.name)

    def means(self, epoch: int) -> ZoneMeans:
        raise_fence(self.store, "prod", epoch)
        config = ClusterConfig(
            name="prod", server="https://prod.example.com", domain="prod.example.com", zones=(ZONE,), revision=1
        )
        transactor = Transactor(self.store, epoch, lambda: None, self.clock)
        tables = Tables(StateTable(self.store), ClaimTable(self.store), UpstreamTable(self.store))
        ledgers = {"prod": Ledger(config, tables.state)}
        audit = AuditTable(self.store, f"s{epoch}", 86_400)
        closer = Closer(ledgers, tables, transactor, audit, self.clock, {"prod"}, lambda _keys: None)
        return ZoneMeans(
            client=Client(self.route53, f"s{epoch}"),
            inflight=InflightTable(self.store, "0"),
            transactor=transactor,
            closer=closer,
            reclaim=lambda _zone, state: state,
            ledgers=ledgers,
            clock=self.clock,
            deployment="test",
            shard="0",
            limits=BatchLimits(),
            problems=ZoneProblemTable(self.store, "0", f"s{epoch}"),
            truly_master=lambda: None,
        )

    def record_open_key(self, means: ZoneMeans) -> None:
        """The key wants its set; nothing is applied yet."""
        before = KeyState(KEY)
        after = KeyState(
            KEY,
            intended={NAME: WANTED},
            claims=frozenset({Name(NAME.zone_id, NAME.name)}),
            opened=OpenMark(),
        )
        _, actions = means.inflight_free_put(before, after) if hasattr(means, "inflight_free_put") else StateTable(
            self.store
        ).put(before, after, "t0")
        means.transactor.run(["prod"], actions, "t0")
        means.ledgers["prod"].forget()


def a_unit() -> Unit:
    return Unit(KEY, (RecordChange(NAME, None, WANTED),))


def test_i2_a_fenced_out_master_does_not_settle_what_its_successor_sends() -> None:
    world = World()
    paused = ZoneGround("Z1", world.means(1), ZONE)  # it raised its fence, and was paused before it read anything else
    successor = ZoneGround("Z1", world.means(2), ZONE)
    assert successor.settle(lambda _inflight: None)  # no inflight item: nothing to settle, so the journal is not swapped
    successor.announce("b" * 32, (a_unit(),))  # its batch is on the way
    with pytest.raises(NotMasterError):
        paused.settle(lambda _inflight: None)
    assert world.route53.accepted == []
