"""Reads the record sets that exist at names of one zone: few names one by one, many by reading the whole zone once.

A name costs a request to Route 53, and so do 300 record sets of a walk. Where hundreds of names are in conflict (a zone that another
program wrote before), reading each by itself would take the account's requests for minutes, and changes would wait.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection
from typing import Final

from kubesync.aws.route53.zones import ZoneClient
from kubesync.clock import Clock
from kubesync.domain.dns.records import RecordKey, RecordSet

_NAMES_BY_THEMSELVES: Final = 30
_SECONDS: Final = 60.0


class ZoneReader:
    """Reads names, and keeps the result of a walk for a minute. Use it only for decisions that may be a minute behind. For one thread.

    Raises what the client raises.
    """

    def __init__(self, client: ZoneClient, zone_id: str, clock: Clock) -> None:
        self._client = client
        self._zone_id = zone_id
        self._clock = clock
        self._asked: deque[float] = deque()
        self._walked_at: float | None = None
        self._found: dict[str, dict[RecordKey, RecordSet]] = {}

    def read_all(self, names: Collection[str], not_before: float = 0.0) -> dict[str, dict[RecordKey, RecordSet]]:
        """Return the record sets at each of these names.

        Reads a name by itself while at most ``_NAMES_BY_THEMSELVES`` names a minute are asked for; else walks the zone.

        Args:
            not_before: a walk that began before this time (monotonic) is not used.
        """
        now = self._clock.monotonic()
        if self._walked_at is not None and (now - self._walked_at >= _SECONDS or self._walked_at < not_before):
            self._walked_at, self._found = None, {}
        if self._walked_at is None and names:
            while self._asked and now - self._asked[0] >= _SECONDS:
                self._asked.popleft()
            if len(self._asked) + len(names) <= _NAMES_BY_THEMSELVES:
                self._asked.extend(now for _ in names)
                return {name: self._client.read(self._zone_id, name) for name in names}
            self._walk()
        return {name: self._found.get(name, {}) for name in names}

    def _walk(self) -> None:
        """Read the whole zone into ``_found``. Its age counts from the begin of the walk."""
        began = self._clock.monotonic()
        found: dict[str, dict[RecordKey, RecordSet]] = defaultdict(dict)
        for key, record_set in self._client.walk(self._zone_id):
            found[key.name][key] = record_set
        self._found, self._walked_at = dict(found), began
