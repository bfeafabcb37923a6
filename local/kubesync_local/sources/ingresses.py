"""Ingresses, for commands."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.annotations import DnsAnnotations
from kubesync.domain.dns.desired import Desired, DnsRules, asked_of
from kubesync.domain.dns.names import canonical_name
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.sources.ingresses import KIND, Ingress, names_given, names_wanted, of_our_class
from kubesync.domain.sources.registry import main_part
from kubesync.domain.state import KeyState
from kubesync_local.sources.port import LoadBalancer, SourceWords

_SHOWN: Final = 3


def _names(ingress: Ingress, _key: ObjectKey, _config: ClusterConfig) -> Iterator[str]:
    """Its hosts, also where options leave them out."""
    return map(canonical_name, (*ingress.hosts, *ingress.tls_hosts))


def _remarks(state: KeyState, want: Desired, config: ClusterConfig) -> Iterator[str]:
    """
    The Ingress                                     it says
    -----------                                     -------
    is of no class of --ingress-class               its class, and the option
    gives names that are not used                   these, and the annotation or option
    no host, no annotation ``hostname``             that
    neither ``status.loadBalancer`` nor ``target``  no address

    If record sets are wanted for it, only names can be left out.
    """
    main = main_part(state)
    assert main is not None
    ingress, rules = main.value, rules_of(config)
    assert isinstance(ingress, Ingress)
    asked = asked_of(ingress.annotations, rules)
    if not of_our_class(ingress, rules):
        its = f"its class is {ingress.class_name}" if ingress.class_name else "it names no class"
        yield f"--ingress-class {','.join(rules.ingress_class)} leaves the Ingress out: {its}"
        return
    left = _left_out(ingress, asked, rules)
    for by, names in left.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield f"{by} leaves out {', '.join(names[:_SHOWN])}{more}"
    wanted = names_wanted(ingress, asked, rules)
    if wanted == {} and not left:
        yield "it has neither a host nor an annotation hostname"
    elif wanted != {} and not (want.records or _has_targets(ingress, asked)):
        yield "its load balancer has no address: no controller has written status.loadBalancer yet"


def _left_out(ingress: Ingress, asked: DnsAnnotations, rules: DnsRules) -> dict[str, list[str]]:
    """Canonical names that an Ingress gives and does not want, by the annotation or option that leaves them out."""
    wanted, found = names_wanted(ingress, asked, rules) or {}, dict[str, dict[str, None]]()
    for _, names, left_out_by in names_given(ingress, asked, rules) or ():
        found.setdefault(left_out_by, {}).update(dict.fromkeys(name for name in names if name not in wanted))
    return {by: [*names] for by, names in found.items() if names}


def _has_targets(ingress: Ingress, asked: DnsAnnotations) -> bool:
    return bool(ingress.ingress_ips or ingress.ingress_hostnames or asked.targets)


def _why_not_wanted(
    key: RecordKey, _found: RecordSet, _object: ObjectKey, ingress: Ingress, asked: DnsAnnotations, rules: DnsRules
) -> str | None:
    if not of_our_class(ingress, rules):
        return "--ingress-class leaves the Ingress out"
    if key.name not in {*map(canonical_name, (*ingress.hosts, *ingress.tls_hosts)), *asked.hostnames}:
        return "neither a host of the Ingress nor an annotation asks for this name"
    return None if _has_targets(ingress, asked) else "the load balancer of the Ingress has no address"


def _load_balancer(ingress: Ingress) -> LoadBalancer:
    return ingress.ingress_ips, ingress.ingress_hostnames


def _with_load_balancer(ingress: Ingress, given: LoadBalancer) -> Ingress:
    return replace(ingress, ingress_ips=given[0], ingress_hostnames=given[1])


WORDS: Final = SourceWords(KIND, _names, _remarks, _why_not_wanted, _load_balancer, _with_load_balancer)
