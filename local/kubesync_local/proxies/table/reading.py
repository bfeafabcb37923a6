"""Reads upstreams as proxies should (docs/upstreams.md): only whole versions, and never an older one than before."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from kubesync.actors.scheduler import Clock, Scheduler
from kubesync.aws.dynamodb.client import DynamoStore, RetryPolicy, build_dynamodb_client
from kubesync.aws.dynamodb.store import UPSTREAMS, Item, Store, table_names
from kubesync.aws.dynamodb.wire import item_bytes
from kubesync.aws.tables.upstreams import StoredUpstream, assemble
from kubesync.domain.errors import StoreError
from kubesync_local.proxies.names import is_key, protocol_of
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.table.items import UnreadableUpstreamError, UnreadUpstream, decoded, oddity

if TYPE_CHECKING:
    import boto3

# A change takes one transaction. So a second read sees one version, unless the next change comes in between.
_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.05
# Among so many items a name is looked for that resembles a misspelt one.
_LOOKED_THROUGH: Final = 2000


class UpstreamReader:
    """Reads snapshots, with strong consistency. Everything raises StoreError if the table cannot be read.

    One upstream that cannot be read is no reason to stop: a line says so once, and another one when it can be read again.

    Args:
        store: needs the right to query and scan the upstreams table, and no other table.
        said: called with a line about what was left out, once for each.
    """

    def __init__(self, store: Store, clock: Clock, said: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._said = said
        self._refused: set[str] = set()
        #: Why upstreams could not be read the last time, by key.
        self.unread: dict[str, str] = {}
        #: What the first scan read, also of upstreams that were not wanted; and clusters that scans saw.
        self.table_bytes = 0
        self.clusters: set[str] = set()

    @property
    def problem(self) -> str:
        """That upstreams cannot be read, in words; empty: all can."""
        if not self.unread:
            return ""
        first = min(self.unread)
        more = f" (and {len(self.unread) - 1} more)" if len(self.unread) > 1 else ""
        return f"{first} cannot be read{more}: {self.unread[first]}"

    def one(self, key: str) -> Snapshot:
        """An upstream. One that is deleted or was never there has no nodes.

        Raises:
            UnreadableUpstreamError: its items have another form, or its slices stayed of different versions.
        """
        attempts = 1 if key in self.unread else _ATTEMPTS
        for attempt in range(attempts):
            if attempt:
                self._clock.sleep(_PAUSE_SECONDS)
            try:
                seen = _whole(key, list(self._store.query(UPSTREAMS, key)))
            except UnreadableUpstreamError as error:
                raise self._unreadable(key, str(error)) from None
            if seen is not None:
                self.note_readable(key, seen)
                return seen
        raise self._unreadable(key, "its slices are of different versions, again and again, or some are missing")

    def named(self, keys: Iterable[str]) -> dict[str, Snapshot]:
        """These upstreams; UnreadUpstream for what cannot be read. Raises UnreadableUpstreamError if none of them can."""
        found = {key: self._one_or(key, UnreadUpstream(key)) for key in keys}
        self.require_some(found)
        return found

    def every(self, wanted: Callable[[str], bool], known: Mapping[str, Snapshot] | None = None) -> dict[str, Snapshot]:
        """All upstreams whose keys are wanted, also deleted ones, by a scan. Keys that are not valid are left out.

        Args:
            known: what stands for those that cannot be read. The others are UnreadUpstream.

        Raises:
            UnreadableUpstreamError: no upstream can be read, and none is known.
        """
        items: dict[str, list[Item]] = {}
        read, counts = 0, self.table_bytes == 0
        for item in self._store.scan(UPSTREAMS):
            if counts:
                read += item_bytes(item)
            key = cast(str, item["upstream"])
            self.clusters.add(key.split("/")[0])
            if wanted(key) and not self.refuses(key):
                items.setdefault(key, []).append(item)
        self.table_bytes = self.table_bytes or read
        # Without slice 0 there is no upstream.
        items = {key: slices for key, slices in items.items() if any(item["slice"] == 0 for item in slices)}
        for key in self.unread.keys() - items.keys():
            del self.unread[key]
        found: dict[str, Snapshot] = {}
        for key in sorted(items):
            try:
                seen = _whole(key, items.pop(key))
            except UnreadableUpstreamError:
                seen = None
            if seen is None:  # a change came in between, or it stays so
                seen = self._one_or(key, (known or {}).get(key) or UnreadUpstream(key))
            else:
                self.note_readable(key, seen)
            found[key] = seen
        self.require_some(found)
        return found

    def nearest(self, name: str) -> str:
        """An upstream or a cluster of the table that resembles this one; empty: none does, or the table may not be looked through."""
        known: Collection[str] = self.clusters
        if is_key(name):
            try:
                known = {cast(str, item["upstream"]) for item in self._store.scan(UPSTREAMS, _LOOKED_THROUGH)}
            except StoreError:
                return ""
        return next(iter(difflib.get_close_matches(name, sorted(known), n=1)), "")

    def _one_or(self, key: str, otherwise: Snapshot) -> Snapshot:
        try:
            return self.one(key)
        except UnreadableUpstreamError:
            return otherwise

    def require_some(self, found: Mapping[str, Snapshot], problem: str = "") -> None:
        """Nobody should write an empty configuration if nothing at all could be read: raises UnreadableUpstreamError.

        Args:
            problem: why, if the upstreams themselves are not the reason.
        """
        if found and all(isinstance(each, UnreadUpstream) for each in found.values()):
            first = min(found)
            reason = problem or self.unread.get(first, "it is missing now")
            raise UnreadableUpstreamError(f"no upstream can be read, such as {first}: {reason}")

    def _unreadable(self, key: str, reason: str) -> UnreadableUpstreamError:
        if self.unread.get(key) != reason:
            self._said(f"{key} cannot be read, what is known of it stays: {reason}")
        self.unread[key] = reason
        return UnreadableUpstreamError(f"{key}: {reason}")

    def note_readable(self, key: str, seen: Snapshot | None = None) -> None:
        """An upstream was read, here or elsewhere; ``seen`` without an item: it is no longer in the table."""
        if self.unread.pop(key, None) is not None and (seen is None or seen.has_item):
            self._said(f"{key} can be read again")

    def refuses(self, key: str) -> bool:
        """Whether a key of the table is not valid; says so once."""
        if is_key(key):
            return False
        if key not in self._refused:
            self._refused.add(key)
            self._said(f"left out: {key!r} is not the key of an upstream; only kubesync should write to the table")
        return True


def selection(
    clusters: Sequence[str], protocols: Sequence[str], namespaces: Collection[str] = ()
) -> Callable[[str], bool]:
    """Which keys are wanted: those of these clusters and namespaces (empty: all, and named ones) and protocols. Named ones have no protocol."""

    def wanted(key: str) -> bool:
        if clusters or namespaces:
            cluster, namespace, *_ = (*key.split("/", 2), "")
            if (
                key.startswith("named/")
                or (clusters and cluster not in clusters)
                or (namespaces and namespace not in namespaces)
            ):
                return False
        return protocol_of(key) in (None, *protocols)

    return wanted


def _whole(key: str, items: list[Item]) -> Snapshot | None:
    """An upstream from its items; None: slices are missing or of different versions. Raises UnreadableUpstreamError."""
    items.sort(key=lambda item: item["slice"] != 0)  # an odd item may have an odd number
    if not items or items[0]["slice"] != 0:
        return Snapshot(key, 0, present=False)
    for item in items[:1] if items[0].get("deleted") is True else items:
        if reason := oddity(item):
            raise UnreadableUpstreamError(reason)
    stored = assemble(items)
    return snapshot_of(stored) if stored is not None and (stored.complete or stored.deleted) else None


def snapshot_of(stored: StoredUpstream) -> Snapshot:
    """An upstream that was read whole."""
    if stored.deleted:
        return Snapshot(stored.upstream, stored.version, present=False, digest=stored.digest)
    return Snapshot(stored.upstream, stored.version, stored.nodes, digest=stored.digest)


def snapshot_of_head(item: Mapping[str, Any]) -> Snapshot | None:
    """The same from slice 0 alone; None: the upstream has more slices, or a form that is not known."""
    if oddity(item):
        return None
    deleted = bool(item.get("deleted", False))
    if item["slices"] != 1 and not deleted:
        return None
    nodes = () if deleted else tuple(item["nodes"])
    return Snapshot(item["upstream"], item["version"], nodes, present=not deleted, digest=item.get("digest", ""))


def upstream_store(
    session: boto3.Session, prefix: str, scheduler: Scheduler, *, consistent: bool = True
) -> DynamoStore:
    """A store for the upstreams table alone.

    Args:
        consistent: False: reads cost half, and may be a moment old.
    """
    client = build_dynamodb_client(session, connect_timeout=2, read_timeout=10)
    if not consistent:
        client.meta.events.register("provide-client-params.dynamodb.BatchGetItem", _eventual)
    names = {UPSTREAMS: table_names(prefix)[UPSTREAMS]}
    return DynamoStore(client, names, scheduler, retry=RetryPolicy(attempts=3), decoded=decoded)


def _eventual(params: dict[str, Any], **_: object) -> None:
    for table in params["RequestItems"].values():
        table["ConsistentRead"] = False
