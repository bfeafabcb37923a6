"""I1: what became of the batch that was under way when a master died, as the journal tells it (``ZoneGround.settle``)."""

from __future__ import annotations

import pytest

from kubesync.aws.dynamodb.store import CONTROL, Key, Update
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.domain.batches import Unit, units_of
from kubesync.domain.plan import Policy, changes_of
from support.zone_bench import EPOCH, JOURNAL, ZONE, ZoneBench

LOST = "ba7c4000000000000000000000000000"


def a_bench_left_behind(batch: str) -> tuple[ZoneBench, tuple[Unit, ...]]:
    """A master of the epoch before died with a batch under way; ``web`` is open."""
    bench = ZoneBench(settled=False)
    bench.want("web", {"web A": ["10.0.0.1"]})
    units = tuple(units_of(bench.key("web"), changes_of(bench.state("web"), Policy.SYNC)))
    token = bench.fenced_writer.token()
    _, actions = bench.inflight.put(ZONE.id, None, Inflight(batch, EPOCH - 1, units), token)
    bench.fenced_writer.run(["prod"], actions, token)
    return bench, units


@pytest.mark.parametrize("journal", ["earlier", None], ids=["journal of an earlier batch", "no journal"])
def test_i1_batch_in_flight_that_the_journal_does_not_hold_never_happened(journal: str | None) -> None:
    bench, _ = a_bench_left_behind(LOST)
    if journal is not None:
        bench.journal_of(batch=journal)
    bench.run()
    assert bench.zone.sets() == {"web A": ("10.0.0.1",)}
    assert (bench.open(), bench.announced(), bench.writer.clean) == ({}, "", True)


def test_i1_batch_in_flight_that_the_journal_holds_had_landed_and_is_not_sent_again() -> None:
    bench, units = a_bench_left_behind(LOST)
    bench.zone.by_hand("CREATE", "web.example.com", "A", "10.0.0.1")
    bench.journal_of(batch=LOST)
    bench.run()
    assert [{change.key for change in batch} for batch in bench.zone.sent] == [{JOURNAL}], "the swap alone"
    assert bench.state("web").applied == {change.key: change.after for unit in units for change in unit.changes}
    assert (bench.open(), bench.announced(), bench.writer.clean) == ({}, "", True)


@pytest.mark.parametrize(("announced", "blocked"), [(EPOCH - 3, True), (EPOCH - 2, False), (None, False)])
def test_i2_journal_that_no_inflight_item_announced_tells_of_restored_tables(
    announced: int | None, blocked: bool
) -> None:
    """Whatever epoch this master has drawn by then. An item of an earlier release does not say what it announced."""
    bench = ZoneBench(settled=False)
    bench.remember_inflight(epoch=announced or EPOCH - 3)
    if announced is None:
        bench.store.write(Update(Key(CONTROL, "inflight#0", ZONE.id), remove=("journal_epoch",)))
    journal = bench.journal_of(epoch=EPOCH - 2)
    bench.run(seconds=60)
    assert bench.writer.blocked is blocked
    assert (bench.zone.journal == journal) is blocked


def test_swap_is_announced_like_a_batch() -> None:
    bench = ZoneBench(settled=False)
    bench.remember_inflight()
    bench.journal_of()
    bench.zone.before = lambda: seen.append(bench.inflight.read(ZONE.id))
    seen: list[Inflight | None] = []
    bench.run()
    (inflight,) = seen
    assert inflight is not None
    assert (inflight.batch, inflight.epoch, inflight.journal_epoch) == ("", 5, 5)
    assert "epoch=5," in bench.zone.journal
