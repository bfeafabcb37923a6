"""I7: what waits in a zone's queue is not read again and again."""

import pytest

from harness.deployment import Deployment
from harness.seen.builders import a_service


@pytest.mark.thorough
def test_i7_thousands_of_waiting_keys_are_not_read_again_and_again() -> None:
    waiting_keys_are_read_seldom(waiting=4_500, reads=100)


def test_i7_more_waiting_keys_than_a_session_keeps_are_not_read_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubesync.cluster.keys.key_states.CACHED_KEYS", 400)
    waiting_keys_are_read_seldom(waiting=450, reads=20)


def waiting_keys_are_read_seldom(*, waiting: int, reads: int) -> None:
    """A full scan of the queue at each step drove every key out of the cache before it came to it: 95,000 keys a second."""
    deployment = Deployment(settings={"batch_elements": 1000})
    names = [f"s{number:04d}" for number in range(waiting)]
    deployment.refuse(*names)
    for name in names:
        deployment.apply(name, a_service(ports=()))
    deployment.start()
    deployment.pass_time(2.0)
    assert len(deployment.open()) == waiting
    running = deployment.running
    assert running is not None
    before = len(running.gate.calls)
    deployment.pass_time(2.0)  # the first of them are tried again
    asked = [call.what for call in running.gate.calls[before:] if call.what.startswith("batch_get_item state")]
    assert 0 < len(asked) < reads, "at most a hundred keys each"
    deployment.close()
