"""Results of resyncs, parts of one that goes on, and how people see both."""

import random
from typing import Any

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable, new_request
from kubesync.domain.errors import TransactionRefusedError
from kubesync_local.documents.last_resync import last_resyncs, resync_lines, resyncs_document

NOW = 1_800_000_000.0


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(clock=ManualClock())


def a_request(id_: str, cluster: str = "", *, at: float = NOW, scheduled: bool = False) -> ResyncRequest:
    return new_request(id_, cluster, at, dry_run=False, force=False, scheduled=scheduled)


def keep(store: MemoryStore, request: ResyncRequest, clusters: list[dict[str, Any]]) -> None:
    errors = sum("error" in each for each in clusters)
    figures = {"clusters": len(clusters), "errors": errors, "differences": 4, "session": "s1"}
    table = ResyncTable(store, "0", 90 * 86_400)
    store.transact(
        table.put_result(request, figures, {"clusters": clusters}, NOW + 61.4, request.id[-2:]), request.id[-2:]
    )


def test_result_says_when_who_asked_and_how_long(store: MemoryStore) -> None:
    keep(store, a_request("r1", at=NOW - 50), [{"cluster": "prod"}])
    keep(store, a_request("r2", scheduled=True), [{"cluster": "prod"}, {"cluster": "edge", "error": "no answer"}])
    first, second = last_resyncs(store, "0", 5)
    assert first == {
        "id": "2027-01-15T08:00:00.000Z#r2",
        "by": "schedule",
        "at": "2027-01-15T08:00:00.000Z",
        "ended_at": "2027-01-15T08:01:01.400Z",
        "seconds": 61,
        "cluster": "",
        "forced": False,
        "clusters": 2,
        "errors": 1,
        "differences": 4,
        "session": "s1",
        "report": {"clusters": [{"cluster": "prod"}, {"cluster": "edge", "error": "no answer"}]},
    }
    assert (second["id"][-2:], second["by"]) == ("r1", "person")
    assert {item["expires_at"] for item in store.dump().values()} == {1_807_776_061}


def test_result_over_100_kb_is_in_slices_and_one_result_for_all_that(store: MemoryStore) -> None:
    chance = random.Random(1)
    clusters = [{"cluster": f"c{n}", "held": {f"{chance.random()}": "x"}} for n in range(20_000)]
    keep(store, a_request("r1"), clusters)
    assert [str(key.sort)[-4:] for key in sorted(store.dump(), key=lambda key: str(key.sort))] == [
        "Z#r1",
        "#001",
        "#002",
    ]
    (found,) = last_resyncs(store, "0", 5)
    assert found["report"]["clusters"] == clusters


def test_part_is_refused_once_nobody_waits(store: MemoryStore) -> None:
    requests, results = ResyncTable(store, "0"), ResyncTable(store, "0", 90 * 86_400)
    request = a_request("r1")
    requests.store(request)
    part = {"done": True}
    write = [*results.put_progress(request, "s1", 3, 1, NOW, "t1"), *results.put_part(request, "prod", part, "t1")]
    store.transact(write, "t1")
    assert results.parts(request) == {"prod": part}
    requests.withdraw(request)
    with pytest.raises(TransactionRefusedError):
        store.transact([*results.put_progress(request, "s1", 3, 2, NOW, "t2")], "t2")
    assert list(store.query("control", "resync#0")) == []


@pytest.mark.parametrize("gone", [False, True], ids=["request there", "request dropped"])
def test_request_of_a_resync_that_goes_on_is_due_after_its_hour(store: MemoryStore, *, gone: bool) -> None:
    requests, results = ResyncTable(store, "0"), ResyncTable(store, "0", 90 * 86_400)
    request = a_request("r1", "prod", scheduled=True)
    requests.store(request)
    store.transact(results.put_progress(request, "s1", 3, 1, NOW, "t1"), "t1")
    if gone:  # by a release before this one, or by DynamoDB
        store.write(requests.delete_request(request))
    else:
        assert requests.clean_up_and_list(NOW + 3599) == [request]
    assert requests.clean_up_and_list(NOW + 3600) == [request]


def test_progress_of_a_resync_that_a_release_before_has_answered_is_dropped(store: MemoryStore) -> None:
    requests, results = ResyncTable(store, "0"), ResyncTable(store, "0", 90 * 86_400)
    request = a_request("r1", "prod", scheduled=True)
    requests.store(request)
    store.transact(results.put_progress(request, "s1", 3, 1, NOW, "t1"), "t1")
    store.write(requests.delete_request(request))  # its caller has collected the answer
    assert requests.clean_up_and_list(NOW + 60) == []
    assert list(store.query("control", "resync#0")) == []
    assert requests.clean_up_and_list(NOW + 3600) == []


def test_people_see_the_last_one_and_those_under_way(store: MemoryStore) -> None:
    requests, results = ResyncTable(store, "0"), ResyncTable(store, "0", 90 * 86_400)
    keep(store, a_request("r1"), [{"cluster": "prod"}, {"cluster": "edge", "error": "no answer"}])
    begun, waits = a_request("r2", scheduled=True), a_request("r3", "prod")
    for request in (begun, waits):
        requests.store(request)
    store.transact(results.put_progress(begun, "s2", 7, 3, NOW, "t1"), "t1")
    assert resync_lines(resyncs_document(store, "0", NOW + 60)) == [
        ("resync under way since 2027-01-15T08:00:00.000Z, the schedule asked: 3 of 7 clusters done", False),
        ("resync of prod under way since 2027-01-15T08:00:00.000Z, a person asked: not begun", False),
        ("last resync: 2027-01-15T08:01:01.400Z, a person asked, 61 s, 2 clusters, 4 differences, 1 failed", True),
        ("  edge: no answer", True),
    ]
    late = resync_lines(resyncs_document(store, "0", NOW + 3600))
    assert late[0] == (
        "resync under way since 2027-01-15T08:00:00.000Z, the schedule asked: nobody finished it within an hour",
        True,
    )


def test_nobody_has_asked_for_a_resync_yet(store: MemoryStore) -> None:
    document = resyncs_document(store, "0", NOW)
    assert (document, resync_lines(document)) == ({"last": None, "under_way": [], "none_since": None}, [])


def test_part_stays_after_the_hour_and_without_a_slice_it_is_not_there(store: MemoryStore) -> None:
    results, request = ResyncTable(store, "0"), a_request("r1")
    part = {"rows": random.Random(1).randbytes(150_000).hex()}
    store.transact(results.put_part(request, "prod", part, "t1"), "t1")
    assert {item["expires_at"] for item in store.dump().values()} == {request.expires_at + 86_400}
    assert results.parts(request) == {"prod": part}
    store.write(Delete(Key(CONTROL, f"resync-parts#{request.id}", "prod#001")))
    assert results.parts(request) == {}
