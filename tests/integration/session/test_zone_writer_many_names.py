"""A zone writer with hundreds of names at once: the fewest batches, and few more where some changes are bad (I4)."""

from __future__ import annotations

import math

import pytest

from kubesync_local.standins.route53.zone.model import Limits
from support.zone_bench import ZoneBench

N = 499  # names that fit one batch beside the journal swap: 998 elements when they change


def many(bench: ZoneBench, bad: set[int], names: int = N) -> None:
    for number in range(names):
        value = f"no address {number}" if number in bad else f"10.0.{number // 250}.{number % 250 + 1}"
        bench.want(f"s{number:03d}", {f"s{number:03d} A": [value]})


@pytest.mark.parametrize(
    "bad",
    [{498}, {7, 250}, pytest.param({3, 4, 100, 333, 498}, marks=pytest.mark.thorough)],
    ids=lambda bad: f"{len(bad)} bad",
)
def test_i4_culprits_that_no_message_explains_are_found_in_k_log_n_batches(bad: set[int]) -> None:
    bench = ZoneBench(limits=Limits(messages=0))
    many(bench, bad)
    bench.run()
    good = {f"s{number:03d} A" for number in set(range(N)) - bad}
    assert bench.zone.sets().keys() == good
    assert set(bench.open()) == {f"s{number:03d}" for number in bad}
    # Each culprit halves log2(n) times; every halving sends two batches, one of which it shares with nobody.
    assert len(bench.zone.sent) <= 1 + 2 * len(bad) * math.ceil(math.log2(N))


def test_i4_culprits_that_messages_name_take_two_batches() -> None:
    bench = ZoneBench()
    many(bench, {3, 4, 100, 333, 498})
    bench.run()
    assert len(bench.zone.sets()) == N - 5
    assert len(bench.zone.sent) == 2
    assert all("Route 53 rejects it: " in reason for reason in bench.open().values())


def test_i4_some_culprits_are_named_and_the_rest_is_found() -> None:
    bench = ZoneBench(limits=Limits(messages=1))
    many(bench, {3, 4, 100})
    bench.run()
    assert len(bench.zone.sets()) == N - 3
    assert len(bench.zone.sent) == 4


def test_n_changes_take_the_fewest_batches() -> None:
    bench = ZoneBench()
    many(bench, set(), names=1200)
    bench.run()
    assert [len(batch) for batch in bench.zone.sent] == [999, 204]
    for number in range(1200):
        bench.want(f"s{number:03d}", {f"s{number:03d} A": ["10.9.9.9"]})
    before = len(bench.zone.sent)
    bench.run()
    assert len(bench.zone.sent) - before == math.ceil(2 * 1200 / 998)
    assert all(len(batch) <= 1000 for batch in bench.zone.sent)


def test_i7_more_waiting_keys_than_a_ledger_keeps_are_not_read_again_and_again() -> None:
    """A full scan of the queue at each step drove every key out of the cache before it came to it: 95,000 keys a second."""
    bench = ZoneBench()
    for number in range(4_500):
        bench.want(f"s{number:04d}", {f"s{number:04d} A": ["no address"]})
    while not bench.writer.step():
        pass
    bench.store.calls.clear()
    begun = bench.clock.monotonic()
    while bench.clock.monotonic() - begun < 2.0:
        bench.clock.advance(bench.writer.step() or 0.001)
    assert sum(len(call.keys) for call in bench.store.calls if call.operation == "batch_get_item") < 2_000
