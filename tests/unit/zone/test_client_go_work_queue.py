"""What client-go's work queue tests ask of a queue, asked of ours: a zone's queue of open keys (docs/client-go-behaviours.md)."""

from __future__ import annotations

import threading

import pytest

from harness.by_hand.zone_bench import JOURNAL, ZoneBench
from kubesync.cluster.keys.outcomes import RETRIES
from kubesync.domain.errors import ZoneThrottledError

NO_ADDRESS = "not an address"


def written(bench: ZoneBench, *, beyond: int = 0) -> list[list[str]]:
    """Names per batch, each as often as it was deleted or created, in the batches after the first so many."""
    return [
        [change.key.name.removesuffix(".example.com") for change in batch if change.key != JOURNAL]
        for batch in bench.zone.sent[beyond:]
    ]


def while_processing(bench: ZoneBench, act: object) -> None:
    """Run something once, while the next batch is on its way."""

    def once() -> None:
        bench.zone.before = lambda: None
        assert callable(act)
        act()

    bench.zone.before = once


# --- util/workqueue/queue_test.go ---


def test_basic_keys_added_by_many_threads_at_once_are_all_written_once() -> None:
    bench = ZoneBench()
    for number in range(40):
        bench.want(f"s{number}", {f"s{number} A": [f"10.0.0.{number + 1}"]})
    keys = [bench.key(f"s{number}") for number in range(40)]
    ready = threading.Barrier(5)

    def produce() -> None:
        ready.wait()
        for key in keys:
            bench.writer.add([key])

    producers = [threading.Thread(target=produce) for _ in range(5)]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    bench.run()
    assert sorted(name for batch in written(bench) for name in batch) == sorted(key.name for key in keys)
    assert len(bench.zone.sent) == 1


def test_collapse_key_added_twice_is_written_once() -> None:
    bench = ZoneBench()
    bench.want("bar", {"bar A": ["10.0.0.1"]})
    bench.writer.add([bench.key("bar"), bench.key("bar")])
    bench.writer.add([bench.key("bar")])
    bench.run()
    assert written(bench) == [["bar"]]
    assert bench.writer.step() is None


def test_collapse_while_processing_key_added_twice_is_written_once_more_when_the_batch_is_done() -> None:
    bench = ZoneBench()
    bench.want("foo", {"foo A": ["10.0.0.1"]})

    def change_twice() -> None:
        bench.want("foo", {"foo A": ["10.0.0.2"]})
        bench.want("foo", {"foo A": ["10.0.0.3"]})
        assert len(bench.zone.sent) == 1, "nobody else writes the key while its batch is on its way"

    while_processing(bench, change_twice)
    bench.run()
    assert written(bench) == [["foo"], ["foo", "foo"]]
    assert bench.zone.sets() == {"foo A": ("10.0.0.3",)}
    assert bench.writer.step() is None


def test_add_while_processing_without_a_change_writes_nothing_more() -> None:
    bench = ZoneBench()
    bench.want("foo", {"foo A": ["10.0.0.1"]})
    while_processing(bench, lambda: bench.writer.add([bench.key("foo")]))
    bench.run()
    assert written(bench) == [["foo"]]
    assert bench.writer.step() is None


def test_reinsert_key_that_was_done_is_written_again_when_it_changes() -> None:
    bench = ZoneBench()
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1"):
        bench.want("foo", {"foo A": [address]})
        bench.run()
    assert written(bench) == [["foo"], ["foo", "foo"], ["foo", "foo"]]
    assert (bench.zone.sets(), bench.open()) == ({"foo A": ("10.0.0.1",)}, {})


def test_garbage_collection_nothing_is_remembered_of_a_key_that_is_done() -> None:
    bench = ZoneBench()
    bench.want("foo", {"foo A": ["10.0.0.1"]})
    bench.want("bad", {"bad A": [NO_ADDRESS]})
    bench.writer.add([bench.key("foo"), bench.key("bad")], since=bench.clock.monotonic())
    bench.run()
    bench.want("bad", {"bad A": ["10.0.0.2"]})
    bench.writer.add([bench.key("foo")], since=bench.clock.monotonic())
    bench.run()
    assert bench.open() == {}
    queue = bench.writer._queue
    assert (dict(queue._queue), queue._since) == ({}, {})


def test_lag_of_a_change_does_not_count_from_an_event_that_led_to_nothing() -> None:
    bench = ZoneBench()
    bench.want("foo", {"foo A": ["10.0.0.1"]})
    bench.run()
    bench.writer.add([bench.key("foo")], since=bench.clock.monotonic())  # changed and changed back
    bench.run()
    bench.clock.advance(300)
    bench.want("foo", {"foo A": ["10.0.0.2"]})
    bench.writer.add([bench.key("foo")], since=bench.clock.monotonic())
    bench.clock.advance(1)
    bench.run()
    assert list(bench.writer.report.lags) == [1.0]


# --- util/workqueue/delaying_queue_test.go ---


def test_deduping_key_that_waits_is_tried_once_at_its_time_however_often_it_is_added() -> None:
    bench = ZoneBench()
    bench.want("foo", {"foo A": [NO_ADDRESS]})
    bench.run()
    tried = len(bench.zone.sent)
    opened = bench.state("foo").opened
    assert opened is not None
    for _ in range(5):
        bench.writer.add([bench.key("foo"), bench.key("foo")])
        bench.run(seconds=0.5)
    assert len(bench.zone.sent) == tried, "not before its time"
    bench.clock.advance(opened.retry_at - bench.clock.epoch() + 0.01)
    bench.run()
    assert written(bench, beyond=tried) == [["foo"]]


def test_add_two_fire_early_a_key_that_waits_for_less_is_tried_first() -> None:
    bench = ZoneBench()
    bench.want("slow", {"slow A": [NO_ADDRESS]})
    bench.run(seconds=7)  # refused at once and after about 5 s; next in 10 s
    tried = len(bench.zone.sent)
    assert tried == 2
    bench.want("quick", {"quick A": [NO_ADDRESS]})
    bench.run()
    slow, quick = bench.state("slow").opened, bench.state("quick").opened
    assert slow is not None
    assert quick is not None
    wait = bench.writer.step()
    assert wait is not None
    assert bench.clock.epoch() + wait == pytest.approx(min(slow.retry_at, quick.retry_at), abs=0.01)
    bench.run(seconds=60)
    new, *later = written(bench, beyond=tried)
    assert new == ["quick"], "at once, as it is new"
    first, second = ("slow", "quick") if slow.retry_at < quick.retry_at else ("quick", "slow")
    assert first in later[0]
    assert any(second in batch for batch in later)


def test_copy_shifting_keys_of_different_times_are_all_tried_once_these_have_passed() -> None:
    bench = ZoneBench()
    for name in ("foo", "bar", "baz"):
        bench.want(name, {f"{name} A": [NO_ADDRESS]})
        bench.run(seconds=1)
    tried = len(bench.zone.sent)
    bench.clock.advance(7)  # the first wait is 5 s and a quarter of jitter at most
    bench.run()
    assert sorted(name for batch in written(bench, beyond=tried) for name in set(batch)) == ["bar", "baz", "foo"]


# --- util/workqueue/default_rate_limiters_test.go, rate_limiting_queue_test.go ---


def test_item_exponential_failure_rate_limiter_waits_double_and_are_forgotten_after_a_success() -> None:
    bench = ZoneBench()
    bench.want("one", {"one A": [NO_ADDRESS]})
    bench.want("two", {"two A": ["10.0.0.2"]})
    waits: list[float] = []
    for attempts in (1, 2, 3, 4):
        bench.run()
        opened = bench.state("one").opened
        assert opened is not None
        assert opened.attempts == attempts
        waits.append(opened.retry_at - bench.clock.epoch())
        bench.clock.advance(waits[-1] + 0.01)
    assert all(0.75 * base <= wait <= 1.25 * base for base, wait in zip((5, 10, 20, 40), waits, strict=True)), waits
    assert bench.state("two").opened is None, "the other never waits"
    bench.want("one", {"one A": ["10.0.0.1"]})
    bench.run()
    assert bench.state("one").opened is None
    bench.want("one", {"one A": [NO_ADDRESS]})
    bench.run()
    opened = bench.state("one").opened
    assert opened is not None
    assert opened.attempts == 1
    assert opened.retry_at - bench.clock.epoch() <= 1.25 * 5


@pytest.mark.parametrize("attempts", [9, 17, 65, 1_000, 2_000, 10**9])
def test_item_exponential_failure_rate_limiter_overflow_of_a_key_ends_at_a_quarter_of_an_hour(attempts: int) -> None:
    assert 0.75 * 900 <= RETRIES.delay(attempts, 0.0) <= RETRIES.delay(attempts, 1.0) <= 1.25 * 900


def test_item_exponential_failure_rate_limiter_overflow_of_a_zone_ends_at_half_a_minute() -> None:
    bench = ZoneBench()

    def throttle() -> None:
        raise ZoneThrottledError("Rate exceeded")

    bench.zone.before = throttle
    bench.want("foo", {"foo A": ["10.0.0.1"]})
    waits: list[float] = []
    for _ in range(1_500):
        wait = bench.writer.step()
        assert wait is not None
        waits.append(wait)
        bench.clock.advance(wait)
    assert max(waits) <= 45
    assert waits[-1] >= 15
    bench.zone.before = lambda: None
    bench.run(seconds=60)
    assert bench.zone.sets() == {"foo A": ("10.0.0.1",)}
