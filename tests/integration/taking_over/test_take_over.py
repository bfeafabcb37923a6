"""A take-over asks about many clusters at the same time, or in one request: what it takes does not grow with their number."""

import threading
from itertools import takewhile

import pytest

from harness.fakes.memory_store import Call
from harness.fakes.store_faults import StoreFaults
from harness.fed import FedDeployment
from harness.seen.builders import SERVICES, SLICES, a_config, a_list, a_service, identity, saw
from kubesync.actors.parallel import ParallelMap
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import Action, Check
from kubesync.domain.errors import StoreBusyError, StoreUnavailableError
from simulation.world import Running

CLUSTERS = [f"c{n:02d}" for n in range(50)]


class CountsReadsAtOnce:
    """Reads of open keys take a while; ``most``: how many there are at a time."""

    def __init__(self, deployment: FedDeployment) -> None:
        self.under_way = 0
        self.most = 0
        self._deployment = deployment

    def before(self, call: Call) -> None:
        if "#open#" in call.partition:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self._deployment.hold(0.01)

    def after(self, call: Call) -> None:
        if "#open#" in call.partition:
            self.under_way -= 1


def left_by_a_session(clusters: list[str]) -> FedDeployment:
    """Checkpoints, identities, and one open key in every tenth cluster."""
    first, *others = [a_config(name=name) for name in clusters]
    deployment = FedDeployment(first, *others)
    session = deployment.session()
    for number, name in enumerate(clusters):
        found = [saw(a_service(ports=()), 5)] if number % 10 == 0 else []
        session.feed(a_list(100 + number, identity(uid=f"uid-{name}"), *found), name)
        session.feed(a_list(100 + number, resource=SLICES), name)
    session.wait(6.0)  # the lease is renewed: it says by now how many clusters are registered
    assert [name for name in clusters if session.open(name)] == clusters[::10]
    return deployment


def raises_a_fence(action: Action) -> bool:
    return action.key.sort == "fence" and not isinstance(action, Check)


def asked_at_take_over(running: Running) -> list[str]:
    """What the session asked of DynamoDB before it looked for requests."""
    calls = [call for call in running.gate.calls if call.service == "dynamodb"]
    of_session = [c.what for c in calls if c.thread.endswith("/session") or "parallel" in c.thread]
    return list(takewhile(lambda what: "resync#0" not in what, of_session))


def test_reads_of_many_clusters_overlap_and_are_bounded() -> None:
    deployment = left_by_a_session(CLUSTERS)
    deployment.faults = at_once = CountsReadsAtOnce(deployment)
    following = deployment.session()
    assert 8 <= at_once.most <= 16
    assert [following.resumes_from(SERVICES, name) for name in CLUSTERS] == list(range(100, 150))


@pytest.mark.parametrize("count", [1, 20, 25, 50])
def test_take_over_asks_for_one_transaction_and_few_reads(count: int) -> None:
    following = left_by_a_session(CLUSTERS[:count]).session()
    asked = asked_at_take_over(following.running)
    operations = [what.split()[0] for what in asked]
    assert operations.count("transact_write_items") == 1
    # Checkpoints, errors, identities, ends of credentials and large keys: 9 items of each cluster, 100 with one request.
    assert operations.count("batch_get_item") == (9 * count + 99) // 100
    # And the states of open keys: each cluster reads its own.
    of_clusters = [call.what for call in following.running.gate.calls if call.thread.endswith("/cluster")]
    assert [what.split()[0] for what in of_clusters].count("batch_get_item") == (count + 9) // 10
    queues = [what for what in asked if what.startswith("query state ") and "#open#" in what]
    assert len(queues) == 4 * count
    # The registry, and what there is one of, however many clusters there are.
    assert operations.count("query") - len(queues) <= 3
    assert operations.count("get_item") <= 4


def test_what_was_remembered_is_taken_over() -> None:
    following = left_by_a_session(CLUSTERS).session()
    assert (following.resumes_from(SERVICES, "c42"), following.resumes_from(SLICES, "c42")) == (142, 142)
    following.record(lists=(a_list(150, identity(uid="uid-c41"), resource=SERVICES),), cluster="c40")
    (report,) = [found for found in following.end().clusters if found.cluster == "c40"]
    assert report.held["services"].startswith("the uid of Service default/kubernetes is not the remembered one")


def test_i2_no_state_is_read_before_all_fences_are_raised() -> None:
    deployment = left_by_a_session(CLUSTERS)
    deployment.calls.clear()
    deployment.session()
    asked = list(deployment.calls)
    raised = [{a.key.partition for a in call.actions if raises_a_fence(a)} for call in asked]
    assert set().union(*raised) == {"lease#0", *(f"cluster#{name}" for name in CLUSTERS)}
    before = asked[: max(n for n, partitions in enumerate(raised) if partitions)]
    read = {call.partition for call in before if not call.keys and not call.actions}
    read |= {key.partition for call in before for key in call.keys}
    assert read == {"lease", "lease#0", "clusters"}


def test_read_that_is_throttled_is_repeated_and_one_that_fails_ends_the_take_over() -> None:
    deployment = left_by_a_session(CLUSTERS)
    deployment.faults = faults = StoreFaults()
    faults.fail(lambda call: call.partition == "c30#open#2", StoreBusyError("throttled"), times=2)
    following = deployment.session()
    following.land()
    assert [name for name in CLUSTERS if following.open(name)] == []
    faults.fail(lambda call: call.partition == "c33#open#2", StoreUnavailableError("no such table"))
    last = deployment.session()
    assert isinstance(last.running.error, StoreUnavailableError)


def test_parallel_map_with_one_thread_does_everything_in_the_callers_own_and_in_order() -> None:
    threads: list[threading.Thread] = []

    def call(thing: int) -> int:
        threads.append(threading.current_thread())
        return thing * thing

    assert ParallelMap(ThreadScheduler(), 1)(call, [3, 1, 2]) == [9, 1, 4]
    assert threads == [threading.current_thread()] * 3
    assert ParallelMap(ThreadScheduler(), 2)(call, [3, 1, 2]) == [9, 1, 4]
    assert threading.current_thread() not in threads[3:]
