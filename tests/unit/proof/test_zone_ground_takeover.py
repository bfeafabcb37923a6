"""What the formal model found about settling a zone, held against the code (see docs/proof/README.md)."""

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID, Deployment, full
from harness.fakes.fencing import raise_shard_fence
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from simulation.world import Running

SET = RecordKey(ZONE_ID, full("web"), "A")
WANTED = RecordSet(60, ("10.0.0.1",))


class TwoMasters(Deployment):
    """The first master is paused at a write; its clock stops meanwhile, so that it does not know that it is no master any more."""

    def pause_at(self, kind: str, *, after: bool = False) -> None:
        """The session that is started next stops there."""
        self.at(kind, lambda: self._running().gate.pause(), after=after)

    def successor(self) -> Running:
        """The paused session, once another one has taken over."""
        paused = self._running()
        assert paused.process.paused, "it was not paused"
        self.pass_time(20.0)
        self.start()
        return paused

    def resume(self, paused: Running) -> None:
        """Let the paused one go on until it ends."""
        self.world.machine.resume(paused.process, clock="stopped")
        self.pass_time(20.0)
        assert paused.report is not None
        assert paused.report.ended == "ERR_NOT_MASTER"

    def _running(self) -> Running:
        assert self.running is not None
        return self.running


@pytest.fixture
def masters() -> Iterator[TwoMasters]:
    made = TwoMasters()
    yield made
    made.close()


def test_i2_a_fenced_out_master_does_not_settle_what_its_successor_sends(masters: TwoMasters) -> None:
    masters.pause_at("fence raised", after=True)
    masters.start()
    paused = masters.successor()
    # No inflight item, nothing to settle: the journal is not swapped. Then a batch is under way, of which nothing is known.
    masters.at("batch sent", lambda: masters.hold(30.0))
    masters.want("web", "10.0.0.1")
    masters.pass_time()
    assert masters.announced() != ""
    masters.resume(paused)
    assert masters.route53.accepted == []
    masters.pass_time(30.0)
    assert masters.sets() == {"web A": ("10.0.0.1",)}
    assert masters.end().clean


def test_i2_who_is_shut_out_of_the_shard_writes_nothing_about_its_zones(masters: TwoMasters) -> None:
    masters.journal_by_hand(owner="somebody-else", epoch=1)
    masters.pause_at("zone's problem noted")
    masters.start()
    masters.want("web", "10.0.0.1")
    masters.pass_time()
    # The only cluster that it knows is another shard's by now, or gone: its successor does not raise its fence.
    masters.store.write(Delete(Key(CONTROL, "clusters", "prod")))
    raise_shard_fence(masters.store, 1)  # its own: it stands already
    paused = masters.successor()
    masters.resume(paused)
    assert masters.problems() == []
    assert masters.inflight() is None


def test_i1_an_inflight_item_that_moved_under_a_writer_is_settled_not_overwritten(masters: TwoMasters) -> None:
    """A predecessor has woken up, and sent for a cluster that its successor had not fenced yet."""
    masters.start()
    masters.end()
    masters.start()
    masters.want("other", "10.0.0.2")
    masters.pass_time()
    masters.delete("other")
    masters.pass_time()
    unit = Unit(ObjectKey("prod", "shop", "web"), (RecordChange(SET, None, WANTED),))
    table = InflightTable(masters.store, "0")
    sent = table.put(ZONE_ID, table.read(ZONE_ID), Inflight("late", 1, (unit,)), "late")[1]
    masters.store.transact(sent, "late")
    masters.journal_by_hand(epoch=1, batch="late")
    masters.route53.change(ZONE_ID, [BatchChange("CREATE", SET, WANTED)], "", "a person")
    # The new master finds the key open.
    masters.want("web", "10.0.0.1")
    masters.pass_time(10.0)
    state = masters.state("web")
    assert (state.applied, dict(state.conflicts), state.opened) == ({SET: WANTED}, {}, None)
    assert masters.sets() == {"web A": ("10.0.0.1",)}
