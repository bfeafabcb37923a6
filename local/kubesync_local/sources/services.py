"""Services, for commands."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.addresses import parse_address
from kubesync.domain.dns.annotations import DnsAnnotations
from kubesync.domain.dns.desired import Desired, DnsRules, asked_of
from kubesync.domain.dns.headless import srv_owner
from kubesync.domain.dns.names import NO_NAMES, canonical_name, service_name, why_illegal
from kubesync.domain.dns.publishing import why_no_host
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey, Service
from kubesync.domain.sources.services import KIND
from kubesync.domain.state import KeyState
from kubesync_local.sources.port import LoadBalancer, SourceWords

NO_TARGET_LEFT: Final = (
    "no valid target is left in the target annotation, which replaces the Service's addresses: it has no record sets"
)


def without_valid_target(annotations: Iterable[tuple[str, str]], rules: DnsRules) -> bool:
    """Whether the target annotation replaces an object's own targets, and holds neither an address nor a DNS name."""
    targets = asked_of(tuple(annotations), rules).targets
    return targets is not None and not any(_is_target(canonical_name(text)) for text in targets)


def _is_target(host: str) -> bool:
    return parse_address(host) is not None or not (why_illegal(host) or why_no_host(host))


def _names(_service: Service, key: ObjectKey, config: ClusterConfig) -> Iterator[str]:
    """Its own name by the template."""
    if config.template != NO_NAMES:
        place = {"service": key.name, "namespace": key.namespace}
        yield service_name(config.template, **place, domain=config.domain, cluster=config.name).lower()


def _remarks(state: KeyState, want: Desired, config: ClusterConfig) -> Iterator[str]:
    service, rules = state.service, rules_of(config)
    assert service is not None
    if want.origins and without_valid_target(service.annotations, rules):
        yield NO_TARGET_LEFT
    elif config.template == NO_NAMES and not want.origins and not state.problems:
        yield "the cluster gives no names of its own (--template none), and no annotation of the Service asks for one"
    elif not want.records and _is_pending(service) and not asked_of(service.annotations, rules).targets:
        yield "the load balancer is pending: it has no address to publish yet"
    elif not want.records and service.headless and not state.problems:
        yield "no endpoint is ready: there is no address to publish"


def _is_pending(service: Service) -> bool:
    return _load_balancer(service) == ((), ())


def _load_balancer(service: Service) -> LoadBalancer | None:
    return (service.ingress_ips, service.ingress_hostnames) if service.type == "LoadBalancer" else None


def _with_load_balancer(service: Service, given: LoadBalancer) -> Service:
    return replace(service, ingress_ips=given[0], ingress_hostnames=given[1])


def _why_not_wanted(
    key: RecordKey, found: RecordSet, of: ObjectKey, service: Service, asked: DnsAnnotations, _rules: DnsRules
) -> str | None:
    """
    The Service                                         the set                           says
    -----------                                         -------                           ----
    headless                                            one label below a ``hostname``    a pod name
    NodePort                                            SRV below a ``hostname``          node ports
    asks for the name, its load balancer is pending     any                               external-dns takes externalIPs
    asks for the name                                   any                               nothing
    does not ask for the name                           its cluster IPs                   cluster IPs
    does not ask for the name                           any other                         no annotation
    """
    if service.headless and key.name.partition(".")[2] in asked.hostnames:
        return "a pod name below `hostname` of a headless Service"
    if service.type == "NodePort" and key.name in {
        srv_owner(of.name, port.protocol, host) for host in asked.hostnames for port in service.ports
    }:
        return "an SRV record of node ports"
    if key.name in (*asked.hostnames, *asked.internal_hostnames):
        lacks_address = _is_pending(service) and asked.targets is None and key.name in asked.hostnames
        return "its load balancer has no address; external-dns takes spec.externalIPs" if lacks_address else None
    addresses = set(found.values)
    if service.type == "ClusterIP" and addresses and addresses <= set(service.cluster_ips):
        return "cluster IPs (--publish-internal-services) at a name that no annotation asks for"
    return "no annotation asks for this name"


WORDS: Final = SourceWords(KIND, _names, _remarks, _why_not_wanted, _load_balancer, _with_load_balancer)
