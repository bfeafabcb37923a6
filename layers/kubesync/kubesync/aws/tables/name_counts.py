"""How much of its limits each namespace has taken: an item for each (ADR 0021, ADR 0070).

    partition             sort                  holds
    ---------             ----                  -----
    <cluster>#asked       <namespace>           count of names that its Services hold and asked for
    <cluster>#waits       <namespace>           count of places in lines, in steps
    <cluster>#sets        <namespace>           count of record sets that stand or are to come, in steps
    <cluster>#over        <namespace>/<key>     the key waits until its namespace has room; room: of which counts (a list; none: not known)

    a key's claims change ── its transaction adds the difference to the item
    a complete list       ── every key is read anyway: ``begin``, ``tally`` each, compare with the items, ``done``

A name counts if the key holds a claim of it and it is not at or below the key's own name. So the number follows from the claims.
Other counts are written where they have changed by a step, a small part of the limit, and when the session ends: a new Service alone costs no write
more. A crash forgets less than a step, and the next list corrects it.

A *line* is the queue of keys that wait for a name; a key takes a *place* in it for each name that it waits for.
Between two buckets of a list the cluster's actor serves its mailbox: keys that were tallied may change. ``written`` notes it.
"""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from itertools import chain, islice
from typing import Final

from kubesync.aws.dynamodb.store import STATE, Absent, Action, Delete, Equals, Key
from kubesync.aws.tables.items import Table, put, update
from kubesync.domain.dns.permissions import OF_NAMESPACE, NameRules, counts_for_namespace
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState

type CountKey = tuple[str, str]
"""What is counted (``NAMES``, ``WAITS`` or ``SETS``), and of which namespace."""

NAMES: Final = "asked"
WAITS: Final = "waits"
SETS: Final = "sets"
_OVER: Final = "over"
OF_NAMESPACES: Final = (NAMES, WAITS, SETS, _OVER)
# By the code of the problem that says so: of what a key waits for room.
_KIND_OF: Final = {"TooManyNames": NAMES, "TooManyWaits": WAITS, "TooManyRecordSets": SETS}
_ANY: Final = frozenset(_KIND_OF.values())
_STEP: Final = 20
_STEPS: Final = 50  # a limit has at least so many steps: those of a small limit are smaller than ``_STEP``
_REPLANNED: Final = 50  # so many of those that wait for room are planned at a time


def _count_key(cluster: str, counted: CountKey) -> Key:
    kind, namespace = counted
    return Key(STATE, f"{cluster}#{kind}", namespace)


def _lacks(state: KeyState) -> frozenset[str]:
    """Of what the key waits for room in its namespace: NAMES, WAITS, SETS."""
    # Only these codes count: the message of another one may end with a text of the object (I4).
    over = (each.code for each in state.problems if each.message.endswith(OF_NAMESPACE))
    return frozenset(_KIND_OF[code] for code in over if code in _KIND_OF)


def is_over(state: KeyState) -> bool:
    """Whether a limit of its namespace keeps the key from something that it asks for."""
    return bool(_lacks(state))


class NameCountTable(Table):
    """Reads the items and builds their writes, each of which belongs into a transaction with a fence (I2)."""

    def stored(self, cluster: str, counted: CountKey) -> int:
        """Read the count in the namespace's item; 0 without one."""
        item = self._store.get(_count_key(cluster, counted))
        return 0 if item is None else item["count"]

    def all_stored(self, cluster: str) -> dict[CountKey, int]:
        """Read the counts of every namespace that has an item."""
        return {
            (kind, item["sk"]): item["count"]
            for kind in (NAMES, WAITS, SETS)
            for item in self._store.query(STATE, _count_key(cluster, (kind, "")).partition)
        }

    def over(self, cluster: str, namespace: str) -> dict[ObjectKey, frozenset[str]]:
        """The keys that wait until their namespace has room, each with what they wait for. Marks of the release before do not say what: any."""
        items = self._store.query(STATE, f"{cluster}#{_OVER}", prefix=f"{namespace}/")
        return {ObjectKey.at(cluster, item["sk"]): frozenset(item.get("room") or _ANY) for item in items}

    @staticmethod
    def mark_over(state: KeyState) -> Action:
        """Note whether a key waits until its namespace has room."""
        place = Key(STATE, f"{state.key.cluster}#{_OVER}", state.key.path)
        return put(place, room=sorted(_lacks(state))) if is_over(state) else Delete(place)

    @staticmethod
    def correct(cluster: str, counted: CountKey, stored: int | None, right: int) -> Action:
        """Replace a count that is wrong, as a complete list has shown, by the ``right`` one.

        ``stored``: the wrong one, as just read; None: there is no item. If somebody has changed it since, the write is refused.
        """
        place = _count_key(cluster, counted)
        guard = (Absent(),) if stored is None else (Equals("count", stored),)
        return put(place, *guard, count=right) if right else Delete(place, guard)


class _Waiting:
    """The keys of a namespace that wait for room. All get their turn: the same ones may have been planned again for nothing.

    ``_lacks``: by key, what it waits for: NAMES, WAITS, SETS. ``_line``: the keys, sorted. ``_last``: by what became free, the key that ``take``
    returned last.
    """

    def __init__(self, lacks: dict[ObjectKey, frozenset[str]]) -> None:
        self._lacks = lacks
        self._line = sorted(lacks)
        self._last: dict[frozenset[str], ObjectKey] = {}

    def take(self, kinds: frozenset[str]) -> list[ObjectKey]:
        """The next ``_REPLANNED`` keys that wait for one of these kinds: behind those of the last call, and from the beginning again."""
        at = bisect_right(self._line, self._last[kinds]) if kinds in self._last else 0
        after = chain(islice(self._line, at, None), islice(self._line, at))
        found = list(islice((key for key in after if self._lacks[key] & kinds), _REPLANNED))
        if found:
            self._last[kinds] = found[-1]
        return found

    def note(self, key: ObjectKey, lacks: frozenset[str]) -> None:
        """Note what a key waits for from now on. Empty: for nothing."""
        if not lacks and self._lacks.pop(key, None) is not None:
            del self._line[bisect_right(self._line, key) - 1]
        elif lacks:
            if key not in self._lacks:
                insort(self._line, key)
            self._lacks[key] = lacks


class NameCounts:
    """The counts of one cluster, while a session serves it. Without rules nothing counts, and nothing is read or written.

    A count is what its item says, and what this session has not written yet because it is less than a step.
    """

    def __init__(self, table: NameCountTable) -> None:
        self._table = table
        self.configure("", None)

    def configure(self, cluster: str, rules: NameRules | None) -> None:
        """Go by these rules from now on. What was counted by other rules is corrected by the list that follows. ``rules``: None: no limits."""
        self._cluster = cluster
        self.rules = rules
        self._most: Mapping[str, int] = {}  # the limits, by what is counted
        if rules is not None:
            names, sets = rules.max_names_per_namespace, rules.max_record_sets_per_namespace
            self._most = {NAMES: names, WAITS: rules.max_waits_per_namespace, SETS: sets}
        self._known: dict[CountKey, int] = {}  # counts that were read, with all changes since
        self._unwritten = Counter[CountKey]()  # counted here and not in the item yet: less than a step each
        # By namespace: the keys that wait for room. Read once a session, when a count of the namespace first gets smaller.
        self._waiting: dict[str, _Waiting] = {}
        self._reserved: dict[ObjectKey, set[str]] = {}  # by key, the names for which room is kept free (``reserve``)
        # During a list, what each key takes (``usage``).
        self._tallied: dict[ObjectKey, Mapping[str, int]] | None = None

    def counted_names(self, state: KeyState) -> AbstractSet[str]:
        """The names that the key holds and that count towards the limit of names."""
        if self.rules is None or not state.claims:
            return frozenset()
        own = self.rules.own_name(state.key)
        return {name.name for name in state.claims if counts_for_namespace(name.name, own)}

    def usage(self, state: KeyState) -> Mapping[str, int]:
        """How much a key takes of each limit: by NAMES, WAITS and SETS."""
        if self.rules is None:
            return {}
        sets = len(state.intended.keys() | state.applied.keys())
        return {NAMES: len(self.counted_names(state)), WAITS: len(state.waits), SETS: sets}

    def used(self, namespace: str, kind: str = NAMES) -> int:
        """How much of a limit a namespace has taken. The item is read only the first time (I7)."""
        counted = (kind, namespace)
        if counted not in self._known:
            self._known[counted] = self._table.stored(self._cluster, counted) + self._unwritten[counted]
        return self._known[counted]

    def keys_with_room(self, changes: Mapping[CountKey, int], states: Iterable[KeyState]) -> list[ObjectKey]:
        """Keys to plan again once a transaction with these changes is written: they wait for room in a namespace of which a count gets smaller.

        the namespace's count                          who is planned again
        ---------------------                          --------------------
        any                                            keys that this transaction writes (``states``): their marks are not in the table yet
        the first that gets smaller in this session    of all that wait, ``_REPLANNED``: the session before may have died before it told them
        a further one                                  the next ``_REPLANNED`` of those that wait for this
        """
        smaller = [of for of, change in changes.items() if change < 0 and of[0] in self._most]
        namespaces = {namespace for _, namespace in smaller}
        found = {state.key for state in states if state.key.namespace in namespaces and is_over(state)}
        for kind, namespace in smaller:
            if namespace not in self._waiting:
                self._waiting[namespace] = _Waiting(self._table.over(self._cluster, namespace))
                found.update(self._waiting[namespace].take(_ANY))
            found.update(self._waiting[namespace].take(frozenset({kind})))
        return sorted(found)

    def reserve(self, key: ObjectKey, name: str) -> None:
        """Keep room free for a name that a key of the same namespace gave to this key, until this key is planned (``written``)."""
        if self.rules is not None and counts_for_namespace(name, self.rules.own_name(key)):
            self._reserved.setdefault(key, set()).add(name)

    def reserved(self, namespace: str) -> dict[ObjectKey, set[str]]:
        """What is kept free for keys of a namespace. After a crash nothing is: whoever comes first has the room."""
        return {key: names for key, names in self._reserved.items() if key.namespace == namespace}

    def forget(self) -> None:
        """Read the items again next time: the cluster begins anew from what is stored."""
        self._known.clear()
        self._waiting.clear()
        self._reserved.clear()

    def additions(self, changes: Mapping[CountKey, int]) -> list[Action]:
        """The writes that add these changes to the items, as far as they make a step.

        They belong into the transaction that writes the keys. It is conditional on the keys' versions, so no repetition counts twice. Once it is
        written, ``written`` must be called.
        """
        steps = {counted: self._step(counted, change) for counted, change in changes.items()}
        return [update(_count_key(self._cluster, counted), {"count": step}) for counted, step in steps.items() if step]

    def _step(self, counted: CountKey, change: int) -> int:
        """How much to add to an item now, after this change: all that is unwritten, or 0 while it is less than a step. Names are always written."""
        kind, _namespace = counted
        step, most = self._unwritten[counted] + change, self._most.get(kind, 0)
        return step if kind == NAMES or abs(step) >= min(_STEP, most // _STEPS) else 0

    def rest(self) -> Iterator[Action]:
        """The writes of what is less than a step, for the session's end. Each is made once: if it fails, the next complete list corrects it."""
        for counted in sorted(each for each, left in self._unwritten.items() if left):
            yield update(_count_key(self._cluster, counted), {"count": self._unwritten.pop(counted)})

    def written(self, changes: Mapping[CountKey, int], states: Iterable[KeyState]) -> None:
        """Let the counts here follow a transaction that was written with the ``additions`` of these changes.

        ``states``: of the keys that it wrote, as they are now.
        """
        for counted, change in changes.items():
            if counted in self._known:
                self._known[counted] += change
            self._unwritten[counted] += change - self._step(counted, change)
        for state in states:
            if (waiting := self._waiting.get(state.key.namespace)) is not None:
                waiting.note(state.key, _lacks(state))
        for state in states if self._reserved else ():
            # If the key was planned, it has taken its names, or does not want them: their room is not kept any more. If the transaction only closed
            # a batch of the key, the key still waits for them.
            if still_waits_for := self._reserved.pop(state.key, set()) & {name.name for name in state.waits}:
                self._reserved[state.key] = still_waits_for
        # A key that was tallied, and has changed since, is tallied again.
        if self._tallied is not None:
            self._tallied |= {state.key: self.usage(state) for state in states if state.key in self._tallied}

    # --- complete lists ---

    def begin(self) -> None:
        """Begin a complete list: every key is about to be read, and ``tally`` is called for each."""
        self._tallied = None if self.rules is None else {}

    def tally(self, state: KeyState) -> None:
        """Count a key as it is stored now."""
        if self._tallied is not None:
            self._tallied[state.key] = self.usage(state)

    def corrections(self) -> list[Action]:
        """The writes that make the items right, once every key is tallied. Each is conditional on what was just read.

        From now on ``used`` gives the right counts, also if the writes are refused, or never made: the preview of a resync writes nothing.
        """
        if self._tallied is None:
            return []
        right = Counter[CountKey]()
        for key, of_key in self._tallied.items():
            right.update({(kind, key.namespace): count for kind, count in of_key.items() if count})
        stored = self._table.all_stored(self._cluster)
        self._known = {each: right[each] for each in right.keys() | stored.keys()}
        self._unwritten.clear()
        wrong: list[Action] = []
        for each in sorted(self._known):
            missing = right[each] - stored.get(each, 0)
            # As always, less than a step is not written, but remembered. An item whose namespace has nothing left is deleted.
            if self._step(each, missing) or (each in stored and not right[each]):
                wrong.append(self._table.correct(self._cluster, each, stored.get(each), right[each]))
            else:
                self._unwritten[each] = missing
        return wrong

    def done(self) -> None:
        """End a complete list: the corrections are written."""
        self._tallied = None
