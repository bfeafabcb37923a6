"""A session begins, and one of its watches is not accepted for a while: what depends on it is not known yet, and must not be forgotten."""

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service, an_endpoints
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.objects import Resource
from kubesync_local.workplace.readings import ListenerReadings
from simulation.writes import RECORD
from toy.rules import BOXES, TOYS, Box, Toy

SLICES = Resource.ENDPOINTSLICES


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment(domain_filter=("example.com",), sources=("service", "toy"))
    yield made
    made.close()


def revision(deployment: Deployment, resource: Resource) -> int:
    """Of the configuration for which a checkpoint is valid; 0: it was taken back."""
    return ListenerReadings(deployment.store).checkpoints("prod")[resource].basis.revision


def dies_when_it_has_recorded(deployment: Deployment) -> None:
    """Its checkpoints are old enough to be written with the next record. Then nobody sees the event again."""
    deployment.pass_time(45.0)
    deployment.at(RECORD, deployment.kill, after=True)


def resumes_but_for(deployment: Deployment, resource: Resource, seconds: float) -> None:
    """The next session: this watch is accepted so much later."""
    deployment.pass_time(20.0)  # the lease is over
    deployment.start_late({resource: seconds})


def test_i7_checkpoint_that_was_taken_back_is_valid_again_soon_after_its_keys_are_planned(
    deployment: Deployment,
) -> None:
    deployment.apply("web", an_endpoints("10.1.0.1"), slice_name="web-1")
    deployment.run_session()
    deployment.want("web", "10.0.0.1")
    resumes_but_for(deployment, SLICES, 5.0)
    deployment.pass_time(2.0)
    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    assert revision(deployment, SLICES) == 0, "the upstream is not known yet"
    deployment.pass_time(3.0)
    assert deployment.upstreams()["prod/shop/web/80/TCP"] == ["10.1.0.1:8080"]
    deployment.pass_time(30.0)
    assert revision(deployment, SLICES) == 1
    deployment.kill()
    deployment.pass_time(20.0)
    assert [call.what for call in deployment.start().gate.calls if call.what.startswith("list ")] == []


def places(deployment: Deployment) -> dict[tuple[str, str], str]:
    """Of each slice that is remembered, its Service."""
    return dict(StateTable(deployment.store).all_slices("prod"))


def test_slice_that_goes_while_its_service_is_not_known_is_forgotten(deployment: Deployment) -> None:
    deployment.apply("web", an_endpoints("10.1.0.1"), slice_name="web-1")
    deployment.apply("db", an_endpoints("10.1.0.2", service="db"), slice_name="db-1")
    deployment.want("web", "10.0.0.1")
    deployment.run_session()
    assert places(deployment) == {("shop", "db-1"): "db", ("shop", "web-1"): "web"}
    deployment.cluster.delete(SLICES, "db-1")
    deployment.apply("web", an_endpoints("10.1.0.3", service="other"), slice_name="web-1")
    resumes_but_for(deployment, Resource.SERVICES, 10.0)
    deployment.pass_time(30.0)
    assert places(deployment) == {("shop", "web-1"): "other"}


def test_i1_heir_whose_endpoints_are_not_known_is_planned_by_the_session_after_one_that_dies_early(
    deployment: Deployment,
) -> None:
    www = {"hostname": "www.example.com"}
    deployment.apply("a", a_service(cluster_ips=("10.0.0.1",), ports=(), annotations=www))
    deployment.apply("h", a_service(headless=True, ports=(), annotations=www, created_at="2026-02-01T00:00:00Z"))
    deployment.apply("h", an_endpoints("10.1.0.1", service="h"), slice_name="h-1")
    deployment.start()
    dies_when_it_has_recorded(deployment)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(3.0)
    assert deployment.claims()["www.example.com"] == "prod/shop/h"
    resumes_but_for(deployment, SLICES, 60.0)
    deployment.pass_time(1.0)
    deployment.kill()
    deployment.pass_time(20.0)
    deployment.start()
    deployment.pass_time(6.0)
    assert deployment.sets()["www.example.com A"] == ("10.1.0.1",)
    assert StateTable(deployment.store).queued("prod").to_plan == set()


def test_i1_readers_of_a_box_are_planned_by_the_session_after_one_that_dies_before_boxes_are_watched(
    deployment: Deployment,
) -> None:
    deployment.apply("red", Box(120), namespace="", resource=BOXES)
    deployment.apply("t", Toy("t.example.com", ("192.0.2.1",), box="red"), resource=TOYS)
    deployment.start()
    dies_when_it_has_recorded(deployment)
    deployment.apply("red", Box(240), namespace="", resource=BOXES)
    deployment.pass_time(3.0)
    resumes_but_for(deployment, BOXES, 60.0)
    deployment.pass_time(1.0)
    deployment.kill()
    deployment.pass_time(20.0)
    deployment.start()
    deployment.pass_time(3.0)
    assert deployment.route53.records(ZONE_ID)[RecordKey(ZONE_ID, "t.example.com", "A")].ttl == 240
    assert StateTable(deployment.store).queued("prod").changed == {}
