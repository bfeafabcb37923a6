"""A resync that its session cuts off goes on in the next one, cluster by cluster; three clusters share two zones."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from harness.seen.resync_requests import collected, leave
from kubesync.aws.dynamodb.store import CONTROL, UPSTREAMS, Key, Update
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import ConnectError, ErrorCode, StoreUnavailableError
from kubesync_local.documents.last_resync import last_resyncs, resyncs_under_way
from simulation.gate import Outward
from simulation.world import Running

INNER: Final = "Z2"
ZONES: Final = (ZoneReference(id=ZONE_ID, name="example.com"), ZoneReference(id=INNER, name="example.com"))
WEB, API = "web.shop.svc.{}.example.com", "api.shop.svc.{}.example.com"


class Three(Deployment):
    """Clusters ``a``, ``b`` and ``prod``, each with two Services in two zones.

    Outside of what a session knows: in each cluster ``web`` was deleted by hand in the first zone, ``api`` was changed in the second,
    a Service ``lost`` is gone that no event told of, and an upstream of nobody stands in the table.

    Attributes:
        lists: by session, which clusters it listed since the last ``spoil``.
        strike_at: called before each outward call of a session.
        told: what sessions said of resyncs that ended, for the metric.
    """

    def __init__(self) -> None:
        super().__init__(zones=ZONES)
        self.route53.create(INNER, "example.com", private=True)
        self.lists: list[tuple[str, str]] = []
        self.strike_at: Callable[[Outward], None] = lambda _call: None
        self.told: list[int] = []
        self.request: ResyncRequest | None = None
        self.all = {"prod": self.cluster, "a": self.add_cluster("a"), "b": self.add_cluster("b")}
        for cluster in self.all.values():
            for number, name in enumerate(("web", "api", "lost"), 1):
                cluster.apply(name, a_service(cluster_ips=(f"10.0.0.{number}",)))
        self.run_session(10.0)
        self.wanted = self.standing()

    def start(self, resync: ResyncRequest | None = None) -> Running:
        """``resync``: start it for this one, as an invocation without a running master does."""
        gate = self.world.new_gate()
        gate.on_before, gate.on_after = self._before, self._after
        self.running = self.world.new_session(gate, resync=resync)
        self.running.session.on_resync = lambda ended: self.told.append(ended.errors)
        self.running.start()
        self.pass_time()
        return self.running

    def spoil(self) -> None:
        """See the class."""
        for name, cluster in self.all.items():
            self.change_by_hand(ZONE_ID, WEB.format(name), None)
            self.change_by_hand(INNER, API.format(name), "192.0.2.66")
            # As after a lost event: the object is gone, and the history says nothing.
            gone = next(place for place in cluster.live if place[2] == "lost")
            del cluster.live[gone]
            stray = f"{name}/shop/nobody/80/TCP"
            self.store.transact(
                UpstreamTable.put(stray, None, (), self.world.clock.epoch_seconds())[1], f"stray {name}"
            )
        self.lists.clear()

    def change_by_hand(self, zone_id: str, name: str, value: str | None) -> None:
        key = RecordKey(zone_id, name, "A")
        known = self.route53.records(zone_id)[key]
        self.route53.change(zone_id, [BatchChange("DELETE", key, known)], "", "a person")
        if value is not None:
            self.route53.change(zone_id, [BatchChange("CREATE", key, RecordSet(60, (value,)))], "", "a person")

    def standing(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Addresses in both zones."""
        return {
            (zone_id, key.name): found.values
            for zone_id in (ZONE_ID, INNER)
            for key, found in self.route53.records(zone_id).items()
            if key.type == "A"
        }

    def names_of_upstreams(self) -> list[str]:
        rows = self.store.scan(UPSTREAMS)
        return sorted(str(row["upstream"]) for row in rows if not row.get("deleted"))

    def ask(self, *, force: bool = False, dry_run: bool = False, scheduled: bool = True) -> ResyncRequest:
        self.request = leave(self.world, dry_run=dry_run, force=force, scheduled=scheduled, name="asked")
        return self.request

    def answer(self, seconds: float = 60.0) -> dict[str, Any] | None:
        assert self.request is not None
        for _ in range(round(seconds)):
            if (answer := collected(self.world, self.request)) is not None:
                return answer
            if self.running is None or not self.running.alive:
                break
            self.pass_time(1.0)
        return None

    def result(self) -> dict[str, Any]:
        (found,) = last_resyncs(self.store, "0")
        return found

    def rest(self) -> dict[str, Any]:
        """The next sessions run until the resync is answered."""
        self.strike_at = lambda _call: None
        for _ in range(3):
            self.pass_time(20.0)  # a killed session's lease expires
            self.start()
            answer = self.answer()
            if answer is not None:
                self.pass_time(5.0)
                self.end()
                return answer
            self.end()
        raise AssertionError("the resync is never answered")

    def _before(self, call: Outward) -> None:
        super()._before(call)
        verb, _, what = call.what.partition(" ")
        if call.service == "kubernetes" and verb == "list":
            assert self.running is not None
            self.lists.append((self.running.gate.name, what.split()[0]))
        self.strike_at(call)


@contextmanager
def three() -> Iterator[Three]:
    made = Three()
    try:
        yield made
    finally:
        made.close()


def counts(answer: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """By cluster: keys changed, upstreams removed, sets that drifted."""
    return {
        each["cluster"]: (each["changed_keys"], each["stray_upstreams"], each["counts"]["drift"])
        for each in answer["clusters"]
    }


def assert_mended(scene: Three) -> None:
    """Everything stands as the clusters want it, and only what is gone was deleted."""
    gone = {(zone_id, f"lost.shop.svc.{name}.example.com") for zone_id in (ZONE_ID, INNER) for name in scene.all}
    assert scene.standing() == {place: found for place, found in scene.wanted.items() if place not in gone}
    assert scene.names_of_upstreams() == [f"{n}/shop/{s}/80/TCP" for n in ("a", "b", "prod") for s in ("api", "web")]


def test_undisturbed_resync_reads_everything_once_for_all_clusters() -> None:
    with three() as scene:
        running = scene.start()
        scene.spoil()
        before = len(running.gate.calls)
        scene.ask()
        answer = scene.answer()
        assert answer is not None
        reads = Counter(
            " ".join(call.what.split()[:2])
            for call in running.gate.calls[before:]
            if call.thread.endswith("/resync") and not call.writes
        )
        # Of each cluster 16 parts of its states and 4 of its open keys: before its list, after it, and before each of two walks.
        assert (reads["query state"], reads["scan upstreams"]) == (240, 1)
        assert (reads["ListResourceRecordSets Z1"], reads["ListResourceRecordSets Z2"]) == (1, 1)
        assert counts(answer) == {"a": (1, 1, 2), "b": (1, 1, 2), "prod": (1, 1, 2)}
        scene.pass_time(5.0)
        assert scene.end().clean
        assert_mended(scene)


CALLS: Final = 280
"""An undisturbed session makes fewer from the request to the answer, by all its threads."""
WAYS: Final = ("killed before", "killed after", "ended")
SOME: Final = [*range(1, 41, 8), *range(41, CALLS, 40)]
EVERY_SECOND: Final = [number for number in range(2, CALLS + 1, 2) if number not in SOME]
SOAK: Final = (pytest.mark.thorough, pytest.mark.soak)


@pytest.mark.parametrize(
    ("number", "way"),
    [
        *((number, way) for number in SOME for way in WAYS),
        # In one of the ways; `make check` tries one in 10.
        *(pytest.param(n, WAYS[n % 3], marks=SOAK if n % 10 else pytest.mark.thorough) for n in EVERY_SECOND),
    ],
)
def test_i1_resync_that_is_cut_off_at_any_call_is_finished_by_the_next_sessions(number: int, way: str) -> None:
    with three() as scene:
        running = scene.start()
        scene.spoil()
        request = scene.ask()
        cut(scene, number, way)
        answer = scene.answer()
        if answer is None:
            running.wait()
            answer = scene.rest()
        else:
            scene.pass_time(5.0)
            scene.end()
        assert [each.get("error") for each in answer["clusters"]] == [None] * 3
        assert [each["cluster"] for each in answer["clusters"]] == ["a", "b", "prod"]
        assert {cluster for _, cluster in scene.lists} == {"a", "b", "prod"}, "each was listed after the request"
        assert_mended(scene)
        result = scene.result()
        assert (result["id"], result["by"], result["clusters"], result["errors"]) == (request.id, "schedule", 3, 0)
        assert list(scene.store.query(CONTROL, "resync#0")) == []


def cut(scene: Three, number: int, way: str, only: Callable[[Outward], bool] = lambda _call: True) -> None:
    """The session is cut off at one of its next calls: killed before or after its effect, or ended as at its deadline."""
    count = 0
    running = scene.running
    assert running is not None

    def strike(call: Outward) -> None:
        nonlocal count
        count += only(call)
        if count == number + (way == "killed after"):
            if way == "ended":
                running.session.stop(ErrorCode.MAX_RUNTIME)
            else:
                running.kill()

    scene.strike_at = strike


def is_walk(call: Outward) -> bool:
    return call.thread.endswith("/resync") and call.what.startswith("ListResourceRecordSets ")


def test_what_is_done_stays_done_in_the_next_session() -> None:
    with three() as scene:
        first = scene.start()
        scene.spoil()
        scene.ask()
        cut(scene, 2, "killed before", is_walk)
        assert scene.answer() is None
        assert first.gate.killed
        listed = list(scene.lists)
        assert len(scene.lists) == 6, "two resources of each cluster"
        (under_way,) = resyncs_under_way(scene.store, "0")
        assert (under_way["clusters"], under_way["done"], under_way["scheduled"]) == (3, 0, True)
        answer = scene.rest()
        assert scene.lists == listed, "the clusters resume, and the resync goes on with its zones"
        assert scene.running is not None
        assert [call.what for call in scene.running.gate.calls if is_walk(call)] == ["ListResourceRecordSets Z2"]
        # What the first session found is part of the report.
        assert counts(answer) == {"a": (1, 1, 2), "b": (1, 1, 2), "prod": (1, 1, 2)}
        assert_mended(scene)


def test_i1_cluster_whose_lists_were_cut_off_is_listed_by_the_next_session() -> None:
    with three() as scene:
        first = scene.start()
        scene.spoil()
        scene.ask()
        cut(scene, 1, "killed before", lambda call: call.service == "kubernetes" and call.what.startswith("list b"))
        assert scene.answer() is None
        assert first.gate.killed
        scene.rest()
        listed = {(session, cluster) for session, cluster in scene.lists if session != first.gate.name}
        assert {cluster for _, cluster in listed} == {"b", "prod"}
        assert_mended(scene)


@pytest.mark.parametrize("kind", ["forced", "dry run"])
def test_i5_forced_resync_does_not_go_on_in_the_next_session(kind: str) -> None:
    with three() as scene:
        running = scene.start()
        scene.spoil()
        scene.ask(force=kind == "forced", dry_run=kind == "dry run")
        cut(scene, 1, "ended", is_walk)
        answer = scene.answer() or scene.answer()
        running.wait()
        answer = answer or ResyncTable(scene.store, "0").collect(scene.request) if scene.request else None
        assert answer is not None
        ended = "the session ended before the resync was done: run it again"
        assert [each["error"] for each in answer["clusters"]] == [ended] * 3
        scene.strike_at = lambda _call: None
        scene.lists.clear()
        scene.start()
        scene.pass_time(60.0)
        scene.end()
        assert scene.lists == []
        assert not scene.answer()


@pytest.mark.parametrize(
    "call",
    [
        "get_item control resync#0/",
        "query control resync-parts#",
        "transact_write_items control lease#0/fence, resync#0/",
    ],
)
def test_session_of_its_own_that_cannot_use_the_tables_ends_in_order(call: str) -> None:
    with three() as scene:
        scene.spoil()
        request = scene.ask()

        def fail(outward: Outward) -> None:
            if outward.what.startswith(call) and outward.thread.endswith("/session"):
                raise StoreUnavailableError("the tables are gone")

        scene.strike_at = fail
        scene.start(request)
        scene.pass_time(60.0)
        report = scene.over()
        assert (report.ended, report.clean, report.resyncs) == ("ERR_MAX_RUNTIME", True, [])
        assert scene.answer() is None
        scene.rest()
        assert_mended(scene)


def test_resync_that_nobody_finishes_within_an_hour_ends_with_an_error() -> None:
    with three() as scene:
        scene.start()
        scene.spoil()
        request = scene.ask()
        cut(scene, 2, "killed before", is_walk)
        assert scene.answer() is None
        scene.strike_at = lambda _call: None
        scene.pass_time(3600.0)
        scene.start()
        scene.pass_time(10.0)
        result = scene.result()
        assert (result["id"], result["errors"]) == (request.id, 1)
        assert [each["error"] for each in result["report"]["clusters"]] == [
            "no session finished the resync within an hour: run it again"
        ]
        assert list(scene.store.query(CONTROL, "resync#0")) == []
        scene.end()
        assert scene.told == [1]


@pytest.mark.parametrize("dropped", [False, True], ids=["", "dropped by an older release"])
def test_i1_i2_master_that_lost_its_shard_keeps_no_result(*, dropped: bool) -> None:
    with three() as scene:
        scene.start()
        scene.spoil()
        scene.ask()
        last = 14  # the answer; before it: how far it is

        def fence() -> None:
            with scene.world.unseen():
                scene.store.write(Update(Key(CONTROL, "lease#0", "fence"), set={"epoch": 99}))
                if dropped:
                    assert scene.request is not None
                    ResyncTable(scene.store, "0").withdraw(scene.request)

        scene.at("request answered", fence, skip=last - 1)
        scene.pass_time(60.0)
        assert scene.running is not None
        assert not scene.running.alive
        assert last_resyncs(scene.store, "0") == []
        assert scene.answer() is None


def test_resync_that_is_withdrawn_stops_and_leaves_nothing() -> None:
    with three() as scene:
        scene.start()
        scene.spoil()
        request = scene.ask()

        def withdraw(call: Outward) -> None:
            if is_walk(call):
                scene.strike_at = lambda _call: None
                with scene.world.unseen():
                    ResyncTable(scene.store, "0").withdraw(request)

        scene.strike_at = withdraw
        scene.pass_time(60.0)
        assert scene.end().clean
        assert last_resyncs(scene.store, "0") == []
        assert list(scene.store.query(CONTROL, "resync#0")) == []


def test_i5_forced_resync_whose_caller_is_gone_lists_no_longer() -> None:
    with three() as scene:
        scene.start()
        scene.spoil()
        refused = 0

        def refuse(call: Outward) -> None:
            nonlocal refused
            if call.service == "kubernetes" and call.what.startswith("list "):
                refused += 1
                raise ConnectError("connection refused")

        scene.strike_at = refuse
        request = scene.ask(force=True, scheduled=False)
        scene.pass_time(2.0)
        assert refused > 0
        with scene.world.unseen():
            ResyncTable(scene.store, "0").withdraw(request)
        scene.pass_time(3.0)  # a list that fails is tried for 20 s
        scene.strike_at = lambda _call: None
        scene.pass_time(30.0)
        assert scene.end().clean
        assert [each["error"] for each in scene.result()["report"]["clusters"]] == ["the resync was withdrawn"] * 3
        lost = {name for _, name in scene.standing() if name.startswith("lost.")}
        assert lost == {f"lost.shop.svc.{name}.example.com" for name in ("a", "b", "prod")}, "nothing was listed again"
