"""A key that is given a name where others turn: it waits for them, but not for ever."""

from types import SimpleNamespace
from typing import Any, Final, cast

from harness.fakes.manual_clock import ManualClock
from kubesync.domain.batches import BatchLimits
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Intent
from kubesync.domain.state import Name
from kubesync.messages import Publish
from kubesync.zone.ports import ZonePorts
from kubesync.zone.queue import ZoneQueue

NAME: Final = "web.example.com"
GREEN: Final = Name("Z1", NAME, "green")
TURNS, HEIR = ObjectKey("prod", "shop", "turns"), ObjectKey("edge", "shop", "heir")
BLUE_A, BLUE_CNAME = (RecordKey("Z1", NAME, kind, "blue") for kind in ("A", "CNAME"))
ADDRESS: Final = RecordSet(60, ("10.0.0.1",), routing=Weighted(1))
HOST: Final = RecordSet(60, ("a.example.net.",), routing=Weighted(1))


def a_queue(clock: ManualClock) -> ZoneQueue:
    limits = BatchLimits(elements=20)
    ports = SimpleNamespace(scheduler=clock, limits=limits, client=None)
    return ZoneQueue("Z1", cast(ZonePorts, cast(Any, ports)), lambda: limits)


def sent(queue: ZoneQueue, *intents: Intent) -> list[str]:
    """The keys whose units are sent now. The clusters answer with these intents, where the zone asks."""
    found = queue.due()
    if found is not None and found.unknown:
        queue.learn(intents, asked=True)
        found = queue.due()
    return [] if found is None else [unit.key.name for unit in found.units]


def a_turn(*waits_for: Name) -> Intent:
    changes = (RecordChange(BLUE_A, ADDRESS, None), RecordChange(BLUE_CNAME, None, HOST))
    return Intent(TURNS, changes, passes=frozenset({NAME}), turning=frozenset(waits_for))


def an_heir(identifier: str = "", *, host: bool = False) -> Intent:
    comes = HOST if host else RecordSet(60, ("10.0.9.1",))
    return Intent(HEIR, (RecordChange(RecordKey("Z1", NAME, "CNAME" if host else "A", identifier), None, comes),))


def sent_over_time(*intents: Intent) -> dict[float, list[str]]:
    """What is sent after so many seconds."""
    clock = ManualClock()
    queue, found = a_queue(clock), dict[float, list[str]]()
    for intent in intents:
        queue.publish(Publish(intent.key.cluster, (intent,)))
    for second in range(60):
        found[second] = sent(queue, *intents)
        clock.advance(1.0)
    return {second: keys for second, keys in found.items() if keys}


def test_i10_heir_of_a_name_whose_sets_cannot_turn_is_sent_and_so_refused_and_told() -> None:
    found = sent_over_time(a_turn(GREEN), an_heir())

    assert min(found) == 5
    assert found[5] == ["heir"]


def test_i4_set_that_changes_in_place_beside_a_key_that_waits_for_it_to_turn_is_sent() -> None:
    key = RecordKey("Z1", NAME, "A", GREEN.identifier)
    other = RecordSet(60, ("10.0.0.2",), routing=Weighted(1))

    found = sent_over_time(a_turn(GREEN), Intent(HEIR, (RecordChange(key, ADDRESS, other),)))

    assert found[min(found)] == ["heir"]


def test_heir_with_whose_set_the_others_turn_is_not_sent_alone() -> None:
    other = Name("Z1", NAME, "red")

    assert sent_over_time(a_turn(GREEN, other), an_heir(GREEN.identifier, host=True)) == {}
