"""What should exist because of one Service: record sets and upstreams. Pure: the same input gives the same output.

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

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from kubesync.domain.dns.addresses import Address, Network, parse_address
from kubesync.domain.dns.annotations.known import HEADLESS, PREFIXES
from kubesync.domain.dns.annotations.reading import MAX_TTL_SECONDS, DnsAnnotations, read_annotations
from kubesync.domain.dns.elb_zones import elb_zone_id
from kubesync.domain.dns.endpoints import AddressedGroup, addressed_groups
from kubesync.domain.dns.headless import (
    addresses_of,
    endpoint_host_names,
    publish_headless_srv,
    published_groups,
    srv_owner,
)
from kubesync.domain.dns.names import NO_NAMES, canonical_name, service_name, why_illegal
from kubesync.domain.dns.permissions import NameRules, permitted, refusal
from kubesync.domain.dns.provenance import (
    OF_ENDPOINTS,
    OF_PORTS,
    OF_TEMPLATE,
    Origin,
    by_annotation,
    endpoints_source,
    internal_source,
    public_source,
)
from kubesync.domain.dns.publishing import RecordPlan, Targets
from kubesync.domain.dns.records import NOTHING_HELD, Held, Node, Problem, RecordKey, RecordSet, Zone
from kubesync.domain.objects import EndpointsObject, ObjectKey, Service
from kubesync.domain.upstreams.nodes import let_in

# Problems are stored with the key and shown to people: this limits how many there are of each code.
MAX_PROBLEMS_OF_A_KIND: Final = 10
# An annotation of 256 KiB can be one "name": this limits how much of it is shown.
MAX_SUBJECT_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class DnsRules:
    """DNS settings of a cluster.

    Args:
        cluster: the first part of upstream keys.
        domain: replaces ``cluster.local``, such as ``prod.example.com``.
        template: of a service's name, with ``{service}``, ``{namespace}``, ``{domain}`` and ``{cluster}``. ``none``: Services have no
            name of their own, and so no SRV and no host-name records.
        default_ttl: seconds, if no annotation says otherwise.
        load_balancer_cluster_ips: publish the cluster IPs of LoadBalancers instead of their status.
        load_balancer_alias: make an alias instead of a CNAME if the host name is an AWS load balancer and no annotation decides.
        opt_in: publish only Services with kubesync.io/include, upstreams included.
        names: which names Services may ask for. None: any name of the zones (a cluster that was registered without such rules).
        annotation_prefixes: under which annotations of external-dns are read.
        max_ttl: seconds; annotations may ask for no more.
        endpoint_nets: endpoints elsewhere are in no record and no upstream; empty: all count.
        target_nets: addresses elsewhere are in no record; empty: all are published.
    """

    cluster: str
    domain: str
    zones: tuple[Zone, ...]
    template: str = "{service}.{namespace}.svc.{domain}"
    default_ttl: int = 30
    srv: bool = True
    load_balancer_cluster_ips: bool = False
    load_balancer_alias: bool = False
    opt_in: bool = False
    names: NameRules | None = None
    annotation_prefixes: tuple[str, ...] = PREFIXES
    max_ttl: int = MAX_TTL_SECONDS
    endpoint_nets: tuple[Network, ...] = ()
    target_nets: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class Desired:
    """What should exist.

    ``records`` is None while it cannot be known (headless, endpoints unknown). ``upstreams`` maps upstream keys
    ``<cluster>/<namespace>/<service>/<port>/<PROTOCOL>`` to nodes; it is None while the endpoints are unknown. ``problems`` is sorted,
    without duplicates; it holds at most ten of each code, and a line that counts the rest. ``origins`` says which rules want
    each name. ``counted``: names that count towards the namespace's limit, in the order of the annotations. ``only_held``: of the
    records, only those at names that the key holds may be published (``held_only``).
    """

    records: Mapping[RecordKey, RecordSet] | None
    upstreams: Mapping[str, Sequence[Node]] | None
    problems: tuple[Problem, ...]
    origins: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict)
    counted: tuple[str, ...] = ()
    only_held: bool = False


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
    if asked.exclude:
        return Desired({}, {}, ())
    if rules.opt_in and not asked.include:
        # Report only mistyped values. The cluster itself asks for leaving the other Services out.
        return Desired({}, {}, tuple(problem for problem in asked.problems if problem.code == "InvalidInclude"))
    ttl = rules.default_ttl if asked.ttl_seconds is None else asked.ttl_seconds
    plan = RecordPlan(rules.zones, ttl, asked.identifier, asked.routing, asked.evaluate_health, rules.target_nets, held)
    plan.problems.update(asked.problems)
    allowed = permitted((*asked.hostnames, *asked.internal_hostnames), key, rules.names, held.names)
    if allowed.refused:
        asked = replace(
            asked,
            hostnames=_without(asked.hostnames, allowed.refused),
            internal_hostnames=_without(asked.internal_hostnames, allowed.refused),
        )
        plan.problems.update(allowed.problems)
    groups = None
    if endpoints is not None:
        used = endpoints if service.type != "ExternalName" else ()
        groups = addressed_groups(used, plan.problems, rules.endpoint_nets)

    records: dict[RecordKey, RecordSet] | None = None
    if asked.unpublishable:
        records = {}
    elif groups is not None or not service.headless:
        records = _records(key, service, asked, groups or (), rules, plan)
    upstreams = None
    if groups is not None:
        upstreams = {} if service.type == "ExternalName" else let_in(key, service, groups, held, plan.problems)
        for name, nodes in upstreams.items():
            if nodes.left_out:
                found = nodes.left_out + len(nodes)
                plan.problems.add(
                    Problem(
                        "TooManyNodes", name, f"{nodes.left_out} of {found} nodes are left out: an upstream is full"
                    )
                )
    origins = {name: tuple(sorted(found)) for name, found in plan.origins.items()}
    return Desired(records, upstreams, bounded(plan.problems), origins, allowed.counted, asked.only_held)


@dataclass(frozen=True, slots=True)
class Keeping:
    """Names that a key keeps while nothing is published there. ``identifier``: with this set identifier; None: with any."""

    names: frozenset[str] = frozenset()
    identifier: str | None = None


def names_to_keep(key: ObjectKey, service: Service | None, rules: DnsRules, held: Collection[str]) -> Keeping:
    """Of the names that a key holds, those that it keeps even while nothing is published there, for example because no endpoint is ready.

        cluster          the Service                              keeps
        -------          -----------                              -----
        any              none, or left out                        nothing
        any              has a refused annotation (``only_held``)  its own name and what it asks for, with any identifier
        without rules    another one                              nothing: it claims a name again when it needs it
        with rules       has an unusable set identifier           what it asks for, with any identifier
        with rules       another one                              what it asks for

    Its own name by the template counts where other namespaces may ask for it: where the template does not hold the namespace.
    """
    asked = DnsAnnotations() if service is None else _asked(service, rules)
    if service is None or asked.exclude or (rules.opt_in and not asked.include):
        return Keeping()
    if not asked.only_held and rules.names is None:
        return Keeping()
    own = _own_names(key, rules) if asked.only_held or "{namespace}" not in rules.template else ()
    names = {*asked.hostnames, *asked.internal_hostnames}.intersection(held)
    kept = frozenset((*own, *(name for name in names if refusal(name, key, rules.names) is None)))
    return Keeping(kept, None if asked.only_held or asked.unpublishable else asked.identifier)


def _asked(service: Service, rules: DnsRules) -> DnsAnnotations:
    kind = HEADLESS if service.headless else service.type
    return read_annotations(service.annotations, rules.annotation_prefixes, kind, rules.max_ttl)


def _without(names: Iterable[str], refused: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in refused)


def _records(
    key: ObjectKey,
    service: Service,
    asked: DnsAnnotations,
    groups: Sequence[AddressedGroup],
    rules: DnsRules,
    plan: RecordPlan,
) -> dict[RecordKey, RecordSet]:
    own = _own_names(key, rules)
    shown = published_groups(service, groups)
    if asked.targets is not None:
        alias = rules.load_balancer_alias if asked.alias is None else asked.alias
        public = internal = _classified(asked.targets, "InvalidTarget", plan, alias=alias)
    else:
        public = _public_targets(service, asked, shown, rules, plan)
        internal = Targets(_cluster_addresses(service, plan)) if asked.internal_hostnames else Targets()
        if not internal.addresses:
            for asked_name in asked.internal_hostnames:
                plan.problems.add(Problem("NoClusterIp", asked_name, "the service has no cluster IP to publish"))

    if asked.alias and (host := min(public.hosts, default="")) and not public.addresses and elb_zone_id(host) is None:
        plan.problems.add(
            Problem("NoAliasTarget", host, "is not an AWS load balancer with a known hosted zone; a CNAME is published")
        )

    wanted: dict[str, Targets] = {}
    _want(wanted, (*own, *asked.hostnames), public)
    _want(wanted, asked.internal_hostnames, internal)
    _say_why(own, service, asked, rules, plan)
    host_names: dict[str, str] = {}
    for name in own:
        if service.headless and asked.targets is None and plan.place(name):
            by_name, host_names = endpoint_host_names(name, shown, plan)
            for host_name, targets in by_name.items():
                _want(wanted, (host_name,), targets)
                plan.explain(host_name, Origin(OF_ENDPOINTS, endpoints_source(service)))
    have_addresses = {wanted_name for wanted_name in wanted if plan.publish(wanted_name, wanted[wanted_name])}

    for name in own if rules.srv and asked.targets is None else ():
        if service.headless:
            usable = {host: full for host, full in host_names.items() if full in have_addresses}
            publish_headless_srv(name, service, shown, usable, plan)
        elif name in have_addresses:
            _publish_srv(name, service, plan)
    return plan.finish()


def _own_names(key: ObjectKey, rules: DnsRules) -> tuple[str, ...]:
    if rules.template == NO_NAMES:
        return ()
    domain, cluster = rules.domain, rules.cluster
    return (service_name(rules.template, service=key.name, namespace=key.namespace, domain=domain, cluster=cluster),)


def _want(wanted: dict[str, Targets], names: Iterable[str], targets: Targets) -> None:
    for name in names:
        wanted[name] = wanted[name].union(targets) if name in wanted else targets


def _say_why(own: Iterable[str], service: Service, asked: DnsAnnotations, rules: DnsRules, plan: RecordPlan) -> None:
    source = public_source(service, asked, cluster_ips=rules.load_balancer_cluster_ips)
    for name in own:
        plan.explain(name, Origin(f"{OF_TEMPLATE}{rules.template}", source))
    for asked_name in asked.hostnames:
        plan.explain(asked_name, Origin(by_annotation(service, asked, "hostname"), source))
    for asked_name in asked.internal_hostnames:
        rule = by_annotation(service, asked, "internal-hostname")
        plan.explain(asked_name, Origin(rule, internal_source(service, asked)))


def _public_targets(
    service: Service, asked: DnsAnnotations, shown: Sequence[AddressedGroup], rules: DnsRules, plan: RecordPlan
) -> Targets:
    if service.headless:
        return Targets(addresses_of(shown))
    if service.type == "ExternalName":
        host = canonical_name(service.external_name)
        if parse_address(host) is not None:
            plan.problems.add(
                Problem("ExternalNameIsAddress", service.external_name, "an external name must be a DNS name")
            )
            return Targets()
        # The cluster's setting is about load balancers; an annotation is about this Service.
        return _classified((host,), "InvalidExternalName", plan, alias=asked.alias is True)
    if service.type == "LoadBalancer" and not rules.load_balancer_cluster_ips:
        status = (*service.ingress_ips, *service.ingress_hostnames)
        alias = rules.load_balancer_alias if asked.alias is None else asked.alias
        return _classified(status, "InvalidStatus", plan, alias=alias)
    return Targets(_cluster_addresses(service, plan))


def _cluster_addresses(service: Service, plan: RecordPlan) -> frozenset[Address]:
    if service.headless or service.type == "ExternalName":
        return frozenset()
    found = _classified(filter(None, service.cluster_ips), "InvalidClusterIp", plan)
    for host in found.hosts:
        plan.problems.add(Problem("InvalidClusterIp", host, "not an IP address"))
    return found.addresses


def without_valid_target(service: Service, rules: DnsRules) -> bool:
    """Whether the target annotation replaces the Service's addresses, and holds neither an address nor a DNS name."""
    targets = _asked(service, rules).targets
    return targets is not None and not any(_is_target(canonical_name(text)) for text in targets)


def _is_target(host: str) -> bool:
    return parse_address(host) is not None or not (why_illegal(host) or _why_no_host(host))


def _classified(texts: Iterable[str], code: str, plan: RecordPlan, *, alias: bool = False) -> Targets:
    """Separate addresses from host names. A text that is neither is reported under ``code``."""
    addresses, hosts = set(), set()
    for text in texts:
        host = canonical_name(text)
        if (address := parse_address(host)) is not None:
            addresses.add(address)
        elif reason := why_illegal(host) or _why_no_host(host):
            plan.problems.add(Problem(code, text, f"neither an IP address nor a DNS name: {reason}"))
        else:
            hosts.add(host)
    return Targets(frozenset(addresses), frozenset(hosts), alias)


def _why_no_host(host: str) -> str:
    """Reject a mistyped address such as ``192.0.2.256``: it is a legal name, but no top-level domain is a number (RFC 3696 2)."""
    return "it ends in a number" if host.rpartition(".")[2].isdecimal() else ""


def _publish_srv(name: str, service: Service, plan: RecordPlan) -> None:
    values: dict[str, list[str]] = {}
    for port in service.ports:
        if port.name:
            owner = srv_owner(port.name, port.protocol, name)
            values.setdefault(owner, []).append(f"0 100 {port.port} {name}.")
    for owner, found in values.items():
        plan.explain(owner, Origin(OF_PORTS, "spec.ports"))
        plan.publish_srv(owner, found)


def bounded(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems in their order, at most ``MAX_PROBLEMS_OF_A_KIND`` of each code and a line that counts the rest."""
    kept: list[Problem] = []
    short = {replace(p, subject=p.subject[:MAX_SUBJECT_CHARACTERS]) for p in problems}
    for _, same in groupby(sorted(short), key=lambda problem: problem.code):
        found = list(same)
        kept += found[:MAX_PROBLEMS_OF_A_KIND]
        if (more := len(found) - MAX_PROBLEMS_OF_A_KIND) > 0:
            kept.append(replace(found[0], subject="", message=f"and {more} more"))
    return tuple(sorted(kept))
