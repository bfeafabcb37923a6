"""How the API writes Ingresses (``networking.k8s.io/v1``), and the value that is kept of one."""

from collections.abc import Iterable
from typing import Annotated, Final, Required, TypedDict

from pydantic import Field, with_config

from kubesync.domain.dns.annotations import annotations_to_keep
from kubesync.domain.sources.ingresses import HOSTNAME_SOURCE, INGRESSES, Ingress
from kubesync.kubernetes.wire.models import CONFIG, Metadata, Short, Status, load_balancer_of
from kubesync.kubernetes.wire.port import wire_source

_CLASS: Final = "kubernetes.io/ingress.class"
"""Counts where the field is missing (https://kubernetes.io/docs/concepts/services-networking/ingress/#deprecated-annotation)."""
_MAX_VALUE_CHARACTERS: Final = 63


class IngressRule(TypedDict, total=False):
    host: Short | None


class IngressTls(TypedDict, total=False):
    hosts: Annotated[list[Short], Field(max_length=10_000)] | None


class IngressSpec(TypedDict, total=False):
    ingressClassName: Short | None
    rules: Annotated[list[IngressRule], Field(max_length=10_000)] | None
    tls: Annotated[list[IngressTls], Field(max_length=10_000)] | None


@with_config(CONFIG)
class IngressModel(TypedDict, total=False):
    metadata: Required[Metadata]
    spec: IngressSpec | None
    status: Status | None


def project_ingress(model: IngressModel, prefixes: tuple[str, ...]) -> Ingress:
    """Keep of an Ingress what its rules need. ``prefixes``: of the annotations that are kept."""
    spec, metadata = model.get("spec") or IngressSpec(), model["metadata"]
    annotations = metadata.get("annotations") or {}
    ips, hostnames = load_balancer_of(model.get("status"))
    # Services ignore this annotation, so ``annotations_to_keep`` leaves it out.
    sources = [key for prefix in prefixes if (key := prefix + HOSTNAME_SOURCE) in annotations]
    read = {
        **dict(annotations_to_keep(annotations, prefixes)),
        **{key: annotations[key][:_MAX_VALUE_CHARACTERS] for key in sources},
    }
    return Ingress(
        class_name=spec.get("ingressClassName") or annotations.get(_CLASS, "")[:_MAX_VALUE_CHARACTERS],
        hosts=_unique(rule.get("host") for rule in spec.get("rules") or ()),
        tls_hosts=_unique(host for tls in spec.get("tls") or () for host in tls.get("hosts") or ()),
        ingress_ips=ips,
        ingress_hostnames=hostnames,
        annotations=tuple(sorted(read.items())),
        created_at=metadata.get("creationTimestamp") or "",
    )


def _unique(hosts: Iterable[str | None]) -> tuple[str, ...]:
    """The hosts in their order, without empty ones and duplicates."""
    return tuple(dict.fromkeys(filter(None, hosts)))


SOURCES: Final = (wire_source(INGRESSES, "Ingress", "networking.k8s.io/v1", IngressModel, project_ingress),)
