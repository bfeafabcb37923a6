"""Why kubesync does not want a record set that external-dns made, as far as the clusters' lists can tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from kubesync.domain.dns.annotations.reading import DnsAnnotations, read_annotations
from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.headless import srv_owner
from kubesync.domain.dns.names import canonical_name
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey, Service
from kubesync.domain.sources.ingresses import Ingress
from kubesync.domain.sources.registry import main_part
from kubesync.domain.state import KeyState

WHY: Final[Mapping[str, str]] = {
    "source": "kubesync reads only Services and Ingresses",
    "not read": "the cluster's --sources leave Ingresses out",
    "excluded": "kubesync.io/exclude leaves the Service out",
    "not included": "the cluster is opt-in, and the Service has no kubesync.io/include",
    "pod name": "a pod name below `hostname` of a headless Service",
    "node port": "an SRV record of node ports",
    "external IPs": "its load balancer has no address; external-dns takes spec.externalIPs",
    "cluster IPs": "cluster IPs (--publish-internal-services) at a name that no annotation asks for",
    "template": "no annotation asks for this name",
    "other type": "kubesync wants another type at this name",
    "nothing": "kubesync has nothing to publish at this name",
    "no service": "no Service of this cluster asks for it",
    "no ingress": "no Ingress of this cluster asks for it",
    "class": "--ingress-class leaves the Ingress out",
    "pending": "the load balancer of the Ingress has no address",
    "ingress template": "neither a host of the Ingress nor an annotation asks for this name",
}
"""The answers, by case. ``docs/migration.md`` says what to do with each."""


@dataclass(frozen=True, slots=True)
class SeenService:
    """A Service of a cluster, with what kubesync reports of it."""

    service: Service
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class SeenIngress:
    """An Ingress of a cluster, likewise."""

    ingress: Ingress
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What one cluster asks for.

    Args:
        wanted: sets that its Services want.
        held: sets of kubesync's own.
        services, ingresses: by namespace and name.
    """

    rules: DnsRules
    wanted: AbstractSet[RecordKey]
    held: AbstractSet[RecordKey]
    services: Mapping[tuple[str, str], SeenService]
    ingresses: Mapping[tuple[str, str], SeenIngress] = field(default_factory=dict)
    reads_ingresses: bool = False


def view_of(
    rules: DnsRules, states: Iterable[KeyState], claimed: Iterable[RecordKey] = (), *, reads_ingresses: bool = False
) -> ClusterView:
    """The view of a cluster in these states. ``claimed``: sets taken over since the states were read."""
    wanted: set[RecordKey] = set()
    held: set[RecordKey] = set(claimed)
    services: dict[tuple[str, str], SeenService] = {}
    ingresses: dict[tuple[str, str], SeenIngress] = {}
    for state in states:
        wanted.update(state.intended)
        held.update(state.applied)
        if state.service is not None:
            services[state.key.namespace, state.key.name] = SeenService(state.service, state.problems)
        main = main_part(state)
        if main is not None and isinstance(main.value, Ingress):
            ingresses[state.key.namespace, state.key.name] = SeenIngress(main.value, state.problems)
    return ClusterView(rules, wanted, held, services, ingresses, reads_ingresses)


@dataclass(frozen=True, slots=True)
class Answer:
    """Why a set is not wanted. ``service``: the key of the object that external-dns names, if a cluster has it."""

    why: str
    service: str = ""
    cluster: str = ""


def why_not_wanted(key: RecordKey, record_set: RecordSet, resource: str, views: Iterable[ClusterView]) -> Answer:
    """Why none of these clusters wants a set of their zone.

    Args:
        resource: as the registry names it, such as ``service/shop/web``.
    """
    kind, _, of_kind = resource.partition("/")
    namespace, _, name = of_kind.partition("/")
    if kind == "ingress":
        return _why_no_ingress(key, namespace, name, list(views))
    if kind not in ("", "service"):
        return Answer(f"made of {kind} {of_kind}: {WHY['source']}")
    for view in views:
        seen = view.services.get((namespace, name))
        if seen is not None:
            cluster = view.rules.cluster
            return Answer(_why(key, record_set, name, seen, view), str(ObjectKey(cluster, namespace, name)), cluster)
    return Answer(WHY["no service"])


def _why_no_ingress(key: RecordKey, namespace: str, name: str, views: list[ClusterView]) -> Answer:
    """The case of an Ingress, in this order: it is left out; a problem with the name, or of its load balancer; it does not ask for the name."""
    if not any(view.reads_ingresses for view in views):
        return Answer(f"made of ingress {namespace}/{name}: {WHY['not read']}")
    for view in views:
        seen = view.ingresses.get((namespace, name))
        if seen is not None:
            cluster = view.rules.cluster
            return Answer(_of_ingress(key, seen, view), str(ObjectKey(cluster, namespace, name, "Ingress")), cluster)
    return Answer(WHY["no ingress"])


def _of_ingress(key: RecordKey, seen: SeenIngress, view: ClusterView) -> str:
    ingress, rules = seen.ingress, view.rules
    asked = read_annotations(ingress.annotations, rules.annotation_prefixes)
    if asked.exclude or (rules.opt_in and not asked.include):
        return WHY["excluded" if asked.exclude else "not included"].replace("Service", "Ingress")
    if rules.ingress_class and ingress.class_name not in rules.ingress_class:
        return WHY["class"]
    problems = [problem for problem in seen.problems if problem.code != "Conflict"]
    if of_name := [problem for problem in problems if problem.subject == key.name]:
        return f"{of_name[0].code}: {of_name[0].message}"
    if key.name not in {*map(canonical_name, (*ingress.hosts, *ingress.tls_hosts)), *asked.hostnames}:
        return WHY["ingress template"]
    if any(each.place == key.place for each in view.wanted):
        return WHY["other type"]
    if not (ingress.ingress_ips or ingress.ingress_hostnames or asked.targets):
        return WHY["pending"]
    return f"{problems[0].code}: {problems[0].message}" if problems else WHY["nothing"]


def _why(key: RecordKey, record_set: RecordSet, name: str, seen: SeenService, view: ClusterView) -> str:
    """The case of a Service that is there.

    the Service                                         the set                                        case
    -----------                                         -------                                        ----
    is left out                                         any                                            excluded, not included
    has a problem with this name, or wants nothing      any                                            the problem
    headless                                            one label below a ``hostname``                 pod name
    NodePort                                            SRV below a ``hostname``                       node port
    asks for the name, its load balancer is pending     addresses                                      external IPs
    asks for the name                                   of a type that kubesync does not want there    other type
    asks for the name                                   nothing is wanted there                        nothing
    does not ask for the name                           its cluster IPs                                cluster IPs
    does not ask for the name                           any other                                      template
    """
    service, asked = seen.service, read_annotations(seen.service.annotations, view.rules.annotation_prefixes)
    if asked.exclude:
        return WHY["excluded"]
    if view.rules.opt_in and not asked.include:
        return WHY["not included"]
    refused = [problem for problem in seen.problems if problem.subject == key.name and problem.code != "Conflict"]
    if refused:
        return f"{refused[0].code}: {refused[0].message}"
    if service.headless and key.name.partition(".")[2] in asked.hostnames:
        return WHY["pod name"]
    if service.type == "NodePort" and key.name in {
        srv_owner(name, port.protocol, host) for host in asked.hostnames for port in service.ports
    }:
        return WHY["node port"]
    if _asks(asked, key.name):
        return _why_asked(key, service, asked, seen, view)
    addresses = set(record_set.values)
    if service.type == "ClusterIP" and addresses and addresses <= set(service.cluster_ips):
        return WHY["cluster IPs"]
    return WHY["template"]


def _asks(asked: DnsAnnotations, name: str) -> bool:
    return name in (*asked.hostnames, *asked.internal_hostnames)


def _why_asked(key: RecordKey, service: Service, asked: DnsAnnotations, seen: SeenService, view: ClusterView) -> str:
    pending = service.type == "LoadBalancer" and not (service.ingress_ips or service.ingress_hostnames)
    if pending and asked.targets is None and key.name in asked.hostnames:
        return WHY["external IPs"]
    if any(each.place == key.place for each in view.wanted):
        return WHY["other type"]
    # Not about this name alone: what keeps the whole Service from being published.
    others = [problem for problem in seen.problems if problem.code != "Conflict"]
    if others:
        return f"{others[0].code}: {others[0].message}"
    return WHY["nothing"]
