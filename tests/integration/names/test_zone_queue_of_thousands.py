"""I7: what waits in a zone's queue is not read again and again."""

from __future__ import annotations

from harness.deployment import Deployment
from harness.seen.builders import a_service


def test_i7_more_waiting_keys_than_a_session_keeps_are_not_read_again_and_again() -> None:
    """A full scan of the queue at each step drove every key out of the cache before it came to it: 95,000 keys a second."""
    deployment = Deployment(settings={"batch_elements": 1000})
    names = [f"s{number:04d}" for number in range(4_500)]
    deployment.refuse(*names)
    for name in names:
        deployment.apply(name, a_service(ports=()))
    deployment.start()
    deployment.pass_time(2.0)
    assert len(deployment.open()) == 4_500
    running = deployment.running
    assert running is not None
    before = len(running.gate.calls)
    deployment.pass_time(2.0)  # the first of them are tried again
    reads = [call.what for call in running.gate.calls[before:] if call.what.startswith("batch_get_item state")]
    assert 0 < len(reads) < 100, "at most a hundred keys each"
    deployment.close()
