"""A cluster dies, and kubesync dies too: health checks of Route 53 take its sets out, and resolvers get the survivors (virtual time)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync_local.standins.route53.zone.answers import Client, HealthCheck, Resolver
from kubesync_local.standins.route53.zone.model import Limits
from simulation.cluster import ScriptedCluster

WEB: Final = "web.shop.svc.prod.example.com"
TTL: Final = 60
LB: Final = {"prod": "prod-1.eu-west-1.elb.amazonaws.com", "east": "east-1.us-east-1.elb.amazonaws.com"}


@dataclass
class Caching:
    """A resolver that asks Route 53 only once its answer is as old as its TTL. ``chance``: which of several possible answers it gets."""

    chance: int
    client: Client
    answer: frozenset[str] = frozenset()
    until: float = -1.0
    got: list[frozenset[str]] = field(default_factory=list)

    def ask(self, now: float, resolver: Resolver) -> frozenset[str]:
        if now >= self.until:
            possible = resolver.possible(f"{WEB}.", "A", self.client)
            self.answer, self.until = possible[self.chance % len(possible)], now + TTL
        return self.answer


class World:
    """Clusters ``prod`` (10.0.0.1) and ``east`` (10.9.0.1) share ``web``. Ten resolvers ask all the time, near to either."""

    def __init__(self, prod: str, east: str, *, checked: bool = True, aliases: bool = False) -> None:
        self.dead: set[str] = set()
        fields: dict[str, Any] = {"load_balancer_alias": aliases, "health_check": "of-prod" if checked else ""}
        known = frozenset({"of-prod", "of-east"})
        self.deployment = Deployment(
            limits=Limits(health_checks=known), domain_filter=("prod.example.com",), routing=prod, ttl=TTL, **fields
        )
        other: dict[str, Any] = {"routing": east, "health_check": "of-east" if checked else ""}
        self.east: ScriptedCluster = self.deployment.add_cluster("east", domain="prod.example.com", **other)
        self.deployment.start()
        for name, cluster, address in (("prod", self.deployment.cluster, "10.0.0.1"), ("east", self.east, "10.9.0.1")):
            of_lb: dict[str, Any] = {"type": "LoadBalancer", "ingress_hostnames": (LB[name],)} if aliases else {}
            cluster.apply("web", a_service(cluster_ips=(address,), **of_lb))
        self.deployment.pass_time(4.0)
        # Request interval of 10 seconds, threshold 3: the fast kind, as the page advises.
        self.checks = {
            f"of-{name}": HealthCheck(lambda name=name: name not in self.dead, interval_seconds=10.0)  # type: ignore[misc]  # a default of a lambda has no type
            for name in LB
        }
        near = (("eu-west-1", "us-east-1"), ("us-east-1", "eu-west-1"))
        self.resolvers = [Caching(number, Client(near[number % 2])) for number in range(10)]
        self.now = 0.0

    def _balances(self, host: str) -> bool:
        return host not in {LB[name] + "." for name in self.dead}

    def live(self, seconds: int) -> set[str]:
        """Let so many seconds pass; returns everything that resolvers got in the last of them."""
        got: set[str] = set()
        for _ in range(seconds):
            self.deployment.pass_time(1.0)
            self.now += 1.0
            for check in self.checks.values():
                check.pass_time(self.now)
            # An ELB is unhealthy as soon as none of its targets is.
            resolver = Resolver(self.deployment.route53.stored(ZONE_ID), self.checks, self._balances)
            got = set().union(*(each.ask(self.now, resolver) for each in self.resolvers))
        return got


PAIRS: Final[Sequence[tuple[str, str]]] = (
    ("weighted=90", "weighted=10"),
    ("multivalue", "multivalue"),
    ("latency=eu-west-1", "latency=us-east-1"),
    ("failover=primary", "failover=secondary"),
)


@pytest.mark.parametrize(("prod", "east"), PAIRS)
@pytest.mark.parametrize("first", ["kubesync", "cluster"])
def test_resolvers_get_the_survivor_within_the_ttl_and_a_minute_though_kubesync_is_dead(
    prod: str, east: str, first: str
) -> None:
    world = World(prod, east)
    assert world.live(TTL) >= {"10.0.0.1"}
    if first == "kubesync":
        world.deployment.kill()
        world.live(7)
    world.dead.add("prod")
    world.live(1)
    world.deployment.kill()
    sent = len(world.deployment.route53.sent)
    assert world.live(TTL + 60 - 1) == {"10.9.0.1"}
    assert len(world.deployment.route53.sent) == sent, "Route 53 did it alone"
    world.dead.clear()
    assert "10.0.0.1" in world.live(TTL + 60)
    world.deployment.close()


def test_load_balancers_need_no_health_check_as_aliases() -> None:
    world = World("failover=primary", "failover=secondary", checked=False, aliases=True)
    assert world.live(TTL) == {LB["prod"] + "."}
    world.dead.add("prod")
    world.deployment.kill()
    assert world.live(TTL + 60) == {LB["east"] + "."}
    world.deployment.close()


@pytest.mark.parametrize("policy", [("weighted", "weighted"), ("multivalue", "multivalue")])
def test_without_health_checks_a_dead_cluster_stays_in_the_answers(policy: tuple[str, str]) -> None:
    world = World(*policy, checked=False)
    world.dead.add("prod")
    world.deployment.kill()
    assert world.live(TTL + 60) == {"10.0.0.1", "10.9.0.1"}
    world.deployment.close()


def test_cluster_that_comes_back_is_published_again_by_a_new_session() -> None:
    world = World("weighted", "weighted")
    world.deployment.kill()
    world.dead.add("prod")
    world.live(TTL + 60)
    world.deployment.pass_time(30.0)
    world.deployment.start()
    world.deployment.apply("web", a_service(cluster_ips=("10.0.0.7",)))
    world.dead.clear()
    assert world.live(TTL + 60) == {"10.0.0.7", "10.9.0.1"}
    world.deployment.close()
