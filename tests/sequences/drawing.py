"""Draws scripts of what happens to what ``values`` draws: every kind of change, setting and mishap."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from harness.seen.builders import a_service
from kubesync.domain.objects import EndpointGroup, EndpointsObject, Port, Resource
from kubesync.domain.plan import Policy
from sequences.orders import Place, place_of
from sequences.outside import CLUSTERS, INNER, PRIVATE, PUBLIC
from sequences.steps import (
    Compact,
    Compose,
    Configure,
    Cut,
    Delete,
    Discard,
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
from sequences.values import (
    SERVICES,
    SLICES,
    annotation_sets,
    clusters,
    each_cluster,
    endpoint,
    endpoints,
    hosts,
    ingresses,
    names,
    namespaces,
    services,
)


@st.composite
def _put_endpoints(draw: st.DrawFn) -> Put:
    name = draw(names)
    return Put(draw(clusters), draw(namespaces), name, draw(endpoints(name, 2)))


@st.composite
def _put_slice(draw: st.DrawFn) -> Put:
    """A slice of some Service, of none where its label is missing; its own name tells nothing."""
    owner = draw(st.sampled_from([*SERVICES, *SERVICES, ""]))
    place = draw(st.sampled_from(SLICES))
    return Put(draw(clusters), draw(namespaces), owner, draw(endpoints(owner, 1)), place)


@dataclass(frozen=True, slots=True)
class _Gone:
    """Some object that lives at that point of the script is deleted; ``unseen``: by the time that anybody looks, history is gone too."""

    nth: int
    unseen: bool


_gone = st.builds(_Gone, st.integers(0, 20), st.sampled_from([False, False, False, True]))


@st.composite
def _made_again(draw: st.DrawFn) -> tuple[Step, ...]:
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
    # The second and the third make two Services change their names with each other.
    "template": st.sampled_from(
        [
            "{service}.{namespace}.svc.{domain}",
            "{service}.{namespace}.{domain}",
            "{namespace}.{service}.{domain}",
            "none",
        ]
    ),
    "policy": st.sampled_from(list(Policy)),
    "endpoints_source": st.sampled_from([Resource.ENDPOINTS, Resource.ENDPOINTSLICES]),
    "load_balancer_cluster_ips": st.booleans(),
    "load_balancer_alias": st.booleans(),
    "server": st.sampled_from(["https://one.invalid", "https://two.invalid"]),
    "opt_in": st.booleans(),
    "sources": st.sampled_from([("service",), ("service", "ingress")]),
    "ingress_class": st.sampled_from([(), ("alb",)]),
    "selector": st.sampled_from(["", "team=red", "team!=red"]),
    "disabled": st.sampled_from([True, False, False]),
}
_SCOPES: Final = (((), ()), ((), ("web",)), ((), ("default",)), (("shop",), ()), (("web", "shop"), ()), (("web",), ()))
# No two clusters may have Services of one name in one zone: that is refused when they are registered.
_DOMAINS: Final[Mapping[str, tuple[str, ...]]] = {
    "prod": ("prod.example.com", "p.inner.example.com"),
    "edge": ("edge.inner.example.com", "edge.example.com"),
}


# Whether a person has confirmed what goes; else much of it is held back.
_confirmed: Final = st.sampled_from([(), (("allowed_deletions", 0),)])


@st.composite
def _configure(draw: st.DrawFn) -> Configure:
    cluster = draw(clusters)
    possible = {**_SETTINGS, "domain": st.sampled_from(_DOMAINS[cluster])}
    chosen = draw(st.lists(st.sampled_from(sorted(possible)), min_size=1, max_size=2, unique=True))
    return Configure(cluster, (*((field, draw(possible[field])) for field in chosen), *draw(_confirmed)))


@st.composite
def _rescope(draw: st.DrawFn) -> Configure:
    """Namespaces that are included and those that are left out exclude each other."""
    included, excluded = draw(st.sampled_from(_SCOPES))
    return Configure(draw(clusters), (("namespaces", included), ("exclude_namespaces", excluded), *draw(_confirmed)))


_UPSTREAMS: Final = ("inner", "outer", "all")
_MEMBERS: Final = (
    "prod/shop/web/80",
    "prod/shop/db/80",
    "prod/shop/web/8080",
    "prod/shop/web/53/UDP",
    "edge/shop/web/80",
    "10.1.0.1:8080",
    "[2001:db8::80]:80",
    *_UPSTREAMS,
)
_compose = st.builds(
    Compose,
    st.sampled_from(_UPSTREAMS),
    st.lists(
        st.tuples(st.sampled_from(_MEMBERS), st.sampled_from([1, 1, 3]), st.booleans()),
        min_size=1,
        max_size=3,
        unique_by=lambda member: member[0],
    ).map(tuple),
)

_order = st.integers(0, 50)
_late = st.integers(0, 4)
_most = st.sampled_from([0, 0, 0, 1, 3])
_LISTENERS: Final = tuple(
    f"{cluster} {what}" for cluster in sorted(CLUSTERS) for what in ("services", "endpoints", "ingresses")
)
_moments = st.builds(
    Moment,
    st.lists(st.sampled_from(_LISTENERS), max_size=3, unique=True).map(tuple),
    st.lists(each_cluster, max_size=2, unique=True).map(tuple),
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
    _alone(st.builds(Put, clusters, namespaces, names, ingresses)),
    _alone(_put_slice()),
    _alone(_put_endpoints()),
    _alone(_gone),
    _made_again(),
)
_mishaps: SearchStrategy[tuple[_Drawn, ...]] = st.one_of(
    _alone(_configure()),
    _alone(_configure()),
    _alone(_configure()),
    _alone(_rescope()),
    _alone(_compose),
    _alone(_compose),
    _alone(st.builds(Discard, st.sampled_from(_UPSTREAMS))),
    _alone(st.builds(Kill, st.integers(0, 40), st.booleans())),
    _alone(st.builds(Kill, st.integers(0, 40), st.booleans())),
    _alone(st.just(End())),
    _alone(st.just(End())),
    _alone(st.builds(Compact, clusters)),
    _alone(st.builds(Cut, clusters)),
    _alone(st.builds(Wait, st.sampled_from([2.0, 40.0, 1000.0]))),
    _alone(st.sampled_from([Resync(), Resync(dry_run=True), Resync(force=True)])),
    _alone(st.builds(Unregister, clusters)),
    _alone(st.builds(Register, clusters)),
)
_sessions: SearchStrategy[tuple[_Drawn, ...]] = st.one_of(_alone(_rounds), _alone(_moments))


@st.composite
def _slice_moves(draw: st.DrawFn) -> tuple[_Drawn, ...]:
    """From one Service to another, which need not be there."""
    cluster, namespace, place = draw(clusters), draw(namespaces), draw(st.sampled_from(SLICES))
    one, other = draw(st.permutations(SERVICES))[:2]
    return (
        Put(cluster, namespace, one, draw(services)),
        Put(cluster, namespace, one, draw(endpoints(one, 1)), place),
        draw(_rounds),
        Put(cluster, namespace, other, draw(endpoints(other, 1)), place),
    )


_ends: SearchStrategy[End | Kill] = st.sampled_from((End(), Kill()))


@st.composite
def _half_read(draw: st.DrawFn) -> tuple[_Drawn, ...]:
    """A session ends before it has seen more than one resource: unknown is not empty."""
    cluster, namespace, name = draw(clusters), draw(namespaces), draw(names)
    return (
        Put(cluster, namespace, name, draw(endpoints(name, 1)), draw(st.sampled_from(SLICES))),
        Put(cluster, namespace, name, draw(endpoints(name, 1))),
        draw(_rounds),
        draw(_ends),
        Put(cluster, namespace, name, draw(services)),
        Moment((f"{cluster} services",), (cluster,), draw(st.integers(0, 2))),
        draw(_ends),
    )


@st.composite
def _many_go(draw: st.DrawFn) -> tuple[_Drawn, ...]:
    """So many are missing in a list that it is not believed (I5): some come back, or a person lets the deletions through, or not."""
    cluster, least = draw(clusters), draw(st.integers(0, 6))
    made: list[Step] = [
        Put(cluster, "web", f"m{n}", a_service(cluster_ips=(f"10.0.9.{n}",), annotations={"hostname": draw(hosts)}))
        for n in range(9)
    ]
    gone: list[Step] = [Delete(cluster, Resource.SERVICES, "web", f"m{n}") for n in range(least, 9)]
    afters: list[tuple[Step, ...]] = [
        (),
        tuple(made[4:7]),
        (Resync(force=True),),
        (Configure(cluster, (("ttl", 45),)),),
    ]
    return (*made, draw(_rounds), *gone, Compact(cluster), draw(_rounds), *draw(st.sampled_from(afters)))


@st.composite
def _composed(draw: st.DrawFn) -> tuple[_Drawn, ...]:
    """What stands behind a named upstream comes, changes and goes, also while a session ends."""
    cluster, name = draw(clusters), draw(names)
    service = a_service(ports=(Port("http", "TCP", 80),), annotations=draw(annotation_sets))
    ports = (Port("http", "TCP", 8080),)

    def seen() -> Put:
        found = tuple(draw(st.lists(endpoint, max_size=3)))
        return Put(cluster, "shop", name, EndpointsObject(name, (EndpointGroup(found, ports),)), "s1")

    behind = (f"{cluster}/shop/{name}/80", draw(st.sampled_from([1, 2])), draw(st.booleans()))
    static = ("192.0.2.80:80", 1, True)
    first: list[Step] = [Put(cluster, "shop", name, service), Compose("all", (behind, static)), seen()]
    return (
        Configure(cluster, (("endpoints_source", Resource.ENDPOINTSLICES),)),
        *draw(st.permutations(first)),
        draw(_rounds),
        Compose("outer", (("all", 3, False),)),
        seen(),
        draw(st.one_of(_rounds, _moments, _ends)),
        draw(st.one_of(st.just(Delete(cluster, Resource.SERVICES, "shop", name)), st.builds(seen), _configure())),
    )


_situations: SearchStrategy[tuple[_Drawn, ...]] = st.one_of(_slice_moves(), _half_read(), _many_go(), _composed())


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
