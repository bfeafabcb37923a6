"""Three clusters have to list again, and there is room for one at a time. A fourth one goes on watching."""

from collections.abc import Iterator
from itertools import batched

import pytest

from harness.deployment import Deployment
from harness.seen.builders import a_service
from kubesync.domain.errors import StoreUnavailableError
from simulation.gate import Outward

LONG_SECONDS = 400.0
# Two of them fill the room.
LIST_BYTES = 10 * 1024 * 1024


class Four(Deployment):
    """Clusters ``a``, ``b`` and ``c`` whose watches have expired since the last session, and ``prod``, whose watch goes on.

    Attributes:
        held: of these clusters nothing can be written.
        lists: which clusters were listed in the session that runs, in the order in which they began.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held: set[str] = set()
        self.lists: list[str] = []
        self.others = [self.add_cluster(name) for name in "abc"]
        self.want("web", "10.0.0.1")
        for cluster in self.others:
            cluster.apply("web", a_service(cluster_ips=("10.0.0.1",), ports=()))
        self.start()
        self.pass_time(30.0)
        self.end()
        assert sorted(set(self.lists)) == ["a", "b", "c", "prod"]
        self.lists.clear()
        for cluster in self.others:
            cluster.apply("web", a_service(cluster_ips=("10.0.0.2",), ports=()))
            cluster.compact()

    def _before(self, call: Outward) -> None:
        super()._before(call)
        verb, _, what = call.what.partition(" ")
        if call.service == "kubernetes" and verb == "list":
            self.lists.append(what.split()[0])
        if call.writes and self.held.intersection(call.thread.split("/")):
            raise StoreUnavailableError("not now")

    def address(self, cluster: str) -> tuple[str, ...]:
        """Of ``web`` in a cluster, as it stands in the zone."""
        found = self.route53.records("Z1").items()
        return next(s.values for key, s in found if key.name == f"web.shop.svc.{cluster}.example.com")


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> Iterator[Four]:
    monkeypatch.setattr("simulation.cluster.LIST_BYTES", LIST_BYTES)
    made = Four()
    yield made
    made.world.close()


def test_i4_clusters_that_wait_are_served_in_turn_and_hold_up_no_watch(four: Four) -> None:
    four.held = set("abc")
    four.start()
    four.pass_time(30.0)
    first = four.lists[0]
    assert four.lists == [first, first], "services and endpoints of one cluster"
    four.want("web", "10.0.0.9")
    four.pass_time(3.0)
    assert four.address("prod") == ("10.0.0.9",)
    assert four.address(first) == ("10.0.0.1",)

    four.pass_time(LONG_SECONDS)
    assert all(one == other for one, other in batched(four.lists, 2)), "one cluster at a time, however long it takes"
    four.held = set()
    four.pass_time(60.0)
    assert [four.address(name) for name in "abc"] == [("10.0.0.2",)] * 3
    assert set(four.lists) == {"a", "b", "c"}
    assert four.end().clean


def test_each_cluster_that_is_done_stays_done_when_the_session_is_killed(four: Four) -> None:
    four.held = set("abc")
    running = four.start()
    four.pass_time(30.0)
    first = four.lists[0]
    four.held.remove(first)
    four.pass_time(30.0)
    second = four.lists[2]
    assert four.lists == [first, first, second, second]
    running.kill()
    four.held, four.lists = set(), []
    four.pass_time(60.0)
    four.start()
    four.pass_time(60.0)
    assert first not in four.lists, "it resumes"
    assert [four.address(name) for name in "abc"] == [("10.0.0.2",)] * 3


def test_i4_cluster_that_is_disabled_while_it_holds_the_room_holds_nobody_up(four: Four) -> None:
    four.held = set("abc")
    four.start()
    four.pass_time(30.0)
    first = four.lists[0]
    four.world.configure(first, disabled=True)
    four.held = {first}
    four.pass_time(60.0)
    waited = sorted(set("abc") - {first})
    assert [four.address(name) for name in waited] == [("10.0.0.2",)] * 2
    assert four.end().clean


def test_i4_cluster_whose_lists_cannot_be_recorded_gives_way_to_others(four: Four) -> None:
    four.held = set("abc")
    four.start()
    four.pass_time(5.0)
    first = four.lists[0]
    four.held = {first}
    four.pass_time(30.0)
    assert four.lists == [first, first], "it is tried for a minute"
    four.pass_time(70.0)
    assert [four.address(name) for name in sorted(set("abc") - {first})] == [("10.0.0.2",)] * 2
    assert four.address(first) == ("10.0.0.1",)
    lists = len(four.lists)
    four.pass_time(LONG_SECONDS)
    assert len(four.lists) == lists, "nobody waits for it any more"
    four.held = set()
    four.pass_time(30.0)
    assert four.address(first) == ("10.0.0.2",)
    assert four.end().clean


def test_dry_run_keeps_both_lists_of_a_cluster_although_they_are_larger_than_the_room(
    four: Four, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulation.cluster.LIST_BYTES", 2 * LIST_BYTES)
    four.start()
    four.pass_time(60.0)
    four.cluster.apply("new", a_service(cluster_ips=("10.0.0.7",), ports=()))
    four.pass_time(0.1)
    listed = four.lists.count("prod")
    began = four.world.machine.now
    report = four.resync("prod", dry_run=True)
    assert "error" not in report["clusters"][0]
    assert four.lists.count("prod") == listed + 2
    assert four.world.machine.now - began < 20.0
    assert four.end().clean
