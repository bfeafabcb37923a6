"""The port to Route 53: read sets, walk a zone, send one change batch. Adapter: ``route53``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kubesync.domain.dns.records import RecordKey, RecordSet, Zone


@dataclass(frozen=True, slots=True)
class BatchChange:
    """One element of a change batch. kubesync never sends UPSERT: it would overwrite what it does not know (I3)."""

    action: Literal["CREATE", "DELETE"]
    key: RecordKey
    record_set: RecordSet


class ZoneClient(Protocol):
    """Route 53. Names and values are canonical (see domain.records); escaping is the adapter's."""

    def zone(self, zone_id: str) -> Zone:
        """Look the hosted zone up. Raises ZoneUnavailableError where it does not exist or access is denied."""

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        """Send one batch, once: no hidden repeats, since only the caller knows what may follow.

        Raises:
            BatchRefusedError, ZoneThrottledError, ZoneOutcomeUnknownError, ZoneUnavailableError
        """

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        """Every set at this name, whatever its type."""

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        """Every set of the zone, in Route 53's order."""
