"""People see the lag of a running session: renewals of its lease carry it, at no further write unit."""

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from kubesync.aws.dynamodb.store import Value
from kubesync.aws.dynamodb.wire import item_bytes
from kubesync.aws.tables.control.lease import LeaseTable, lease_key

NOON = 1_800_014_400


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        assert made.add_cluster("prod", "--no-srv").status == 0
        made.environment["KUBESYNC_LEASE_RENEW_SECONDS"] = "0.2"
        made.api.cluster.expose("shop", "web", {"ports": [{"port": 80}]})
        yield made


def test_running_session_says_its_lag(stack: CliStack) -> None:
    seen: list[str] = []

    def told() -> bool:
        if LeaseTable(stack.store, "0").read().lag:
            seen.append(stack.call("status").out)
        return bool(seen)

    assert stack.session(told).json["clean"]

    (line,) = [line for line in seen[0].splitlines() if line.startswith("this session: ")]
    assert line.startswith("this session: 2 changes since ")  # of web and of the API server's own Service
    (minute,) = stack.call("status", "-o", "json").json["lag"]
    assert (minute["changes"], set(minute)) == (2, {"minute", "median_seconds", "p99_seconds", "changes"})
    assert "last session: 2 changes since " in stack.call("status").out

    assert stack.session().json["clean"]  # nothing changes: the next one notes that
    assert stack.call("status", "-o", "json").json["lag"] == []


def test_lease_with_fifteen_minutes_is_one_write_unit(stack: CliStack) -> None:
    assert stack.session().json["clean"]
    item = stack.store.get(lease_key("0"))
    assert item is not None

    lag: list[Value] = [number for minute in range(15) for number in (NOON + 60 * minute, 99_999, 59_999, 599_999)]
    turn: list[Value] = [99_999_999, 9_999_999, "c" * 63, "n" * 63]
    assert item_bytes({**item, "holder": "x" * 60, "lag": lag, "turn": turn}) <= 1_024


def test_session_that_is_over_before_a_renewal_says_its_lag_too(stack: CliStack) -> None:
    stack.environment["KUBESYNC_LEASE_RENEW_SECONDS"] = "5"
    assert stack.session().json["clean"]

    assert [minute["changes"] for minute in stack.call("status", "-o", "json").json["lag"]] == [2]
