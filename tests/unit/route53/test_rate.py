import threading

import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.aws.route53.rate import TokenBucket


def test_burst_is_free_then_the_rate_applies() -> None:
    bucket = TokenBucket(rate=5, burst=3, clock=ManualClock())
    assert [bucket.take() for _ in range(5)] == [0, 0, 0, pytest.approx(0.2), pytest.approx(0.4)]


def test_tokens_come_back_with_time_but_never_more_than_the_burst() -> None:
    clock = ManualClock()
    bucket = TokenBucket(rate=5, burst=3, clock=clock)
    bucket.take(3)
    clock.advance(0.2)
    assert bucket.take() == 0
    clock.advance(3_600)
    assert bucket.take(3) == 0
    assert bucket.take() == pytest.approx(0.2)


def test_more_than_the_burst_is_lent_and_delays_the_next() -> None:
    clock = ManualClock()
    bucket = TokenBucket(rate=100, burst=100, clock=clock)
    assert bucket.take(1_000) == pytest.approx(9.0)
    clock.advance(9.0)
    assert bucket.take(50) == pytest.approx(0.5)


def test_threads_together_get_no_more_than_there_is() -> None:
    bucket = TokenBucket(rate=1, burst=100, clock=ManualClock())
    waits: list[float] = []
    lock = threading.Lock()

    def take() -> None:
        for _ in range(50):
            wait = bucket.take()
            with lock:
                waits.append(wait)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == pytest.approx([0.0] * 100 + [float(n) for n in range(1, 101)])


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_bucket_without_sense_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="token bucket"):
        TokenBucket(rate, burst, ManualClock())
