"""What is left of a cluster that is being removed, and was refused: compared with what stands in the zone (I3).

    known    stands now                              what becomes of it
    -----    ----------                              ------------------
    a set    the same                                goes as planned
    a set    nothing                                 it is gone already
    a set    another of a form that we might make    changed by hand: still ours, as the journal proves; goes as it stands
    a set    one of a form that we never make        somebody replaced it: theirs now, and stays

A person asked for the removal; what goes is DELETE of the value that was read, never of whatever stands there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from kubesync.aws.route53.zones import ZoneClient
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import KeyState
from kubesync.operations.ports import Master

# More names than that are found by walking the zone, 300 sets a page.
_NAMES_BY_THEMSELVES: Final = 30


def take_as_it_stands(master: Master, cluster: str, keys: Collection[ServiceKey], why: str, zone_id: str) -> None:
    """Take for known what stands in a zone at the names of these keys. Runs in the zone's thread, between two batches.

    Raises:
        ZoneError: the zone cannot be read.
    """
    ledger, reconciler = master.ledgers.get(cluster), master.reconcilers.get(cluster)
    if ledger is None or reconciler is None:
        return
    with ledger.lock:
        before = list(ledger.states(keys).values())
    names = {key.name for state in before for key in state.applied if key.zone_id == zone_id}
    standing = standing_at(master.parts.zones, zone_id, names)

    def pairs() -> Iterator[tuple[KeyState, KeyState]]:
        for state in ledger.states(keys).values():
            applied = _as_it_stands(state.applied, zone_id, standing)
            if applied != state.applied:
                yield state, replace(state, applied=applied)

    master.follow_up(cluster, reconciler.transform(pairs, why))


def standing_at(client: ZoneClient, zone_id: str, names: Collection[str]) -> Mapping[RecordKey, RecordSet]:
    """What stands at these names of a zone, and perhaps at others."""
    if len(names) > _NAMES_BY_THEMSELVES:
        return dict(client.walk(zone_id))
    return {key: record_set for name in sorted(names) for key, record_set in client.read(zone_id, name).items()}


def _as_it_stands(
    applied: Mapping[RecordKey, RecordSet], zone_id: str, standing: Mapping[RecordKey, RecordSet]
) -> dict[RecordKey, RecordSet]:
    known: dict[RecordKey, RecordSet] = {}
    for key, record_set in applied.items():
        if key.zone_id != zone_id:
            known[key] = record_set
        elif key in standing and not standing[key].foreign_form:
            known[key] = standing[key]
    return known
