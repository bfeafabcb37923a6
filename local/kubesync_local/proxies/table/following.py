"""``--watch`` with ``--cluster`` or for all upstreams: scans once, follows the table's stream, and scans again every 10 minutes.

The stream is started before the scan, so nothing falls between them. What it repeats is not newer than what the scan found.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, cast

from kubesync.domain.errors import StoreError
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.table.items import UnreadableUpstreamError, UnreadUpstream, decoded, oddity
from kubesync_local.proxies.table.lost import LostUpstreams
from kubesync_local.proxies.table.prices import dollars_of_following
from kubesync_local.proxies.table.reading import UpstreamReader, snapshot_of_head
from kubesync_local.proxies.table.retrying import Retries
from kubesync_local.proxies.table.stream import TableStream

SCAN_EVERY_SECONDS: Final = 600.0
_STREAM: Final = "the stream"


class FollowedUpstreams:
    """All wanted upstreams. Implements ``watching.Source``.

    Args:
        wanted: which keys.
        now: monotonic seconds.
    """

    interval_seconds = 1.0

    def __init__(
        self,
        reader: UpstreamReader,
        stream: TableStream,
        wanted: Callable[[str], bool],
        now: Callable[[], float],
        lost: LostUpstreams,
    ) -> None:
        self._reader = reader
        self._stream = stream
        self._wanted = wanted
        self._now = now
        self._lost = lost
        self._started = False
        self._scanned_at: float | None = None
        self._known: dict[str, Snapshot] = {}
        self._shown: dict[str, Snapshot] = {}
        self._changed = False
        # The stream says each record once: the newest of each upstream waits here while the table cannot be read.
        self._waiting: dict[str, Mapping[str, Any]] = {}
        self._retries = Retries(now)
        self.proven = False

    @property
    def problem(self) -> str:
        """What does not work although ``read`` answers; empty: nothing."""
        return self._retries.problem or self._stream.problem

    @property
    def known(self) -> Collection[str]:
        """Clusters that have an item, wanted or not."""
        return self._reader.clusters

    def read(self) -> Mapping[str, Snapshot]:
        """All of them now; the same object if nothing changed. While the stream cannot be read (``problem``), only scans find changes.

        An upstream that changed and cannot be read is a ``problem`` too. It stays as it was; the others go on.

        Raises:
            StoreError: the table cannot be read.
        """
        for record in self._records():
            if key := _upstream_of(record):
                self._waiting[key] = _newest(self._waiting.get(key), record)
        if self._scanned_at is None or self._now() - self._scanned_at >= SCAN_EVERY_SECONDS:
            self._scan()
        self._apply_waiting()
        self._lost.report()
        if self._changed:  # to compare a million upstreams every second takes longer than everything else here
            self._changed = False
            present = {key: each for key, each in self._known.items() if each.present}
            if present != self._shown:
                self._shown = present
        return self._shown

    def costs(self) -> str:
        """What reading costs, in words."""
        return dollars_of_following(self._reader.table_bytes, self._stream.shards, SCAN_EVERY_SECONDS)

    def _records(self) -> list[dict[str, Any]]:
        if not self._started and not self._retries.due(_STREAM):
            return []
        try:
            if not self._started:
                self._stream.start()
                self._started = True
                self._scanned_at = None
            records = self._stream.records()
        except StoreError as error:
            self._started = False
            self._retries.failed(_STREAM, str(error))
            return []
        self._retries.worked(_STREAM)
        return records

    def _scan(self) -> None:
        found = {key: each for key, each in self._reader.every(self._wanted, self._known).items() if each.has_item}
        missing = [key for key, known in self._known.items() if known.present and key not in found]
        for key in missing:
            self._lost.add(key)
        self._known = {key: each for key, each in self._known.items() if key in found or key in self._lost}
        for each in found.values():
            self._take(each)
        self._scanned_at = self._now()

    def _take(self, found: Snapshot) -> None:
        """Remember an upstream. One that is known already and equal stays the same object, so that it is not rendered again."""
        self.proven = True
        self._lost.discard(found.key)
        if self._known.get(found.key) != found:
            self._known[found.key] = found
            self._changed = True

    def _apply_waiting(self) -> None:
        for key, record in list(self._waiting.items()):
            if not self._retries.due(key) and self._needs_table(key, record):
                continue
            try:
                self._apply(key, record)
            except UnreadableUpstreamError:
                # Its next change comes as another record.
                if key not in self._known:
                    self._take(UnreadUpstream(key))
            except StoreError as error:
                self._retries.failed(key, str(error))
                continue
            self._retries.worked(key)
            del self._waiting[key]

    def _needs_table(self, key: str, record: Mapping[str, Any]) -> bool:
        return key in self._lost or "NewImage" not in record or snapshot_of_head(decoded(record["NewImage"])) is None

    def _apply(self, key: str, record: Mapping[str, Any]) -> None:
        if not self._wanted(key) or self._reader.refuses(key):
            return
        head = decoded(record["NewImage"]) if "NewImage" in record else None
        known = self._known.get(key)
        lost = key in self._lost  # then versions may begin again
        if head is not None and known is not None and not lost and not _is_newer(head, known):
            return
        # Several slices, another form, or an item that expired or was deleted by hand: the table says what is there now.
        seen = (snapshot_of_head(head) if head is not None and not lost else None) or self._reader.one(key)
        if seen.has_item:
            self._reader.note_readable(key)
            self._take(seen)
        elif known is not None and known.present and not _was_deleted(record):
            self._lost.add(key)
        else:
            self._known.pop(key, None)
            self._changed = True
            self._lost.discard(key)


def _is_newer(head: Mapping[str, Any], known: Snapshot) -> bool:
    """Whether the table may hold a newer version: also if the record has a form that is not known."""
    return bool(oddity(head)) or cast(int, head["version"]) > known.version


def _newest(before: Mapping[str, Any] | None, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The newer one, but a removal before a change: versions may begin again after it, so the table is asked."""
    return before if before is not None and "NewImage" not in before and "NewImage" in record else record


def _was_deleted(record: Mapping[str, Any]) -> bool:
    """Whether the item that was removed had the mark of a deleted upstream."""
    return "OldImage" in record and bool(decoded(record["OldImage"]).get("deleted", False))


def _upstream_of(record: Mapping[str, Any]) -> str:
    """Empty for a further slice: slice 0 is written with it."""
    keys = decoded(record["Keys"])
    return cast(str, keys["upstream"]) if keys["slice"] == 0 else ""
