"""``--watch`` with ``--upstream``: reads slice 0 of each upstream every second, and the rest only when the version changed."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from kubesync.aws.dynamodb.store import UPSTREAMS, Key, Store
from kubesync.domain.errors import StoreError
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.table.items import UnreadableUpstreamError, UnreadUpstream, oddity
from kubesync_local.proxies.table.lost import LostUpstreams
from kubesync_local.proxies.table.prices import dollars_of_polling
from kubesync_local.proxies.table.reading import UpstreamReader, snapshot_of_head
from kubesync_local.proxies.table.retrying import Retries

MOST_KEYS = 100  # one BatchGetItem


class PolledUpstreams:
    """Up to 100 upstreams. Implements ``watching.Source``.

    Args:
        cheap: may read with eventual consistency. What is not newer than what is known is confirmed by a strong read.
        now: monotonic seconds.
    """

    interval_seconds = 1.0

    def __init__(
        self,
        reader: UpstreamReader,
        cheap: Store,
        keys: Sequence[str],
        lost: LostUpstreams,
        now: Callable[[], float],
    ) -> None:
        self._reader = reader
        self._cheap = cheap
        self._lost = lost
        self.proven = False
        self._keys = [Key(UPSTREAMS, key, 0) for key in dict.fromkeys(keys)]
        self._known: dict[str, Snapshot] = {}
        self._retries = Retries(now)

    @property
    def problem(self) -> str:
        """What does not work although ``read`` answers; empty: nothing."""
        return self._retries.problem

    @property
    def known(self) -> Collection[str]:
        """Those with an item."""
        return {key for key, each in self._known.items() if each.has_item}

    def read(self) -> Mapping[str, Snapshot]:
        """All of them now; the same object if nothing changed.

        Raises:
            StoreError: the table cannot be read.
        """
        found = self._cheap.batch_get(self._keys)
        heads = {key.partition: found.get(key) for key in self._keys}
        now = {key: self._read(key, None if head is None else dict(head)) for key, head in heads.items()}
        self._reader.require_some(now, self.problem)
        self.proven = self.proven or any(each.has_item for each in now.values())
        if any(self._known.get(key) is not each for key, each in now.items()):
            self._known = now
        self._lost.report()
        return self._known

    def _read(self, key: str, head: Mapping[str, object] | None) -> Snapshot:
        """One of them now. If it alone cannot be read, it stays as it was."""
        known = self._known.get(key)
        alone = head is not None and not oddity(head) and snapshot_of_head(head) is not None
        newer = known is None or (head is not None and alone and cast(int, head["version"]) > known.version)
        if not self._retries.due(key) and not (alone and newer):
            return known or UnreadUpstream(key)
        try:
            if head is not None and oddity(head):
                seen = self._confirmed(key, known) if known is not None else self._reader.one(key)
            else:
                seen = self._newer(key, head)
        except StoreError as error:
            # What cannot be read is said by the reader.
            self._retries.failed(key, "" if isinstance(error, UnreadableUpstreamError) else str(error))
            return known or UnreadUpstream(key)
        self._retries.worked(key)
        if alone:
            self._reader.note_readable(key)
        return seen

    def _newer(self, key: str, head: Mapping[str, object] | None) -> Snapshot:
        known = self._known.get(key)
        if known is None:
            return (None if head is None else snapshot_of_head(head)) or self._reader.one(key)
        lost = key in self._lost
        # A table that was made again counts versions from 1 again: the digest tells equal versions apart.
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
