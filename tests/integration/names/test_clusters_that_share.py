"""Clusters with ``--routing`` share their names: those of the template too, and of everything else that they publish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service, an_endpoints
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Endpoint, EndpointPort, ObjectKey, ServicePort
from kubesync.domain.state import KeyState
from kubesync_local.standins.route53.zone.model import Limits
from simulation.cluster import ScriptedCluster
from simulation.writes import SENT

SQL: Final = ServicePort("sql", "TCP", 5432)
WEB: Final = "web.shop.svc.prod.example.com"


class Sharing(Deployment):
    """Clusters ``prod`` and ``east`` of one domain. ``web`` is 10.0.0.1 in ``prod`` and 10.9.0.1 in ``east``."""

    def __init__(self, prod: str, east: str, **config: Any) -> None:
        super().__init__(
            limits=Limits(health_checks=frozenset({"known"})),
            domain_filter=("prod.example.com",),
            routing=prod,
            **config,
        )
        self.east: ScriptedCluster = self.add_cluster("east", domain="prod.example.com", routing=east)
        self.start()
        self.apply("web", a_service(cluster_ips=("10.0.0.1",)))
        self.east.apply("web", a_service(cluster_ips=("10.9.0.1",)))
        self.pass_time(3.0)

    def stands(self, name: str = WEB) -> dict[str, str]:
        """What stands at a name: by type and set identifier, the policy and the values."""
        return {
            f"{key.type} {key.identifier}".rstrip(): f"{found.routing.words}: {', '.join(found.values)}"
            for key, found in self.route53.records(ZONE_ID).items()
            if key.name == name
        }

    def of_east(self) -> KeyState:
        key = ObjectKey("east", "shop", "web")
        return StateTable(self.store).load([key])[key]

    def route(self, cluster: str, routing: str, **config: Any) -> None:
        """Change the option of a cluster, and let the session follow."""
        fields = {**self._fields, "domain": "prod.example.com", "server": f"https://{cluster}.test:6443"}
        self.world.configure(cluster, **{**fields, "routing": routing, **config})
        self.pass_time(8.0)


@pytest.fixture
def weighted() -> Iterator[Sharing]:
    made = Sharing("weighted=90", "weighted=10")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("prod", "east", "words"),
    [
        ("weighted=90", "weighted=10", {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}),
        ("multivalue", "multivalue", {"A prod": "multivalue: 10.0.0.1", "A east": "multivalue: 10.9.0.1"}),
        (
            "latency=eu-west-1",
            "latency=us-east-1",
            {"A prod": "latency eu-west-1: 10.0.0.1", "A east": "latency us-east-1: 10.9.0.1"},
        ),
        (
            "failover=secondary",
            "failover=primary",
            {
                "A prod": "failover SECONDARY, health check known: 10.0.0.1",
                "A east": "failover PRIMARY, health check known: 10.9.0.1",
            },
        ),
    ],
)
def test_clusters_of_one_domain_publish_one_name(prod: str, east: str, words: dict[str, str]) -> None:
    checked = {"health_check": "known"} if "failover" in prod else {}
    deployment = Sharing(prod, east, **checked)
    assert deployment.stands() == words
    assert (deployment.state("web").problems, deployment.of_east().problems) == ((), ())
    assert (deployment.state("web").opened, deployment.of_east().opened) == (None, None)
    deployment.close()


def test_ports_and_hosts_of_endpoints_are_shared_too() -> None:
    deployment = Sharing("multivalue", "multivalue", srv=True)
    for cluster, address in ((deployment.cluster, "10.1.0.1"), (deployment.east, "10.8.0.1")):
        cluster.apply("db", a_service(headless=True, ports=(SQL,)))
        pod = Endpoint(address, hostname="db-0")
        ports = (EndpointPort("sql", "TCP", 5432),)
        cluster.apply("db", an_endpoints(pod, ports=ports, service="db"), slice_name="db-1")
    deployment.pass_time(4.0)
    host = "db-0.db.shop.svc.prod.example.com"
    assert deployment.stands(host) == {"A prod": "multivalue: 10.1.0.1", "A east": "multivalue: 10.8.0.1"}
    assert deployment.stands(f"_sql._tcp.{host.removeprefix('db-0.')}").keys() == {"SRV prod", "SRV east"}
    deployment.close()


def test_cluster_that_is_removed_takes_only_its_own_sets(weighted: Sharing) -> None:
    weighted.world.configure("east", **{**weighted._fields, "deleting": True, "server": "https://east.test:6443"})
    weighted.pass_time(10.0)
    assert weighted.stands() == {"A prod": "weighted 90: 10.0.0.1"}


def test_weight_changes_in_one_batch_and_service_goes_alone(weighted: Sharing) -> None:
    sent = len(weighted.route53.sent)
    weighted.route("east", "weighted=90")
    assert weighted.stands() == {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 90: 10.9.0.1"}
    (batch,) = [each for each in weighted.route53.sent[sent:] if any(c.key.name == WEB for c in each)]
    assert [(c.action, c.key.identifier) for c in batch if c.key.name == WEB] == [
        ("DELETE", "east"),
        ("CREATE", "east"),
    ]
    weighted.delete("web")
    weighted.pass_time(3.0)
    assert weighted.stands() == {"A east": "weighted 90: 10.9.0.1"}


def test_service_moves_from_one_cluster_to_the_other_by_its_weight(weighted: Sharing) -> None:
    weighted.apply("web", a_service(cluster_ips=("10.0.0.1",), annotations={"aws-weight": "0"}))
    weighted.pass_time(3.0)
    assert weighted.stands() == {"A prod": "weighted 0: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}


def test_i5_change_of_the_policy_is_no_deletion_and_no_name_is_away() -> None:
    deployment = Deployment(domain_filter=("prod.example.com",))
    deployment.start()
    names = [f"s{number}" for number in range(12)]
    for number, name in enumerate(names):
        deployment.want(name, f"10.0.1.{number + 1}")
    deployment.pass_time(4.0)
    away: list[str] = []

    def look() -> None:
        there = {key.name.partition(".")[0] for key in deployment.route53.records(ZONE_ID)}
        away.extend(name for name in names if name not in there)

    deployment.at(SENT, look, after=True, times=None)
    for routing in ("weighted=5", "multivalue", ""):
        deployment.world.configure("prod", allowed_deletions=0, **{**deployment._fields, "routing": routing})
        deployment.pass_time(8.0)
        stand = {
            key.name.partition(".")[0]: (key.identifier, found.routing.kind)
            for key, found in deployment.route53.records(ZONE_ID).items()
            if key.type == "A"
        }
        wanted = ("prod" if routing else "", routing.partition("=")[0] or "simple")
        assert stand == dict.fromkeys(names, wanted)
        assert away == []
        assert [deployment.state(name).kept for name in names] == [frozenset()] * 12
    deployment.close()


def test_i9_clusters_that_change_to_another_policy_wait_for_each_other_and_lose_nothing(weighted: Sharing) -> None:
    weighted.route("prod", "multivalue")
    assert weighted.stands() == {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}
    weighted.route("east", "multivalue")
    weighted.pass_time(10.0)
    assert weighted.stands().keys() == {"A prod", "A east"}
