"""The port to Route 53: read sets, walk a zone, send one change batch. Adapter: ``client``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kubesync.domain.dns.records import RecordKey, RecordSet, Zone


@dataclass(frozen=True, slots=True)
class BatchChange:
    """One element of a change batch. kubesync never sends UPSERT: it would overwrite a set that kubesync does not know (I3)."""

    action: Literal["CREATE", "DELETE"]
    key: RecordKey
    record_set: RecordSet


class ZoneClient(Protocol):
    """Route 53. Names and values are canonical (see domain.dns.records); the adapter escapes them."""

    def zone(self, zone_id: str) -> Zone:
        """Read the hosted zone. Raises ZoneUnavailableError if it does not exist or access is denied."""

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        """Send one batch, once. It never repeats: only the caller knows what must follow.

        ``comment``: for people who look at the change in AWS.

        Raises:
            BatchRefusedError: Route 53 refuses one of the changes, so it applied none.
            ZoneThrottledError: nothing was applied now. The same batch may work later.
            ZoneOutcomeUnknownError: the batch may have been applied, or may still be.
            ZoneUnavailableError: nothing was applied: there is no such zone, no access to it, or no credentials.
        """

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        """Every set at this name, of any type."""

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        """Every set of the zone, in Route 53's order."""
