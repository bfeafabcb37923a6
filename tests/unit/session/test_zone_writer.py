"""One batch at a time: what the journal in the zone says, and what is written when answers are lost (I1, I2)."""

from __future__ import annotations

import pytest

from kubesync.aws.dynamodb.store import Put
from kubesync.aws.tables.control.fences import fence_key
from kubesync.domain.errors import (
    NotMasterError,
    StoreOutcomeUnknownError,
    StoreUnavailableError,
    ZoneGoneError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
    ZoneUnavailableError,
)
from support.fencing import raise_fence
from support.memory_store import Call
from support.zone_bench import EPOCH, JOURNAL, ZoneBench


def test_a_batch_is_announced_sent_and_closed() -> None:
    bench = ZoneBench()
    bench.zone.before = lambda: announced.append(bench.announced())
    announced: list[str] = []
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run()
    assert bench.zone.sets() == {"web A": ("10.0.0.1",)}
    assert len(bench.zone.sent) == 1
    assert bench.zone.journal == f'"heritage=kubesync,owner=test,epoch=5,batch={announced[0]}"'
    assert (bench.announced(), bench.open(), bench.writer.clean) == ("", {}, True)
    assert bench.state("web").applied == bench.state("web").intended


def test_what_arrives_while_a_batch_is_under_way_joins_the_next() -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["10.0.0.1"]})

    def more() -> None:
        bench.zone.before = lambda: None
        for name in ("b", "c", "d"):
            bench.want(name, {f"{name} A": ["10.0.0.2"]})

    bench.zone.before = more
    bench.run()
    assert [len(batch) for batch in bench.zone.sent] == [2, 5]  # a journal swap is 1 at first, then 2
    assert sorted(bench.zone.sets()) == ["a A", "b A", "c A", "d A"]


def test_i3_a_change_is_delete_of_the_known_set_and_create_of_the_new_one() -> None:
    bench = ZoneBench()
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run()
    bench.want("web", {"web A": ["10.0.0.2"]})
    bench.run()
    sent = [(c.action, c.key.type, c.record_set.values) for c in bench.zone.sent[1] if c.key != JOURNAL]
    assert sent == [("DELETE", "A", ("10.0.0.1",)), ("CREATE", "A", ("10.0.0.2",))]


def test_a_change_of_type_is_one_batch() -> None:
    bench = ZoneBench()
    bench.want("web", {"web A": ["10.0.0.1"], "web AAAA": ["::1"]})
    bench.run()
    bench.want("web", {"web CNAME": ["lb.example.net."]})
    bench.run()
    assert bench.zone.sets() == {"web CNAME": ("lb.example.net.",)}
    assert len(bench.zone.sent) == 2


# --- the journal in the zone, case by case ---


def test_journal_missing_is_made_anew_and_reported() -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["10.0.0.1"]})
    bench.run()
    bench.zone.by_hand("DELETE", JOURNAL.name, "TXT", bench.zone.journal, ttl=300)
    bench.want("b", {"b A": ["10.0.0.2"]})
    bench.run()
    assert bench.zone.sets() == {"a A": ("10.0.0.1",), "b A": ("10.0.0.2",)}
    assert bench.zone.journal != ""
    assert "was missing and is made anew" in bench.writer.report.remark


def test_journal_that_never_was_is_not_reported_as_missing() -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["no address"]})
    bench.run()
    assert bench.writer.report.refused == 1
    assert bench.writer.report.remark == ""


@pytest.mark.parametrize("value", ['"heritage=kubesync,owner=somebody-else,epoch=1,batch=b"', '"something else"'])
def test_i3_journal_of_another_owner_blocks_the_zone_and_is_reported(value: str) -> None:
    bench = ZoneBench()
    bench.zone.by_hand("CREATE", JOURNAL.name, "TXT", value, ttl=300)
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run(seconds=30)
    assert (bench.zone.sent, bench.zone.sets(), bench.zone.journal) == ([], {}, value)
    (problem,) = bench.problems.current()
    assert (problem.zone_id, "belongs to" in problem.problem) == ("Z1", True)
    assert "web" in bench.open()
    # Once it is gone, the zone is written, and nothing is reported any more.
    bench.zone.by_hand("DELETE", JOURNAL.name, "TXT", value, ttl=300)
    bench.run(seconds=120)
    assert bench.zone.sets() == {"web A": ("10.0.0.1",)}
    assert bench.problems.current() == []


def test_i2_journal_of_a_newer_epoch_ends_a_master_that_lost_its_lease() -> None:
    bench = ZoneBench()
    bench.remember_inflight()
    value = bench.journal_of(epoch=6)
    bench.truly_master = False
    bench.want("web", {"web A": ["10.0.0.1"]})
    with pytest.raises(NotMasterError):
        bench.run()
    assert (bench.zone.sent, bench.zone.journal) == ([], value)


def test_journal_of_a_newer_epoch_with_the_lease_truly_ours_says_that_tables_were_lost() -> None:
    bench = ZoneBench()
    bench.remember_inflight()
    value = bench.journal_of(epoch=6)
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run(seconds=30)
    assert (bench.zone.sent, bench.zone.journal) == ([], value)
    (problem,) = bench.problems.current()
    assert "kubesync recover" in problem.problem


def test_journal_that_holds_this_batch_means_that_an_earlier_try_had_landed() -> None:
    bench = ZoneBench()
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.zone.after = lambda: _once(bench, ZoneOutcomeUnknownError("no answer"))
    bench.run(seconds=5)
    assert len(bench.zone.sent) == 2
    assert bench.zone.sent[0] == bench.zone.sent[1]
    assert (bench.open(), bench.announced(), bench.writer.clean) == ({}, "", True)
    assert (bench.writer.report.unknown, bench.writer.report.refused) == (1, 1)


def _once(bench: ZoneBench, error: Exception) -> None:
    bench.zone.before = bench.zone.after = lambda: None
    raise error


def test_journal_that_was_moved_leads_to_the_same_units_again_with_the_journal_as_it_is() -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["10.0.0.1"]})
    bench.run()
    bench.journal_of(batch="moved")
    bench.want("b", {"b A": ["10.0.0.2"]})
    bench.run()
    assert bench.zone.sets() == {"a A": ("10.0.0.1",), "b A": ("10.0.0.2",)}
    assert len(bench.zone.sent) == 3
    swapped = next(c for c in bench.zone.sent[2] if c.action == "DELETE")
    assert swapped.record_set.values == ('"heritage=kubesync,owner=test,epoch=4,batch=moved"',)


# --- outcomes that are unknown, and throttling ---


@pytest.mark.parametrize(
    "error",
    [ZoneOutcomeUnknownError("no answer"), ZoneThrottledError("Throttling"), ZoneThrottledError("PriorRequest")],
)
def test_the_same_batch_is_sent_again_before_anything_else(error: Exception) -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["10.0.0.1"]})
    tries = iter([error, error, None])

    def fail() -> None:
        bench.want("b", {"b A": ["10.0.0.2"]})
        failure = next(tries, None)
        if failure is not None:
            raise failure

    bench.zone.before = fail
    bench.run(seconds=30)
    assert bench.zone.sent[0] == bench.zone.sent[1] == bench.zone.sent[2]
    assert sorted(bench.zone.sets()) == ["a A", "b A"]


def test_backoff_doubles_to_half_a_minute_and_starts_over_after_a_success() -> None:
    bench = ZoneBench()

    def fail() -> None:
        raise ZoneThrottledError("Throttling")

    bench.zone.before = fail
    bench.want("a", {"a A": ["10.0.0.1"]})
    waits: list[float] = []
    for _ in range(12):
        wait = bench.writer.step()
        assert wait is not None
        if wait:
            waits.append(wait)
            bench.clock.advance(wait)
    bases = [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]
    assert all(0.5 * base <= wait <= 1.5 * base for base, wait in zip(bases, waits, strict=False)), waits
    bench.zone.before = lambda: None
    bench.run(seconds=60)
    bench.zone.before = fail
    bench.want("b", {"b A": ["10.0.0.1"]})
    wait = bench.writer.step()
    assert wait is not None
    assert wait <= 0.75


def test_a_zone_that_is_not_there_is_reported_and_tried_again_a_minute_later() -> None:
    bench = ZoneBench()

    def gone() -> None:
        raise ZoneUnavailableError("no such zone")

    bench.zone.before = gone
    bench.want("a", {"a A": ["10.0.0.1"]})
    assert bench.writer.step() == 60
    assert [problem.problem for problem in bench.problems.current()] == ["no such zone"]
    bench.zone.before = lambda: None
    bench.run(seconds=61)
    assert (sorted(bench.zone.sets()), bench.problems.current()) == (["a A"], [])


def test_i1_batch_for_a_zone_that_was_deleted_is_under_way_no_more() -> None:
    bench = ZoneBench()

    def gone() -> None:
        raise ZoneGoneError("NoSuchHostedZone")

    bench.zone.before = gone
    bench.want("a", {"a A": ["10.0.0.1"]})
    assert bench.writer.step() == 60
    # Nothing is left to settle: neither a cluster's removal nor the next session has to wait for what can never land.
    assert (bench.announced(), bench.writer.clean, bench.writer.blocked) == ("", True, True)
    assert list(bench.open()) == ["a"]
    parted: list[str] = []
    bench.writer.without("prod", lambda: parted.append("prod"))
    bench.writer.step()
    assert parted == ["prod"]
    # It was none of that: everything goes on as if nothing had been sent.
    bench.zone.before = lambda: None
    bench.run(seconds=61)
    assert (sorted(bench.zone.sets()), bench.open(), bench.problems.current()) == (["a A"], {}, [])


def test_i2_batch_that_may_have_landed_before_its_zone_was_deleted_stays_under_way() -> None:
    bench = ZoneBench()
    answers: list[Exception] = [ZoneOutcomeUnknownError("no answer"), ZoneGoneError("NoSuchHostedZone")]

    def fail() -> None:
        raise answers.pop(0)

    bench.zone.before = fail
    bench.want("a", {"a A": ["10.0.0.1"]})
    wait = bench.writer.step()
    assert wait is not None
    bench.clock.advance(wait)
    assert bench.writer.step() == 60
    assert bench.announced() != ""
    assert not bench.writer.clean


# --- answers of the table that are lost ---


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("nth", [1, 2], ids=["announcing", "closing"])
def test_i1_a_lost_answer_of_the_table_delays_and_changes_nothing(nth: int, *, readable: bool, landed: bool) -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["10.0.0.1"]})
    place = ("inflight#0", "Z1")
    seen = 0

    def about_inflight(call: Call) -> bool:
        nonlocal seen
        if not any((action.key.partition, action.key.sort) == place for action in call.actions):
            return False
        seen += 1
        return seen == nth

    def lose(_call: Call) -> None:
        if not readable:
            bench.faults.fail(lambda call: bool(call.keys), StoreUnavailableError("not reached"), times=1)
        raise StoreOutcomeUnknownError("no answer")

    bench.faults.do(about_inflight, lose, after=landed)
    bench.run(seconds=60)
    assert bench.zone.sets() == {"a A": ("10.0.0.1",)}
    assert (bench.open(), bench.announced(), bench.writer.clean) == ({}, "", True)
    bench.want("b", {"b A": ["10.0.0.2"]})
    bench.run(seconds=60)
    assert sorted(bench.zone.sets()) == ["a A", "b A"]


def test_i1_an_inflight_item_that_is_not_as_known_is_read_again() -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["10.0.0.1"]})
    bench.run()
    bench.remember_inflight(epoch=EPOCH)  # its version moves, as by an answer that nobody heard of
    bench.want("b", {"b A": ["10.0.0.2"]})
    bench.run(seconds=60)
    assert sorted(bench.zone.sets()) == ["a A", "b A"]
    assert bench.writer.clean


def test_i2_nothing_is_sent_where_the_fence_was_raised() -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["10.0.0.1"]})
    raise_fence(bench.store, "prod", 6)
    with pytest.raises(NotMasterError):
        bench.run()
    assert bench.zone.sent == []


def test_i2_nothing_is_closed_where_the_fence_was_raised_after_the_batch() -> None:
    bench = ZoneBench()
    bench.want("a", {"a A": ["10.0.0.1"]})
    bench.zone.after = lambda: bench.put(Put(fence_key("prod"), {"epoch": 6}))
    with pytest.raises(NotMasterError):
        bench.run()
    assert (bench.writer.clean, list(bench.open())) == (False, ["a"])


# --- settling after an unclean end ---


def test_i2_settling_swaps_the_journal_though_there_is_nothing_to_write() -> None:
    bench = ZoneBench(settled=False)
    bench.remember_inflight("lost")
    value = bench.journal_of()
    bench.run()
    assert bench.zone.journal not in ("", value)
    assert (len(bench.zone.sent), bench.announced(), bench.writer.clean) == (1, "", True)


def test_settling_asks_nothing_of_a_zone_that_was_never_written() -> None:
    bench = ZoneBench(settled=False)
    bench.run()
    assert (bench.zone.sent, bench.writer.clean) == ([], True)


def test_settling_starts_over_where_a_late_batch_comes_between() -> None:
    bench = ZoneBench(settled=False)
    bench.remember_inflight("lost")
    bench.journal_of()

    def late() -> None:
        bench.zone.before = lambda: None
        bench.journal_of(batch="lost")

    bench.zone.before = late
    bench.run()
    assert (len(bench.zone.sent), bench.announced(), bench.writer.clean) == (2, "", True)


@pytest.mark.parametrize("landed", [True, False])
def test_settling_repeats_a_swap_without_an_answer(*, landed: bool) -> None:
    bench = ZoneBench(settled=False)
    bench.remember_inflight("lost")
    bench.journal_of()
    if landed:
        bench.zone.after = lambda: _once(bench, ZoneOutcomeUnknownError("no answer"))
    else:
        bench.zone.before = lambda: _once(bench, ZoneOutcomeUnknownError("no answer"))
    assert not bench.writer.clean
    bench.run(seconds=5)
    assert bench.writer.clean
