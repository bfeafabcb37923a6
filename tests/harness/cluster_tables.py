"""The tables of clusters over one store, as a session makes them."""

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.name_counts import NameCountTable
from kubesync.aws.tables.of_clusters import Tables
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable


def cluster_tables(store: Store) -> Tables:
    """Tables of a session that has raised the fence of cluster ``prod``."""
    return Tables(
        StateTable(store),
        NameCountTable(store),
        ClaimTable(store),
        UpstreamTable(store),
        ListenerTable(store),
        AuditTable("session"),
        fenced_here={"prod"},
    )
