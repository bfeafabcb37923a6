"""Reads what stands at names of one zone, and says what that is to us.

Few names are read one by one, many with the whole zone at once.

A name costs a request to Route 53, and so do 300 record sets of a walk. Where hundreds of names are in conflict (a zone that another
program wrote before), reading each by itself would take the account's requests for minutes, and changes would wait.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection
from enum import StrEnum
from typing import Final

from kubesync.aws.route53.zones import ZoneClient
from kubesync.clock import Clock
from kubesync.domain.dns.records import RecordKey, RecordSet

_NAMES_BY_THEMSELVES: Final = 30
_SECONDS: Final = 60.0


class Stands(StrEnum):
    """What stands in a zone, to the key that knows of one set there. The values are those of reports."""

    OURS = "as known"
    CHANGED = "changed"
    FOREIGN = "foreign"
    GONE = "missing"


def what_stands(known: RecordSet | None, stands: RecordSet | None) -> Stands:
    """What the set is that stands where ``known`` was applied (None: nothing was), or what has become of that (I3).

    known    stands                                 is
    -----    ------                                 --
    any      nothing                                gone
    nothing  a set, equal to the wanted or not      foreign
    a set    the same                               ours
    a set    another of a form that we might make   ours, changed by hand
    a set    one of a form that we never make       foreign: somebody replaced ours
    """
    if stands is None:
        return Stands.GONE
    if known is None or (stands != known and stands.foreign_form):
        return Stands.FOREIGN
    return Stands.OURS if stands == known else Stands.CHANGED


class ZoneReader:
    """For one thread. What a walk has found is believed for a minute: only for decisions that may be a minute behind.

    Raises what the client raises.
    """

    def __init__(self, client: ZoneClient, zone_id: str, clock: Clock) -> None:
        self._client = client
        self._zone_id = zone_id
        self._clock = clock
        self._asked: deque[float] = deque()
        self._walked_at: float | None = None
        self._found: dict[str, dict[RecordKey, RecordSet]] = {}

    def read(self, name: str) -> dict[RecordKey, RecordSet]:
        """What stands at a name."""
        return self.read_all([name])[name]

    def read_sets(self, names: Collection[str]) -> dict[RecordKey, RecordSet]:
        """All sets that stand at these names."""
        return {key: found for of_name in self.read_all(names).values() for key, found in of_name.items()}

    def read_all(self, names: Collection[str], not_before: float = 0.0) -> dict[str, dict[RecordKey, RecordSet]]:
        """What stands at each of these names.

        Args:
            not_before: what was read before this time (monotonic) is not believed.
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
        began = self._clock.monotonic()
        found: dict[str, dict[RecordKey, RecordSet]] = defaultdict(dict)
        for key, record_set in self._client.walk(self._zone_id):
            found[key.name][key] = record_set
        self._found, self._walked_at = dict(found), began
