"""A batch of several clusters: each closes its own keys, and the inflight item is cleared with the last of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.deployment import ZONE_ID
from harness.fakes.fencing import raise_fence
from harness.fakes.memory_store import Call
from harness.fakes.store_faults import StoreFaults
from harness.fed import CrashError, FedDeployment, FedSession
from harness.seen.builders import SLICES, a_config, a_list, a_service, identity, saw
from kubesync.aws.dynamodb.store import CONTROL, Check, Delete, Key
from kubesync.aws.tables.control.fences import fence_key
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.domain.errors import StoreUnavailableError
from kubesync.domain.objects import Snapshot

CLUSTERS = ("a", "b", "c")


def a_batch(*names: str) -> tuple[FedDeployment, FedSession]:
    """One open key of each cluster, all to be sent with the next batch: until then an earlier one is under way."""
    first, *others = [a_config(name=name) for name in names]
    deployment = FedDeployment(first, *others)
    session = deployment.session()
    session.record(lists=lists("first"), cluster=names[0])
    for name in names:
        for listed in lists("first", "web") if name == names[0] else lists("web"):
            session.feed(listed, name)
    session.wait(1.5)
    assert open_in(session, *names) == sorted(names)
    deployment.calls.clear()
    return deployment, session


def die(_call: Call) -> None:
    raise CrashError


def lists(*services: str) -> tuple[Snapshot, Snapshot]:
    found = (saw(a_service(ports=()), 5, name) for name in services)
    return a_list(10, identity(), *found), a_list(10, resource=SLICES)


def open_in(session: FedSession, *names: str) -> list[str]:
    """Clusters whose key is open."""
    return [name for name in names or CLUSTERS if "web" in session.open(name)]


def is_of(cluster: str) -> Callable[[Call], bool]:
    """Whether a call writes that cluster's key."""
    return lambda call: any(
        a.key.partition.startswith(f"{cluster}#") and a.key.sort == "key#shop/web" for a in call.actions
    )


def closings(deployment: FedDeployment) -> list[Call]:
    """Transactions that write keys."""
    return [call for call in deployment.calls if any(is_of(name)(call) for name in CLUSTERS)]


def fences(call: Call) -> set[Key]:
    return {action.key for action in call.actions if isinstance(action, Check)}


def names_inflight(call: Call) -> bool:
    return any(action.key.partition.startswith("inflight#") for action in call.actions)


def announced(deployment: FedDeployment) -> str:
    """The batch that is said to be under way."""
    found = InflightTable(deployment.store, "0").read(ZONE_ID)
    return found.batch if found is not None else ""


def published(deployment: FedDeployment) -> list[str]:
    """Addresses in the zone."""
    return sorted(key.name for key in deployment.route53.records(ZONE_ID) if key.type == "A")


ALL = ["first.shop.svc.a.example.com"] + [f"web.shop.svc.{name}.example.com" for name in CLUSTERS]


def test_each_cluster_closes_under_its_own_fence_and_the_last_one_clears_the_inflight_item() -> None:
    deployment, session = a_batch(*CLUSTERS)
    session.land()
    closed = closings(deployment)
    assert [fences(call) for call in closed] == [{fence_key(name)} for name in CLUSTERS]
    assert [names_inflight(call) for call in closed] == [False, False, True]
    assert (open_in(session), announced(deployment)) == ([], "")
    assert len(deployment.route53.sent) == 2, "one batch of all three"


def test_i1_crash_between_the_closings_of_two_clusters_is_settled_by_the_next_session() -> None:
    deployment, session = a_batch(*CLUSTERS)
    faults = deployment.faults = StoreFaults()
    faults.do(is_of("b"), die)
    with pytest.raises(CrashError):
        session.land()
    deployment.spare()
    assert published(deployment) == ALL
    assert open_in(session) == ["b", "c"]
    assert announced(deployment) != "", "what is not closed yet is still under way"
    following = deployment.session()
    following.land()
    assert (open_in(following), announced(deployment)) == ([], "")
    (zone,) = following.end().zones
    assert (zone["batches"], zone["refused"]) == (0, 0)
    assert published(deployment) == ALL


def test_refusal_that_one_cluster_has_recorded_waits_while_another_cluster_is_busy() -> None:
    deployment, session = a_batch("a", "b")
    deployment.route53.refused = set(ALL[1:])
    faults = deployment.faults = StoreFaults()
    faults.fail(is_of("b"), StoreUnavailableError("not reached"))
    deployment.route53.let_through(None)
    session.wait(1)  # a refused key waits for longer
    marks = [session.state(cluster=name).opened for name in ("a", "b")]
    assert [mark.attempts for mark in marks if mark is not None] == [1, 1]


def test_what_lands_of_clusters_that_nobody_may_close_here_is_under_way_no_more() -> None:
    """The last master's batch has landed; by now another shard serves its cluster."""
    deployment, session = a_batch("a", "b")
    faults = deployment.faults = StoreFaults()
    faults.do(is_of("a"), die)
    with pytest.raises(CrashError):
        session.land()
    deployment.spare()
    deployment.route53.let_through(None)
    for name in "ab":
        raise_fence(deployment.store, name, 1000)
        deployment.store.write(Delete(Key(CONTROL, "clusters", name)))
    assert announced(deployment) != ""
    following = deployment.session()
    following.wait(10)
    assert announced(deployment) == ""
    assert following.end().clean
    assert open_in(following, "a", "b") == ["a", "b"]
    assert published(deployment) == ALL[:3]


def test_busy_cluster_does_not_hold_up_the_closing_of_the_others() -> None:
    deployment, session = a_batch(*CLUSTERS)
    seen: list[list[str]] = []

    def write_for_long(_call: Call) -> None:
        deployment.route53.let_through(None)
        deployment.hold(5)
        seen.append(open_in(session))

    deployment.route53.let_through(1)
    session.wait(1)
    assert announced(deployment) != ""
    faults = deployment.faults = StoreFaults()
    faults.do(is_of("a"), write_for_long)
    session.record(saw(a_service(cluster_ips=("10.0.0.9",), ports=()), 20))
    session.wait(10)
    assert seen == [["a", "c"]]
    assert (open_in(session), announced(deployment)) == ([], "")
