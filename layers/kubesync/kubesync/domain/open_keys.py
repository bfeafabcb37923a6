"""Open keys of one cluster, in the cache or not: since when each waits, and whether for a person or for something that passes by itself.

key                                         counts as                        since
---                                         ---------                        -----
planned, not yet in the zone                going by itself                  its mark says it
the same, and a part of it landed           going by itself                  then, if what is left was planned meanwhile
all that is left is in conflict             waiting for a person
all that is left changes its form with      waiting for a person: these
 sets of others, which do not (ADR 0072)     must change too
refused, with a code                        as ``domain.reasons`` says
refused before, and there is news of it     going by itself                  the news
"""

from collections.abc import Callable
from dataclasses import dataclass

from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Policy, changes_of
from kubesync.domain.reasons import waits_for_person
from kubesync.domain.state import KeyState, Name, turning


@dataclass(frozen=True, slots=True)
class OpenCounts:
    """Of one cluster.

    ``open_keys``: how many go by themselves. ``oldest_open`` (epoch seconds): since when the oldest of them waits. ``waiting``: how many
    keys wait for a person, also those with deletions that are held back. ``conflicts``: how many names somebody else holds. ``set_aside``:
    how many keys are not planned, because sessions have died of them.
    """

    open_keys: int = 0
    oldest_open: float | None = None
    waiting: int = 0
    conflicts: int = 0
    set_aside: int = 0


class OpenKeys:
    """Knows which keys of a cluster are open, by their states as they are read and written. For the cluster's actor alone.

    Args:
        epoch_seconds: the time now. All times are epoch seconds.
    """

    def __init__(self, epoch_seconds: Callable[[], float]) -> None:
        self._epoch_seconds = epoch_seconds
        # Each open key is in one of these two.
        self._since: dict[ObjectKey, float] = {}  # keys that go by themselves, each with the time since when it waits
        self._refused: set[ObjectKey] = set()  # keys that wait for a person
        # Any key may be in these, open or not.
        self._held: set[ObjectKey] = set()  # keys with deletions that are held back (I5)
        self._aside: set[ObjectKey] = set()  # keys that are planned without their endpoints (``large_keys``)
        self._conflicts: dict[ObjectKey, int] = {}  # how many names of a key are in conflict

    def see(self, state: KeyState, policy: Policy) -> None:
        """Update the counts from the state of a key that was read or written."""
        key, mark = state.key, state.opened
        for keys, belongs in ((self._aside, state.set_aside), (self._held, state.holds_back)):
            (keys.add if belongs else keys.discard)(key)
        self._conflicts.pop(key, None)
        if state.conflicts:
            self._conflicts[key] = len(state.conflicts)
        if mark is None:
            self._since.pop(key, None)
            self._refused.discard(key)
        elif waiting_for_person(state, policy):
            self._since.pop(key, None)
            self._refused.add(key)
        elif key in self._refused:  # there is news of it
            self._refused.discard(key)
            self._since[key] = self._epoch_seconds()
        else:
            self._since.setdefault(key, mark.since or self._epoch_seconds())

    def since(self, key: ObjectKey) -> float:
        """Since when a key is open, for the mark that is to be written: now, if it is not known to wait."""
        return self._since.get(key, 0.0) or self._epoch_seconds()

    def landed(self, key: ObjectKey) -> None:
        """Note that what was open has landed. What is left was planned meanwhile, so it is open only from now on."""
        if key in self._since:
            self._since[key] = self._epoch_seconds()

    def forget(self) -> None:
        """Forget all keys: they are read again."""
        for known in (self._since, self._refused, self._held, self._aside, self._conflicts):
            known.clear()

    def counts(self) -> OpenCounts:
        """The counts for reports and metrics, of the keys that ``see`` was called for. Open keys are all among them: each session reads them."""
        waiting, conflicts = len(self._refused | self._held), sum(self._conflicts.values())
        oldest = min(self._since.values(), default=None)
        return OpenCounts(len(self._since), oldest, waiting, conflicts, len(self._aside))


def waiting_for_person(state: KeyState, policy: Policy) -> bool:
    """Whether all that is open of a key waits for a person."""
    if state.opened is None:
        return False
    code, places = state.opened.code, {name.place for name in turning(state)}
    # All that is left turns, in one batch with sets of other keys. These do not, so a person must change the other keys, too.
    if places and all(change.key.place in places for change in changes_of(state, policy)):
        return True
    # All that is left is in conflict: a person must decide about the foreign sets.
    if state.conflicts or code == "Conflict":
        return all(Name.of(change.key) in state.conflicts for change in changes_of(state, policy))
    return waits_for_person(code)
