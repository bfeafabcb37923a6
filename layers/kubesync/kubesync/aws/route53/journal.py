"""The journal: the TXT record set in a hosted zone that fences our change batches.

Every batch deletes the journal that its sender knows and creates the next one. Route 53 applies a batch whole or not at all, so a
batch of a master that does not know the newest journal changes nothing (I2), and the journal says which batch was the last to land.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kubesync.aws.route53.zones import BatchChange, ZoneClient
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone

JOURNAL_TTL_SECONDS: Final = 300
_PREFIX: Final = "_kubesync-"
_FORM = re.compile(r'"heritage=kubesync,owner=(?P<owner>[^,"]+),epoch=(?P<epoch>\d+),batch=(?P<batch>[0-9a-zA-Z-]+)"')


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal as it stands in the zone. ``owner`` is empty where the set is in no form that kubesync writes."""

    record_set: RecordSet
    owner: str = ""
    epoch: int = 0
    batch: str = ""


def journal_record_key(zone: Zone, deployment: str, shard: str) -> RecordKey:
    """Where the journal of a deployment and shard stands."""
    return RecordKey(zone.id, f"{_PREFIX}{deployment}-{shard}.{zone.name}", "TXT")


def is_journal(key: RecordKey, record_set: RecordSet) -> bool:
    """Whether a set that stands in a zone is a journal of some deployment of kubesync."""
    values = record_set.values
    return (
        key.type == "TXT"
        and key.name.startswith(_PREFIX)
        and len(values) == 1
        and _FORM.fullmatch(values[0]) is not None
    )


def make_journal(deployment: str, epoch: int, batch: str) -> Journal:
    """The journal that a batch leaves behind."""
    value = f'"heritage=kubesync,owner={deployment},epoch={epoch},batch={batch}"'
    return Journal(RecordSet(JOURNAL_TTL_SECONDS, (value,)), deployment, epoch, batch)


def read_journal(client: ZoneClient, key: RecordKey) -> Journal | None:
    """The journal in the zone, None where there is none."""
    record_set = client.read(key.zone_id, key.name).get(key)
    if record_set is None:
        return None
    form = _FORM.fullmatch(record_set.values[0]) if len(record_set.values) == 1 else None
    if form is None or record_set.foreign_form:
        return Journal(record_set)
    return Journal(record_set, form["owner"], int(form["epoch"]), form["batch"])


def journal_swap(key: RecordKey, known: Journal | None, following: Journal) -> list[BatchChange]:
    """The changes that fence a batch."""
    swap = [] if known is None else [BatchChange("DELETE", key, known.record_set)]
    return [*swap, BatchChange("CREATE", key, following.record_set)]
