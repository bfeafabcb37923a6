import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.reflecting import RecordedPauses
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.reflector import ReflectorBackoff

POLICY = ReflectorPolicy()


def test_base_doubles_from_0_8_s_to_30_s() -> None:
    backoff = ReflectorBackoff(POLICY, RecordedPauses(ManualClock()))
    assert [backoff.next_delay() for _ in range(8)] == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


def test_jitter_adds_up_to_the_base_again() -> None:
    backoff = ReflectorBackoff(POLICY, RecordedPauses(ManualClock(), jitter=0.75))
    assert [backoff.next_delay() for _ in range(2)] == pytest.approx([1.4, 2.8])


def test_two_quiet_minutes_start_over() -> None:
    clock = ManualClock()
    backoff = ReflectorBackoff(POLICY, RecordedPauses(clock))
    backoff.next_delay()
    clock.advance(0.8 + 119.9)
    assert backoff.next_delay() == 1.6
    clock.advance(1.6 + 120.0)
    assert backoff.next_delay() == 0.8


@pytest.mark.parametrize(("asked", "waits"), [(0.0, 0.8), (5.0, 5.0), (3600.0, 120.0), (None, 0.8)])
def test_retry_after_is_believed_within_bounds(asked: float | None, waits: float) -> None:
    assert ReflectorBackoff(POLICY, RecordedPauses(ManualClock())).next_delay(asked) == waits


def test_base_stays_at_its_cap_after_any_number_of_failures() -> None:
    """client-go: TestItemExponentialFailureRateLimiterOverFlow, TestReflectorListAndWatchInitConnBackoff."""
    backoff = ReflectorBackoff(POLICY, RecordedPauses(ManualClock(), jitter=0.999))
    delays = [backoff.next_delay() for _ in range(5_000)]
    assert max(delays) == delays[-1] == pytest.approx(59.97)
