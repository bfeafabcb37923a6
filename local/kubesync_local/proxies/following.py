"""``--watch`` with ``--cluster`` or for all upstreams: scans once, follows the table's stream, and scans again every 10 minutes.

The stream is started before the scan, so nothing falls between them. What it repeats is not newer than what the scan found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from kubesync.aws.dynamodb.values import from_attributes
from kubesync.domain.errors import StoreError
from kubesync_local.proxies.prices import dollars_of_following
from kubesync_local.proxies.reading import UpstreamReader, snapshot_of_head
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.stream import StreamBrokenError, TableStream

SCAN_EVERY_SECONDS: Final = 600.0


class FollowedUpstreams:
    """All wanted upstreams. Implements ``watching.Source``.

    Args:
        wanted: which keys.
        now: monotonic seconds.
    """

    interval_seconds = 1.0

    def __init__(
        self, reader: UpstreamReader, stream: TableStream, wanted: Callable[[str], bool], now: Callable[[], float]
    ) -> None:
        self._reader = reader
        self._stream = stream
        self._wanted = wanted
        self._now = now
        self._started = False
        self._scanned_at: float | None = None
        self._known: dict[str, Snapshot] = {}
        self._shown: dict[str, Snapshot] = {}
        # The stream says each record once: the newest of each upstream waits here while the table cannot be read.
        self._waiting: dict[str, Mapping[str, Any]] = {}
        self.problem = ""

    def read(self) -> Mapping[str, Snapshot]:
        """All of them now; the same object if nothing changed. While the stream cannot be read (``problem``), only scans find changes.

        An upstream that changed and cannot be read is a ``problem`` too. It stays as it was; the others go on.

        Raises:
            StoreError: the table cannot be read.
        """
        self._waiting |= {key: record for record in self._records() if (key := _upstream_of(record))}
        if self._scanned_at is None or self._now() - self._scanned_at >= SCAN_EVERY_SECONDS:
            self._scan()
        self._apply_waiting()
        present = {key: each for key, each in self._known.items() if each.present}
        if present != self._shown:
            self._shown = present
        return self._shown

    def costs(self) -> str:
        """What reading costs, in words."""
        return dollars_of_following(self._known.values(), self._stream.shards, SCAN_EVERY_SECONDS)

    def _records(self) -> list[dict[str, Any]]:
        try:
            if not self._started:
                self._stream.start()
                self._started = True
                self._scanned_at = None
            records = self._stream.records()
        except StreamBrokenError as error:
            self._started = False
            self.problem = str(error)
            return []
        except StoreError as error:
            self.problem = str(error)
            return []
        self.problem = ""
        return records

    def _scan(self) -> None:
        found = self._reader.every(self._wanted)
        self._known = {key: self._same(each) for key, each in found.items()}
        self._scanned_at = self._now()

    def _same(self, found: Snapshot) -> Snapshot:
        """The one that is known already if it is equal, so that it is not rendered again."""
        known = self._known.get(found.key)
        return known if known == found else found

    def _apply_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for key, record in waiting.items():
            try:
                self._apply(key, record)
            except StoreError as error:
                self._waiting[key] = record
                self.problem = self.problem or str(error)

    def _apply(self, key: str, record: Mapping[str, Any]) -> None:
        if not self._wanted(key) or self._reader.refuses(key):
            return
        head = from_attributes(record["NewImage"]) if "NewImage" in record else None
        known = self._known.get(key)
        if head is not None and known is not None and cast(int, head["version"]) <= known.version:
            return
        # Several slices, or an item that expired or was deleted by hand: the table says what is there now.
        seen = (snapshot_of_head(head) if head is not None else None) or self._reader.one(key)
        if not seen.present and seen.version == 0:
            self._known.pop(key, None)
        else:
            self._known[key] = seen


def _upstream_of(record: Mapping[str, Any]) -> str:
    """Empty for a further slice: slice 0 is written with it."""
    keys = from_attributes(record["Keys"])
    return cast(str, keys["upstream"]) if keys["slice"] == 0 else ""
