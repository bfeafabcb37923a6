"""Whether a listener's last error is over, as ``kubesync status`` tells it."""

from typing import Any, Final

import pytest

from kubesync.aws.tables.control.listeners import Basis, Checkpoint, ListenerErrors
from kubesync_local.documents.listener_rows import for_people, in_order, listener_row

EIGHT: Final = 1_800_000_000.0  # 2027-01-15T08:00:00Z
AT_EIGHT: Final = "2027-01-15T08:00:00.000Z"
REFUSED: Final = {"key": "ERR_CONNECT_FAILED", "message": "refused", "at": AT_EIGHT}


def a_checkpoint(works_since: float) -> Checkpoint:
    return Checkpoint(7, 1, Basis(1, "https://h", 1), 3, works_since)


@pytest.mark.parametrize(
    ("checkpoint", "errors", "state", "works_since"),
    [
        (a_checkpoint(0), None, "works", None),
        (a_checkpoint(EIGHT), None, "works", AT_EIGHT),
        (None, ListenerErrors({}, REFUSED), "failing", None),
        (a_checkpoint(0), ListenerErrors({}, REFUSED), "failing", None),
        (a_checkpoint(EIGHT - 1), ListenerErrors({}, REFUSED), "failing", None),
        (a_checkpoint(EIGHT + 1), ListenerErrors({}, REFUSED), "works", "2027-01-15T08:00:01.000Z"),
        (
            a_checkpoint(EIGHT - 1),
            ListenerErrors({}, REFUSED, {"key": "ERR_MAX_RUNTIME", "at": "x", "works_since": "2027-01-15T08:00:02.000Z"}),
            "works",
            "2027-01-15T08:00:02.000Z",
        ),
        (a_checkpoint(EIGHT + 1), ListenerErrors({}, None, {"key": "ERR_MAX_RUNTIME", "at": "x"}), "works", "2027-01-15T08:00:01.000Z"),
    ],
    ids=[
        "no error, never told", "no error", "never worked", "not told", "worked before", "works again",
        "worked when it ended", "ended without telling",
    ],
)  # fmt: skip
def test_error_is_over_where_watches_were_accepted_after_it(
    checkpoint: Checkpoint | None, errors: ListenerErrors | None, state: str, works_since: str | None
) -> None:
    row = listener_row(checkpoint, errors)

    assert (row["state"], row["works_since"]) == (state, works_since)


def shown(**changes: Any) -> dict[str, Any]:
    return for_people({**listener_row(a_checkpoint(EIGHT + 1), ListenerErrors({}, REFUSED)), **changes})


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("ERR_MAX_RUNTIME", "normally: its time was up (2027-01-15T08:01:00.000Z)"),
        ("ERR_CONFIG_UPDATE", "normally: its configuration was changed (2027-01-15T08:01:00.000Z)"),
        ("ERR_NOT_MASTER", "normally: another session is the master (2027-01-15T08:01:00.000Z)"),
    ],
)
def test_end_in_order_does_not_look_like_an_error(key: str, words: str) -> None:
    assert shown(ended=key, ended_at="2027-01-15T08:01:00.000Z")["ended"] == words


def test_lease_that_could_not_be_renewed_is_no_end_in_order() -> None:
    why = "the lease could not be renewed for 11 s: DynamoDB is busy"
    row = shown(ended="ERR_NOT_MASTER", ended_at="2027-01-15T08:01:00.000Z", ended_message=why)

    assert row["ended"] == f"ERR_NOT_MASTER at 2027-01-15T08:01:00.000Z: {why}"
    assert in_order("ERR_NOT_MASTER", why) is None
    assert (
        in_order("ERR_NOT_MASTER", "the lease was lost to another session") == "normally: another session is the master"
    )


def test_error_that_is_over_is_shown_as_such() -> None:
    assert shown()["state"] == "works since 2027-01-15T08:00:01.000Z"
    assert shown()["last_error"] == f"resolved: ERR_CONNECT_FAILED at {AT_EIGHT}: refused"


def test_error_that_is_not_over_is_shown_as_it_is() -> None:
    row = for_people(listener_row(a_checkpoint(EIGHT - 1), ListenerErrors({}, REFUSED)))

    assert (row["state"], row["last_error"]) == (
        f"failing since {AT_EIGHT}",
        f"ERR_CONNECT_FAILED at {AT_EIGHT}: refused",
    )


def test_i10_row_says_since_when_a_listener_fails_also_over_sessions() -> None:
    since = "2027-01-14T08:00:00.000Z"
    last = {**REFUSED, "failing_since": since}
    row = listener_row(a_checkpoint(0), ListenerErrors({}, last))
    assert (row["state"], row["failing_since"]) == ("failing", since)
    ended = {"key": "ERR_MAX_RUNTIME", "at": "2027-01-15T08:01:00.000Z", "failing_since": since}
    assert listener_row(None, ListenerErrors({}, last, ended))["failing_since"] == since
    assert listener_row(a_checkpoint(EIGHT), ListenerErrors({}, last))["failing_since"] is None
