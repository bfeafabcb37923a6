"""``kubesync status --check``: which alarms have a cause."""

from typing import Any, Final

import pytest

from harness.wire.template import read_template, resources
from kubesync.cluster.keys import outcomes
from kubesync.session import health
from kubesync_local.documents import alarm_causes
from kubesync_local.documents.alarm_causes import Seen, causes_of, tried_for

NOON: Final = 1_800_014_400.0  # 2027-01-15T12:00:00Z
HELD: Final = {"state": "held", "expires_at": "2027-01-15T12:00:10.000Z"}
REFUSED: Final = {"last_error": "ERR_CONNECT_FAILED", "last_error_message": "refused"}


def a_listener(**changes: Any) -> dict[str, Any]:
    return {"listener": "services", "state": "works", "last_error_at": None, **REFUSED, **changes}


def a_cluster(**changes: Any) -> dict[str, Any]:
    return {"cluster": "prod", "state": "registered", "listeners": [], "held": [], "open": [], **changes}


def seen(failing_since: str = "", **changes: Any) -> Seen:
    status = {
        "shard": "0",
        "lease": HELD,
        "clusters": [a_cluster()],
        "zones": [],
        "named_upstreams": [],
        "lost": [],
        "turn": None,
    }
    since = {("prod", "services"): failing_since} if failing_since else {}
    return Seen({**status, **changes}, NOON, since)


def failing(at: str, first: str = "", **cluster: Any) -> Seen:
    row = a_listener(state="failing", last_error_at=f"2027-01-15T{at}.000Z")
    return seen(f"2027-01-15T{first}.000Z" if first else "", clusters=[a_cluster(listeners=[row], **cluster)])


OPEN: Final = {"service": "prod/shop/web", "reason": "the zone is full", "code": "ZoneFull"}
CASES: Final = [
    ("healthy", seen(), []),
    ("lease never held", seen(lease={"state": "never held", "expires_at": None}), ["NoMaster"]),
    ("between two sessions", seen(lease={"state": "released clean", "expires_at": "2027-01-15T11:58:00.000Z"}), []),
    ("no session for long", seen(lease={"state": "expired", "expires_at": "2027-01-15T11:56:59.000Z"}), ["NoMaster"]),
    (
        "no session for as long as its alarm waits",
        seen(lease={"state": "expired", "expires_at": "2027-01-15T11:35:00.000Z", "no_master_minutes": 25}),
        [],
    ),
    (
        "no session for longer than its alarm waits",
        seen(lease={"state": "expired", "expires_at": "2027-01-15T11:34:59.000Z", "no_master_minutes": 25}),
        ["NoMaster"],
    ),
    (
        "another shard without a session for as long as its alarm waits",
        seen(
            other_shards=[
                {
                    "shard": "1",
                    "lease": {"state": "expired", "expires_at": "2027-01-15T11:35:00.000Z", "no_master_minutes": 25},
                }
            ]
        ),
        [],
    ),
    (
        "listener works",
        seen(clusters=[a_cluster(listeners=[a_listener(last_error_at="2027-01-15T11:00:00.000Z")])]),
        [],
    ),
    ("fails since two minutes", failing("11:59:30", "11:57:01"), []),
    ("fails since three minutes", failing("11:59:30", "11:57:00"), ["ListenersFailing"]),
    ("fails since ten minutes", failing("11:59:30", "11:50:00"), ["ListenersFailing"]),
    ("failed ten minutes ago, nothing since", failing("11:50:00"), ["ListenersFailing"]),
    ("fails, but is disabled", failing("11:50:00", state="disabled"), []),
    ("zone", seen(zones=[{"zone": "Z1", "name": "a.b", "problem": "full", "since": "x"}]), ["ZoneBlocked"]),
    ("zone without problem", seen(zones=[{"zone": "Z1", "name": "a.b", "problem": None, "since": None}]), []),
    (
        "held",
        seen(clusters=[a_cluster(held=[{"listener": "services", "deletions": 1, "release": "kubesync resync"}])]),
        ["HeldDeletions"],
    ),
    ("open, tried for two and a half minutes", seen(clusters=[a_cluster(open=[{**OPEN, "attempts": 6}])]), []),
    (
        "open since two minutes",
        seen(clusters=[a_cluster(open=[{**OPEN, "attempts": 9, "since": "2027-01-15T11:57:30.000Z"}])]),
        [],
    ),
    (
        "open since three minutes, and never tried",
        seen(clusters=[a_cluster(open=[{**OPEN, "attempts": 0, "since": "2027-01-15T11:57:00.000Z"}])]),
        ["OldestOpen"],
    ),
    ("open, tried for five minutes", seen(clusters=[a_cluster(open=[{**OPEN, "attempts": 7}])]), ["OldestOpen"]),
    (
        "a conflict, about which a person decides",
        seen(clusters=[a_cluster(open=[{**OPEN, "attempts": 30, "code": "Conflict"}])]),
        [],
    ),
    (
        "lost",
        seen(lost=[{"cluster": "prod", "reason": "r"}, {"cluster": "", "reason": "s"}]),
        ["RegistrationsLost"] * 2,
    ),
    ("set aside", seen(clusters=[a_cluster(open=[{**OPEN, "attempts": 0, "code": "SetAside"}])]), ["KeysSetAside"]),
    ("many open", seen(clusters=[a_cluster(open=[{**OPEN, "attempts": 9}] * 30)]), ["OldestOpen"] * 4),
    (
        "named upstream",
        seen(named_upstreams=[{"name": "web", "code": "MissingUpstream", "message": "m", "advice": "a"}]),
        ["NamedUpstreams"],
    ),
]


@pytest.mark.parametrize(("given", "causes"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_causes_of_alarms(given: Seen, causes: list[str]) -> None:
    assert [each.cause for each in causes_of(given)] == causes


def test_cause_says_what_since_when_and_what_to_do() -> None:
    (cause,) = causes_of(failing("11:59:30", "11:50:00"))

    assert cause.document() == {
        "cause": "ListenersFailing",
        "subject": "prod services",
        "message": "failing since 2027-01-15T11:50:00.000Z: ERR_CONNECT_FAILED: refused",
        "then": "`kubesync cluster check prod`",
    }


def test_minutes_are_those_of_the_alarms() -> None:
    template = read_template()
    late = resources(template, "AWS::CloudWatch::Alarm")["ChangesLateAlarm"]["Properties"]

    assert alarm_causes.ALARM_SECONDS == health.FAILING_SECONDS == late["Threshold"] == 180
    assert template["Parameters"]["NoMasterMinutes"]["Default"] * 60 == alarm_causes.ALARM_SECONDS


def test_tries_take_five_minutes_from_the_seventh_on() -> None:
    for failures in range(1, 12):
        assert alarm_causes.RETRIES.without_jitter(failures) == outcomes.RETRIES.without_jitter(failures)
    assert [tried_for(attempts) for attempts in (0, 1, 2, 6, 7)] == [0, 0, 5, 155, 315]
