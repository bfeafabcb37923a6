"""A batch of several clusters: each closes its own keys. Until the next batch, the zone's inflight item names this one."""

from collections.abc import Callable, Iterator

import pytest

from harness.deployment import Deployment
from harness.fakes.fencing import raise_fence
from harness.fakes.memory_store import Call
from harness.sessions.transactions import Transactions, fences, is_state
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key, Update
from kubesync.aws.tables.control.fences import fence_key
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import OpenMark
from simulation.writes import SENT

CLUSTERS = ("a", "b", "c")
PUBLISHED = {f"web.shop.svc.{name}.example.com A": ("10.0.0.1",) for name in CLUSTERS}


class Batch(Deployment):
    """A session runs. One open key of each cluster waits for one batch, and Route 53 answers an earlier one only now."""

    def __init__(self) -> None:
        super().__init__()
        self.meet_in_one_batch([self.add_cluster(name) for name in CLUSTERS])
        self.transactions = Transactions(self)

    def let_land(self, seconds: float = 5.0, *, closing: Callable[[], object] | None = None, nth: int = 1) -> None:
        """Answer. ``closing`` is called before the nth cluster of the batch closes its key."""
        if closing is not None:
            self.at(SENT, lambda: self.at("batch closed", closing, skip=nth - 1), after=True, skip=1)
        self.route53.let_through(None)
        self.pass_time(seconds)

    def mark(self, cluster: str) -> OpenMark | None:
        key = ObjectKey(cluster, "shop", "web")
        return StateTable(self.store).load([key])[key].opened

    def open_clusters(self) -> list[str]:
        return [name for name in CLUSTERS if self.mark(name) is not None]


@pytest.fixture(autouse=True)
def all_list_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their keys are meant to meet in one batch."""
    monkeypatch.setattr("simulation.cluster.LIST_BYTES", 1)


@pytest.fixture
def batch() -> Iterator[Batch]:
    made = Batch()
    yield made
    made.close()


def names_inflight(call: Call) -> bool:
    return any(action.key.partition.startswith("inflight#") for action in call.actions)


def test_each_cluster_closes_under_its_own_fence_and_the_zone_clears_the_inflight_item_at_its_end(batch: Batch) -> None:
    batch.let_land()
    _first, *closed = batch.transactions.of_keys()
    assert [fences(call) for call in closed] == [{fence_key(name)} for name in CLUSTERS]
    assert [names_inflight(call) for call in closed] == [False, False, False]
    assert batch.open_clusters() == []
    assert f"batch={batch.announced()}" in batch.journal
    assert [len(sent) for sent in batch.sent] == [2, 5], "a journal swap is 1 at first, then 2"
    assert batch.end().clean
    assert batch.announced() == ""


def test_i1_crash_between_the_closings_of_two_clusters_is_settled_by_the_next_session(batch: Batch) -> None:
    batch.let_land(20.0, closing=batch.kill, nth=2)
    assert batch.sets() == {**PUBLISHED, "first A": ("192.0.2.250",)}
    assert batch.open_clusters() == ["b", "c"]
    assert batch.announced() != "", "what is not closed yet is still under way"
    batch.start()
    batch.pass_time(20.0)
    assert (batch.open_clusters(), batch.announced()) == ([], "")
    report = batch.zone_report(batch.end())
    assert (report["batches"], report["refused"]) == (0, 0)
    assert batch.sets() == {**PUBLISHED, "first A": ("192.0.2.250",)}


def test_refusal_that_one_cluster_has_recorded_waits_while_another_cluster_cannot(batch: Batch) -> None:
    def newer() -> None:
        """A newer release has written a key of the last cluster."""
        with batch.world.unseen():
            (place,) = [key for key in batch.store.dump() if is_state(key) and key.partition.startswith("c#")]
            batch.store.write(Update(place, {"v": 2}))

    batch.refuse(*(f"web.shop.svc.{name}.example.com" for name in CLUSTERS))
    batch.at(SENT, newer, skip=1)
    batch.let_land(25.0)
    marks = [batch.mark(name) for name in ("a", "b")]
    # At first, about 5 s later, and about 10 s after that.
    assert [mark.attempts for mark in marks if mark is not None] == [3, 3]


def test_what_has_landed_of_clusters_that_nobody_may_close_here_is_under_way_no_more(batch: Batch) -> None:
    """Their session was killed. They were removed by hand and added to another shard, whose master has fenced them."""
    batch.let_land(20.0, closing=batch.kill)
    assert (batch.open_clusters(), batch.announced() != "") == (["a", "b", "c"], True)
    for name in CLUSTERS:
        batch.store.write(Delete(Key(CONTROL, "clusters", name)))
        raise_fence(batch.store, name, 9)
    batch.start()
    batch.pass_time(20.0)
    assert batch.announced() == ""
    assert batch.open_clusters() == ["a", "b", "c"], "that is for their own master"
    assert batch.end().clean


def test_busy_cluster_does_not_hold_up_the_closing_of_the_others(batch: Batch) -> None:
    batch.let_land(3.0, closing=lambda: batch.hold(10.0))
    assert batch.open_clusters() == ["a"]
    batch.pass_time(10.0)
    assert batch.open_clusters() == []
