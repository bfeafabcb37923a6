"""The removal of a cluster: outputs go or stay, as was asked for; nothing that is kubesync's own stays behind."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.deployment import Deployment
from harness.seen.builders import a_service, an_endpoints
from kubesync.aws.dynamodb.store import AUDIT
from kubesync.aws.tables.control.clusters import OnDelete
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.plan import Policy
from kubesync_local.workplace.registry import ClusterRegistry
from simulation.gate import Outward
from simulation.writes import RECORD, SENT

WAITED_FOR = "x.example.com"
SERVICE = a_service(annotations={"hostname": WAITED_FOR})
WEB, LATE = "prod/shop/web/80/TCP", "prod/shop/late/80/TCP"
# The lease tells of it after 2 s at most; a step every second.
REMOVED = 15.0


class RemovedCluster(Deployment):
    """A session runs. Cluster ``prod`` has one Service that is published with two slices, and one without pods."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[Outward] = []
        self.start()
        self.apply("web", SERVICE)
        for number in (1, 2):
            self.apply("web", an_endpoints(f"10.1.0.{number}"), slice_name=f"web-{number}")
        self.want("late", "10.0.0.2")
        self.pass_time()

    def remove(self, seconds: float = REMOVED, **changes: Any) -> None:
        """Mark it as being deleted, and let the session remove it."""
        self.world.configure("prod", deleting=True, **changes)
        self.pass_time(seconds)

    @property
    def registered(self) -> bool:
        return ClusterRegistry(self.store).get("prod") is not None

    def left(self) -> list[str]:
        """What is still stored for the cluster, audit, fence, outputs that are kept, and removed upstreams aside."""
        return sorted(
            f"{key.table}/{key.partition}/{key.sort}"
            for key, item in self.store.dump().items()
            if "prod" in f"{key.partition}/{key.sort}/{item.get('owner')!s}"
            and (key.table, key.sort) != ("control", "fence")
            and key.table not in (AUDIT, "upstreams")
        )

    def keys_with_parts(self) -> int:
        """Keys whose objects are still remembered."""
        return sum(bool(state.parts) for state in StateTable(self.store).load_all("prod"))

    def _before(self, call: Outward) -> None:
        self.reads.append(call)
        super()._before(call)


@pytest.fixture
def case() -> Iterator[RemovedCluster]:
    made = RemovedCluster()
    assert sorted(made.sets()) == ["late A", "web A", "x.example.com A"]
    assert made.upstreams() == {LATE: [], WEB: ["10.1.0.1:8080", "10.1.0.2:8080"]}
    yield made
    made.close()


def test_outputs_go_first_and_then_everything_that_is_known_of_the_cluster(case: RemovedCluster) -> None:
    case.route53.let_through(0)
    case.remove()
    assert case.upstreams() == {}
    assert (len(case.sets()), case.registered) == (3, True), "its record sets still stand in the zone"
    case.route53.let_through(None)
    case.pass_time(10.0)
    assert (case.sets(), case.left()) == ({}, [])
    assert case.end().clean


def test_outputs_stay_where_that_was_asked_for_and_nothing_else_does(case: RemovedCluster) -> None:
    case.remove(on_delete=OnDelete.RETAIN)
    assert case.left() == []
    assert case.upstreams() == {LATE: [], WEB: ["10.1.0.1:8080", "10.1.0.2:8080"]}
    assert sorted(case.sets()) == ["late A", "web A", "x.example.com A"]


def test_i3_outputs_that_stay_are_forgotten_once_no_batch_of_them_is_under_way(case: RemovedCluster) -> None:
    """Else the batch, once it has landed, would bring back a key that kubesync has forgotten."""
    case.at(SENT, lambda: case.hold(30.0))
    case.want("new", "10.0.0.3")
    case.pass_time()
    case.remove(20.0, on_delete=OnDelete.RETAIN)
    assert case.keys_with_parts() == 3
    case.pass_time(30.0)
    assert case.left() == []
    assert sorted(case.sets()) == ["late A", "new A", "web A", "x.example.com A"]


@pytest.mark.parametrize("policy", [Policy.UPSERT_ONLY, Policy.CREATE_ONLY])
def test_policy_that_forbids_deletions_forbids_them_here_too(case: RemovedCluster, policy: Policy) -> None:
    case.remove(policy=policy)
    assert case.left() == []
    assert case.upstreams()[WEB] == ["10.1.0.1:8080", "10.1.0.2:8080"]
    assert sorted(case.sets()) == ["late A", "web A", "x.example.com A"]


@pytest.mark.parametrize("kind", [RECORD, SENT, "keys swept", "cluster forgotten"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_i1_next_session_goes_on_with_a_removal_that_was_not_finished(
    case: RemovedCluster, kind: str, *, after: bool
) -> None:
    case.at(kind, case.kill, after=after)
    case.remove(20.0)
    assert case.running is not None
    assert not case.running.alive
    case.start()
    case.pass_time(30.0)
    assert (case.sets(), case.upstreams(), case.left()) == ({}, {}, [])


def test_configuration_that_was_registered_again_meanwhile_is_not_forgotten(case: RemovedCluster) -> None:
    def again() -> None:
        with case.world.unseen():
            case.world.configure("prod", deleting=False)

    case.at("cluster forgotten", again)
    case.remove(on_delete=OnDelete.RETAIN)
    assert [config.deleting for config in case.world.configured()] == [False]


def test_name_that_a_key_of_another_cluster_waits_for_is_given_to_it(case: RemovedCluster) -> None:
    other = case.add_cluster("other")
    case.pass_time(4.0)
    other.apply("web", a_service(cluster_ips=["10.9.0.1"], annotations={"hostname": WAITED_FOR}))
    case.pass_time()
    assert (case.claims()[WAITED_FOR], case.sets()["x.example.com A"]) == ("prod/shop/web", ("10.0.0.1",))
    case.remove()
    assert (case.claims()[WAITED_FOR], case.sets()["x.example.com A"]) == ("other/shop/web", ("10.9.0.1",))
    assert case.left() == []


def test_steps_are_short_however_many_keys_there_are(case: RemovedCluster) -> None:
    """What else people ask for is done in between."""
    for number in range(100):
        case.want(f"s{number}", f"10.0.1.{number}")
    case.pass_time(4.0)
    assert case.keys_with_parts() == 102
    case.at(RECORD, lambda: case.hold(2.0), times=None)
    case.remove(3.0)
    added = case.add_cluster("other")
    for _ in range(20):
        if not added.watchers:
            case.pass_time(0.5)
    assert added.watchers != [], "it is listened to"
    assert 0 < case.keys_with_parts() < 102
    case.spare()
    case.pass_time(REMOVED)
    assert case.left() == []


def test_what_is_left_is_asked_for_with_one_small_query(case: RemovedCluster) -> None:
    case.route53.let_through(0)
    case.remove()
    case.reads.clear()
    case.pass_time(10.0)
    asked = [call for call in case.reads if call.what.split(" ")[1] == "state"]
    assert {call.what.split(" ")[0] for call in asked} == {"query"}
    # Two of the buckets of keys every second, and four of those of open keys every five seconds.
    assert len(asked) <= 10 * 2 + 2 * 4 + 2


def test_a_key_that_a_batch_brought_back_goes_before_the_cluster_is_forgotten(case: RemovedCluster) -> None:
    """A Service came and went while its batch was under way: nothing is left of its key, until the batch lands."""
    for name in ("web", "late"):
        case.delete(name)
    case.pass_time()
    case.at(SENT, lambda: case.hold(30.0))
    case.want("new", "10.0.0.3")
    case.pass_time()
    case.remove(20.0)
    assert list(StateTable(case.store).load_all("prod")) == []
    assert case.registered, "nothing is forgotten while a batch of the cluster is under way"
    case.pass_time(20.0)
    assert case.sent[-1][-1].action == "DELETE"
    assert (case.sets(), case.left()) == ({}, [])


def test_step_does_not_wait_for_whoever_holds_the_cluster(case: RemovedCluster) -> None:
    """Its deletions are closed, which takes long; what else people ask for is done meanwhile."""
    case.at("batch closed", lambda: case.hold(30.0))
    case.remove(5.0)
    assert case.sets() == {}
    added = case.add_cluster("other")
    case.pass_time(9.0)
    assert added.watchers != [], "it is listened to"
    assert case.registered
    case.pass_time(40.0)
    assert case.left() == []


def test_step_gives_up_while_the_table_is_busy_and_goes_on_with_the_next(case: RemovedCluster) -> None:
    def busy() -> None:
        raise StoreBusyError("busy")

    case.at(RECORD, busy, times=None)
    case.remove(3.0)
    added = case.add_cluster("other")
    case.pass_time(9.0)
    assert added.watchers != [], "it is listened to"
    assert len(case.sets()) == 3
    case.spare()
    case.pass_time(REMOVED)
    assert (case.sets(), case.left()) == ({}, [])
