"""Services, with the Endpoints or EndpointSlices that belong to them: how they are stored, and what a Service leads to.

Which addresses and host names each name gets:

    Service                            service's name, and          internal-hostname    SRV at named ports
                                       names in ``hostname``
    -------                            ---------------------        -----------------    ------------------
    none, or kubesync.io/exclude       -                            -                    -
    opt-in, no kubesync.io/include     -                            -                    -
    an unusable set identifier         -                            -                    -
    any, with ``target``               the targets                  the targets          -
    headless, endpoints unknown        not known yet                not known yet        not known yet
    headless                           addresses of endpoints       nothing: reported    hosts of endpoints
    ExternalName, a name               the name (CNAME)             nothing: reported    -
    ExternalName, an address           nothing: reported            nothing: reported    -
    LoadBalancer, cluster IPs wanted   cluster IPs                  cluster IPs          the service's name
    LoadBalancer, addresses in status  those addresses              cluster IPs          the service's name
    LoadBalancer, only host names      the host names               cluster IPs          where the name has addresses
    LoadBalancer, pending              nothing                      cluster IPs          where the name has addresses
    ClusterIP, NodePort                cluster IPs                  cluster IPs          the service's name

Headless services also get ``<hostname>.<name>`` for endpoints with a host name. If a name is wanted for two reasons, its targets
are united first. The table in ``dns.publishing`` then says what each name becomes.

Every port of every Service except ExternalName has an upstream. Upstreams are unknown while the endpoints are unknown.
"""

from collections.abc import Collection, Sequence, Set as AbstractSet
from dataclasses import replace
from operator import attrgetter
from sys import intern
from typing import Any, Final

from kubesync.domain.dns.addresses import parse_address
from kubesync.domain.dns.annotations import HEADLESS, DnsAnnotations
from kubesync.domain.dns.desired import (
    Desired,
    DnsRules,
    Keeping,
    asked_of,
    bounded,
    desired_if_left_out,
    keeping,
    plan_for,
)
from kubesync.domain.dns.endpoints import AddressedGroup, addressed_groups
from kubesync.domain.dns.headless import (
    addresses_of,
    endpoint_host_names,
    endpoints_source,
    publish_headless_srv,
    published_groups,
    srv_owner,
)
from kubesync.domain.dns.names import NO_NAMES, canonical_name, service_name
from kubesync.domain.dns.permissions import permitted
from kubesync.domain.dns.publishing import OF_ENDPOINTS, OF_TEMPLATE, RecordPlan, Targets, classified
from kubesync.domain.dns.records import NOTHING_HELD, Held, Problem, RecordKey, RecordSet
from kubesync.domain.objects import (
    SERVICE,
    Endpoint,
    EndpointGroup,
    EndpointsObject,
    ObjectKey,
    Port,
    Resource,
    Service,
)
from kubesync.domain.sources.port import Kind, Shared, Source, row_of, with_tuples
from kubesync.domain.state import KeyState
from kubesync.domain.upstreams.nodes import allowed_upstreams

_ENDPOINT_ROW: Final = row_of(Endpoint)
_NODE_AND_ZONE: Final = slice(4, 6)  # where this row has the node and the zone
_OF_ENDPOINTS: Final = (Resource.ENDPOINTSLICES, Resource.ENDPOINTS)
_OF_SERVICE: Final = frozenset({Resource.SERVICES})
_CLUSTER_IPS: Final = "spec.clusterIPs"


def desired(
    key: ObjectKey,
    service: Service | None,
    endpoints: Sequence[EndpointsObject] | None,
    rules: DnsRules,
    held: Held = NOTHING_HELD,
) -> Desired:
    """Plan one service key.

    Args:
        service: as last seen; None if it is deleted or was never seen.
        endpoints: every endpoints object of the key, in any order; None until every listener has listed (I5).
        held: what the key has already.
    """
    if service is None:
        return Desired({}, {}, ())
    asked = _asked(service, rules)
    if (nothing := desired_if_left_out(asked, rules)) is not None:
        return nothing
    allowed = permitted((*asked.hostnames, *asked.internal_hostnames), key, rules.names, held.names)
    if allowed.refused:
        asked = replace(
            asked,
            hostnames=tuple(name for name in asked.hostnames if name not in allowed.refused),
            internal_hostnames=tuple(name for name in asked.internal_hostnames if name not in allowed.refused),
        )
    plan = plan_for(asked, rules, held)
    plan.problems.update(allowed.problems)
    groups = None
    if endpoints is not None:
        used = endpoints if service.type != "ExternalName" else ()
        groups = addressed_groups(used, plan.problems, rules.endpoint_nets)

    records: dict[RecordKey, RecordSet] | None = None
    if asked.unpublishable:
        records = {}
    elif groups is not None or not service.headless:
        records = _records(key, service, groups or (), rules, plan)
    # else: a headless Service whose endpoints are unknown. None: its records are unknown, too (I5)
    upstreams = None
    if groups is not None:
        upstreams = (
            {} if service.type == "ExternalName" else allowed_upstreams(key, service, groups, held, plan.problems)
        )
        for name, nodes in upstreams.items():
            if nodes.left_out:
                wanted = nodes.left_out + len(nodes)
                why = f"{nodes.left_out} of {wanted} nodes are left out: an upstream is full"
                plan.problems.add(Problem("TooManyNodes", name, why))
    origins = {name: tuple(sorted(of_name)) for name, of_name in plan.origins.items()}
    return Desired(records, upstreams, bounded(plan.problems), origins, allowed.counted, asked.only_held)


def _asked(service: Service, rules: DnsRules) -> DnsAnnotations:
    """What the annotations of a Service ask for."""
    return asked_of(service.annotations, rules, HEADLESS if service.headless else service.type)


def _records(
    key: ObjectKey, service: Service, groups: Sequence[AddressedGroup], rules: DnsRules, plan: RecordPlan
) -> dict[RecordKey, RecordSet]:
    """Plan the record sets of a Service, by the table at the top. ``groups``: its endpoints; empty if they do not matter or are not known.

    1. The targets. 2. The names, and which targets each leads to. 3. Their sets. 4. SRV sets at names that then have addresses.

    ``own``: the name that the template gives, if it gives one.
    """
    # 1.
    own, asked = _own_names(key, rules), plan.asked
    shown = published_groups(service, groups)
    public, internal = _public_and_internal(service, shown, rules, plan)
    plan.report_alias(public)
    # 2.
    for name in own:
        plan.want(name, public, f"{OF_TEMPLATE}{rules.template}")
    for name in asked.hostnames:
        plan.want(name, public, asked.given.origin("hostname"))
    for name in asked.internal_hostnames:
        plan.want(name, internal, asked.given.origin("internal-hostname"))
    host_names: dict[str, str] = {}  # the full name of an endpoint, by its host name
    for name in own:
        if service.headless and asked.targets is None and plan.zones_for(name):
            by_name, host_names = endpoint_host_names(name, shown, plan)
            for host_name, addresses in by_name.items():
                plan.want(host_name, Targets(endpoints_source(service), frozenset(addresses)), OF_ENDPOINTS)
    # 3.
    have_addresses = plan.publish()
    # 4.
    for name in own if rules.srv and asked.targets is None else ():
        if service.headless:
            usable = {host: full for host, full in host_names.items() if full in have_addresses}
            publish_headless_srv(name, service, shown, usable, plan)
        elif name in have_addresses:
            _publish_srv(name, service, plan)
    return plan.finish()


def _public_and_internal(
    service: Service, shown: Sequence[AddressedGroup], rules: DnsRules, plan: RecordPlan
) -> tuple[Targets, Targets]:
    """The targets of the own name and of names in ``hostname``, and the targets of names in ``internal-hostname``.

    The annotation ``target`` replaces both. ``shown``: the endpoints that DNS shows (``published_groups``).
    """
    if (replaced := plan.replaced_targets()) is not None:
        return replaced, replaced
    public = _public_targets(service, shown, rules, plan)
    internal = _cluster_ips(service, plan) if plan.asked.internal_hostnames else Targets(_CLUSTER_IPS)
    if not internal.addresses:
        for name in plan.asked.internal_hostnames:
            plan.problems.add(Problem("NoClusterIp", name, "the service has no cluster IP to publish"))
    return public, internal


def _own_names(key: ObjectKey, rules: DnsRules) -> tuple[str, ...]:
    """The name that the cluster's template gives to a Service, as a tuple of one; empty if the template gives no names."""
    if rules.template == NO_NAMES:
        return ()
    domain, cluster = rules.domain, rules.cluster
    return (service_name(rules.template, service=key.name, namespace=key.namespace, domain=domain, cluster=cluster),)


def _public_targets(service: Service, shown: Sequence[AddressedGroup], rules: DnsRules, plan: RecordPlan) -> Targets:
    """The targets of a Service without annotation ``target``: the first column of the table at the top."""
    if service.headless:
        return Targets(endpoints_source(service), addresses_of(shown))
    if service.type == "ExternalName":
        host, source = canonical_name(service.external_name), "spec.externalName"
        if parse_address(host) is not None:
            plan.problems.add(
                Problem("ExternalNameIsAddress", service.external_name, "an external name must be a DNS name")
            )
            return Targets(source)
        # The cluster's setting is about load balancers; an annotation is about this Service.
        return classified((host,), source, "InvalidExternalName", plan, alias=plan.asked.alias is True)
    if service.type != "LoadBalancer":
        return _cluster_ips(service, plan)
    if rules.load_balancer_cluster_ips:
        return _cluster_ips(service, plan, f"{_CLUSTER_IPS}, by --load-balancer-cluster-ips")
    status = (*service.ingress_ips, *service.ingress_hostnames)
    return plan.load_balancer_targets(status, "status.loadBalancer")


def _cluster_ips(service: Service, plan: RecordPlan, source: str = _CLUSTER_IPS) -> Targets:
    """The cluster IPs of a Service; nothing if its type has none. Reports those that are no addresses. ``source``: see ``Origin``."""
    if service.headless or service.type == "ExternalName":
        return Targets(source)
    both = classified(filter(None, service.cluster_ips), source, "InvalidClusterIp", plan)
    for host in both.hosts:
        plan.problems.add(Problem("InvalidClusterIp", host, "not an IP address"))
    return Targets(source, both.addresses)


def _publish_srv(name: str, service: Service, plan: RecordPlan) -> None:
    """Plan SRV for each named port of a Service that is not headless: they point to the Service's own name."""
    values: dict[str, list[str]] = {}  # by the name of the SRV set
    for port in service.ports:
        if port.name:
            owner = srv_owner(port.name, port.protocol, name)
            values.setdefault(owner, []).append(f"0 100 {port.port} {name}.")
    for owner, of_owner in values.items():
        plan.publish_srv(owner, of_owner, "spec.ports")


def _desired(state: KeyState, complete: AbstractSet[Resource], rules: DnsRules, _shared: Shared) -> Desired:
    """What should exist because of a Service (``Kind.desired``).

    A cluster watches EndpointSlices or Endpoints. While neither is complete, the endpoints are unknown (I5).
    """
    source = next((resource for resource in _OF_ENDPOINTS if resource in complete), None)
    endpoints = None if source is None else state.endpoints(source)
    return desired(state.key, state.service, endpoints, rules, state.held)


def _keeps(state: KeyState, rules: DnsRules, held: Collection[str] | None) -> Keeping:
    """The claims that a Service keeps while it publishes nothing there (``Kind.keeps``); none if it is deleted."""
    key, service = state.key, state.service
    if service is None:
        return Keeping()
    asked = _asked(service, rules)
    return keeping(key, asked, (*asked.hostnames, *asked.internal_hostnames), rules, held, _own_names(key, rules))


def _of_records(state: KeyState) -> frozenset[Resource]:
    """See ``Kind.of_records``. A headless Service has the addresses of its endpoints; others have no records of theirs."""
    service = state.service
    return _OF_SERVICE.union(_OF_ENDPOINTS) if service is not None and service.headless else _OF_SERVICE


def _decode_service(row: Sequence[Any]) -> Service:
    kind, ips, external, ports, *others = with_tuples(row)
    return Service(kind, ips, external, tuple(map(Port._make, ports)), *others)


def _encode_endpoints(value: EndpointsObject) -> list[object]:
    """The stored form of Endpoints and EndpointSlices (``Source.encode``). The last field, ``fqdn``, is left out where it is false."""
    groups = [[[*map(_encode_endpoint, group.endpoints)], group.ports] for group in value.groups]
    return [value.service, groups, value.truncated, *([True] if value.fqdn else [])]


def _decode_endpoints(row: Sequence[Any]) -> EndpointsObject:
    """Read a stored row (``Source.decode``). It has a last field, ``fqdn``, only where that is true: see ``_encode_endpoints``."""
    service, groups, truncated, *fqdn = row
    decoded = tuple(
        EndpointGroup(tuple(map(_decode_endpoint, endpoints)), tuple(map(Port._make, ports)))
        for endpoints, ports in groups
    )
    return EndpointsObject(service, decoded, truncated, bool(fqdn))


def _decode_endpoint(row: list[Any]) -> Endpoint:
    # One text for all endpoints of a node, and of a zone: they take much of the memory.
    row[_NODE_AND_ZONE] = [intern(text) for text in row[_NODE_AND_ZONE]]
    return Endpoint(*row)


def _encode_endpoint(endpoint: Endpoint) -> list[object]:
    """Its fields in their order, without those at the end that say nothing."""
    row = list(_ENDPOINT_ROW(endpoint))
    while row and row[-1] in ("", None):
        row.pop()
    return row


SOURCES: Final = (
    Source(Resource.SERVICES, row_of(Service), _decode_service),
    Source(Resource.ENDPOINTS, _encode_endpoints, _decode_endpoints),
    Source(Resource.ENDPOINTSLICES, _encode_endpoints, _decode_endpoints, owner=attrgetter("service")),
)
KIND: Final = Kind(
    name=SERVICE,
    option="service",
    api_version="v1",
    schema=1,
    main=Resource.SERVICES,
    others=_OF_ENDPOINTS,
    created_at=attrgetter("created_at"),
    desired=_desired,
    keeps=_keeps,
    of_records=_of_records,
)
