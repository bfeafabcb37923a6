"""The screen of ``kubesync status --watch``."""

from typing import Any

import pytest

from kubesync_local.commands.show.watch_screen import ClusterView, View, screen
from kubesync_local.documents.lag import LagMinute

NOON = 1_800_014_400.0  # 2027-01-15T12:00:00Z
WORKS = {
    "listener": "services", "state": "works", "works_since": "2027-01-15T11:55:00.000Z", "last_error": None,
    "last_error_at": None, "last_error_message": None, "ended": None, "ended_at": None,
}  # fmt: skip
FAILS = {
    **WORKS, "state": "failing", "works_since": None, "last_error": "ERR_CONNECT_FAILED",
    "last_error_at": "2027-01-15T11:59:50.000Z", "last_error_message": "10.0.0.1:6443: connection refused",
}  # fmt: skip
HELD = {"state": "held", "holder": "a1", "session_ends_at": "2027-01-15T12:10:00.000Z"}
ADDED = {
    "at": "2027-01-15T11:59:00.000Z", "kind": "record", "what": "record web.example.com A in Z1", "upstream": None,
    "from": None, "to": {"ttl": 30, "values": ["10.0.0.1"]}, "message": None,
}  # fmt: skip
REFUSED = {
    **ADDED, "kind": "refused", "what": "refused api.example.com A in Z1", "message": "a foreign record set stands there",
}  # fmt: skip


def a_view(**changes: Any) -> View:
    prod = ClusterView("prod", "registered", [WORKS, {**WORKS, "listener": "endpointslices"}], [])
    fields: dict[str, Any] = {
        "place": "main", "now": NOON, "lease": HELD, "clusters": [prod], "zone_problems": [], "lag": [], "changes": [],
    }  # fmt: skip
    return View(**{**fields, **changes})


def drawn(view: View, width: int = 80, height: int = 24) -> list[str]:
    return [line.plain.rstrip() for line in screen(view, width, height)]


def test_all_is_well() -> None:
    assert drawn(a_view(changes=[ADDED, REFUSED])) == [
        "12:00:00 UTC  main  session a1 runs until 12:10:00",
        "lag: no change has landed within the last hour",
        "",
        "prod  in sync  watching for 5 min",
        "",
        "last changes",
        "11:59:00  + web.example.com A 10.0.0.1 ttl 30",
        "11:59:00  ! api.example.com A a foreign record set stands there",
    ]


def test_refusal_says_its_name_once() -> None:
    why = "api.example.com CNAME stands there and is not ours"
    assert drawn(a_view(changes=[{**REFUSED, "message": why}]))[-1] == f"11:59:00  ! {why}"


def test_what_needs_somebody_comes_first() -> None:
    staging = ClusterView(
        "staging", "registered", [FAILS], [("staging/shop/web", NOON - 600, "Throttling: Rate exceeded")]
    )
    clusters = [*a_view().clusters, staging]
    lease = {"state": "expired", "holder": "a1", "session_ends_at": None}
    assert drawn(a_view(clusters=clusters, lease=lease, zone_problems=["zone example.com: access is denied"])) == [
        "12:00:00 UTC  main  the lease of session a1 has expired",
        "lag: no change has landed within the last hour",
        "",
        "staging  1 pending  failing: ERR_CONNECT_FAILED 10 s ago: 10.0.0.1:6443:",
        "  connection refused",
        "prod  in sync  idle: the last session did not say how it ended",
        "",
        "pending, and why",
        "! zone example.com: access is denied",
        "staging/shop/web  10 min  Throttling: Rate exceeded",
    ]


def test_lag_is_a_line_of_bars_with_the_usual_and_the_slowest() -> None:
    minutes = [LagMinute(int(NOON) - 60 * age, 0.5 + age / 10, slow, 4) for age, slow in ((0, 1.0), (1, 4.0), (3, 0.2))]
    line = drawn(a_view(lag=minutes))[1]
    assert line.startswith("lag ")
    assert line.endswith("▁ █▂  12 changes, usual 0.60 s, slowest 4.00 s at 11:59")


@pytest.mark.parametrize(("width", "height"), [(80, 23), (40, 10), (160, 50)])
def test_screen_is_never_larger_than_the_terminal(width: int, height: int) -> None:
    opened = [(f"prod/shop/a-service-with-a-long-name-{n}", NOON - n, "waits " * 30) for n in range(100)]
    clusters = [ClusterView(f"cluster-{n:03}", "registered", [FAILS, WORKS], opened) for n in range(200)]
    lag = [LagMinute(int(NOON) - 60 * age, 0.5, 1.0) for age in range(60)]
    view = a_view(clusters=clusters, lag=lag, changes=[ADDED] * 40, zone_problems=["zone x: " + "y" * 500])
    lines = drawn(view, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "pending, and why" in lines
    assert "last changes" in lines
    assert any(line.startswith("... and ") and line.endswith("lines of clusters") for line in lines)


WHY = (
    "www.prod.example.com A stands there and is not ours (192.0.2.9): make both equal and take it over (`kubesync recover`), remove it, or "
    "choose another name"
)


def test_reason_is_read_to_its_end_and_takes_its_room_from_the_changes() -> None:
    prod = ClusterView("prod", "registered", [WORKS], [(f"prod/shop/web-{n}", NOON - 600 + n, WHY) for n in range(3)])
    lines = drawn(a_view(clusters=[prod], changes=[ADDED] * 40), 80, 23)

    assert lines[3:] == [
        "prod  3 pending  watching for 5 min",
        "",
        "pending, and why",
        *[
            line
            for n in range(3)
            for line in (
                f"prod/shop/web-{n}  {'10 min' if n == 0 else '9 min'}  www.prod.example.com A stands there and is not ours",
                "  (192.0.2.9): make both equal and take it over (`kubesync recover`), remove it,",
                "  or choose another name",
            )
        ],
        "",
        "last changes",
        *["11:59:00  + web.example.com A 10.0.0.1 ttl 30"] * 5,
        "... and 35 more",
    ]
    assert len(lines) == 23


def test_wide_terminal_needs_fewer_lines_for_a_reason() -> None:
    prod = ClusterView("prod", "registered", [WORKS], [("prod/shop/web", NOON - 600, WHY)])
    lines = drawn(a_view(clusters=[prod]), 160, 50)

    assert lines[6:] == [
        f"prod/shop/web  10 min  {WHY.removesuffix(' choose another name')}",
        "  choose another name",
    ]


def test_what_does_not_fit_is_counted_in_services_and_not_in_lines() -> None:
    prod = ClusterView("prod", "registered", [WORKS], [(f"prod/shop/web-{n}", NOON - 600 + n, WHY) for n in range(9)])
    lines = drawn(a_view(clusters=[prod]), 80, 23)

    assert lines[-1] == "... and 4 more"
    assert sum(line.startswith("prod/shop/web-") for line in lines) == 5


def test_released_lease_is_no_warning() -> None:
    lease = {"state": "released clean", "holder": "a1", "session_ends_at": None}
    line = screen(a_view(lease=lease), 80, 24)[0]

    assert line.plain == "12:00:00 UTC  main  session a1 released the lease cleanly"
    assert "yellow" not in {str(span.style) for span in line.spans}


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    cluster = ClusterView("prod", "registered", [{**FAILS, "last_error_message": "\x1b[2Jgone"}], [])
    assert "\x1b" not in "".join(drawn(a_view(clusters=[cluster]), 160))
