"""When the certificates and tokens of a cluster's connection end, and which of these ends a person must know."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

ALARM_DAYS: Final = 14
"""Fewer days left raise the alarm ``CredentialsEnd``."""
SHOWN_DAYS: Final = 30
"""Fewer days left are shown by ``kubesync status``."""

_DAY: Final = 86_400.0
# Longer than the alarm's 14 days: what is always issued for less would alarm for ever.
_RENEWED_SECONDS: Final = 15 * _DAY


class Credential(StrEnum):
    """What a connection depends on, in words for people."""

    CLIENT_CERTIFICATE = "client certificate"
    CA = "CA"
    SERVER_CERTIFICATE = "server certificate"
    TOKEN = "token"  # noqa: S105 - a word, no secret


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when something is valid, in epoch seconds. ``starts_at`` None: unknown."""

    ends_at: float
    starts_at: float | None = None


def end_that_counts(validity: Validity, now: float) -> float | None:
    """The end of a credential, if a person must know it. None: no person must, because something renews the credential in time.

    whole validity        ended    counts
    --------------        -----    ------
    15 days or more       any      yes
    unknown               any      yes
    less than 15 days     no       no: something renews it all the time, such as the kubelet
    less than 15 days     yes      yes: nothing has renewed it
    """
    renewed = validity.starts_at is not None and validity.ends_at - validity.starts_at < _RENEWED_SECONDS
    return None if renewed and validity.ends_at > now else validity.ends_at


def days_left(ends_at: float, now: float) -> int:
    """Whole days until an end, rounded down: 0 on the last day, negative after the end."""
    return math.floor((ends_at - now) / _DAY)


def end_in_words(ends_at: float, now: float) -> str:
    """Such as ``ends in 12 days (2026-12-05)``. The date is in UTC."""
    date = f"({datetime.fromtimestamp(ends_at, UTC):%Y-%m-%d})"
    days = int(abs(ends_at - now) // _DAY)
    span = f"{days} day{'' if days == 1 else 's'}" if days else "less than a day"
    return f"ends in {span} {date}" if ends_at > now else f"ended {span} ago {date}"
