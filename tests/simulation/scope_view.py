"""What an API server shows to those who ask for a part of a scripted cluster: some namespaces, Services of some labels.

Scripted Services and Ingresses have no labels: an annotation stands for the one that selectors are about. As in a real watch, an object that
begins to match is ADDED for it, and one that stops to match is DELETED (k8s.io/apiserver, pkg/storage/cacher).
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kubesync.domain.objects import Observation, Resource, Service
from kubesync.domain.sources.ingresses import Ingress
from kubesync.domain.sources.scope import Scope

TEAM: Final = "label.test/team"
"""The annotation that stands for the label ``team``."""
EVERYTHING: Final = Scope()


def visible(seen: Observation, scope: Scope) -> bool:
    """Whether an object, as it is now, is shown. Selectors: ``team=VALUE`` and ``team!=VALUE``."""
    if not scope.holds(seen.namespace):
        return False
    selector = scope.labels_of(seen.resource)
    if not selector:
        return True
    value = seen.value
    team = dict(value.annotations).get(TEAM, "") if isinstance(value, Service | Ingress) else ""
    wanted = selector.rpartition("=")[2]
    return (team != wanted) if "!=" in selector else (team == wanted)


def shown(
    changes: Iterable[tuple[str, Observation]], resource: Resource, scope: Scope
) -> Iterator[tuple[str, Observation]]:
    """The events of a watch: their types, and the objects as they were changed.

    Args:
        changes: all that ever happened, in its order, with the types of a watch of everything.
    """
    matching: set[tuple[str, str]] = set()
    for happened, seen in changes:
        if seen.resource is not resource:
            continue
        place = (seen.namespace, seen.name)
        before, now = place in matching, happened != "DELETED" and visible(seen, scope)
        (matching.add if now else matching.discard)(place)
        if now or before:
            yield ("DELETED" if not now else happened if before else "ADDED"), seen
