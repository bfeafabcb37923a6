"""The tables of clusters over one store, as a session makes them."""

from dataclasses import replace

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.control.named_upstreams import NamedReferrals
from kubesync.aws.tables.of_clusters import Tables


def cluster_tables(store: Store) -> Tables:
    """Tables of a session that has raised the fence of cluster ``prod``."""
    return replace(Tables.of(store, AuditTable("session"), NamedReferrals()), writable_clusters=frozenset({"prod"}))
