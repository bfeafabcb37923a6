"""Names that an object wants, whether it has something to publish there or not, and why an Ingress has nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.annotations.reading import read_annotations
from kubesync.domain.dns.desired import asked_of
from kubesync.domain.dns.names import NO_NAMES, canonical_name, service_name
from kubesync.domain.objects import Service
from kubesync.domain.sources.ingresses import Ingress, names_left_out, names_wanted, of_our_class
from kubesync.domain.sources.registry import main_part
from kubesync.domain.state import KeyState

_SHOWN: Final = 3


def wanted_names(state: KeyState, config: ClusterConfig) -> frozenset[str]:
    """Those of annotations, those of an Ingress' hosts, also where they are left out, and a Service's own name by the template."""
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


def remarks_on_ingress(ingress: Ingress, config: ClusterConfig, *, published: bool) -> Iterator[str]:
    """What leaves names of an Ingress out, or all of it, although there is no problem.

    the Ingress                                     it says
    -----------                                     -------
    kubesync.io/exclude                             the annotation
    opt-in without kubesync.io/include              the annotation
    is of no class of --ingress-class               its class, and the option
    gives names that are not used                   these, and the annotation or option
    no host, no annotation ``hostname``             that
    neither ``status.loadBalancer`` nor ``target``  no address

    Args:
        published: record sets are wanted for it: then only names can be left out.
    """
    rules = rules_of(config)
    asked = asked_of(ingress.annotations, rules)
    if asked.exclude:
        yield "annotation kubesync.io/exclude leaves the Ingress out"
    elif rules.opt_in and not asked.include:
        yield 'the cluster is opt-in, and the Ingress has no annotation kubesync.io/include: "true": it is left out'
    elif not of_our_class(ingress, rules):
        its = f"its class is {ingress.class_name}" if ingress.class_name else "it names no class"
        yield f"--ingress-class {','.join(rules.ingress_class)} leaves the Ingress out: {its}"
    else:
        left = names_left_out(ingress, asked, rules)
        for by, names in left.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield f"{by} leaves out {', '.join(names[:_SHOWN])}{more}"
        wanted = names_wanted(ingress, asked, rules)
        if wanted == {} and not left:
            yield "it has neither a host nor an annotation hostname"
        elif wanted != {} and not (published or ingress.ingress_ips or ingress.ingress_hostnames or asked.targets):
            yield "its load balancer has no address: no controller has written status.loadBalancer yet"
