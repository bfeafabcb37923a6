"""Draws what clusters hold: few names, so that they meet often, and every kind of Service, Ingress, annotation and endpoint."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from harness.seen.builders import a_service
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, Port, Service
from kubesync.domain.sources.ingresses import Ingress
from sequences.outside import CLUSTERS
from simulation.scope_view import TEAM

# Some are the names of Services, of their pods or of their ports; one fits no zone, one is another person's, two are apexes.
_HOSTS: Final = (
    "shop.example.com",
    "www.example.com",
    "a.inner.example.com",
    "*.wild.example.com",
    "web.shop.svc.prod.example.com",
    "shop.web.prod.example.com",
    "db-0.db.shop.svc.prod.example.com",
    "web.shop.svc.edge.inner.example.com",
    "_http._tcp.web.shop.svc.prod.example.com",
    "inner.example.com",
    "taken.example.com",
    "Outside.test.",
)
_NAMESPACES: Final = ("shop", "shop", "shop", "web")
SERVICES: Final = ("web", "shop", "db")
SLICES: Final = ("s1", "s2", "s3")
_ADDRESSES: Final = ("10.1.0.1", "10.1.0.2", "10.1.0.3", "fd00::1", "fd00::2")

# Most happens in one place: what never meets tells nothing.
clusters = st.sampled_from(("prod", "prod", "prod", "edge"))
each_cluster = st.sampled_from(sorted(CLUSTERS))
namespaces = st.sampled_from(_NAMESPACES)
names = st.sampled_from(SERVICES)
hosts = st.lists(st.sampled_from(_HOSTS), min_size=1, max_size=3, unique=True).map(", ".join)
_targets = st.lists(
    st.sampled_from(["192.0.2.1", "2001:DB8::1", "t.example.org", "shop.example.com", "x.eu-west-1.elb.amazonaws.com"]),
    min_size=1,
    max_size=2,
    unique=True,
).map(", ".join)
annotation_sets: SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"hostname": hosts}),
    st.fixed_dictionaries(
        {},
        optional={
            "hostname": hosts,
            "internal-hostname": hosts,
            "target": _targets,
            "ttl": st.sampled_from(["5", "1m30s", "-1"]),
            "alias": st.sampled_from(["true", "false"]),
            "set-identifier": st.sampled_from(["blue", "green", "x#set#y"]),
            "aws-weight": st.sampled_from(["0", "200", "900"]),
            "kubesync.io/exclude": st.sampled_from(["true", "false"]),
            "external-dns.kubernetes.io/hostname": hosts,
        },
    ),
    st.fixed_dictionaries(
        {"kubesync.io/include": st.sampled_from(["true", "true", "false"])},
        optional={
            "hostname": hosts,
            "set-identifier": st.sampled_from(["blue", "green"]),
            TEAM: st.sampled_from(["red", "blue"]),
        },
    ),
)
_cluster_ips = st.sampled_from([("10.0.0.1",), ("10.0.0.2",), ("fd00:a::1",), ("10.0.0.1", "fd00:a::1")])
_ports = st.sampled_from(
    [
        (Port("http", "TCP", 80),),
        (Port("", "TCP", 80),),
        (Port("http", "TCP", 8080), Port("dns", "UDP", 53)),
        (Port("dns", "TCP", 53), Port("dns-udp", "UDP", 53)),
        (),
    ]
)


_load_balancer_ips = st.sampled_from([(), ("203.0.113.7",), ("203.0.113.7", "2001:db8::7")])
_load_balancer_hosts = st.sampled_from(
    [(), ("b.lb.example.net", "a.lb.example.net"), ("web-1.eu-west-1.elb.amazonaws.com",)]
)
_hosts_of_rules = st.lists(st.sampled_from(_HOSTS[:-1]), max_size=2, unique=True).map(tuple)


def _service(kind: str, **fields: SearchStrategy[Any]) -> SearchStrategy[Service]:
    return st.builds(a_service, st.just(kind), annotations=annotation_sets, ports=_ports, **fields)


services: SearchStrategy[Service] = st.one_of(
    _service("ClusterIP", cluster_ips=_cluster_ips),
    _service("NodePort", cluster_ips=_cluster_ips),
    _service("ClusterIP", headless=st.just(True), publish_not_ready=st.booleans()),
    _service("ExternalName", external_name=st.sampled_from(["Else.example.org", "other.example.org.", "10.0.0.9"])),
    _service(
        "LoadBalancer",
        cluster_ips=_cluster_ips,
        ingress_ips=_load_balancer_ips,
        ingress_hostnames=_load_balancer_hosts,
    ),
)

ingresses: SearchStrategy[Ingress] = st.builds(
    Ingress,
    class_name=st.sampled_from(["", "alb"]),
    hosts=_hosts_of_rules,
    tls_hosts=_hosts_of_rules,
    ingress_ips=_load_balancer_ips,
    ingress_hostnames=_load_balancer_hosts,
    annotations=annotation_sets.map(lambda asked: a_service(annotations=asked).annotations),
)

_condition = st.sampled_from([None, True, False])
endpoint = st.builds(
    Endpoint,
    st.sampled_from(_ADDRESSES),
    ready=st.booleans(),
    serving=_condition,
    terminating=_condition,
    hostname=st.sampled_from(["", "db-0", "db-1"]),
    pod=st.sampled_from(["", "p-1"]),
)
_endpoint_ports = st.sampled_from(
    [
        (Port("http", "TCP", 8080),),
        (Port("", "TCP", 8080),),
        (Port("http", "TCP", 8081), Port("dns", "UDP", 53)),
        (),
    ]
)
_groups = st.builds(EndpointGroup, st.lists(endpoint, max_size=3).map(tuple), _endpoint_ports)


def endpoints(service: str, most_groups: int) -> SearchStrategy[EndpointsObject]:
    groups = st.lists(_groups, max_size=most_groups).map(tuple)
    return st.builds(EndpointsObject, st.just(service), groups, truncated=st.sampled_from([False, False, False, True]))
