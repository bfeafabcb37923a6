"""Draws scripts: few names, so that they meet often, and every kind of object, setting and mishap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubesync.domain.objects import (
    Endpoint,
    EndpointGroup,
    EndpointPort,
    EndpointsObject,
    Resource,
    Service,
    ServicePort,
)
from kubesync.domain.plan import Policy
from sequences.orders import Place, place_of
from sequences.outside import CLUSTERS, INNER, PRIVATE, PUBLIC
from sequences.steps import (
    Compact,
    Configure,
    Cut,
    Delete,
    End,
    Kill,
    Moment,
    Put,
    Register,
    Resync,
    Round,
    Script,
    Step,
    Unregister,
    Wait,
)
from support.builders import a_service

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
_SERVICES: Final = ("web", "shop", "db")
_SLICES: Final = ("s1", "s2", "s3")
_ADDRESSES: Final = ("10.1.0.1", "10.1.0.2", "10.1.0.3", "fd00::1", "fd00::2")

# Most happens in one place: what never meets tells nothing.
clusters = st.sampled_from(("prod", "prod", "prod", "edge"))
_each_cluster = st.sampled_from(sorted(CLUSTERS))
namespaces = st.sampled_from(_NAMESPACES)
names = st.sampled_from(_SERVICES)
_hosts = st.lists(st.sampled_from(_HOSTS), min_size=1, max_size=3, unique=True).map(", ".join)
_targets = st.lists(
    st.sampled_from(["192.0.2.1", "2001:DB8::1", "t.example.org", "shop.example.com", "x.eu-west-1.elb.amazonaws.com"]),
    min_size=1,
    max_size=2,
    unique=True,
).map(", ".join)
_annotations: SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"hostname": _hosts}),
    st.fixed_dictionaries(
        {},
        optional={
            "hostname": _hosts,
            "internal-hostname": _hosts,
            "target": _targets,
            "ttl": st.sampled_from(["5", "1m30s", "-1"]),
            "alias": st.sampled_from(["true", "false"]),
            "set-identifier": st.sampled_from(["blue", "green", "x#set#y"]),
            "aws-weight": st.sampled_from(["0", "200", "900"]),
            "kubesync.io/exclude": st.sampled_from(["true", "false"]),
        },
    ),
)
_cluster_ips = st.sampled_from([("10.0.0.1",), ("10.0.0.2",), ("fd00:a::1",), ("10.0.0.1", "fd00:a::1")])
_ports = st.sampled_from(
    [
        (ServicePort("http", "TCP", 80),),
        (ServicePort("", "TCP", 80),),
        (ServicePort("http", "TCP", 8080), ServicePort("dns", "UDP", 53)),
        (ServicePort("dns", "TCP", 53), ServicePort("dns-udp", "UDP", 53)),
        (),
    ]
)


def _service(kind: str, **fields: SearchStrategy[Any]) -> SearchStrategy[Service]:
    return st.builds(a_service, st.just(kind), annotations=_annotations, ports=_ports, **fields)


services: SearchStrategy[Service] = st.one_of(
    _service("ClusterIP", cluster_ips=_cluster_ips),
    _service("NodePort", cluster_ips=_cluster_ips),
    _service("ClusterIP", headless=st.just(True), publish_not_ready=st.booleans()),
    _service("ExternalName", external_name=st.sampled_from(["Else.example.org", "other.example.org.", "10.0.0.9"])),
    _service(
        "LoadBalancer",
        cluster_ips=_cluster_ips,
        ingress_ips=st.sampled_from([(), ("203.0.113.7",), ("203.0.113.7", "2001:db8::7")]),
        ingress_hostnames=st.sampled_from(
            [(), ("b.lb.example.net", "a.lb.example.net"), ("web-1.eu-west-1.elb.amazonaws.com",)]
        ),
    ),
)

_condition = st.sampled_from([None, True, False])
_endpoint = st.builds(
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
        (EndpointPort("http", "TCP", 8080),),
        (EndpointPort("", "TCP", 8080),),
        (EndpointPort("http", "TCP", 8081), EndpointPort("dns", "UDP", 53)),
        (),
    ]
)
_groups = st.builds(EndpointGroup, st.lists(_endpoint, max_size=3).map(tuple), _endpoint_ports)


def _endpoints(service: str, most_groups: int) -> SearchStrategy[EndpointsObject]:
    groups = st.lists(_groups, max_size=most_groups).map(tuple)
    return st.builds(EndpointsObject, st.just(service), groups, truncated=st.sampled_from([False, False, False, True]))


@st.composite
def _put_endpoints(draw: st.DrawFn) -> Put:
    name = draw(names)
    return Put(draw(clusters), draw(namespaces), name, draw(_endpoints(name, 2)))


@st.composite
def _put_slice(draw: st.DrawFn) -> Put:
    """A slice of some Service, of none where its label is missing; its own name tells nothing."""
    owner = draw(st.sampled_from([*_SERVICES, *_SERVICES, ""]))
    place = draw(st.sampled_from(_SLICES))
    return Put(draw(clusters), draw(namespaces), owner, draw(_endpoints(owner, 1)), place)


@dataclass(frozen=True, slots=True)
class _Gone:
    """Some object that lives at that point of the script is deleted; ``unseen``: by the time that anybody looks, history is gone too."""

    nth: int
    unseen: bool


_gone = st.builds(_Gone, st.integers(0, 20), st.sampled_from([False, False, False, True]))


@st.composite
def _made_anew(draw: st.DrawFn) -> tuple[Step, ...]:
    """Deleted and made again, with a new uid."""
    cluster, namespace, name = draw(clusters), draw(namespaces), draw(names)
    return (
        Delete(cluster, Resource.SERVICES, namespace, name),
        Put(cluster, namespace, name, draw(services)),
    )


_zones = st.sampled_from(
    [(PUBLIC,), (PUBLIC, INNER), (PUBLIC, PRIVATE), (PUBLIC, PRIVATE, INNER), (INNER,), (PRIVATE,)]
)
_SETTINGS: Final[Mapping[str, SearchStrategy[Any]]] = {
    "ttl": st.sampled_from([30, 60, 90]),
    "srv": st.booleans(),
    "zones": _zones,
    # The last two make two Services change their names with each other.
    "template": st.sampled_from(
        [
            "{service}.{namespace}.svc.{domain}",
            "{service}.{namespace}.{domain}",
            "{namespace}.{service}.{domain}",
        ]
    ),
    "policy": st.sampled_from(list(Policy)),
    "endpoints_source": st.sampled_from([Resource.ENDPOINTS, Resource.ENDPOINTSLICES]),
    "load_balancer_cluster_ips": st.booleans(),
    "load_balancer_alias": st.booleans(),
    "server": st.sampled_from(["https://one.invalid", "https://two.invalid"]),
}
# No two clusters may have Services of one name in one zone: that is refused when they are registered.
_DOMAINS: Final[Mapping[str, tuple[str, ...]]] = {
    "prod": ("prod.example.com", "p.inner.example.com"),
    "edge": ("edge.inner.example.com", "edge.example.com"),
}


@st.composite
def _configure(draw: st.DrawFn) -> Configure:
    cluster = draw(clusters)
    possible = {**_SETTINGS, "domain": st.sampled_from(_DOMAINS[cluster])}
    chosen = draw(st.lists(st.sampled_from(sorted(possible)), min_size=1, max_size=2, unique=True))
    return Configure(cluster, tuple((field, draw(possible[field])) for field in chosen))


_order = st.integers(0, 50)
_late = st.integers(0, 4)
_most = st.sampled_from([0, 0, 0, 1, 3])
_LISTENERS: Final = tuple(f"{cluster} {what}" for cluster in sorted(CLUSTERS) for what in ("services", "endpoints"))
_moments = st.builds(
    Moment,
    st.lists(st.sampled_from(_LISTENERS), max_size=3, unique=True).map(tuple),
    st.lists(_each_cluster, max_size=2, unique=True).map(tuple),
    st.integers(0, 3),
    _order,
    _late,
    _most,
)
_rounds = st.builds(Round, _order, _late, st.booleans(), _most)


type _Drawn = Step | _Gone


def _alone[S: _Drawn](of_one: SearchStrategy[S]) -> SearchStrategy[tuple[_Drawn, ...]]:
    return of_one.map(lambda step: (step,))


_changes: SearchStrategy[tuple[_Drawn, ...]] = st.one_of(
    _alone(st.builds(Put, clusters, namespaces, names, services)),
    _alone(_put_slice()),
    _alone(_put_endpoints()),
    _alone(_gone),
    _made_anew(),
)
_mishaps: SearchStrategy[tuple[_Drawn, ...]] = st.one_of(
    _alone(_configure()),
    _alone(_configure()),
    _alone(_configure()),
    _alone(st.builds(Kill, st.integers(0, 40), st.booleans())),
    _alone(st.builds(Kill, st.integers(0, 40), st.booleans())),
    _alone(st.just(End())),
    _alone(st.just(End())),
    _alone(st.builds(Compact, clusters)),
    _alone(st.builds(Cut, clusters)),
    _alone(st.builds(Wait, st.sampled_from([2.0, 40.0, 1000.0]))),
    _alone(st.builds(Resync, st.booleans())),
    _alone(st.builds(Unregister, clusters)),
    _alone(st.builds(Register, clusters)),
)
_sessions: SearchStrategy[tuple[_Drawn, ...]] = st.one_of(_alone(_rounds), _alone(_moments))


@st.composite
def _slice_moves(draw: st.DrawFn) -> tuple[_Drawn, ...]:
    """From one Service to another, which need not be there."""
    cluster, namespace, place = draw(clusters), draw(namespaces), draw(st.sampled_from(_SLICES))
    one, other = draw(st.permutations(_SERVICES))[:2]
    return (
        Put(cluster, namespace, one, draw(services)),
        Put(cluster, namespace, one, draw(_endpoints(one, 1)), place),
        draw(_rounds),
        Put(cluster, namespace, other, draw(_endpoints(other, 1)), place),
    )


_ends: SearchStrategy[End | Kill] = st.sampled_from((End(), Kill()))


@st.composite
def _half_read(draw: st.DrawFn) -> tuple[_Drawn, ...]:
    """A session ends before it has seen more than one resource: unknown is not empty."""
    cluster, namespace, name = draw(clusters), draw(namespaces), draw(names)
    return (
        Put(cluster, namespace, name, draw(_endpoints(name, 1)), draw(st.sampled_from(_SLICES))),
        Put(cluster, namespace, name, draw(_endpoints(name, 1))),
        draw(_rounds),
        draw(_ends),
        Put(cluster, namespace, name, draw(services)),
        Moment((f"{cluster} services",), (cluster,), draw(st.integers(0, 2))),
        draw(_ends),
    )


_situations: SearchStrategy[tuple[_Drawn, ...]] = st.one_of(_slice_moves(), _half_read())


def _joined(parts: Iterable[tuple[_Drawn, ...]]) -> tuple[_Drawn, ...]:
    return tuple(step for part in parts for step in part)


def _resolved(drawn: tuple[_Drawn, ...]) -> Script:
    """Say which objects are deleted."""
    live: dict[Place, None] = {}
    script: list[Step] = []
    for step in drawn:
        if isinstance(step, _Gone):
            if live:
                place = sorted(live)[step.nth % len(live)]
                del live[place]
                script += [Delete(*place), *([Compact(place[0])] if step.unseen else [])]
            continue
        script.append(step)
        if isinstance(step, Put):
            live[place_of(step)] = None
        elif isinstance(step, Delete):
            live.pop(place_of(step), None)
    return tuple(script)


# Lists of lists: hypothesis makes a list of five on average, and of these there are five more.
_chapters = st.tuples(
    st.lists(_changes, max_size=10).map(_joined),
    st.lists(st.one_of(_sessions, _sessions, _mishaps, _changes, _situations), max_size=6).map(_joined),
).map(_joined)


def scripts(most: int = 14) -> SearchStrategy[Script]:
    """Scripts of at most so many chapters of up to some 30 steps."""
    return st.lists(_chapters, max_size=most).map(_joined).map(_resolved)
