"""Which ends of credentials count, how many days are left, and the words for it."""

import pytest

from kubesync.domain.credential_ends import Validity, days_left, end_in_words, end_that_counts

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC
DAY = 86_400.0


@pytest.mark.parametrize(
    ("starts", "ends", "counts"),
    [
        (-10 * DAY, 5 * DAY, True),  # 15 days as a whole
        (-10 * DAY, 5 * DAY - 1, False),
        (-3000.0, 600.0, False),  # the kubelet renews it every hour
        (-3600.0, 0.0, True),
        (-3600.0, -60.0, True),
        (None, 60.0, True),
        (None, -60.0, True),
        (-400 * DAY, -DAY, True),
    ],
)
def test_short_lived_credential_counts_only_once_it_has_ended(starts: float | None, ends: float, counts: bool) -> None:
    validity = Validity(NOW + ends, None if starts is None else NOW + starts)
    assert end_that_counts(validity, NOW) == (NOW + ends if counts else None)


@pytest.mark.parametrize(
    ("ends", "days", "words"),
    [
        (30 * DAY, 30, "ends in 30 days (2027-02-14)"),
        (14 * DAY, 14, "ends in 14 days (2027-01-29)"),
        (14 * DAY - 1, 13, "ends in 13 days (2027-01-29)"),
        (2 * DAY - 1, 1, "ends in 1 day (2027-01-17)"),
        (DAY - 1, 0, "ends in less than a day (2027-01-16)"),
        (1.0, 0, "ends in less than a day (2027-01-15)"),
        (0.0, 0, "ended less than a day ago (2027-01-15)"),
        (-1.0, -1, "ended less than a day ago (2027-01-15)"),
        (-DAY, -1, "ended 1 day ago (2027-01-14)"),
        (-3.5 * DAY, -4, "ended 3 days ago (2027-01-11)"),
    ],
)
def test_days_and_words(ends: float, days: int, words: str) -> None:
    assert days_left(NOW + ends, NOW) == days
    assert end_in_words(NOW + ends, NOW) == words
