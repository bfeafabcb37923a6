"""The tables of clusters and their keys, as one value."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from kubesync.actors.parallel import Map, one_by_one
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.named_upstreams import NamedReferrals
from kubesync.aws.tables.name_counts import NameCountTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of clusters and their keys.

    ``reads``: makes reads of which each is a request of its own; the master makes several at the same time. ``writable_clusters``: clusters whose
    fence this master has raised, now (it is the set ``Fencing.raised`` itself). It may write for their keys.
    """

    state: StateTable
    name_counts: NameCountTable
    claims: ClaimTable
    upstreams: UpstreamTable
    listeners: ListenerTable
    audit: AuditTable
    named: NamedReferrals
    reads: Map = one_by_one
    writable_clusters: AbstractSet[str] = frozenset()

    @classmethod
    def of(cls, store: Store, audit: AuditTable, named: NamedReferrals) -> Self:
        """All tables of one store, whose reads go one by one, for a master that has raised no fence."""
        names, claims, upstreams = NameCountTable(store), ClaimTable(store), UpstreamTable(store)
        return cls(StateTable(store), names, claims, upstreams, ListenerTable(store), audit, named)
