"""Which part of a cluster is synchronised: namespaces, and a selector of labels.

    what                         where it is decided
    ----                         -------------------
    one namespace                by the API server: the path of that namespace
    several namespaces           here: the API has no way to ask for them in one watch
    excluded namespaces          by the API server: a field selector, which every resource has for metadata.namespace
                                 (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/)
    labels of Services           by the API server: a label selector; an object that stops to match is DELETED for that watch,
                                 one that begins to match ADDED (k8s.io/apiserver, pkg/storage/cacher, convertToWatchEvent)
    Endpoints, EndpointSlices    without that selector, unless asked for: those made by hand may lack their Service's labels

Opt-in by annotation is no part of it: annotations cannot be selected, so that every Service is seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kubesync.domain.label_selector import why_no_selector
from kubesync.domain.objects import Resource

# RFC 1123, as https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names has it.
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# A URL has to hold the excluded ones; nobody types more.
MAX_NAMESPACES: Final = 100


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a cluster its listeners see; everything where nothing is given.

    Args:
        namespaces: these only; empty: all.
        excluded: all but these.
        selector: of the labels of Services, as the API takes it.
        select_endpoints: Endpoints and EndpointSlices are selected by the same labels.
    """

    namespaces: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    selector: str = ""
    select_endpoints: bool = False

    def holds(self, namespace: str) -> bool:
        """Whether objects of this namespace are seen."""
        return (not self.namespaces or namespace in self.namespaces) and namespace not in self.excluded

    @property
    def namespace(self) -> str:
        """The namespace whose path is asked for; empty: that of all."""
        return self.namespaces[0] if len(self.namespaces) == 1 else ""

    @property
    def sifted(self) -> bool:
        """Whether the API server sends objects of other namespaces too."""
        return len(self.namespaces) > 1

    def labels_of(self, resource: Resource) -> str:
        """The label selector that is sent for a resource; empty: none."""
        return self.selector if resource is Resource.SERVICES or self.select_endpoints else ""

    def selectors(self, resource: Resource) -> tuple[tuple[str, str], ...]:
        """Query parameters of its lists and watches."""
        fields = ",".join(f"metadata.namespace!={namespace}" for namespace in self.excluded)
        given = (("fieldSelector", fields), ("labelSelector", self.labels_of(resource)))
        return tuple((name, value) for name, value in given if value)

    @property
    def shows_identity(self) -> bool:
        """Whether a list of Services is sure to hold default/kubernetes, which tells one cluster from another (I5)."""
        return self.holds("default") and not self.selector


def why_no_scope(scope: Scope) -> str | None:
    """What is wrong with it, in one line that names the option, or None."""
    if scope.namespaces and scope.excluded:
        return "--namespace and --exclude-namespaces exclude each other"
    for option, given in (("--namespace", scope.namespaces), ("--exclude-namespaces", scope.excluded)):
        if reason := _why_no_namespaces(given):
            return f"{option} {reason}"
    if scope.select_endpoints and not scope.selector:
        return "--select-endpoints goes with --selector"
    if scope.selector and (reason := why_no_selector(scope.selector)):
        return f"--selector {scope.selector!r}: {reason}"
    return None


def _why_no_namespaces(given: Collection[str]) -> str | None:
    if len(given) > MAX_NAMESPACES:
        return f"names {len(given)} namespaces: at most {MAX_NAMESPACES}"
    for namespace in given:
        if _NAMESPACE.fullmatch(namespace) is None:
            return f"{namespace!r} is no namespace: lower-case letters, digits and hyphens, at most 63"
    return None
