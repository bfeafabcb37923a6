"""The story of the recordings, step by step, played on a stand-in server by plain HTTP calls.

Nothing sleeps here: a demo or a test plays the steps at its own pace. Addresses come from counters, so a fresh server
gives the same ones each time: cluster IPs from 10.68.0.16 and fd00:10:68::10, pods from 10.42.0.2 and fd00:10:42::2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubesync_local.standins.apiserver.objects.status import JsonObject
from kubesync_local.standins.apiserver.workloads.cluster import Cluster

HTTP: Final[JsonObject] = {"name": "http", "port": 80, "targetPort": "http"}
WEB: Final = {"app": "web"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``title`` is for people, ``play`` does it."""

    title: str
    play: Callable[[], object]


def story(cluster: Cluster) -> tuple[Step, ...]:
    """The steps. Play each once and in order, on a cluster without other services."""
    return (
        *_test_hello(cluster),
        *_one_of_every_type(cluster),
        *_changes(cluster),
        *_endings(cluster),
    )


def _test_hello(cluster: Cluster) -> tuple[Step, ...]:
    second_port: JsonObject = {
        "spec": {
            "ports": [
                {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80},
                {"name": "http2", "protocol": "TCP", "port": 88, "targetPort": 88},
            ]
        }
    }
    return (
        Step("deploy test-hello with one pod", lambda: cluster.deploy("default", "test-hello", 1)),
        Step(
            "expose test-hello as a NodePort service",
            lambda: cluster.expose(
                "default",
                "test-hello",
                {"type": "NodePort", "ports": [{"port": 80}], "selector": {"app": "test-hello"}},
            ),
        ),
        Step("scale test-hello to four pods", lambda: cluster.scale("default", "test-hello", 4)),
        Step(
            "scale test-hello down to one pod, the oldest ones go",
            lambda: cluster.scale("default", "test-hello", 1, oldest_first=True),
        ),
        Step(
            "give test-hello a second port",
            lambda: cluster.change_service("default", "test-hello", second_port),
        ),
    )


def _one_of_every_type(cluster: Cluster) -> tuple[Step, ...]:
    pg_port = {"name": "pg", "port": 5432}
    return (
        Step("create the ClusterIP service shop/web", lambda: cluster.expose(
            "shop", "web",
            {"ports": [HTTP, {"name": "metrics", "port": 9090, "targetPort": "metrics"}], "selector": WEB},
        )),
        Step("create two LoadBalancer services without addresses yet", lambda: _load_balancers(cluster)),
        Step("create the ExternalName service shop/docs", lambda: cluster.expose(
            "shop", "docs", {"type": "ExternalName", "externalName": "docs.partner.example.org"},
        )),
        Step("create the dual-stack service shop/web-dual", lambda: cluster.expose(
            "shop", "web-dual", {"ports": [HTTP], "selector": WEB, "ipFamilyPolicy": "RequireDualStack"},
        )),
        Step("create the headless services data/pg and data/pg-boot", lambda: (
            cluster.expose("data", "pg", {"clusterIP": "None", "ports": [pg_port], "selector": {"app": "pg"}}),
            cluster.expose("data", "pg-boot", {
                "clusterIP": "None", "ports": [pg_port], "selector": {"app": "pg"}, "publishNotReadyAddresses": True,
            }),
        )),
        Step("create edge/dns: UDP and TCP on one port number", lambda: cluster.expose(
            "edge", "dns",
            {
                "ports": [
                    {"name": "dns", "protocol": "UDP", "port": 53}, {"name": "dns-tcp", "protocol": "TCP", "port": 53},
                ],
                "selector": {"app": "dns"},
            },
        )),
        Step("create edge/no-selector with hand-made Endpoints", lambda: _no_selector(cluster)),
        Step("create edge/idle, which no pod matches", lambda: cluster.expose(
            "edge", "idle", {"ports": [{"port": 80}], "selector": {"app": "nobody"}},
        )),
        Step("the pods of web, pg and dns become ready", lambda: (
            cluster.deploy("shop", "web", 3, ports={"http": 8080, "metrics": 9090}),
            cluster.stateful_set("data", "pg", 3, service="pg"),
            cluster.deploy("edge", "dns", 2),
        )),
    )  # fmt: skip


def _load_balancers(cluster: Cluster) -> None:
    spec = {"type": "LoadBalancer", "ports": [HTTP], "selector": WEB}
    annotations = {
        "external-dns.alpha.kubernetes.io/hostname": "shop.example.com",
        "external-dns.alpha.kubernetes.io/ttl": "30",
    }
    cluster.expose("shop", "web-lb", spec, annotations=annotations)
    cluster.expose("shop", "web-lb-ip", {**spec, "ipFamilyPolicy": "PreferDualStack"})


def _no_selector(cluster: Cluster) -> None:
    cluster.expose("edge", "no-selector", {"ports": [{"name": "tcp", "port": 3306}]})
    subsets: list[JsonObject] = [
        {
            "addresses": [{"ip": "192.168.7.7"}],
            "notReadyAddresses": [{"ip": "192.168.7.8"}],
            "ports": [{"name": "tcp", "port": 3306}],
        },
        {"addresses": [{"ip": "192.168.7.9"}], "ports": [{"name": "tcp", "port": 3307}]},
    ]
    cluster.make_endpoints("edge", "no-selector", subsets)


def _changes(cluster: Cluster) -> tuple[Step, ...]:
    return (
        Step("the load balancer of web-lb gets its host name", lambda: cluster.set_load_balancer(
            "shop", "web-lb", [{"hostname": "a1b2c3-123456789.eu-west-1.elb.amazonaws.com"}],
        )),
        Step("the load balancer of web-lb-ip gets its addresses", lambda: cluster.set_load_balancer(
            "shop", "web-lb-ip", [{"ip": "203.0.113.10"}, {"ip": "203.0.113.11"}, {"ip": "2001:db8::10"}],
        )),
        Step("pod pg-0 turns unready", lambda: cluster.set_pod("data", "pg-0", ready=False)),
        Step("pod pg-0 is ready again", lambda: cluster.set_pod("data", "pg-0", ready=True)),
        Step("scale web four times in a row: 2, 5, 1, 3", lambda: [
            cluster.scale("shop", "web", replicas) for replicas in (2, 5, 1, 3)
        ]),
        Step("label shop/web, which must change nothing", lambda: cluster.change_service(
            "shop", "web", {"metadata": {"labels": {"touched": "yes"}}},
        )),
        Step("create edge/crowd, still without pods", lambda: cluster.expose(
            "edge", "crowd",
            {"ports": [{"name": "http", "port": 80, "targetPort": 8080}], "selector": {"app": "crowd"}},
        )),
        Step("shop/docs points to another host name", lambda: cluster.change_service(
            "shop", "docs", {"spec": {"externalName": "docs2.partner.example.org"}},
        )),
        Step("web-lb becomes a ClusterIP service", lambda: cluster.change_service(
            "shop", "web-lb", {"spec": {"type": "ClusterIP"}},
        )),
    )  # fmt: skip


def _endings(cluster: Cluster) -> tuple[Step, ...]:
    return (
        Step("delete shop/web-dual", lambda: cluster.delete_service("shop", "web-dual")),
        Step(
            "create shop/web-dual again, with IPv4 only",
            lambda: cluster.expose("shop", "web-dual", {"ports": [HTTP], "selector": WEB}),
        ),
        Step("scale test-hello to nothing", lambda: cluster.scale("default", "test-hello", 0)),
        Step("delete test-hello", lambda: cluster.delete_service("default", "test-hello")),
    )
