"""Lag by minute, from the reports that sessions keep."""

from __future__ import annotations

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import AUDIT, Item, Key, Put
from kubesync.aws.tables.items import pack
from kubesync_local.documents.audit_log import AuditLog
from kubesync_local.documents.lag import LagMinute, lag_by_minute

NOON = 1_800_014_400.0  # 2027-01-15T12:00:00Z


def keep(store: MemoryStore, session: str, at: str, seconds: float, *minutes: list[float]) -> None:
    body = pack({"seconds": seconds, "minutes": list(minutes)})
    item: Item = {"v": 1, "at": at, "session": session, "body": body, "expires_at": int(NOON) + 86_400}
    store.write(Put(Key(AUDIT, "reports#session", f"{at}#{session}"), item))


def test_minutes_of_several_sessions_in_order_and_only_those_of_the_period() -> None:
    store = MemoryStore(clock=ManualClock())
    keep(store, "old", "2027-01-15T10:30:00.000Z", 840.0, [60.0, 5, 9.0, 9.0])
    keep(store, "first", "2027-01-15T11:44:00.000Z", 840.0, [60.0, 5, 0.7, 1.2], [840.0, 1, 0.8, 0.8])
    keep(store, "second", "2027-01-15T11:58:00.000Z", 840.0, [0.0, 1, 0.6, 0.9], [120.0, 2, 0.5, 0.6])
    assert lag_by_minute(AuditLog(store), NOON - 3600, NOON) == [
        LagMinute(int(NOON) - 29 * 60, 0.7, 1.2),  # 11:31
        LagMinute(int(NOON) - 16 * 60, 0.6, 0.9),  # 11:44, of the later session
        LagMinute(int(NOON) - 14 * 60, 0.5, 0.6),  # 11:46
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
    assert lag_by_minute(AuditLog(store), NOON - 3600, NOON) == []
