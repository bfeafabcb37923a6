"""Judges a world at the end of a story: the same as the undisturbed run's, and nothing left over."""

from __future__ import annotations

from chaos.play import Play
from chaos.story import FOREIGN, ZONE
from chaos.world import differences
from kubesync.domain.records import RecordKey

_MOST_LINES = 12


def judge(play: Play, wanted: dict[str, object]) -> list[str]:
    """What is not as an undisturbed run would have made it (I1), and what was done to other people's records (I3)."""
    found = play.world.normal()
    lines = differences(found, wanted)
    records = play.world.route53.records(ZONE)
    for (name, record_type), record_set in FOREIGN.items():
        if records.get(RecordKey(ZONE, name, record_type)) != record_set:
            lines.append(f"foreign record {name} {record_type} was touched")
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"and {len(lines) - _MOST_LINES} more"]
    return lines


def leftovers(found: dict[str, object], *, in_conflict: frozenset[str]) -> list[str]:
    """What must not be left when everything is quiet, whatever the story.

    Args:
        in_conflict: keys that wait for a foreign set to go.
    """
    lines: list[str] = []
    live = {place.removeprefix("key ") for place in found if place.startswith("key ")}
    for place, value in found.items():
        kind, _, rest = place.partition(" ")
        if kind == "inflight" and value != "":
            lines.append(f"a batch is still noted as under way: {place}")
        elif kind == "mark":
            partition, _, sort = rest.partition(" ")
            key = f"{partition.partition('#')[0]}/{sort.partition('#')[0]}"
            if value == "heir" or key not in in_conflict:
                lines.append(f"{value} mark left over: {place}")
        elif kind == "claim":
            owner = value if isinstance(value, str) else value[0] if isinstance(value, tuple) else ""
            if owner not in live:
                lines.append(f"claim or waiter of a key that is gone: {place} {value}")
    return lines
