"""``--watch`` with ``--upstream``: reads slice 0 of each upstream every second, and the rest only when the version changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesync.aws.dynamodb.store import UPSTREAMS, Key, Store
from kubesync_local.proxies.items import UnreadableUpstreamError, UnreadUpstream, oddity
from kubesync_local.proxies.lost import LostUpstreams
from kubesync_local.proxies.prices import dollars_of_polling
from kubesync_local.proxies.reading import UpstreamReader, snapshot_of_head
from kubesync_local.proxies.servers import Snapshot

MOST_KEYS = 100  # one BatchGetItem


class PolledUpstreams:
    """Up to 100 upstreams. Implements ``watching.Source``.

    Args:
        cheap: may read with eventual consistency. What is not newer than what is known is confirmed by a strong read.
    """

    interval_seconds = 1.0
    problem = ""

    def __init__(self, reader: UpstreamReader, cheap: Store, keys: Sequence[str], lost: LostUpstreams) -> None:
        self._reader = reader
        self._cheap = cheap
        self._lost = lost
        self.proven = False
        self._keys = [Key(UPSTREAMS, key, 0) for key in dict.fromkeys(keys)]
        self._known: dict[str, Snapshot] = {}

    def read(self) -> Mapping[str, Snapshot]:
        """All of them now; the same object if nothing changed.

        Raises:
            StoreError: the table cannot be read.
        """
        found = self._cheap.batch_get(self._keys)
        heads = {key.partition: found.get(key) for key in self._keys}
        now = {key: self._read(key, None if head is None else dict(head)) for key, head in heads.items()}
        self._reader.require_some(now)
        self.proven = self.proven or any(each.has_item for each in now.values())
        if any(self._known.get(key) is not each for key, each in now.items()):
            self._known = now
        self._lost.report()
        return self._known

    def _read(self, key: str, head: Mapping[str, object] | None) -> Snapshot:
        """One of them now. If it alone cannot be read, it stays as it was."""
        known = self._known.get(key)
        try:
            if head is not None and oddity(head):
                return self._confirmed(key, known) if known is not None else self._reader.one(key)
            seen = self._newer(key, head)
        except UnreadableUpstreamError:
            return known or UnreadUpstream(key)
        if head is not None:
            self._reader.note_readable(key)
        return seen

    def _newer(self, key: str, head: Mapping[str, object] | None) -> Snapshot:
        known = self._known.get(key)
        if known is None:
            return (None if head is None else snapshot_of_head(head)) or self._reader.one(key)
        lost = key in self._lost
        # A table that was made anew counts versions from 1 again: the digest tells equal versions apart.
        now = (0, "") if head is None else (head["version"], head.get("digest", ""))
        if (now == (known.version, known.digest) and not lost) or (head is None and lost):
            return known
        seen = None if head is None or lost else snapshot_of_head(head)
        return seen if seen is not None and seen.version > known.version else self._confirmed(key, known)

    def _confirmed(self, key: str, known: Snapshot) -> Snapshot:
        """What a strong read says of one that seems to be older, equal or missing."""
        seen = self._reader.one(key)
        if known.present and not seen.has_item:
            self._lost.add(key)
            return known
        self._lost.discard(key)
        return known if seen == known else seen

    def costs(self) -> str:
        """What reading costs, in words."""
        return dollars_of_polling(list(self._known.values()))
