"""What `make chaos` found, distilled: each failed before it was mended."""

import pytest

from harness.cluster_tables import cluster_tables
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore, NoFaults
from harness.fed import FedDeployment
from harness.seen.builders import a_key, a_service, an_endpoints, saw
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.lease import Lease, LeaseTable, lease_key
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.claims.claim_book import ClaimBook
from kubesync.domain.errors import NotMasterError
from kubesync.domain.objects import Service
from kubesync.domain.state import KeyState, Name
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes
from kubesync_local.workplace.items_in_memory import holds

HIDDEN: Service = a_service(annotations={"kubesync.io/exclude": "true"})


class TakesFirst(NoFaults):
    """Another session takes the lease just before a session's own taking, which would have succeeded, has its effect."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.taken: Lease | None = None

    def before(self, call: Call) -> None:
        if self.taken is not None or not call.actions or call.actions[0].key != lease_key("0"):
            return
        item = self._store.dump().get(lease_key("0"))
        if all(holds(condition, item) for condition in call.actions[0].conditions):
            self._store.faults = NoFaults()
            table = LeaseTable(self._store, "0")
            self.taken = table.take(table.read(), "other", table.draw_epoch(), 2_000_000_000_000)


@pytest.mark.parametrize("signalled", [False, True], ids=["no lease item", "an item that holds a signal only"])
def test_i2_lease_that_was_never_held_goes_to_one_of_two_sessions(signalled: bool) -> None:
    clock = ManualClock()
    store = MemoryStore(clock=clock)
    table = LeaseTable(store, "0")
    if signalled:
        table.signal()  # a cluster was registered before the first session
    store.faults = first = TakesFirst(store)
    keeper = LeaseKeeper(table, "me", LeaseTimes(stand_by=0.0), clock)
    with pytest.raises(NotMasterError):
        keeper.acquire(lambda: True)
    assert first.taken is not None
    assert (table.read().holder, table.read().epoch) == ("other", first.taken.epoch)
    assert table.read().signal == int(signalled)


def test_i2_keeper_says_that_the_lease_was_another_s_when_it_was_to_be_released() -> None:
    clock = ManualClock()
    table = LeaseTable(MemoryStore(clock=clock), "0")
    keeper = LeaseKeeper(table, "me", LeaseTimes(), clock)
    keeper.acquire(lambda: True)
    clock.advance(60)
    table.take(table.read(), "other", table.draw_epoch(), 0)
    assert keeper.release(clean=True) is False
    assert table.read().holder == "other"


def test_release_that_landed_and_is_repeated_is_no_lost_lease() -> None:
    clock = ManualClock()
    table = LeaseTable(MemoryStore(clock=clock), "0")
    keeper = LeaseKeeper(table, "me", LeaseTimes(), clock)
    _, lease = keeper.acquire(lambda: True)
    table.release(lease, clean=True)
    assert keeper.release(clean=True) is True
    assert table.read().released


GONE = (saw(None, 20, "hidden", deleted=True), saw(an_endpoints(service="alone"), 21, "alone-1", deleted=True))


def gone_in_an_unclean_session() -> FedDeployment:
    """A session sees keys go that never led to anything, and dies before it sweeps."""
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(HIDDEN, 5, "hidden"), slices=[saw(an_endpoints("10.1.0.1", service="alone"), 6, "alone-1")])
    session.record(*GONE)
    return deployment


def test_tombstones_that_nobody_swept_are_noted_for_the_next_session() -> None:
    queued = StateTable(gone_in_an_unclean_session().store).queued("prod")
    assert (queued.marks, queued.to_plan) == ({}, set())
    assert queued.unswept == {a_key("hidden"), a_key("alone")}


def test_tombstones_that_nobody_swept_are_swept_by_the_next_session_without_a_list() -> None:
    following = gone_in_an_unclean_session().session()
    following.record(*GONE)  # no checkpoint was written since
    following.wait(60)
    assert {state.key.name for state in following.state_table.load_all("prod")} == {"kubernetes"}
    assert following.state_table.queued("prod").unswept == set()


@pytest.mark.parametrize(
    ("wanted", "stays"),
    [
        (Name("Z1", "www.example.com", "eu", "latency:eu-west-1"), True),  # a simple claim is in its way
        (Name("Z1", "other.example.com"), False),
    ],
    ids=["a set with a policy", "another name"],
)
def test_i9_who_waits_for_room_stays_in_line_in_the_commit_in_which_the_owner_leaves(
    wanted: Name, *, stays: bool
) -> None:
    """Its older event came again, in the window in which the owner let go: the old set went before the new one came."""
    store, name = MemoryStore(clock=ManualClock()), Name("Z1", "www.example.com")
    claims, owner, waiter = ClaimTable(store), a_key("owner"), a_key("waiter")
    place = claims.waiter_place(name, waiter, "2026-01-01T00:00:00Z")
    store.transact(claims.change(None, Claim(name, owner, 1, 1), {place: waiter}), "first")
    book = ClaimBook(cluster_tables(store), KeyState, lambda _key, _name: None)
    book.read({name})
    book.note_queues(KeyState(waiter, waits=frozenset({name})), "2026-01-01T00:00:00Z", {wanted})
    assert (book.heir(name, owner) == waiter) is stays
