"""The audit: what is kept of every change, for how long, and how it is read back."""

from collections.abc import Iterator
from itertools import islice
from typing import Unpack

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import Item, QueryOptions
from kubesync.aws.dynamodb.wire import item_bytes
from kubesync.aws.tables.audit import AuditTable, Entry, describe
from kubesync.domain.dns.records import AliasTarget, RecordSet
from kubesync_local.documents.audit_log import AuditLog, Span

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
DAY = 86_400
TODAY = Span(NOW, NOW + 60)
TWO_DAYS = Span(NOW - DAY, NOW + 60)


def a_table(session: str = "s1", **changes: int) -> tuple[MemoryStore, AuditTable]:
    store = MemoryStore(clock=ManualClock())
    return store, AuditTable(session, **changes)


def test_changes_are_read_newest_first_one_row_each() -> None:
    store, table = a_table()
    store.write(table.changes("prod", [Entry("a", None, 1, "watch"), Entry("b", 1, None, "watch")], 4, NOW, "t1"))
    store.write(table.changes("prod", [Entry("c", 1, 2, "list")], 4, NOW + 5, "t2"))
    store.write(table.changes("prod", [Entry("yesterday", 1, 2, "list")], 4, NOW - DAY, "t3"))
    store.write(table.changes("other", [Entry("d", 1, 2, "list")], 4, NOW, "t4"))
    rows = list(AuditLog(store).read_changes("prod", NOW + 6, TODAY))
    assert [(row["what"], row["at"]) for row in rows] == [
        ("c", "2027-01-15T08:00:05.000Z"),
        ("b", "2027-01-15T08:00:00.000Z"),
        ("a", "2027-01-15T08:00:00.000Z"),
    ]
    assert rows[0] == {
        "at": "2027-01-15T08:00:05.000Z",
        "cluster": "prod",
        "epoch": 4,
        "session": "s1",
        "service": "",
        "object_kind": None,
        "what": "c",
        "kind": None,
        "name": None,
        "type": None,
        "identifier": None,
        "zone": None,
        "upstream": None,
        "from": 1,
        "to": 2,
        "why": "list",
        "object": None,
        "resource_version": None,
        "batch": None,
        "reason": None,
        "message": None,
    }
    assert [row["what"] for row in AuditLog(store).read_changes("prod", NOW + 6, TWO_DAYS)][-1] == "yesterday"


def test_items_carry_an_expiry_and_are_filtered_by_it_when_read() -> None:
    store, table = a_table(retention_seconds=60)
    put = table.changes("prod", [Entry("a", None, 1, "watch")], 4, NOW, "t1")
    assert put.item["expires_at"] == 1_800_000_060
    store.write(put)
    store.write(table.error("prod", {"key": "ERR_READ_BODY"}, NOW))
    store.write(table.session_ended({"code": 4}, NOW))
    assert len(list(AuditLog(store).read_changes("prod", NOW + 59, TODAY))) == 1
    assert len(list(AuditLog(store).read_errors("prod", NOW + 59, 10))) == 1
    assert len(list(AuditLog(store).read_sessions(NOW + 59, 10))) == 1
    assert list(AuditLog(store).read_changes("prod", NOW + 60, TODAY)) == []
    assert list(AuditLog(store).read_errors("prod", NOW + 60, 10)) == []
    assert list(AuditLog(store).read_sessions(NOW + 60, 10)) == []


def test_item_of_a_huge_transaction_stays_small_and_says_what_it_left_out() -> None:
    store, table = a_table()
    from hashlib import sha256

    noise = ["".join(sha256(b"%d %d" % (n, m)).hexdigest() for m in range(60)) for n in range(400)]
    put = table.changes("prod", [Entry(f"e{n}", None, text, "list") for n, text in enumerate(noise)], 4, NOW, "t")
    assert item_bytes(put.item) < 210_000
    store.write(put)
    rows = list(AuditLog(store).read_changes("prod", NOW, TODAY))
    assert rows[0]["what"] == f"{400 - (len(rows) - 1)} more changes"
    assert rows[-1]["what"] == "e0"
    assert len(rows) > 50


def test_single_entry_that_is_too_large_is_left_out_not_refused() -> None:
    store, table = a_table()
    from random import Random

    noise = Random(1).randbytes(300_000).hex()
    store.write(table.changes("prod", [Entry("big", None, noise, "list")], 4, NOW, "t"))
    assert [row["what"] for row in AuditLog(store).read_changes("prod", NOW, TODAY)] == ["1 more changes"]


def test_errors_and_sessions_are_append_only_items_of_their_own() -> None:
    store, table = a_table()
    _, other = a_table("s2")
    store.write(table.error("prod", {"key": "ERR_READ_BODY", "message": "x"}, NOW))
    store.write(table.error("prod", {"key": "ERR_READ_BODY", "message": "y"}, NOW))
    store.write(table.session_ended({"code": 5}, NOW))
    store.write(other.session_ended({"code": 4}, NOW))
    assert sorted(str(item["message"]) for item in AuditLog(store).read_errors("prod", NOW, 10)) == ["x", "y"]
    assert [item["session"] for item in AuditLog(store).read_sessions(NOW, 10)] == ["s2", "s1"]
    assert len(list(AuditLog(store).read_sessions(NOW, 1))) == 1


def test_record_sets_are_described_as_people_read_them() -> None:
    assert describe(None) is None
    assert describe(RecordSet(60, ("10.0.0.1", "10.0.0.2"))) == {"ttl": 60, "values": ["10.0.0.1", "10.0.0.2"]}
    assert describe(RecordSet(None, (), AliasTarget("Z", "lb.example.org", True))) == {"alias": "lb.example.org"}
    without_health = RecordSet(None, (), AliasTarget("Z", "lb.example.org"))
    assert describe(without_health) == {"alias": "lb.example.org", "evaluate_health": False}


def read_back(entry: Entry) -> dict[str, object]:
    store, table = a_table()
    store.write(table.changes("prod", [entry], 4, NOW, "t"))
    (row,) = AuditLog(store).read_changes("prod", NOW, TODAY)
    return {name: value for name, value in row.items() if value is not None}


def test_entry_of_a_record_set_is_read_back_with_cause_and_batch() -> None:
    what = "record web.example.com A in Z1"
    assert read_back(Entry(what, None, {"ttl": 60}, "watch services/web@1234", "prod/shop/web", "b4f1")) == {
        "at": "2027-01-15T08:00:00.000Z",
        "cluster": "prod",
        "epoch": 4,
        "session": "s1",
        "service": "prod/shop/web",
        "object_kind": "Service",
        "what": "record web.example.com A in Z1",
        "kind": "record",
        "name": "web.example.com",
        "type": "A",
        "zone": "Z1",
        "to": {"ttl": 60},
        "why": "watch",
        "object": "services/web",
        "resource_version": 1234,
        "batch": "b4f1",
    }


def test_entry_of_a_weighted_set_is_read_back_with_its_identifier() -> None:
    row = read_back(Entry("record web.example.com A [blue in Z2] in Z1", None, {}, "watch"))
    assert (row["name"], row["type"], row["identifier"], row["zone"]) == ("web.example.com", "A", "blue in Z2", "Z1")


def test_entry_of_an_upstream_is_read_back_with_its_key() -> None:
    row = read_back(Entry("upstream prod/shop/web/80/TCP", "version 1", None, "a name was let go", "prod/shop/web"))
    assert (row["kind"], row["upstream"], row["why"]) == ("upstream", "prod/shop/web/80/TCP", "a name was let go")
    assert not {"name", "zone", "object", "batch"} & row.keys()


def test_refusal_is_read_back_with_its_reason_and_message() -> None:
    entry = Entry("refused a.example.com A in Z1", None, {}, "resync services/web@7", "", "", "Rejected", "bad value")
    row = read_back(entry)
    assert (row["reason"], row["message"], row["why"], row["resource_version"]) == (
        "Rejected",
        "bad value",
        "resync",
        7,
    )


def test_entry_of_an_older_release_is_read_back_with_its_batch() -> None:
    row = read_back(Entry("record a.example.com A in Z1", None, {}, "batch b4f1", "prod/shop/web"))
    assert (row["batch"], row["why"]) == ("b4f1", "")


def test_span_is_read_by_key_and_both_its_ends_count() -> None:
    store, table = a_table()
    for minute in range(-2, 3):
        at = NOW + 60 * minute
        store.write(table.changes("prod", [Entry(f"m{minute}", None, 1, "watch")], 4, at, f"t{minute}"))
    store.calls.clear()

    rows = list(AuditLog(store).read_changes("prod", NOW, Span(NOW - 60, NOW + 60)))

    assert [row["what"] for row in rows] == ["m1", "m0", "m-1"]
    assert [(call.operation, call.partition) for call in store.calls] == [("query", "changes#prod#2027-01-15")]


def test_span_over_midnight_reads_each_day_once_the_last_first() -> None:
    assert list(Span(NOW - DAY, NOW).days()) == ["2027-01-15", "2027-01-14"]
    assert list(Span(NOW - 8 * 3600 - 1, NOW - 8 * 3600).days()) == ["2027-01-15", "2027-01-14"]


def test_changes_are_the_same_however_many_items_a_request_reads() -> None:
    store, table = a_table()
    for number in range(7):
        entries = [Entry(f"a{number}", None, 1, "watch"), Entry(f"b{number}", None, 1, "watch")]
        store.write(table.changes("prod", entries, 4, NOW + number // 2, f"t{number}"))
    store.calls.clear()

    def read(at_once: int | None) -> tuple[list[str], int]:
        store.calls.clear()
        rows = AuditLog(store).read_changes("prod", NOW + 30, TODAY, at_once=at_once)
        return [row["what"] for row in rows], len(store.calls)

    whole = [f"{kind}{number}" for number in reversed(range(7)) for kind in "ba"]
    assert read(None) == (whole, 1)
    assert read(1) == (whole, 8)
    assert read(3) == (whole, 3)
    assert read(7) == (whole, 2)
    assert read(8) == (whole, 1)


def test_caller_who_stops_early_reads_few_items() -> None:
    store, table = a_table()
    for number in range(9):
        store.write(table.changes("prod", [Entry(f"a{number}", None, 1, "watch")], 4, NOW + number, f"t{number}"))
    limits: list[object] = []
    really = store.query

    def query(table: str, partition: str, **wanted: Unpack[QueryOptions]) -> Iterator[Item]:
        limits.append(wanted.get("limit"))
        return really(table, partition, **wanted)

    store.query = query  # type: ignore[method-assign]
    rows = AuditLog(store).read_changes("prod", NOW + 30, TODAY, at_once=4)

    assert [row["what"] for row in islice(rows, 4)] == ["a8", "a7", "a6", "a5"]
    assert limits == [4]
