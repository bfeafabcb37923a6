"""Who waits for a name since an earlier session hears what its heir publishes, and what that one changes (I10)."""

from typing import Any

import pytest

from harness.deployment import Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Resource


def service(target: str, created: int) -> Any:
    annotations = {"target": target, "hostname": "www.example.com"}
    return a_service(
        cluster_ips=("10.0.0.1",), ports=(), annotations=annotations, created_at=f"2026-01-{created:02d}T00:00:00Z"
    )


def said(deployment: Deployment, name: str) -> list[str]:
    states = StateTable(deployment.store).load_all("prod")
    return [problem.message for state in states if state.key.name == name for problem in state.problems]


@pytest.mark.parametrize("owner", ["c1", "prod"])
def test_third_in_line_hears_of_the_second_once_it_has_the_name(owner: str) -> None:
    deployment = Deployment(domain_filter=("example.com",))
    cluster = deployment.add_cluster("c1") if owner == "c1" else deployment.cluster
    cluster.apply("first", service("192.0.2.1", 1))
    deployment.start()
    deployment.pass_time(5.0)
    deployment.apply("second", service("192.0.2.9", 2))
    deployment.pass_time(3.0)
    deployment.apply("third", service("192.0.2.9", 3))
    deployment.pass_time(100.0)
    assert said(deployment, "third") == [f"the name is claimed by {owner}/shop/first"]
    assert deployment.end().clean

    deployment.start()
    deployment.pass_time(5.0)
    cluster.delete(Resource.SERVICES, "first")
    deployment.pass_time(20.0)
    assert said(deployment, "third") == [], "the second publishes what it wants"
    deployment.apply("second", service("192.0.2.7", 2))
    deployment.pass_time(20.0)
    assert said(deployment, "third") == ["the name is claimed by prod/shop/second"]
    deployment.apply("second", service("192.0.2.9", 2))
    deployment.pass_time(20.0)
    assert said(deployment, "third") == []
    deployment.close()
