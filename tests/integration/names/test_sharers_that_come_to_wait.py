"""A Service that has one type of a name changes to a type that another Service has there: it waits for it, and gets it in the end."""

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID
from harness.dns_cases.passing import NAME, PassingDeployment
from harness.seen.builders import a_service
from kubesync.domain.errors import ZoneUnavailableError
from kubesync.domain.objects import Service
from kubesync.domain.state import Name

FOUR, SIX, OTHER_FOUR = "192.0.2.1", "2001:db8::2", "192.0.2.2"
OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.fixture
def deployment() -> Iterator[PassingDeployment]:
    """Without a domain filter: a Service that publishes nothing at a name lets it go."""
    made = PassingDeployment(ttl=30, domain_filter=())
    made.start()
    yield made
    made.close()


def balancer(*addresses: str, created: str = OLD, hosts: tuple[str, ...] = ()) -> Service:
    return a_service(
        type="LoadBalancer",
        cluster_ips=(),
        ports=(),
        ingress_ips=addresses,
        ingress_hostnames=hosts,
        annotations={"hostname": NAME},
        created_at=created,
    )


@pytest.mark.parametrize(
    ("changed", "answer"),
    [
        (balancer(OTHER_FOUR, created=YOUNG), "A 192.0.2.2"),
        (balancer(created=YOUNG, hosts=("lb.example.org",)), "CNAME lb.example.org."),
    ],
)
def test_i1_sharer_that_comes_to_wait_keeps_its_place(
    deployment: PassingDeployment, changed: Service, answer: str
) -> None:
    deployment.put("a", balancer(FOUR))
    deployment.pass_time(3.0)
    deployment.put("b", balancer(SIX, created=YOUNG))
    deployment.pass_time(3.0)
    deployment.put("b", changed)
    deployment.pass_time(9.0)
    assert deployment.state("b").waits == {Name(ZONE_ID, NAME)}

    deployment.put("a", None)
    deployment.pass_time(120.0)

    assert deployment.answer == answer


def test_i4_sharer_whose_set_never_landed_comes_to_wait_and_holds_up_nobody(
    deployment: PassingDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.put("a", balancer(FOUR))
    deployment.pass_time(3.0)

    def refuse(*_request: object) -> None:
        raise ZoneUnavailableError("down")

    with monkeypatch.context() as outage:
        outage.setattr(deployment.route53, "change", refuse)
        deployment.put("b", balancer(SIX, created=YOUNG))
        deployment.pass_time(3.0)
        deployment.put("b", balancer(OTHER_FOUR, created=YOUNG))
        deployment.pass_time(3.0)
        assert deployment.state("b").waits == {Name(ZONE_ID, NAME)}, "it is recorded while the zone cannot be written"

    deployment.pass_time(60.0)
    deployment.put("a", None)
    deployment.pass_time(120.0)
    assert deployment.answer == "A 192.0.2.2"
