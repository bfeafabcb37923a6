"""I7: what waits in a zone's queue is not read again and again."""

from __future__ import annotations

from harness.by_hand.zone_bench import ZoneBench


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
