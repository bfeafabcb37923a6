"""A source that kubesync does not know: everything that a Service has, its objects have, by two files of models and rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID, Deployment
from toy.rules import BOXES, TOYS, Box, Toy


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment(sources=("service", "toy"))
    yield made
    made.close()


def toy(deployment: Deployment, name: str, host: str, *addresses: str, **fields: object) -> None:
    deployment.apply(name, Toy(host, addresses, **fields), resource=TOYS)  # type: ignore[arg-type]


def with_ttl(deployment: Deployment) -> dict[str, tuple[int, tuple[str, ...]]]:
    sets = deployment.route53.records(ZONE_ID).items()
    return {f"{key.name} {key.type}": (found.ttl or 0, found.values) for key, found in sets if key.type == "A"}


def test_toy_has_record_sets_and_an_upstream_and_a_service_of_its_name_keeps_its_own(deployment: Deployment) -> None:
    deployment.start()
    deployment.want("web", "10.0.0.1")
    toy(deployment, "web", "toy.example.com", "192.0.2.7", port=80)
    deployment.pass_time()
    assert deployment.sets() == {"web A": ("10.0.0.1",), "toy.example.com A": ("192.0.2.7",)}
    assert deployment.upstreams()["prod/shop/Toy:web/80/TCP"] == ["192.0.2.7:80"]
    deployment.delete("web")
    deployment.pass_time()
    assert deployment.sets() == {"toy.example.com A": ("192.0.2.7",)}
    deployment.cluster.delete(TOYS, "web")
    deployment.pass_time()
    assert deployment.sets() == {}
    assert deployment.end().clean


def test_plan_waits_for_the_box_and_follows_it(deployment: Deployment) -> None:
    deployment.start()
    toy(deployment, "boxed", "boxed.example.com", "192.0.2.7", box="red")
    deployment.pass_time()
    assert deployment.sets() == {}  # the box does not exist
    deployment.apply("red", Box(120), namespace="", resource=BOXES)
    deployment.pass_time(3.0)
    assert with_ttl(deployment) == {"boxed.example.com A": (120, ("192.0.2.7",))}
    deployment.apply("red", Box(240), namespace="", resource=BOXES)
    deployment.pass_time(3.0)
    assert with_ttl(deployment) == {"boxed.example.com A": (240, ("192.0.2.7",))}
    deployment.cluster.delete(BOXES, "red", "")
    deployment.pass_time(3.0)
    assert deployment.sets() == {}
