"""The table form of ``kubesync status``: each thing once, and nothing in the colour of a warning that is none."""

import re
from typing import Any

import pytest

from kubesync_local.commands.show.status_table import lease_in_words, lease_style, show_status

NOW = 1_800_000_000.0
WHY = "www.example.com A stands there and is not ours (192.0.2.9)"
OPEN = {"service": "prod/shop/web", "attempts": 3, "retry_at": "2027-01-15T09:00:00.000Z", "code": "Conflict", "reason": WHY,
        "since": "2027-01-15T08:00:00.000Z"}  # fmt: skip
CONFLICT = {"service": "prod/shop/web", "code": "Conflict", "subject": "www.example.com in Z1", "message": WHY}
INVALID = {"service": "prod/shop/api", "code": "InvalidTtl", "subject": "ttl", "message": "'x' is not a duration"}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def a_status(**of_cluster: Any) -> dict[str, Any]:
    cluster = {
        "cluster": "prod", "domain": "prod.example.com", "server": "https://prod", "state": "registered", "shard": "0", "services": 2,
        "objects": {"Service": 2}, "record_sets": 3, "upstreams": 2, "problem": None, "listeners": [], "credentials": [], "open": [], "problems": [],
        "held": [], "waiting_for_person": 1, "unguarded": None, "inferred_deletions": 0, "inferred": [], **of_cluster,
    }  # fmt: skip
    lease = {"state": "released clean", "holder": "a1", "epoch": 3, "expires_at": None, "session_ends_at": None}
    return {
        "deployment": "main", "shard": "0", "lease": lease, "clusters": [cluster], "unreadable": [], "zones": [],
        "resyncs": {"last": None, "under_way": [], "none_since": None}, "lost": [], "alarms_notify": True, "turn": None,
        "named_upstreams": [], "named_upstreams_waiting": 0, "other_shards": [], "too_many": [],
    }  # fmt: skip


def test_conflict_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    show_status(a_status(open=[OPEN], problems=[CONFLICT]), NOW)

    out = capsys.readouterr().out
    assert out.count("stands there and is not ours") == 1
    assert "1 pending since 2027-01-15T08:00:00.000Z, 1 waits for a person, 0 other problems" in out
    assert "\nproblems\n" not in out


def test_problems_besides_what_is_open_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    other = {
        **CONFLICT,
        "subject": "api.example.com in Z1",
        "message": "api.example.com A stands there and is not ours (192.0.2.8)",
    }
    show_status(a_status(open=[OPEN], problems=[CONFLICT, other, INVALID]), NOW)

    out = capsys.readouterr().out
    assert out.count("www.example.com A stands there") == 1
    assert out.count("api.example.com A stands there") == 1
    assert "2 other problems" in out
    assert "InvalidTtl" in out


def test_problems_without_anything_open_are_counted_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    show_status(a_status(problems=[INVALID], waiting_for_person=0), NOW)

    assert "; 0 pending, 1 problem\n" in capsys.readouterr().out


def test_lease_that_was_released_in_order_is_no_warning() -> None:
    assert lease_style("released clean") == ""
    assert lease_style("held") == "green"
    for state in ("expired", "released, not clean", "released clean, but for Z1", "never held"):
        assert lease_style(state) == "yellow"


def test_zones_that_the_next_session_settles_are_said_in_words() -> None:
    assert lease_in_words("released clean, but for Z1, Z2", "a1") == (
        "session a1 ",
        "released the lease; the next one first finds out which changes to Z1, Z2 landed",
    )


def test_deletions_that_are_held_back_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    held = {"listener": "services", "deletions": 2, "release": "kubesync resync --cluster prod --force"}
    why = "a list lacks it; `kubesync resync --cluster prod --force` lets the deletion through"
    rows = [
        {"service": f"prod/shop/{name}", "code": "DeletionHeld", "subject": f"services/{name}", "message": why}
        for name in "ab"
    ]
    show_status(a_status(held=[held], problems=[*rows, INVALID]), NOW)

    out = capsys.readouterr().out
    assert (
        "2 deletions of services held back; `kubesync plan --cluster prod` shows them, `kubesync resync --cluster prod --force` makes them"
        in out
    )
    assert "1 other problem\n" in out
    assert "DeletionHeld" not in out


WATCHES = {
    "listener": "services", "checkpoint": 369, "state": "works", "works_since": "2027-01-15T07:58:00.000Z", "failing_since": None,
    "last_error": None, "last_error_at": None, "last_error_message": None, "ended": "ERR_MAX_RUNTIME", "ended_message": None,
    "ended_at": "2027-01-15T07:57:00.000Z",
}  # fmt: skip
FAILS = {
    **WATCHES, "listener": "endpointslices", "state": "failing", "works_since": None, "failing_since": "2027-01-15T07:50:00.000Z",
    "last_error": "ERR_CONNECT_FAILED", "last_error_at": "2027-01-15T07:59:50.000Z", "last_error_message": "10.0.0.1: refused",
}  # fmt: skip
OVER = {
    **WATCHES, "last_error": "ERR_EXPIRED", "last_error_at": "2027-01-15T06:00:00.000Z", "last_error_message": "too old",
}  # fmt: skip


@pytest.mark.parametrize(
    ("lease", "rows", "shown"),
    [
        pytest.param("held", [WATCHES], ["services  watching for 2 min"], id="a session runs"),
        pytest.param(
            "released clean",
            [WATCHES],
            ["services  idle: the last session ended normally 3 min ago"],
            id="no session runs",
        ),
        pytest.param(
            "held",
            [FAILS],
            [
                "endpointslices  failing: ERR_CONNECT_FAILED 10 s ago: 10.0.0.1: refused  2027-01-15T07:50:00.000Z",
            ],
            id="it fails",
        ),
        pytest.param(
            "held",
            [OVER],
            ["services  watching for 2 min  resolved: ERR_EXPIRED at 2027-01-15T06:00:00.000Z: too old"],
            id="an error is over",
        ),
    ],
)
def test_listeners_are_said_in_words(
    lease: str, rows: list[dict[str, Any]], shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status = a_status(listeners=rows)
    show_status({**status, "lease": {**status["lease"], "state": lease}}, NOW)

    lines = [re.sub(r" {2,}", "  ", line.strip()) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.startswith(("services ", "endpointslices "))] == shown


@pytest.mark.parametrize(("state", "words"), [("held", "watching for 2 min"), ("released clean", "idle")])
def test_listeners_go_by_the_lease_of_their_shard(capsys: pytest.CaptureFixture[str], state: str, words: str) -> None:
    status = a_status(listeners=[WATCHES], shard="1")
    other = {"shard": "1", "lease": {**status["lease"], "state": state, "holder": "b2"}, "resyncs": status["resyncs"]}
    show_status({**status, "other_shards": [other]}, NOW)

    assert words in capsys.readouterr().out


def test_subject_looks_as_the_message_quotes_it(capsys: pytest.CaptureFixture[str]) -> None:
    odd = {
        "service": "prod/shop/web", "code": "InvalidTarget", "subject": "4;\nserver 6", "message": "label '4;\\nserver 6' is not made of letters",
    }  # fmt: skip
    show_status(a_status(problems=[odd]), NOW)

    assert capsys.readouterr().out.count(r"4;\nserver 6") == 2


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ({"Service": 2}, "  2 services, 3 record sets"),
        ({"Ingress": 1, "Service": 12}, "  12 services, 1 Ingress, 3 record sets"),
        ({"Ingress": 2}, "  0 services, 2 ingresses, 3 record sets"),
        ({}, "  0 services, 3 record sets"),
    ],
)
def test_objects_are_counted_by_their_kind(
    objects: dict[str, int], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_status(a_status(objects=objects), NOW)

    assert words in capsys.readouterr().out


def test_problems_that_are_not_shown_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    show_status(a_status(problems=[{**INVALID, "service": f"prod/shop/{n}"} for n in range(53)]), NOW)

    out = capsys.readouterr().out
    assert out.count("InvalidTtl") == 50
    assert "  and 3 more: `kubesync status -o json` has all\n" in out
