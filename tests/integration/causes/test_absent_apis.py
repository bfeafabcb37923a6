"""A cluster without the API of a source: a remark as long as it never served it, an error with an alarm once it did."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import AUDIT
from kubesync.domain.errors import ConnectError, DeniedError, StatusError
from kubesync.domain.objects import Resource
from kubesync.domain.sources.ingresses import INGRESSES, Ingress

NOT_SERVED = StatusError("HTTP 404: not found", status=404)
ONLY = frozenset({INGRESSES})
BOTH = ("service", "ingress")
_REMARK = "not served: the cluster has no ingresses of networking.k8s.io/v1; looked for every 30 s"


def watched(**config: Any) -> WatchedDeployment:
    made = WatchedDeployment(**{"sources": BOTH, **config})
    made.want("web", "10.0.0.1")
    return made


@pytest.fixture
def deployment() -> Iterator[WatchedDeployment]:
    made = watched()
    yield made
    made.close()


def ingress(made: WatchedDeployment) -> None:
    made.apply("shop", Ingress(hosts=("www.example.com",), ingress_ips=("192.0.2.1",)), resource=INGRESSES)


def errors_of_ingresses(made: WatchedDeployment) -> int:
    items = [item for table, item in made.items(AUDIT).items() if item.get("resource") == "ingresses"]
    return len([item for item in items if item.get("key") == "ERR_REQUEST_STATUS"])


def test_i10_api_that_was_never_served_is_a_remark_and_raises_no_alarm(deployment: WatchedDeployment) -> None:
    deployment.break_api(NOT_SERVED, only=ONLY)
    deployment.schedule(60)
    assert deployment.raised() == set()
    assert _REMARK in deployment.status()
    told = deployment.cloud.seen("ListenersFailing")
    assert len(told) > 50
    assert {value for values in told.values() for value in values} == {0.0}
    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    # Told once in each session, not every 30 s.
    assert errors_of_ingresses(deployment) == 5
    deployment.mend_api()
    ingress(deployment)
    deployment.schedule(2)
    assert deployment.sets()["www.example.com A"] == ("192.0.2.1",)
    assert _REMARK not in deployment.status()


def test_i5_i10_api_that_was_served_before_is_an_error_with_an_alarm_and_nothing_is_deleted(
    deployment: WatchedDeployment,
) -> None:
    ingress(deployment)
    deployment.schedule(3)
    stands = deployment.sets()
    assert set(stands) == {"web A", "www.example.com A"}
    deployment.break_api(NOT_SERVED, only=ONLY)
    deployment.cluster.compact()
    deployment.schedule(10)
    assert deployment.alarms == {"ListenersFailing"}
    assert "failing: ERR_REQUEST_STATUS" in deployment.status()
    deployment.want("web", "10.0.0.2")
    deployment.schedule(5)
    assert deployment.sets() == {**stands, "web A": ("10.0.0.2",)}
    deployment.mend_api()
    deployment.schedule(20)
    assert deployment.alarms == set()


def test_i10_source_that_is_denied_raises_an_alarm_although_it_was_never_served(deployment: WatchedDeployment) -> None:
    deployment.break_api(DeniedError("HTTP 403: forbidden", status=403), only=ONLY)
    deployment.schedule(10)
    assert deployment.alarms == {"ListenersFailing", "Denied"}


def test_i10_cluster_of_which_nothing_was_ever_listed_raises_an_alarm() -> None:
    """A wrong address answers 404 too."""
    made = watched(sources=("ingress",))
    made.break_api(NOT_SERVED)
    made.break_api(NOT_SERVED, only=frozenset({*ONLY, Resource.SERVICES}))
    made.schedule(10)
    assert made.alarms == {"ListenersFailing"}
    made.close()


def test_i10_server_that_goes_away_after_an_absent_api_raises_no_alarm_for_a_moment(
    deployment: WatchedDeployment,
) -> None:
    deployment.break_api(NOT_SERVED, only=ONLY)
    deployment.schedule(38)
    for _ in range(2):  # in a session, and at the beginning of the next one
        deployment.break_api(ConnectError("connection refused"), only=frozenset({*ONLY, Resource.SERVICES}))
        deployment.schedule(2)
        deployment.break_api(NOT_SERVED, only=ONLY)
        deployment.schedule(5)
    assert deployment.raised() == set()


def test_resync_goes_by_what_the_cluster_serves(deployment: WatchedDeployment) -> None:
    deployment.break_api(NOT_SERVED, only=ONLY)
    deployment.schedule(1)
    deployment.by_hand("DELETE", "web", "A")
    deployment.resync("")
    deployment.schedule(3)
    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    assert deployment.cloud.seen("ResyncErrors")
    assert {value for values in deployment.cloud.seen("ResyncErrors").values() for value in values} == {0.0}


def test_i5_resync_fails_where_an_api_is_gone_that_was_served(deployment: WatchedDeployment) -> None:
    ingress(deployment)
    deployment.schedule(3)
    stands = deployment.sets()
    deployment.break_api(NOT_SERVED, only=ONLY)
    deployment.resync("")
    deployment.schedule(5)
    assert deployment.sets() == stands
    assert {value for values in deployment.cloud.seen("ResyncErrors").values() for value in values} == {1.0}
