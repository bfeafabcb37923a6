"""Names that one key leaves and another key was given: both changes go in one batch, so that the name is never without an answer (ADR 0052).

The cluster of a key that leaves hands the claim on, and then asks the zone to delete the set (``Intent.passes``). The heir's cluster plans the
heir, and asks the zone for the new set. The zone joins both, whichever comes first:

    known of a name                                        what happens
    ---------------                                        ------------
    who leaves, and the heir's intent                      one batch
    who leaves                                             it waits for the heir's intent, ``_HEIR_SECONDS`` at most; then it goes alone
    who leaves; the heir's intent has come, its turn not     it waits for that turn, ``_TURN_SECONDS`` at most
    who leaves, but it cannot go now; the heir's intent    the heir waits: the set still stands
    who leaves; both do not fit one batch                  both stay as they are, and that is reported of the heir
    who leaves; the heir was refused                       as for a new heir: its cluster gives the name to the next in line
    sets that change their routing policy                  all that are there go together
    one of these was refused, and a set is in its way      it waits once more for others, ``_HEIR_SECONDS``; then it is judged
    one of these waits for claims of other clusters        it goes with sets of all these claims that turn to its policy, or go
    an heir of an earlier session was refused              it waits once for who leaves, ``_HEIR_SECONDS``; then it is judged
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kubesync.domain.batches import Unit, together
from kubesync.domain.dns.records import RecordKey, RecordSet, in_the_way
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Intent
from kubesync.domain.state import Name
from kubesync.log import logger
from kubesync.zone.waits import Waits

_HEIR_SECONDS: Final = 5.0
_TURN_SECONDS: Final = 60.0


class Passing:
    """Knows which keys leave which names, and holds back units until both changes of a name can go in one batch.

    For the zone's own thread. Times are epoch seconds. ``remark``: the last name that was deleted before its heir was published.
    """

    def __init__(self, zone_id: str, waits: Waits, now: Callable[[], float]) -> None:
        self.remark = ""
        self._now = now
        self._zone_id = zone_id
        self._waits = waits
        # By name: the keys that leave it, each with the time until which it waits for an heir. 0: it may go alone.
        self._leaving: dict[str, dict[ObjectKey, float]] = {}
        self._refused: set[tuple[str, ObjectKey]] = set()
        self._early: dict[str, Unit] = {}  # heirs that wait, since nobody is known to leave their names
        self._too_large: set[tuple[str, ObjectKey]] = set()
        self._names: dict[ObjectKey, frozenset[str]] = {}
        self._moved: dict[ObjectKey, frozenset[str]] = {}  # names at which a key changes its policy
        self._turning: dict[ObjectKey, frozenset[Name]] = {}  # claims that turn with the sets of a key, or go
        self._asking: dict[ObjectKey, frozenset[str]] = {}  # names at which a key has asked for what another one leaves

    def update(self, intent: Intent) -> None:
        """Note from a key's intent which names it leaves, and for which names of others it is an heir. Moves the times of those who wait."""
        if not (intent.passes or self._leaving):
            return
        key, now = intent.key, self._now()
        for name in self._names.pop(key, frozenset()) - intent.passes:
            self._forget_leaver(name, key)
        # Who changes a policy does not wait for an heir: claims say whose sets have to change with it.
        moved = frozenset(change.key.name for change in intent.changes if change.turns)
        for name in self._moved.pop(key, moved) - moved:
            self._leaving.get(name, {}).pop(key, None)
        if moved:
            self._moved[key] = moved
        for name in intent.passes:
            self._leaving.setdefault(name, {}).setdefault(key, 0.0 if name in moved else now + _HEIR_SECONDS)
            if (heir := self._early.pop(name, None)) is not None:
                self._waits.end_unit(heir)
                self._waits.wake(heir.key)
        self._turning.pop(key, None)
        if intent.passes:
            self._names[key] = intent.passes
        if intent.turning:
            self._turning[key] = intent.turning
        asks = {change.key.name for change in intent.changes if change.after is not None} & self._leaving.keys()
        asks -= intent.passes | intent.conflicts
        asked = self._asking.pop(key, frozenset())
        if asks:
            self._asking[key] = frozenset(asks)
        self._too_large -= {(name, key) for name in asked - asks}
        self._wait_until(asked - asks, now + _HEIR_SECONDS)
        self._wait_until(asks - asked, now + _TURN_SECONDS)

    def mark_too_large(self, unit: Unit) -> None:
        """Note that a unit, with what must go in the same batch, is too large for any batch. ``record_refused`` uses it."""
        self._too_large.add((unit.name, unit.key))

    def record_refused(self, unit: Unit) -> None:
        """Note that Route 53 refused an heir: keys that leave the name now wait ``_HEIR_SECONDS`` for the next heir, no longer for this one.

        If the heir fits no batch, they wait for as long as it wants the name.
        """
        too_large = (unit.name, unit.key) in self._too_large
        until = math.inf if too_large else self._now() + _HEIR_SECONDS
        asked = unit.name in self._asking.get(unit.key, ())
        if asked and (too_large or any(at > until for at in self._leaving.get(unit.name, {}).values())):
            self._wait_until((unit.name,), until)

    def grant_second_wait(self, unit: Unit, actual: Mapping[RecordKey, RecordSet], *, of_event: bool) -> bool:
        """Whether a refused unit waits once more for keys that share its name: the set in its way may be theirs, and no conflict.

        True only once for each name and key. Sets the time until which a key waits that leaves the name. Another key waits only if no
        event of this session made the unit (``of_event``), and nobody was known to leave: the cluster whose set goes may be taken up later.
        """
        self._early.pop(unit.name, None)
        leaving = self._leaving.get(unit.name, {})
        own = {change.key for change in unit.changes if change.before is not None}
        place = (unit.name, unit.key)
        comes = [(change.key, change.after) for change in unit.changes if change.after is not None]
        blocked = any(in_the_way(*found, *each) for found in actual.items() for each in comes if found[0] not in own)
        early = not (of_event or unit.name in self._asking.get(unit.key, ()))
        if not blocked or place in self._refused or not (early or unit.key in leaving):
            return False
        self._refused.add(place)
        until = self._now() + _HEIR_SECONDS
        if unit.key in leaving:
            leaving[unit.key] = until
        elif not leaving:  # else both go at once
            self._early[unit.name] = unit
            self._waits.put_unit(unit, until)
        return True

    def _wait_until(self, names: Iterable[str], until: float) -> None:
        """Let all keys that leave these names, and that still wait, wait until then, sooner or later than before."""
        for name in names:
            for key in [key for key, at in self._leaving.get(name, {}).items() if at]:
                self._leaving[name][key] = until
                self._waits.wake_by(key, until)

    def _forget_leaver(self, name: str, key: ObjectKey) -> None:
        """Note that a key leaves this name no longer."""
        of_name = self._leaving.get(name, {})
        of_name.pop(key, None)
        self._refused.discard((name, key))
        if not of_name:
            self._leaving.pop(name, None)

    def others_leaving(self, intents: Mapping[ObjectKey, Intent]) -> dict[ObjectKey, None]:
        """Return other keys that leave names which these intents ask for. Their units must go in the same batch."""
        if not self._leaving:
            return {}
        names = {
            change.key.name for intent in intents.values() for change in intent.changes if change.after is not None
        }
        found = (key for name in sorted(names & self._leaving.keys()) for key in self._leaving[name])
        return dict.fromkeys(key for key in found if key not in intents)

    def waits_until(self, key: ObjectKey) -> float | None:
        """Return when a key may leave the first of its names without an heir. None: it leaves none, or may leave all of them now."""
        times = (self._leaving[name][key] for name in self._names.get(key, ()))
        return min((at for at in times if at), default=None)

    def ready(self, units: Sequence[Unit]) -> list[Unit]:
        """Return these units without groups that must wait for an heir, or for a key that leaves the name. See the table above.

        Units that go together are kept or left out together. Lets keys go alone whose time is over.
        """
        if not self._leaving:
            return list(units)
        going: dict[str, set[ObjectKey]] = {}
        creating: dict[str, set[ObjectKey]] = {}
        for unit in units:
            going.setdefault(unit.name, set()).add(unit.key)
            if not unit.only_deletes:
                creating.setdefault(unit.name, set()).add(unit.key)
        found, turned = list[Unit](), _turned(units)
        for group in together(units):
            exchanging = {unit.name: {each.key for each in group if not each.only_deletes} for unit in group}
            if not any(
                self._waits_for_leaver(unit, going)
                or self._waits_for_heir(unit, creating if unit.only_deletes else exchanging)
                or self._waits_to_turn(unit, turned)
                for unit in group
            ):
                found += group
        return found

    def _waits_to_turn(self, unit: Unit, turned: Mapping[Name, str]) -> bool:
        """Whether a set of another cluster would be left with another policy than this unit's."""
        policy = next((change.after.routing.kind for change in unit.changes if change.turns and change.after), "")
        claims = self._turning.get(unit.key, ()) if policy else ()
        return any(name.name == unit.name and turned.get(name) not in ("", policy) for name in claims)

    def _waits_for_leaver(self, unit: Unit, going: Mapping[str, set[ObjectKey]]) -> bool:
        """Whether a unit must wait, because another key that leaves its name cannot go in this batch: that key's set still exists."""
        leaving = self._leaving.get(unit.name, {})
        return not (unit.only_deletes or leaving.keys() <= going[unit.name])

    def _waits_for_heir(self, unit: Unit, creating: Mapping[str, set[ObjectKey]]) -> bool:
        """Whether a unit that leaves its name must wait for an heir. If its time is over, lets it go alone and says so in ``remark``."""
        until = self._leaving.get(unit.name, {}).get(unit.key)
        if not until or creating.get(unit.name, set()) - {unit.key}:
            return False
        if until > self._now():
            return True
        self._leaving[unit.name][unit.key] = 0.0
        if not unit.only_deletes:
            return False
        self.remark = f"{unit.name} went before the key that was given it could be published"
        logger.warning(
            "a name went before its heir could be published", zone=self._zone_id, service=str(unit.key), at=unit.name
        )
        return False


def _turned(units: Iterable[Unit]) -> dict[Name, str]:
    """Claims whose sets get another policy, each with that; those whose sets go: none."""
    changes = [change for unit in units for change in unit.changes if change.turns or change.after is None]
    return {Name.of(change.key): change.after.routing.kind if change.after else "" for change in changes}
