"""Lag by minute, from the lease of the running session and the reports that sessions keep."""

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import AUDIT, Item, Key, Put
from kubesync.aws.tables.control.lease import Lease, LeaseTable, lease_key
from kubesync.aws.tables.items import pack
from kubesync_local.documents.audit_log import AuditLog
from kubesync_local.documents.lag import LagMinute, lag_by_minute, lag_in_words, lag_of_session

NOON = 1_800_014_400.0  # 2027-01-15T12:00:00Z
NONE_YET = Lease("s", 1, 1, 0, 0, released=False, clean=False, signal=0)


def keep(store: MemoryStore, session: str, at: str, seconds: float, *minutes: list[float]) -> None:
    body = pack({"seconds": seconds, "minutes": list(minutes)})
    item: Item = {"v": 1, "at": at, "session": session, "body": body, "expires_at": int(NOON) + 86_400}
    store.write(Put(Key(AUDIT, "reports#session", f"{at}#{session}"), item))


def test_minutes_of_several_sessions_in_order_and_only_those_of_the_period() -> None:
    store = MemoryStore(clock=ManualClock())
    keep(store, "old", "2027-01-15T10:30:00.000Z", 840.0, [60.0, 5, 9.0, 9.0])
    keep(store, "first", "2027-01-15T11:44:00.000Z", 840.0, [60.0, 5, 0.7, 1.2], [840.0, 1, 0.8, 0.8])
    keep(store, "second", "2027-01-15T11:58:00.000Z", 840.0, [0.0, 1, 0.6, 0.9], [120.0, 2, 0.5, 0.6])
    assert lag_by_minute(AuditLog(store), NONE_YET, NOON - 3600, NOON) == [
        LagMinute(int(NOON) - 29 * 60, 0.7, 1.2, 5),  # 11:31
        LagMinute(int(NOON) - 16 * 60, 0.6, 0.9, 1),  # 11:44, of the later session
        LagMinute(int(NOON) - 14 * 60, 0.5, 0.6, 2),  # 11:46
    ]


def test_session_without_changes_keeps_no_minutes() -> None:
    store = MemoryStore(clock=ManualClock())
    body = pack({"seconds": 840.0})
    item: Item = {
        "v": 1,
        "at": "2027-01-15T11:44:00.000Z",
        "session": "s",
        "body": body,
        "expires_at": int(NOON) + 86_400,
    }
    store.write(Put(Key(AUDIT, "reports#session", "2027-01-15T11:44:00.000Z#s"), item))
    assert lag_by_minute(AuditLog(store), NONE_YET, NOON - 3600, NOON) == []


def test_running_session_has_its_minutes_on_the_lease() -> None:
    store = MemoryStore(clock=ManualClock())
    keep(store, "before", "2027-01-15T11:44:00.000Z", 840.0, [60.0, 5, 0.7, 1.2])
    store.write(
        Put(lease_key("0"), {"holder": "s", "lag": [int(NOON) - 100, 40, 210, 900, int(NOON) - 30, 2, 305, 400]})
    )
    lease = LeaseTable(store, "0").read()

    running = [LagMinute(int(NOON) - 120, 0.21, 0.9, 40), LagMinute(int(NOON) - 60, 0.305, 0.4, 2)]
    assert lag_of_session(lease) == running
    assert lag_by_minute(AuditLog(store), lease, NOON - 3600, NOON) == [
        LagMinute(int(NOON) - 29 * 60, 0.7, 1.2, 5), *running,
    ]  # fmt: skip
    assert lag_in_words(running) == "42 changes since 11:58 UTC; lag usually 0.30 s, slowest 0.90 s at 11:58"
    assert lag_in_words([]) == ""
