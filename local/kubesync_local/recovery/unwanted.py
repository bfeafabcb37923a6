"""The part of a recovery's report about record sets that no cluster of the deployment wants or holds. A person decides about each.

a cluster                                              its sets are known
---------                                              ------------------
was listed in this run                                 from its list and the tables
is disabled, of another shard, not asked for, failed   from the tables alone: rows of its zones name it (``unlisted``)
has a configuration that this release cannot read      the same, and it may have any zone
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from kubesync.aws.route53.journal import FORM, PREFIX
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.errors import NewerSchemaError
from kubesync_local.recovery.not_wanted import ClusterView
from kubesync_local.recovery.rows import row


class UnwantedSets:
    """Adds the rows of one zone after the other.

    Args:
        registered: every cluster of the deployment, of all shards. None: its configuration cannot be read.
        about: whether the person asked about a set.
    """

    def __init__(
        self, registered: Mapping[str, ClusterConfig | None], state: StateTable, about: Callable[[RecordKey], bool]
    ) -> None:
        self._registered = registered
        self._state = state
        self._about = about
        self._stored: dict[str, frozenset[RecordKey]] = {}

    def add(
        self,
        zone: Zone,
        actual: Mapping[RecordKey, RecordSet],
        views: Mapping[str, ClusterView],
        reports: Iterable[dict[str, Any]],
    ) -> None:
        """Add the sets below each cluster's domain to its report.

        Args:
            views: of every cluster that was listed in this run, also of those that do not have the zone.
            reports: of clusters. Those without a view are left out.
        """
        nobodys = {
            key
            for key, record_set in actual.items()
            if self._about(key) and not _left_out(key, record_set)
            if not any(key in view.wanted or key in view.held for view in views.values())
        }
        for report in reports:
            view = views.get(report["cluster"])
            if view is None or zone.id not in {each.id for each in view.rules.zones}:
                continue
            below = {key for key in nobodys if f".{key.name}".endswith(f".{view.rules.domain}")}
            if below:  # else the tables need not be read
                nobodys = nobodys.difference(*map(self._stored_sets, self._registered.keys() - views.keys()))
            unlisted = sorted(self._unlisted(zone, views))
            report["unwanted"] += [
                {**row(key, record_set), "unlisted": unlisted}
                for key, record_set in actual.items()
                if key in below and key in nobodys
            ]

    def _unlisted(self, zone: Zone, views: Mapping[str, ClusterView]) -> Iterator[str]:
        for name, config in self._registered.items():
            if name not in views and (config is None or zone.id in {each.id for each in config.zones}):
                yield name

    def _stored_sets(self, cluster: str) -> frozenset[RecordKey]:
        """What a cluster wants and holds, as the tables have it; if a newer release wrote some of it: what can be read."""
        if cluster not in self._stored:
            found: set[RecordKey] = set()
            with suppress(NewerSchemaError):
                for state in self._state.load_all(cluster):
                    found.update(state.intended, state.applied)
            self._stored[cluster] = frozenset(found)
        return self._stored[cluster]


def _left_out(key: RecordKey, record_set: RecordSet) -> bool:
    """Whether a record set belongs to the zone itself, or is the journal of some deployment of kubesync."""
    values = record_set.values
    journal = key.type == "TXT" and key.name.startswith(PREFIX) and len(values) == 1 and FORM.fullmatch(values[0])
    return key.type in ("SOA", "NS") or bool(journal)
