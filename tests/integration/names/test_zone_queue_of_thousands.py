"""I7: what waits in a zone's queue is not read again and again."""

from __future__ import annotations

import pytest

from harness.by_hand.zone_bench import ZoneBench


@pytest.mark.thorough
def test_i7_thousands_of_waiting_keys_are_not_read_again_and_again() -> None:
    waiting_keys_are_read_seldom(waiting=4_500, reads=2_000)


def test_i7_more_waiting_keys_than_a_ledger_keeps_are_not_read_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubesync.cluster.keys.key_states.CACHED_KEYS", 400)
    waiting_keys_are_read_seldom(waiting=450, reads=200)


def waiting_keys_are_read_seldom(*, waiting: int, reads: int) -> None:
    """A full scan of the queue at each step drove every key out of the cache before it came to it: 95,000 keys a second."""
    bench = ZoneBench()
    for number in range(waiting):
        bench.want(f"s{number:04d}", {f"s{number:04d} A": ["no address"]})
    while not bench.writer.step():
        pass
    bench.store.calls.clear()
    begun = bench.clock.monotonic()
    while bench.clock.monotonic() - begun < 2.0:
        bench.clock.advance(bench.writer.step() or 0.001)
    assert sum(len(call.keys) for call in bench.store.calls if call.operation == "batch_get_item") < reads
