"""The upstreams table: what edge proxies read. Its shape is a public interface (docs/upstreams.md)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kubesync.aws.dynamodb.store import UPSTREAMS, Action, Delete, Item, Key
from kubesync.aws.tables.items import Table, attributes_of, put, unchanged
from kubesync.domain.dns.records import Node
from kubesync.domain.state import UpstreamState
from kubesync.domain.upstreams.nodes import digest, node_document, slice_nodes

# A removed upstream stays readable as removed for a week (docs/upstreams.md).
TOMBSTONE_SECONDS: Final = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class StoredUpstream:
    """An upstream in the table. ``slices``: how many items it says it has. ``items``: how many were read. ``complete``: no slice is missing, and all
    have the same version."""

    upstream: str
    version: int
    digest: str
    updated_at: str
    slices: int
    nodes: tuple[dict[str, Any], ...]
    deleted: bool
    complete: bool
    items: int = 1

    @property
    def state(self) -> UpstreamState:
        """What a write replaces, for ``UpstreamTable.put``. It deletes surplus items too, so it counts all that were read."""
        return UpstreamState(self.version, self.digest, max(self.slices, self.items))

    def holds(self, nodes: Sequence[Node]) -> bool:
        """Whether proxies read exactly these nodes from it."""
        return self.complete and not self.deleted and list(self.nodes) == [node_document(node) for node in nodes]


class UpstreamTable(Table):
    """Builds the writes of upstreams. Reads them for commands and full resyncs."""

    @staticmethod
    def put(
        upstream: str, current: UpstreamState | None, nodes: Sequence[Node] | None, now_epoch: float
    ) -> tuple[UpstreamState, list[Action]]:
        """Replace an upstream: write all slices of the new version, and remove surplus ones.

        Args:
            current: the upstream now in the table, or its mark of removal; its version is the condition. None: there is none.
            nodes: None removes the upstream: slice 0 is marked as deleted, for a week.
        """
        removal = {"deleted": True, "expires_at": int(now_epoch) + TOMBSTONE_SECONDS} if nodes is None else {}
        nodes = nodes or ()
        documents = slice_nodes(nodes)
        state = UpstreamTable.following(current, nodes, len(documents))
        before, old_slices = (0, 0) if current is None else (current.version, current.slices)
        head = {"slices": len(documents), "node_count": len(nodes), "digest": state.digest, **removal}
        head["updated_at"] = timestamp(now_epoch)
        actions: list[Action] = []
        for number, chunk in enumerate(documents):
            fields = {"version": state.version, "nodes": [node_document(n) for n in chunk]}
            place = Key(UPSTREAMS, upstream, number)
            # Slice 0 alone has a condition. All are in one transaction: if slice 0 is refused, none is written.
            actions.append(put(place, **fields) if number else put(place, unchanged(before), **fields, **head))
        actions += [Delete(Key(UPSTREAMS, upstream, n)) for n in range(len(documents), old_slices)]
        return state, actions

    @staticmethod
    def following(current: UpstreamState | None, nodes: Sequence[Node], slices: int) -> UpstreamState:
        """An upstream as ``put`` leaves it, with these nodes in so many slices. ``current``: see ``put``."""
        return UpstreamState(1 if current is None else current.version + 1, digest(nodes), slices)

    def current(self, upstreams: Sequence[str]) -> dict[str, UpstreamState]:
        """The upstreams now in the table, marks of removal included. The digest is empty, because nodes are not read."""
        found = self._store.batch_get([Key(UPSTREAMS, name, 0) for name in upstreams])
        return {key.partition: UpstreamState(item["version"], "", item["slices"]) for key, item in found.items()}

    def read(self, upstream: str) -> StoredUpstream | None:
        """One upstream, as a proxy reads it."""
        return assemble(list(self._store.query(UPSTREAMS, upstream)))

    def read_all(
        self, wanted: Callable[[str], bool] = lambda _: True, *, nodes: bool = True
    ) -> Iterator[StoredUpstream]:
        """Every ``wanted`` upstream that is whole, in order, removed ones included. Scans: for commands and full resyncs only.

        Upstreams that are not wanted take no memory. ``nodes``: with False, the nodes are left out: they take none either.
        """
        found: dict[str, list[Item]] = {}
        for item in self._store.scan(UPSTREAMS):
            if wanted(item["upstream"]):
                found.setdefault(item["upstream"], []).append(item if nodes else {**item, "nodes": ()})
        for name in sorted(found):
            if (stored := assemble(found[name])) is not None:
                yield stored


def timestamp(epoch_seconds: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def assemble(items: list[Item]) -> StoredUpstream | None:
    """An upstream from all of its items; None: without slice 0 there is none. Anybody may have deleted or restored some items of it.

    It is complete if there are as many items as slice 0 says, all of its version. Others are surplus, or of a write that was read in the middle.
    """
    items.sort(key=lambda item: item["slice"])
    if not items or items[0]["slice"] != 0:
        return None
    head = items[0]
    slices = head["slices"]
    nodes = [node for item in items[:slices] for node in item["nodes"]]
    complete = len(items) == slices and all(item["version"] == head["version"] for item in items)
    known = attributes_of(StoredUpstream, head) | {"nodes": tuple(nodes), "complete": complete, "items": len(items)}
    return StoredUpstream(**{"deleted": False, **known})
