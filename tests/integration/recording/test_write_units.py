"""What changes cost, item by item: the figures of docs/cost.md, exactly.

The cluster's API server tells its version once a minute, as real ones do. Items have the sizes that they have in real clusters.
"""

from collections.abc import Mapping
from typing import Final

import pytest

from harness.fakes.write_units import WriteUnits
from harness.fed import FedDeployment, FedSession
from harness.seen.builders import (
    SERVICES,
    SLICES,
    a_config,
    a_list,
    a_service,
    an_endpoint,
    an_endpoints,
    identity,
    saw,
)
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.objects import Observation

CHECK: Final = "fence of a cluster, checked"


class Bill:
    """A deployment with one cluster, and what its sessions write. ``settle`` lets everything be written that is due."""

    def __init__(self, config: ClusterConfig | None = None) -> None:
        self.deployment = FedDeployment(config)
        self.units = WriteUnits(self.deployment.store)
        self.version = 1000

    def listed(self, services: int = 3) -> FedSession:
        """A session that has listed these Services with two pods each."""
        session = self.deployment.session()
        names = [f"web{number}" for number in range(services)]
        session.record(
            lists=(
                a_list(10, identity(), *map(self.service, names)),
                a_list(10, *map(self.slice, names), resource=SLICES),
            )
        )
        self.deployment.route53.let_through(None)
        session.wait(5.0)
        return session

    def rested(self) -> FedSession:
        """The same, after three minutes in which nothing happened."""
        session = self.listed()
        self.minutes(session, 3)
        self.units.take()
        return session

    def service(self, name: str) -> Observation:
        self.version += 1
        return saw(a_service(), name=name, version=self.version)

    def slice(self, name: str, pods: int = 2) -> Observation:
        self.version += 1
        nodes = [
            an_endpoint(
                f"10.1.0.{number}",
                node=f"ip-10-0-{number}-17.eu-west-1.compute.internal",
                zone="eu-west-1a",
                pod=f"{name}-7d4b9c6f5d-{number:05x}",
            )
            for number in range(1, pods + 1)
        ]
        return saw(an_endpoints(*nodes, service=name), name=f"{name}-abcde", version=self.version)

    def minutes(self, session: FedSession, count: int) -> None:
        """Nothing happens, but the cluster's store moves on."""
        for _ in range(count):
            self.version += 1
            session.record(bookmarks={SERVICES: self.version, SLICES: self.version})
            session.wait(58.7)


def of(*taken: Mapping[str, int]) -> int:
    return sum(sum(each.values()) for each in taken)


def test_pod_that_comes_alone_costs_10_units() -> None:
    bill = Bill()
    session = bill.rested()
    session.record(bill.slice("web1", 3))
    assert bill.units.take() == {CHECK: 2, "key": 2, "upstream": 2, "changes": 2, "checkpoint": 2}


def test_pods_in_a_stream_cost_8_units_each_and_share_a_checkpoint_for_30_seconds() -> None:
    bill = Bill()
    session = bill.rested()
    began = bill.deployment.clock.monotonic()
    for number in range(30):
        session.record(bill.slice("web1", 3 + number % 2))
    assert bill.deployment.clock.monotonic() - began == pytest.approx(39.0)
    assert bill.units.take() == {CHECK: 60, "key": 60, "upstream": 60, "changes": 60, "checkpoint": 4}
    session.wait(31.0)
    assert bill.units.take() == {CHECK: 2, "checkpoint": 2}, "what came last has its checkpoint after a pause"
    session.wait(300.0)
    assert bill.units.take() == {}


def _comes(bill: Bill, session: FedSession, name: str) -> Mapping[str, int]:
    session.record(bill.service(name), bill.slice(name))
    session.wait(1.0)
    return bill.units.take()


def test_service_with_two_pods_costs_32_units_alone_and_28_in_a_stream() -> None:
    bill = Bill()
    session = bill.rested()
    in_a_stream = {CHECK: 6, "key": 4, "open mark": 4, "claim": 4, "upstream": 2, "changes": 4, "inflight": 2}
    in_a_stream |= {"service of an EndpointSlice": 2}
    assert of(in_a_stream) == 28
    assert _comes(bill, session, "new1") == in_a_stream | {"checkpoint": 4}
    assert _comes(bill, session, "new2") == in_a_stream
    assert _comes(bill, session, "new3") == in_a_stream


def test_first_list_costs_at_most_17_units_for_each_service() -> None:
    bill = Bill()
    bill.listed(200).end()
    first = bill.units.take()
    assert {kind: first[kind] for kind in ("key", "upstream", "claim", "open mark")} == {
        "key": 802,
        "upstream": 400,
        "claim": 800,
        "open mark": 800,
    }
    assert of(first) == 3325, "16.6 each; the session's beginning and its end are in it"


def test_quiet_session_costs_16_units_and_a_quiet_minute_3() -> None:
    bill = Bill()
    bill.listed().end()
    bill.units.take()
    session = bill.deployment.session()
    session.wait(20.0)
    assert session.end().clean
    quiet = bill.units.take()
    assert quiet == {
        "epoch counter": 1,
        "lease": 2,
        "lease, checked": 2,
        "fence of a shard": 2,
        "fence of a cluster": 2,
        CHECK: 2,
        "errors of a listener": 4,
        "report of a session": 1,
    }
    assert of(quiet) == 16
    session = bill.deployment.session()
    bill.minutes(session, 3)
    bill.units.take()
    bill.minutes(session, 20)
    assert bill.units.take() == {CHECK: 20, "checkpoint": 40}, "60 units in 20 minutes"


@pytest.mark.parametrize("scope", [{"namespaces": ("shop",)}, {"exclude_namespaces": ("shop",)}, {"selector": "a=b"}])
def test_quiet_part_of_a_cluster_has_a_checkpoint_for_each_minute(scope: dict[str, object]) -> None:
    """What happens in the rest of the cluster makes its API server forget."""
    bill = Bill(a_config(**scope))
    session = bill.rested()
    bill.minutes(session, 10)
    assert bill.units.take() == {CHECK: 20, "checkpoint": 40}


@pytest.mark.parametrize("seconds", range(0, 300, 25))
def test_killed_session_goes_on_from_what_happened_half_a_minute_before_or_later(seconds: int) -> None:
    """An API server forgets an event of a resource only when others of it come, and not for 75 seconds. So where nothing happens, a version
    before the pause is as good as one of its end; and a busy cluster loses no more than the time between two checkpoints."""
    bill = Bill()
    session = bill.rested()
    before = bill.deployment.clock.monotonic()
    happened = {}
    while bill.deployment.clock.monotonic() < before + 40:
        seen = bill.slice("web1", 3 + bill.version % 2)
        happened[seen.resource_version] = bill.deployment.clock.monotonic()
        session.record(seen)
    while (left := before + 40 + seconds - bill.deployment.clock.monotonic()) > 0:
        bill.version += 1
        session.record(bookmarks={SERVICES: bill.version, SLICES: bill.version})
        session.wait(max(0.0, min(left, 60.0) - 1.3))
    killed = bill.deployment.clock.monotonic()
    resumed = bill.deployment.session().resumes_from(SLICES)
    assert resumed is not None
    assert [version for version, at in happened.items() if version > resumed and at < killed - 33] == []
