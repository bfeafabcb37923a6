"""The journal: the TXT record set in a hosted zone that fences our change batches.

Every batch deletes the journal that its sender knows and creates the next one. Route 53 applies a batch as a whole or not at all,
so a batch from a master that does not know the newest journal changes nothing (I2). The journal also says which batch landed last.

A zone has a journal for each deployment and shard: ``_kubesync-<deployment>-<shard>.<zone>``.
"""

import re
from dataclasses import dataclass
from typing import Final

from kubesync.aws.route53.zones import BatchChange, ZoneClient
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone, exclude_each_other

JOURNAL_TTL_SECONDS: Final = 300
PREFIX: Final = "_kubesync-"
FORM = re.compile(r'"heritage=kubesync,owner=(?P<owner>[^,"]+),epoch=(?P<epoch>\d+),batch=(?P<batch>[0-9a-zA-Z-]+)"')


@dataclass(frozen=True, slots=True)
class Journal:
    """What stands in the zone where the journal belongs.

    what stands there                                        owner              label
    -----------------                                        -----              -----
    a journal of kubesync, of any deployment                 the deployment     ""
    a set of this key in no form that kubesync knows         ""                 of this set (``RecordKey.label``)
    a set that excludes every set of this key, as a CNAME    ""                 of that set

    With an owner, ``epoch`` and ``batch`` say which master wrote it, with which batch.
    """

    record_set: RecordSet
    owner: str = ""
    epoch: int = 0
    batch: str = ""
    label: str = ""


def journal_record_key(zone: Zone, deployment: str, shard: str) -> RecordKey:
    """The key of the journal of a deployment and shard."""
    return RecordKey(zone.id, f"{PREFIX}{deployment}-{shard}.{zone.name}", "TXT")


def make_journal(deployment: str, epoch: int, batch: str) -> Journal:
    """The journal that a batch writes."""
    value = f'"heritage=kubesync,owner={deployment},epoch={epoch},batch={batch}"'
    return Journal(RecordSet(JOURNAL_TTL_SECONDS, (value,)), deployment, epoch, batch)


def read_journal(client: ZoneClient, key: RecordKey) -> Journal | None:
    """Read what stands where the journal belongs. None: nothing does, so the next batch can create the journal.

    The result may also be a set of somebody else that keeps the journal out. Then it has no ``owner``: see ``Journal``.
    """
    sets = client.read(key.zone_id, key.name)
    record_set = sets.get(key)
    if record_set is None:
        # Is there a set that excludes the journal? Then Route 53 would refuse every batch, whatever else it changes.
        return next((Journal(sets[at], label=at.label) for at in sorted(sets) if exclude_each_other(at, key)), None)
    form = FORM.fullmatch(record_set.values[0]) if len(record_set.values) == 1 else None
    if form is None or record_set.foreign_form:
        return Journal(record_set, label=key.label)
    return Journal(record_set, form["owner"], int(form["epoch"]), form["batch"])


def journal_swap(key: RecordKey, known: Journal | None, following: Journal) -> list[BatchChange]:
    """The changes that fence a batch. ``known``: what this master last wrote or read there. None: it found nothing there."""
    swap = [] if known is None else [BatchChange("DELETE", key, known.record_set)]
    return [*swap, BatchChange("CREATE", key, following.record_set)]
