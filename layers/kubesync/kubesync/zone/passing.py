"""Passes a name from one key to another in one batch, so that the name is never without an answer (ADR 0052).

The *leaver* is the key whose set at the name is to be deleted. Its cluster has given the claim to the *heir*, and asks the zone to delete the
set (``Intent.passes``). The heir's cluster plans the heir, and asks the zone for the new set. The zone sends both changes in one batch,
whichever intent comes first. A name that changes its routing policy, or becomes a CNAME or addresses, is passed the same way (ADR 0072): keys
that *turn* change their sets together.

    what the zone knows                                         what happens
    -------------------                                         ------------
    the intents of the leaver and of the heir                   both go in one batch
    the leaver's intent only                                    the leaver waits for the heir's intent, ``_HEIR_SECONDS`` at most; then its
                                                                set is deleted without the heir
    both intents, but the heir's turn in the queue has not      the leaver waits for that turn, ``_TURN_SECONDS`` at most
      come
    both intents, but the leaver cannot go now                  the heir waits, because the leaver's set still exists
    both intents, but they do not fit one batch                 neither goes, and this is reported of the heir
    the heir was refused                                        the leaver waits ``_HEIR_SECONDS`` for the next heir: the heir's cluster
                                                                gives the name to the next in line
    keys that turn                                              all whose intents are known go in one batch
    a key that turns was refused because of another set         the key waits for others once, ``_HEIR_SECONDS``; then the refusal is judged
    a key that turns waits for claims of other clusters         it goes in one batch with all sets of these claims, which turn to its
                                                                form or are deleted
    an heir, and only keys that turn leave, but cannot now      the heir waits ``_HEIR_SECONDS``, longer only if it turns with them. Then it
                                                                goes, is refused, and is told who has the name
    an heir of an earlier session was refused, and no leaver    the heir waits for a leaver once, ``_HEIR_SECONDS``; then the refusal is
      is known                                                  judged
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kubesync.domain.batches import Unit, together
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet, in_the_way
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Intent
from kubesync.domain.state import Form, Name, form_of, turned_by
from kubesync.log import logger
from kubesync.zone.waits import QueuedKey

_HEIR_SECONDS: Final = 5.0
_TURN_SECONDS: Final = 60.0


class Passing:
    """Knows which keys leave which names, and holds back units until both changes of a name can go in one batch.

    For the zone's own thread. Times are epoch seconds. ``remark``: says which name was deleted last before its heir was published.
    """

    def __init__(self, zone_id: str, keys: Mapping[ObjectKey, QueuedKey], now: Callable[[], float]) -> None:
        self.remark = ""
        self._now = now
        self._zone_id = zone_id
        self._keys = keys
        # By name, its leavers, each with the time until which it waits for an heir. 0: it may go alone. Keys that turn are among them.
        self._leavers: dict[str, dict[ObjectKey, float]] = {}
        self._waited_again: set[tuple[str, ObjectKey]] = set()  # name and key: see ``grant_second_wait``
        # By name, a unit of an heir that was refused while no leaver of the name was known. It waits for one (``grant_second_wait``).
        self._early_heirs: dict[str, Unit] = {}
        # By name, heirs that wait for leavers that all turn, each with the time until which it does (``_waited_for_turns``).
        self._behind_turns: dict[str, dict[ObjectKey, float]] = {}

    def update(self, known: QueuedKey, intent: Intent) -> None:
        """Note from a key's intent which names it leaves, and which names of leavers it wants. Sets the times until which leavers wait.

        Called for each intent that the zone learns, and with an empty one when a key leaves the queue. ``known`` keeps what its last intent
        said (``passes``, ``heir_to`` and others), so this finds what has changed.

        A leaver waits ``_HEIR_SECONDS`` for an heir. Once the heir's intent is known, the leaver waits ``_TURN_SECONDS`` for the heir's turn;
        once the heir no longer wants the name, ``_HEIR_SECONDS`` for the next heir.
        """
        if not (intent.passes or self._leavers):
            return
        key, now = intent.key, self._now()
        # 1. The names that the key leaves no longer.
        for name in known.passes - intent.passes:
            self._forget_leaver(name, key)
        # 2. Those that it leaves or turns at. A key that turns waits for no heir: claims say which other sets must change with its own
        # (``_waits_to_turn``).
        turns_to = {name.name: form for name, form in turned_by(intent.changes).items()}
        for name in known.turns_to.keys() - turns_to.keys():
            # It turns there no more, so the time that was noted for this does not hold. If it leaves the name now, its wait begins below.
            self._leavers.get(name, {}).pop(key, None)
        for name in intent.passes:
            self._leavers.setdefault(name, {}).setdefault(key, 0.0 if name in turns_to else now + _HEIR_SECONDS)
            # An heir that was refused has waited for this leaver: now it can go with it.
            heir = self._early_heirs.pop(name, None)
            if heir is not None and (waiting := self._keys.get(heir.key)) is not None:
                waiting.end_wait(heir)
                waiting.wake()
        # 3. The names of leavers that it wants: a leaver waits longer once its heir is known, and less once it has lost one.
        heir_to = {change.key.name for change in intent.changes if change.after is not None} & self._leavers.keys()
        heir_to -= intent.passes | intent.conflicts
        before, known.heir_to = known.heir_to, frozenset(heir_to)
        for name in before - heir_to:
            self._behind_turns.get(name, {}).pop(key, None)
        known.passes, known.turns_to, known.turns_with = intent.passes, turns_to, intent.turning
        self._set_wait_of_leavers(before - heir_to, now + _HEIR_SECONDS)
        self._set_wait_of_leavers(heir_to - before, now + _TURN_SECONDS)

    def record_refused(self, unit: Unit, *, too_large: bool) -> None:
        """Note that an heir was refused, and that its cluster has decided to try it again.

        Leavers of the name now wait ``_HEIR_SECONDS`` for the next heir, and no longer for this one.
        ``too_large``: both do not fit one batch. Then the leavers wait for as long as the heir wants the name.
        """
        if unit.name not in self._keys[unit.key].heir_to:
            return
        # Another refusal must not prolong the longest wait.
        until = math.inf if too_large else self._now() + _HEIR_SECONDS
        if too_large or any(at > until for at in self._leavers.get(unit.name, {}).values()):
            self._set_wait_of_leavers((unit.name,), until)

    def grant_second_wait(self, unit: Unit, actual: Mapping[RecordKey, RecordSet], *, of_event: bool) -> bool:
        """Let a refused unit wait once more for other keys, if the set in its way may be theirs and no conflict. Returns whether it waits.

        The zone calls it before it asks the unit's cluster to judge the refusal. If the unit waits, nobody judges it.

        the unit is refused, and                                             waits once more
        ------------------------                                             ---------------
        no set that exists is in the way of its new sets                     no
        its key has waited once more at this name already                    no
        its key leaves the name, or turns                                    yes, for ``_HEIR_SECONDS``
        an earlier session made it, and no leaver was known when it was      yes: the leaver's cluster may be taken up later in this session.
          queued                                                             If a leaver is known by now, both go at once
        else                                                                 no

        Args:
            actual: the sets that exist at the name.
            of_event: an event of this session made the unit.
        """
        known = self._keys.get(unit.key)
        if known is None:  # it wants nothing any more
            return False
        self._early_heirs.pop(unit.name, None)
        leavers = self._leavers.get(unit.name, {})
        key_at_name, own = (unit.name, unit.key), {key for key, _ in unit.deletes}
        others = [found for found in actual.items() if found[0] not in own]
        blocked = any(in_the_way(*found, *comes) for found in others for comes in unit.creates)
        if not blocked or key_at_name in self._waited_again:
            return False
        leaves = unit.key in leavers  # or turns
        # An earlier session made the unit, and no leaver was known when it was queued: else its key would be ``heir_to`` the name.
        is_early = not of_event and unit.name not in known.heir_to
        if not (leaves or is_early):
            return False
        self._waited_again.add(key_at_name)
        until = self._now() + _HEIR_SECONDS
        if leaves:
            leavers[unit.key] = until  # until then, ``_waits_for_heir`` holds the unit back
        elif not leavers:
            self._early_heirs[unit.name] = unit  # ``update`` wakes it once a leaver comes
            known.wait(unit, until)
        # else: a leaver is known by now, and ``ready`` lets both go together.
        return True

    def _set_wait_of_leavers(self, names: Iterable[str], until: float) -> None:
        """Let all leavers of these names that still wait for an heir wait until this time, whether it is sooner or later than before."""
        for name in names:
            # ``at`` is 0 for keys that may go alone, as keys that turn: they wait for no heir.
            for key in [key for key, at in self._leavers.get(name, {}).items() if at]:
                self._leavers[name][key] = until
                self._keys[key].wake_by(until)

    def _forget_leaver(self, name: str, key: ObjectKey) -> None:
        """Note that a key leaves this name no longer."""
        of_name = self._leavers.get(name, {})
        of_name.pop(key, None)
        self._waited_again.discard((name, key))
        if not of_name:
            self._leavers.pop(name, None)
            self._behind_turns.pop(name, None)

    def others_leaving(self, intents: Mapping[ObjectKey, Intent]) -> dict[ObjectKey, None]:
        """Return the leavers of names that these intents ask for. Their units must go in the same batch."""
        if not self._leavers:
            return {}
        names = {
            change.key.name for intent in intents.values() for change in intent.changes if change.after is not None
        }
        found = (key for name in sorted(names & self._leavers.keys()) for key in self._leavers[name])
        return dict.fromkeys(key for key in found if key not in intents)

    def waits_until(self, known: QueuedKey) -> float | None:
        """Return when a key may leave the first of its names without an heir: the time at which it must wake. None: it waits for no heir."""
        times = (self._leavers[name][known.key] for name in known.passes)
        return min((at for at in times if at), default=None)

    def ready(self, units: Sequence[Unit]) -> list[Unit]:
        """Return these units without those that must wait for other keys: for an heir, for a leaver, or for keys that turn with them (see the
        table at the head of the file).

        Units that must go in one batch (``together``) are kept or left out together. A leaver whose time is over goes alone.
        """
        if not self._leavers:
            return list(units)
        going: dict[str, set[ObjectKey]] = {}  # by name, the keys that have a unit here
        creating: dict[str, set[ObjectKey]] = {}  # of these, the keys that add a set: heirs of those that only delete
        for unit in units:
            going.setdefault(unit.name, set()).add(unit.key)
            if not unit.only_deletes:
                creating.setdefault(unit.name, set()).add(unit.key)
        found, forms = list[Unit](), _forms_after(units)
        for group in together(units):
            # Who counts as heir of a leaver? If it only deletes its set: whoever adds a set at the name (``creating``). If it adds a set, too, it
            # exchanges sets with another key: only who is in its group and adds one.
            exchanging = {unit.name: {each.key for each in group if not each.only_deletes} for unit in group}
            if not any(
                self._waits_for_leaver(unit, going)
                or self._waits_for_heir(unit, creating if unit.only_deletes else exchanging)
                or self._waits_to_turn(unit, forms)
                for unit in group
            ):
                found += group
            else:  # the group waits; who has waited long enough goes, is refused, and so is told who has the name
                found += [unit for unit in group if self._waited_for_turns(unit)]
        return found

    def _waits_to_turn(self, unit: Unit, forms: Mapping[Name, Form | None]) -> bool:
        """Whether a unit of a key that turns at the name must wait, because not all sets there would have the key's new form after this batch.

        Each claim in the key's ``turns_with`` must get that form in the batch, or its sets must be deleted.

        Args:
            forms: what ``_forms_after`` says of all units of the batch.
        """
        known = self._keys[unit.key]
        form = known.turns_to.get(unit.name)
        if form is None:  # its key does not turn there
            return False
        claims = [claim for claim in known.turns_with if claim.name == unit.name]
        return any(not (claim in forms and forms[claim] in (None, form)) for claim in claims)

    def _waited_for_turns(self, unit: Unit) -> bool:
        """Whether a unit of an heir has waited ``_HEIR_SECONDS`` for the leavers of its name, which all turn. The first call begins this time.

        Such leavers may never be able to turn. False if one of them really leaves, or turns to the form of this very set, together with it:
        then the heir waits as long as it takes.
        """
        leavers = self._leavers.get(unit.name, {})
        if unit.only_deletes or not leavers or unit.key in leavers:
            return False
        claim, forms = Name.of(unit.wanted), _forms_after([unit])
        for known in map(self._keys.__getitem__, leavers):
            turns_to = known.turns_to.get(unit.name)
            # This one leaves the name (None), or it turns together with the heir's set.
            if turns_to is None or (claim in known.turns_with and forms.get(claim) == turns_to):
                return False
        now = self._now()
        return now >= self._behind_turns.setdefault(unit.name, {}).setdefault(unit.key, now + _HEIR_SECONDS)

    def _waits_for_leaver(self, unit: Unit, going: Mapping[str, set[ObjectKey]]) -> bool:
        """Whether a unit that adds a set must wait, because a leaver of the name is not in this batch: the leaver's set still exists."""
        leavers = self._leavers.get(unit.name, {})
        return not (unit.only_deletes or leavers.keys() <= going[unit.name])

    def _waits_for_heir(self, unit: Unit, creating: Mapping[str, set[ObjectKey]]) -> bool:
        """Whether a leaver's unit must wait for an heir. If the leaver's time is over, lets it go alone and says so in ``remark``.

        ``creating``: by name, the keys that add a set in this batch.
        """
        until = self._leavers.get(unit.name, {}).get(unit.key)
        if not until or creating.get(unit.name, set()) - {unit.key}:
            return False  # it waits for no heir (0 or no leaver), or an heir goes in this batch, too
        if until > self._now():
            return True
        self._leavers[unit.name][unit.key] = 0.0
        if not unit.only_deletes:  # it also adds a set: so the name does not go
            return False
        self.remark = f"{unit.name} went before the key that was given it could be published"
        logger.warning(
            "a name went before its heir could be published", zone=self._zone_id, service=str(unit.key), at=unit.name
        )
        return False


def _forms_after(units: Iterable[Unit]) -> dict[Name, Form | None]:
    """Return, by claim, what these units do. None: a set of it is deleted. Else: the form of a set that comes or turns.

    Leaves out claims of which sets only get other values.

    If several of the lines below speak of one claim, the last one holds: a claim may lose a set of one type and get one of another.
    """
    forms, by_key = dict[Name, Form | None](), defaultdict[ObjectKey, list[RecordChange]](list)
    for unit in units:
        by_key[unit.key] += unit.changes
    for changes in by_key.values():
        # Claims of sets that go.
        forms |= {Name.of(each.key): None for each in changes if each.after is None}
        # Claims of sets that come.
        comes = ((each.key, each.after) for each in changes if each.before is None)
        forms |= {Name.of(key): form_of(key, after) for key, after in comes if after is not None}
        # Claims whose sets turn: they stay, or are replaced under another identifier.
        forms |= turned_by(changes)
    return forms
