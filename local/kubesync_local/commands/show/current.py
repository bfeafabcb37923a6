"""What Route 53 has at names now."""

from collections.abc import Iterable
from typing import Final

from kubesync.aws.route53.zones import ZoneClient
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import ZoneError
from kubesync.domain.state import Name

# Up to so many names are read one by one; a walk of a full zone of 10,000 sets takes 34 requests.
_NAMES_READ: Final = 30


def current_at(client: ZoneClient, names: Iterable[Name]) -> tuple[dict[RecordKey, RecordSet], dict[str, str]]:
    """The record sets that Route 53 has at these names now; and for each unreadable zone why, by its id."""
    by_zone: dict[str, set[str]] = {}
    for name in names:
        by_zone.setdefault(name.zone_id, set()).add(name.name)
    current: dict[RecordKey, RecordSet] = {}
    unread: dict[str, str] = {}
    for zone_id, wanted in sorted(by_zone.items()):
        try:
            if len(wanted) <= _NAMES_READ:
                for each in sorted(wanted):
                    current |= client.read(zone_id, each)
            else:
                current |= {key: found for key, found in client.walk(zone_id) if key.name in wanted}
        except ZoneError as error:
            unread[zone_id] = str(error)
    return current, unread
