"""``--watch`` with ``--upstream``: reads slice 0 of each upstream every second, and the rest only when the version changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesync.aws.dynamodb.store import UPSTREAMS, Key, Store
from kubesync_local.proxies.prices import dollars_of_polling
from kubesync_local.proxies.reading import UpstreamReader, snapshot_of_head
from kubesync_local.proxies.servers import Snapshot

MOST_KEYS = 100  # one BatchGetItem


class PolledUpstreams:
    """Up to 100 upstreams. Implements ``watching.Source``.

    Args:
        cheap: may read with eventual consistency. A version lower than the one known is confirmed by a strong read.
    """

    interval_seconds = 1.0
    problem = ""

    def __init__(self, reader: UpstreamReader, cheap: Store, keys: Sequence[str]) -> None:
        self._reader = reader
        self._cheap = cheap
        self._keys = [Key(UPSTREAMS, key, 0) for key in dict.fromkeys(keys)]
        self._known: dict[str, Snapshot] = {}

    def read(self) -> Mapping[str, Snapshot]:
        """All of them now; the same object if nothing changed.

        Raises:
            StoreError: the table cannot be read.
        """
        found = self._cheap.batch_get(self._keys)
        heads = {key.partition: found.get(key) for key in self._keys}
        now = {key: self._newer(key, None if head is None else dict(head)) for key, head in heads.items()}
        if any(self._known.get(key) is not each for key, each in now.items()):
            self._known = now
        return self._known

    def _newer(self, key: str, head: Mapping[str, object] | None) -> Snapshot:
        known = self._known.get(key)
        version = 0 if head is None else head["version"]
        if known is not None and version == known.version:
            return known
        seen = None if head is None else snapshot_of_head(head)
        if seen is None or (known is not None and seen.version < known.version):
            seen = self._reader.one(key)
        return known if known is not None and seen.version == known.version else seen

    def costs(self) -> str:
        """What reading costs, in words."""
        return dollars_of_polling(list(self._known.values()))
