"""Reads upstreams as proxies should (docs/upstreams.md): only whole versions, and never an older one than before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kubesync.aws.dynamodb.client import DynamoStore, RetryPolicy, build_dynamodb_client
from kubesync.aws.dynamodb.store import UPSTREAMS, Store, table_names
from kubesync.aws.tables.upstreams import StoredUpstream, UpstreamTable
from kubesync.clock import Clock
from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.proxies.names import is_key, protocol_of
from kubesync_local.proxies.servers import Snapshot

if TYPE_CHECKING:
    import boto3

# A change takes one transaction. So a second read sees one version, unless the next change comes in between.
_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.05


class UpstreamReader:
    """Reads snapshots, with strong consistency. Everything raises StoreError if the table cannot be read.

    Args:
        store: needs the right to query and scan the upstreams table, and no other table.
        said: called with a line about what was left out, once for each.
    """

    def __init__(self, store: Store, clock: Clock, said: Callable[[str], None]) -> None:
        self._table = UpstreamTable(store)
        self._clock = clock
        self._said = said
        self._refused: set[str] = set()

    def one(self, key: str) -> Snapshot:
        """An upstream. One that is deleted or was never there has no nodes.

        Raises:
            StoreUnavailableError: its slices stayed of different versions.
        """
        for _ in range(_ATTEMPTS):
            stored = self._table.read(key)
            if stored is None:
                return Snapshot(key, 0, present=False)
            if stored.complete or stored.deleted:
                return snapshot_of(stored)
            self._clock.sleep(_PAUSE_SECONDS)
        raise StoreUnavailableError(f"the slices of {key} are of different versions, again and again")

    def named(self, keys: Iterable[str]) -> dict[str, Snapshot]:
        """These upstreams."""
        return {key: self.one(key) for key in keys}

    def every(self, wanted: Callable[[str], bool]) -> dict[str, Snapshot]:
        """All upstreams whose keys are wanted, also deleted ones, by a scan. Keys that are not valid are left out."""
        found: dict[str, Snapshot] = {}
        for stored in self._table.read_all():
            if wanted(stored.upstream) and not self.refuses(stored.upstream):
                whole = stored.complete or stored.deleted
                found[stored.upstream] = snapshot_of(stored) if whole else self.one(stored.upstream)
        return found

    def refuses(self, key: str) -> bool:
        """Whether a key of the table is not valid; says so once."""
        if is_key(key):
            return False
        if key not in self._refused:
            self._refused.add(key)
            self._said(f"left out: {key!r} is not the key of an upstream; only kubesync should write to the table")
        return True


def selection(clusters: Sequence[str], protocols: Sequence[str]) -> Callable[[str], bool]:
    """Which keys are wanted: those of these clusters (empty: all, and named ones) and protocols. Named ones have no protocol."""

    def wanted(key: str) -> bool:
        return (not clusters or (key.partition("/")[0] in clusters and not key.startswith("named/"))) and (
            protocol_of(key) in (None, *protocols)
        )

    return wanted


def snapshot_of(stored: StoredUpstream) -> Snapshot:
    """An upstream that was read whole."""
    if stored.deleted:
        return Snapshot(stored.upstream, stored.version, present=False, digest=stored.digest)
    return Snapshot(stored.upstream, stored.version, stored.nodes, digest=stored.digest)


def snapshot_of_head(item: Mapping[str, Any]) -> Snapshot | None:
    """The same from slice 0 alone; None: the upstream has more slices."""
    deleted = bool(item.get("deleted", False))
    if item["slices"] != 1 and not deleted:
        return None
    nodes = () if deleted else tuple(item["nodes"])
    return Snapshot(item["upstream"], item["version"], nodes, present=not deleted, digest=item.get("digest", ""))


def upstream_store(session: boto3.Session, prefix: str, clock: Clock, *, consistent: bool = True) -> DynamoStore:
    """A store for the upstreams table alone.

    Args:
        consistent: False: reads cost half, and may be a moment old.
    """
    client = build_dynamodb_client(session, connect_timeout=2, read_timeout=10, max_connections=4)
    if not consistent:
        client.meta.events.register("provide-client-params.dynamodb.BatchGetItem", _eventual)
    return DynamoStore(client, {UPSTREAMS: table_names(prefix)[UPSTREAMS]}, clock, retry=RetryPolicy(attempts=3))


def _eventual(params: dict[str, Any], **_: object) -> None:
    for table in params["RequestItems"].values():
        table["ConsistentRead"] = False
