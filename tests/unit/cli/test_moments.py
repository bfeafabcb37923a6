"""Times and service keys as people type them."""

import argparse

import pytest

from kubesync.domain.errors import UsageError
from kubesync.domain.objects import ObjectKey
from kubesync_local.cli.parser import days, moment
from kubesync_local.commands.show.service_keys import parse_service_key

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("30s", NOW - 30),
        ("90m", NOW - 5_400),
        ("2h", NOW - 7_200),
        ("1d12h", NOW - 129_600),
        ("2w", NOW - 1_209_600),
        ("99999d", 0.0),
        ("2027-01-15T08:00:00Z", NOW),
        ("2027-01-15T09:00:00+01:00", NOW),
        ("2027-01-15T08:00", NOW),
        ("2027-01-15", NOW - 8 * 3_600),
        ("today", NOW - 8 * 3_600),
        ("yesterday", NOW - 32 * 3_600),
    ],
)
def test_moment_is_a_duration_back_or_a_time(text: str, epoch: float) -> None:
    assert moment(text).epoch(NOW) == epoch


@pytest.mark.parametrize("text", ["", "h", "2", "2 h", "-2h", "2y", "noon", "0001-01-01", "2027-02-30"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is neither a duration such as"):
        moment(text)


def test_days_lie_back() -> None:
    assert days("7").epoch(NOW) == NOW - 604_800


def test_service_key_may_have_slashes_around() -> None:
    assert parse_service_key(" /prod/shop/web/ ") == ObjectKey("prod", "shop", "web")


@pytest.mark.parametrize(
    "text", ["", "web", "shop/web", "a/b/c/d", "prod/shop/Web", "prod/-a/web", "prod/shop/" + 64 * "a"]
)
def test_other_forms_are_no_service_keys(text: str) -> None:
    with pytest.raises(UsageError, match="is not a service key"):
        parse_service_key(text)
