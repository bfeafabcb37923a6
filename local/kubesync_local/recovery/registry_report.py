"""The part of a recovery's report about external-dns: what it registered and no cluster wants, and its own TXT record sets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync_local.recovery.not_wanted import ClusterView, why_not_wanted
from kubesync_local.recovery.rows import row
from kubesync_local.recovery.txt_registry import Affixes, Entry, Registry, read_registry


@dataclass(slots=True)
class RegistryReport:
    """Collects the rows of all zones.

    Args:
        about: whether the person asked about a set.
        owner: external-dns' owner id; empty: of every owner.
    """

    affixes: Affixes
    owner: str
    about: Callable[[RecordKey], bool]
    zones: list[dict[str, Any]] = field(default_factory=list)
    registered: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        zone: Zone,
        actual: Mapping[RecordKey, RecordSet],
        views: Mapping[str, ClusterView],
        shown: set[RecordKey],
        unlisted: list[str],
    ) -> None:
        """Add a zone.

        Args:
            views: of every cluster that has the zone.
            shown: sets that the report shows already, as in the way of wanted ones.
            unlisted: clusters whose view may be old, because they were not listed.
        """
        registry = read_registry(actual, self.affixes, self.owner)
        held = {key for view in views.values() for key in view.held if key.zone_id == zone.id}
        wanted = {key for view in views.values() for key in view.wanted if key.zone_id == zone.id}
        for key, entry in registry.of_set.items():
            if not (key in wanted or key in held or key in shown) and self.about(key):
                self.registered.append(_registered(key, actual[key], entry, views))
        for entry in registry.entries.values():
            covered = registry.covered.get(entry.key, [])
            if self.about(entry.key) or any(map(self.about, covered)):
                self.records.append(_record(entry, covered, held))
        if registry.entries or registry.unreadable:
            self.zones.append(_zone(zone, registry, unlisted))


def _registered(
    key: RecordKey, record_set: RecordSet, entry: Entry, views: Mapping[str, ClusterView]
) -> dict[str, Any]:
    answer = why_not_wanted(key, record_set, entry.resource, list(views.values()))
    return {
        **row(key, record_set, answer.service),
        "cluster": answer.cluster,
        "owner": entry.owner,
        "resource": entry.resource,
        "why": answer.why,
    }


def _record(entry: Entry, covered: list[RecordKey], held: set[RecordKey]) -> dict[str, Any]:
    return {
        **row(entry.key, entry.record_set),
        "owner": entry.owner,
        "resource": entry.resource,
        "covers": [key.label for key in covered],
        "held": bool(covered) and all(key in held for key in covered),
        "alone": entry.alone,
    }


def _zone(zone: Zone, registry: Registry, unlisted: list[str]) -> dict[str, Any]:
    return {
        "zone": zone.id,
        "name": zone.name,
        "records": len(registry.entries),
        "unmatched": sum(not registry.covered.get(key) for key in registry.entries),
        "unreadable": len(registry.unreadable),
        "unlisted": unlisted,
    }
