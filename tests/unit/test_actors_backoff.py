"""Delays double with each failure, up to a cap, and are spread by jitter."""

import pytest
from hypothesis import given, strategies as st

from kubesync.actors.backoff import Backoff


def test_delay_doubles_up_to_the_cap() -> None:
    backoff = Backoff(initial=0.5, cap=3.0)
    assert [backoff.delay(failures) for failures in (1, 2, 3, 4, 5)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_delay_without_jitter_does_not_depend_on_the_fraction() -> None:
    assert Backoff(initial=5.0, cap=300.0).delay(2, 0.9) == 10.0


@pytest.mark.parametrize(("fraction", "delay"), [(0.0, 1.0), (0.5, 2.0), (1.0, 3.0)])
def test_jitter_spreads_a_delay_between_least_and_most(fraction: float, delay: float) -> None:
    assert Backoff(initial=1.0, cap=10.0, least=0.5, most=1.5).delay(2, fraction) == delay


@given(failures=st.integers(1, 10**9), fraction=st.floats(0.0, 1.0))
def test_delay_stays_within_its_bounds_however_often_it_failed(failures: int, fraction: float) -> None:
    backoff = Backoff(initial=5.0, cap=900.0, least=0.75, most=1.25)
    assert 0.75 * 5.0 <= backoff.delay(failures, fraction) <= 1.25 * 900.0
    assert backoff.without_jitter(failures) <= backoff.without_jitter(failures + 1)
