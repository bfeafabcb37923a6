"""Names that an object wants, whether it has something to publish there or not, and why an Ingress has nothing."""

from __future__ import annotations

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.dns.annotations.reading import read_annotations
from kubesync.domain.dns.names import NO_NAMES, canonical_name, service_name
from kubesync.domain.objects import Service
from kubesync.domain.sources.ingresses import Ingress
from kubesync.domain.sources.registry import main_part
from kubesync.domain.state import KeyState


def wanted_names(state: KeyState, config: ClusterConfig) -> frozenset[str]:
    """Those of annotations, those of an Ingress' hosts, and a Service's own name by the template."""
    main = main_part(state)
    value = main.value if main is not None else None
    if value is None:
        return frozenset()
    asked = read_annotations(getattr(value, "annotations", ()), config.annotation_prefixes)
    names = {*asked.hostnames, *asked.internal_hostnames}
    if isinstance(value, Ingress):
        names.update(map(canonical_name, (*value.hosts, *value.tls_hosts)))
    if state.service is not None and config.template != NO_NAMES:
        key, domain = state.key, config.domain
        names.add(
            service_name(
                config.template, service=key.name, namespace=key.namespace, domain=domain, cluster=config.name
            ).lower()
        )
    return frozenset(names)


def is_pending(service: Service, config: ClusterConfig) -> bool:
    """Whether a LoadBalancer Service has no address yet, and no annotation that gives one."""
    targets = read_annotations(service.annotations, config.annotation_prefixes).targets
    return not (service.ingress_ips or service.ingress_hostnames or targets)


def why_ingress_has_nothing(ingress: Ingress, config: ClusterConfig) -> str:
    """Why nothing is wanted for it, although there is no problem; empty: it has targets and asks for names.

    the Ingress                                     it says
    -----------                                     -------
    kubesync.io/exclude                             the annotation
    opt-in without kubesync.io/include              the annotation
    is of no class of --ingress-class               its class, and the option
    no host, no annotation ``hostname``             that
    neither ``status.loadBalancer`` nor ``target``  no address
    """
    asked = read_annotations(ingress.annotations, config.annotation_prefixes)
    if asked.exclude:
        return "annotation kubesync.io/exclude leaves the Ingress out"
    if config.opt_in and not asked.include:
        return 'the cluster is opt-in, and the Ingress has no annotation kubesync.io/include: "true": it is left out'
    if config.ingress_class and ingress.class_name not in config.ingress_class:
        its = f"its class is {ingress.class_name}" if ingress.class_name else "it names no class"
        return f"--ingress-class {','.join(config.ingress_class)} leaves the Ingress out: {its}"
    if not (ingress.hosts or ingress.tls_hosts or asked.hostnames):
        return "it has neither a host nor an annotation hostname"
    if not (ingress.ingress_ips or ingress.ingress_hostnames or asked.targets):
        return "its load balancer has no address: no controller has written status.loadBalancer yet"
    return ""
