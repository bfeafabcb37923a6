"""What a resync asks clusters and zones, and what it makes of their answers. Actors are played by the test."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import batched
from typing import Any, cast

import pytest

from harness.fakes.played_master import ONE, TWO, WEB, A, Played, errors_in, nothing_kept
from kubesync.actors.actor import Activity
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.key_writes import Preview
from kubesync.domain.dns.drift import Drift
from kubesync.domain.dns.records import Node, RecordKey, RecordSet
from kubesync.domain.errors import (
    BodyError,
    ConnectError,
    DeniedError,
    KubesyncError,
    NotMasterError,
    StoreUnavailableError,
    ZoneUnavailableError,
)
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, Name
from kubesync.messages import (
    CheckConflicts,
    Compared,
    CompareNamed,
    CompareZone,
    ListingFailedError,
    Relist,
    RemoveOrphans,
    WithdrawRelist,
)
from kubesync.operations import cluster_resync
from kubesync.operations.ports import Master
from kubesync.operations.requests import ResyncActor
from kubesync.operations.resync import Resync
from kubesync_local.documents.last_resync import last_resyncs, resyncs_under_way


@pytest.fixture
def played() -> Played:
    return Played()


def test_lists_are_asked_for_and_counted(played: Played) -> None:
    report = played.resync(force=True)
    assert (report["changed_keys"], report["held"], report["stray_upstreams"]) == (3, {"services": "too many"}, 0)
    (relist,) = played.of(Relist)
    assert (relist.forced, relist.deadline) == (True, None)
    assert played.of(WithdrawRelist) == []


def test_session_that_was_started_for_it_lets_the_cluster_be_watched(played: Played) -> None:
    played.resync(own_session=True)
    assert played.of(Relist)[0].deadline == played.deadline


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        (
            ListingFailedError({"services": DeniedError("403")}, 0.2),
            (
                ": services: ERR_REQUEST_DENIED: 403; check the cluster's token and its rights "
                "(docs/cluster-access.yaml), then run it again"
            ),
        ),
        (
            ListingFailedError({"services": ConnectError("refused")}, 15.3),
            (
                ": tried for 15 s: services: ERR_CONNECT_FAILED: refused; check that the API server runs, its address, "
                "and the network in between, then run it again"
            ),
        ),
        (
            ListingFailedError({"services": BodyError("the list of services is longer than 9 bytes")}, 0.2),
            (
                ": services: ERR_READ_BODY: the list of services is longer than 9 bytes; raise the function's memory "
                "(MemorySize), or find out why the server sends so much, then run it again"
            ),
        ),
        (ListingFailedError({}, 300.0, "DynamoDB is busy"), " in time (DynamoDB is busy)"),
        (ListingFailedError({}, 300.0), " in time (no answer)"),
    ],
)
def test_cluster_that_cannot_be_listed_is_reported_with_advice(
    played: Played, failed: ListingFailedError, said: str
) -> None:
    played.relisted = failed
    assert played.error() == f"cluster prod could not be listed{said}"


def test_i5_lists_that_nobody_waits_for_any_more_are_withdrawn(played: Played) -> None:
    played.relisting, played.relisted = played.end, None
    played.last_errors = {"services": ConnectError("refused")}
    assert played.error(force=True) == (
        "the session ended before the resync was done: run it again "
        "(the last error: services: ERR_CONNECT_FAILED: refused)"
    )
    assert played.of(WithdrawRelist)


def test_refusal_of_the_cluster_is_the_error(played: Played) -> None:
    played.relisted = KubesyncError("the configuration of cluster prod is being changed: run it again")
    assert played.error() == "the configuration of cluster prod is being changed: run it again"


def test_orphans_go_to_the_cluster_a_few_at_a_time(played: Played) -> None:
    for number in range(51):
        actions = UpstreamTable.put(f"prod/shop/web/{number}/TCP", None, [Node("10.0.0.1", 80, ready=True)], 0)[1]
        played.store.transact(actions, played.clock.token_hex(16))
    assert played.resync()["stray_upstreams"] == 51
    assert [len(message.upstreams) for message in played.of(RemoveOrphans)] == [50, 1]


def test_blocked_zone_is_reported(played: Played) -> None:
    played.reached = ZoneUnavailableError("its journal belongs to another owner")
    assert played.error() == (
        "zone Z1 could not be compared: its journal belongs to another owner; run it again once that is mended"
    )


@pytest.mark.parametrize("dry_run", [False, True])
def test_i3_only_suspects_are_compared_and_drifts_are_reported(
    played: Played, monkeypatch: pytest.MonkeyPatch, *, dry_run: bool
) -> None:
    other = ObjectKey("prod", "shop", "other")
    right = RecordKey("Z1", "other.example.com", "A")
    played.known(KeyState(WEB, applied={A: ONE}, conflicts={Name("Z1", "x.example.com"): "taken"}))
    played.known(KeyState(other, applied={right: ONE}))
    played.standing = {A: TWO, right: ONE}
    played.compared = [Compared((Drift(WEB, A, ONE, TWO),))]
    request = ResyncRequest("", "prod", dry_run, force=False, at_ms=0)
    resync = Resync(cast("Master", played), nothing_kept(played, request))
    monkeypatch.setattr(cluster_resync, "preview_lists", lambda *_: Preview())
    (report,) = resync.run()["clusters"]
    (compare,) = played.of(CompareZone)
    assert ([known.service for known in compare.known], compare.actual, compare.mend) == (
        [WEB],
        played.standing,
        not dry_run,
    )
    assert [(row["drift"], row["name"]) for row in report["drift"]] == [("changed", A.name)]
    assert played.of(CheckConflicts) == ([] if dry_run else [CheckConflicts((WEB,))])


def test_key_that_is_written_all_the_time_is_compared_at_its_names(played: Played) -> None:
    played.known(KeyState(WEB, applied={A: ONE}))
    moved = Compared(moved=frozenset({WEB}))
    played.compared = [moved, moved, moved, Compared((Drift(WEB, A, ONE, None),))]
    assert [row["drift"] for row in played.resync()["drift"]] == ["missing"]
    compares = played.of(CompareZone)
    assert [bool(compare.known) for compare in compares] == [True, False, False, False]
    assert (compares[-1].keys, compares[-1].names) == ((WEB,), frozenset({A.name}))


def test_many_keys_that_were_written_meanwhile_are_compared_with_another_walk(played: Played) -> None:
    keys = [ObjectKey("prod", "shop", f"web-{number:03}") for number in range(200)]
    for key in keys:
        played.known(KeyState(key, applied={replace(A, name=f"{key.name}.example.org."): ONE}))
    walks: list[str] = []

    def walk(zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        walks.append(zone_id)
        return played.walk(zone_id)

    played.zones.walk = walk
    moved = [Compared(moved=frozenset(some)) for some in batched(keys, 50)]
    drift = Drift(keys[150], replace(A, name="web-150.example.org."), ONE, None)
    played.compared = [*moved, Compared(moved=frozenset({keys[7]})), Compared(), Compared(), Compared((drift,))]
    assert [row["service"] for row in played.resync()["drift"]] == ["prod/shop/web-150"]
    assert walks == ["Z1", "Z1"]
    compares = played.of(CompareZone)
    assert [len(compare.known) for compare in compares] == [50] * 8 + [0]
    assert compares[-1].keys == (keys[7],)


def test_key_that_never_rests_is_an_error(played: Played) -> None:
    played.known(KeyState(WEB, applied={A: ONE}))
    played.compared = [Compared(moved=frozenset({WEB}))] * 10
    assert played.error() == "prod/shop/web was written all the time: run it again"


def test_changed_configuration_ends_it(played: Played) -> None:
    def changed() -> None:
        played.configs = {"prod": played.configs["prod"].model_copy(update={"revision": 9})}

    played.relisting, played.relisted = changed, None
    assert played.error() == "the configuration of cluster prod was changed meanwhile: run it again"


def test_error_of_not_being_master_goes_up(played: Played) -> None:
    played.relisted = NotMasterError("fenced")
    with pytest.raises(NotMasterError):
        played.resync()


def test_runner_does_requests_one_by_one_and_ends_when_it_is_closed(played: Played) -> None:
    done: list[str] = []

    class Waiting:
        def waiting(self, request: ResyncRequest) -> bool:
            done.append(request.id)
            if request.id == "a":
                raise NotMasterError("fenced")
            return False

    played.resyncs = cast("Any", Waiting())
    runner = ResyncActor(cast("Master", played), Activity(played.clock))
    requests = [ResyncRequest(name, "prod", dry_run=True, force=False, at_ms=0) for name in "ab"]
    runner.take([])
    assert runner.join(0.0)
    runner.take(requests)
    assert not runner.join(0.3)
    assert (done, len(played.lost)) == (["a", "b"], 1)
    played.end()
    runner.close()
    assert runner.join(5.0)


def test_request_that_fails_goes_behind_those_that_wait(played: Played) -> None:
    done: list[str] = []
    requests = [ResyncRequest(name, "prod", dry_run=True, force=False, at_ms=0) for name in "abc"]

    class Waiting:
        def waiting(self, request: ResyncRequest) -> bool:
            done.append(request.id)
            if len(done) <= 4:
                runner.take(requests)  # the session's thread reads the requests while this one is under way
            raise StoreUnavailableError("DynamoDB does not answer")

    played.resyncs = cast("Any", Waiting())
    runner = ResyncActor(cast("Master", played), Activity(played.clock))
    runner.take(requests)
    assert not runner.join(0.3)
    assert done[:6] == ["a", "b", "c", "a", "b", "c"]
    played.end()
    runner.close()
    assert runner.join(5.0)


# --- requests that are stored ---


def test_i5_forced_resync_stops_once_its_caller_has_withdrawn_it(played: Played) -> None:
    played.serve("a", "b", "c")
    request = played.ask(force=True)
    played.relisting = lambda: played.resyncs.withdraw(request)
    report = played.worker.run(request, own_session=False)
    assert [relist.forced for relist in played.of(Relist)] == [True]
    assert errors_in(report) == dict.fromkeys("abc", "the resync was withdrawn")
    assert played.result()["forced"], "what was done is kept"
    assert [each.errors for each in played.resynced] == [], "a person withdrew it: no alarm"


def test_forced_resync_that_is_withdrawn_before_its_answer_keeps_its_result(played: Played) -> None:
    request = played.ask(force=True)
    played.fenced_writer.writing = lambda: played.resyncs.withdraw(request)
    report = played.worker.run(request, own_session=False)
    assert errors_in(report) == {"prod": None}
    assert (played.result()["id"], played.result()["errors"]) == (request.id, 0)
    assert played.resyncs.collect(request) is None


def test_last_write_of_an_own_session_that_fails_leaves_its_report(played: Played) -> None:
    request = played.ask()
    played.configs = {}

    def broken() -> None:
        if played.of(CompareNamed):
            raise StoreUnavailableError("no answer")

    played.fenced_writer.writing = broken
    assert played.worker.run(request, own_session=True)["clusters"] == []


@pytest.mark.parametrize("update", [{"deleting": True}, {"disabled": True}, {"revision": 9}], ids=str)
@pytest.mark.parametrize("early", [True, False])
def test_resync_of_all_is_not_failed_by_a_changed_cluster(
    played: Played, update: dict[str, object], *, early: bool
) -> None:
    played.serve("a", "b")
    update = {"revision": 9, **update}
    if early:
        played.change("b", **update)
    else:
        played.relisting = lambda: played.change("b", **update) if len(played.of(Relist)) == 2 else None
    report = played.worker.run(played.ask(), own_session=False)
    stays = set(update) == {"revision"}
    assert errors_in(report) == ({"a": None, "b": None} if stays else {"a": None})
    assert [each.errors for each in played.resynced] == [0]


def test_progress_that_an_earlier_release_left_raises_no_alarm(played: Played) -> None:
    request = played.ask()
    played.store.transact(played.results.put_progress(request, "s", 2, 1, played.clock.epoch_seconds(), "x"), "x")
    played.store.write(played.resyncs.delete_request(request))
    played.worker.expire(request)
    assert (
        [each.errors for each in played.resynced],
        last_resyncs(played.store, "0", 5),
        resyncs_under_way(played.store, "0"),
    ) == (
        [],
        [],
        [],
    )
