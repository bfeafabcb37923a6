"""Provenance: which rule or annotation wants a name, and where its values come from."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kubesync.domain.dns.annotations import DnsAnnotations, annotation_used
from kubesync.domain.objects import Service


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """``rule`` makes the name; ``source`` provides its values. Both are phrases for people, made of stable words."""

    rule: str
    source: str


def by_annotation(annotations: Iterable[tuple[str, str]], asked: DnsAnnotations, name: str) -> str:
    """A name from an annotation, with the prefix under which it was found."""
    return f"annotation {annotation_used(annotations, name, asked.prefixes)}"


OF_TEMPLATE: Final = "template "
"""Begins the rule of a Service's own name; the template follows."""
OF_ENDPOINTS: Final = "host names of endpoints"
OF_PORTS: Final = "named ports"
CLUSTER_IPS: Final = "spec.clusterIPs"


def public_source(service: Service, asked: DnsAnnotations, *, cluster_ips: bool) -> str:
    """Where the values at a Service's own name come from. ``cluster_ips``: the cluster publishes those of LoadBalancers."""
    if asked.targets is not None:
        return by_annotation(service.annotations, asked, "target")
    if service.headless:
        return endpoints_source(service)
    if service.type == "ExternalName":
        return "spec.externalName"
    if service.type == "LoadBalancer":
        return f"{CLUSTER_IPS}, by --load-balancer-cluster-ips" if cluster_ips else "status.loadBalancer"
    return CLUSTER_IPS


def internal_source(service: Service, asked: DnsAnnotations) -> str:
    """Where the values at names from ``internal-hostname`` come from."""
    return CLUSTER_IPS if asked.targets is None else by_annotation(service.annotations, asked, "target")


def endpoints_source(service: Service) -> str:
    """Where the values of a headless Service come from."""
    return "endpoints, ready or not" if service.publish_not_ready else "ready endpoints"
