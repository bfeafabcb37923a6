"""Which part of a cluster is synchronised: its namespaces, and a label selector.

    what                         who filters
    ----                         -------------------
    one namespace                the API server: the listener asks for that namespace's path
    several namespaces           kubesync: the API cannot watch several at once
    excluded namespaces          the API server: a field selector, which every resource has for metadata.namespace
                                 (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/)
    labels of Services           the API server: a label selector. The watch reports an object that no longer matches as DELETED
                                 and one that begins to match as ADDED (k8s.io/apiserver, pkg/storage/cacher, convertToWatchEvent)
    Endpoints, EndpointSlices    not filtered by labels, unless asked for: objects made by hand may lack their Service's labels

Opt-in by annotation is not part of the scope: API servers cannot select by annotation, so every Service is read.
"""

from dataclasses import dataclass

from kubesync.domain.dns.annotations import PREFIXES
from kubesync.domain.objects import Resource
from kubesync.domain.sources.registry import SOURCES, kind_of


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a cluster that its listeners see. By default they see everything.

    Args:
        namespaces: only these; empty: all.
        excluded: all but these.
        selector: label selector for Services, in the API's syntax.
        select_endpoints: the selector also applies to Endpoints and EndpointSlices.
        annotation_prefixes: of the annotations of external-dns that are kept of a Service.
    """

    namespaces: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    selector: str = ""
    select_endpoints: bool = False
    annotation_prefixes: tuple[str, ...] = PREFIXES

    def holds(self, namespace: str) -> bool:
        """Whether the listeners see objects of this namespace; empty: objects that have none."""
        return not namespace or (
            (not self.namespaces or namespace in self.namespaces) and namespace not in self.excluded
        )

    @property
    def namespace(self) -> str:
        """The namespace in the request path; empty: all namespaces."""
        return self.namespaces[0] if len(self.namespaces) == 1 else ""

    @property
    def everything(self) -> bool:
        """Whether listeners see all that happens in the cluster."""
        return not (self.namespaces or self.excluded or self.selector)

    @property
    def filtered(self) -> bool:
        """Whether the API server also sends objects outside the scope, which kubesync then filters out: it can watch one namespace, or all."""
        return len(self.namespaces) > 1

    def labels_of(self, resource: Resource) -> str:
        """The label selector to send for a resource; empty: none. It is about the objects of keys; see the table for their endpoints."""
        kind = kind_of(resource)
        return self.selector if not kind.shared and (resource == kind.main or self.select_endpoints) else ""

    def selectors(self, resource: Resource) -> tuple[tuple[str, str], ...]:
        """The query parameters that narrow lists and watches of a resource to the scope, as pairs of name and value."""
        excluded = self.excluded if SOURCES[resource].namespaced else ()
        fields = ",".join(f"metadata.namespace!={namespace}" for namespace in excluded)
        given = (("fieldSelector", fields), ("labelSelector", self.labels_of(resource)))
        return tuple((name, value) for name, value in given if value)

    @property
    def shows_identity(self) -> bool:
        """Whether a list of Services must hold default/kubernetes, whose uid identifies the cluster (I5)."""
        return self.holds("default") and not self.selector
