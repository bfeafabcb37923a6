"""Cuts the writes of service keys into transactions. A key is written in one transaction if it fits, and otherwise in safe steps.

The steps of a key write its claims and upstreams first, and its parts and intended record sets last. A crash between two steps loses
nothing: until the parts are stored, the next session reads the same events again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from kubesync.aws.dynamodb.store import Action, Equals, Key, Put
from kubesync.aws.dynamodb.wire import item_bytes
from kubesync.aws.tables.audit import Entry, describe
from kubesync.aws.tables.name_counts import CountKey
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.sources.registry import describe_change
from kubesync.domain.state import KeyState, Name, Reference

# A transaction may have 4 MB. The rest is for fence checks, an audit item and checkpoints.
_ROOM_BYTES: Final = 3_500_000
# The size of one step of a large key. To make and send a step takes 0.3 s of CPU time for each 500 KB.
_STEP_BYTES: Final = 1_000_000
# Each step also writes the key's own state, so a step is at least this many times as large as that state.
_STEPS_OF_OWN: Final = 4
# A transaction checks the fence of each cluster that it writes for: keys of other clusters may be given names.
MAX_CLUSTERS: Final = 5


@dataclass(frozen=True, slots=True)
class OrderedWrites:
    """Further actions for keys. ``early`` actions are written with the key's final state or before, ``late`` ones with it or after.

    ``unmark``: removals of marks that say "plan this key". They are late, and wait until it is known what the key wants.
    """

    early: dict[ObjectKey, list[Action]] = field(default_factory=lambda: defaultdict(list))
    late: dict[ObjectKey, list[Action]] = field(default_factory=lambda: defaultdict(list))
    unmark: Mapping[ObjectKey, Sequence[Action]] = field(default_factory=dict)

    def add(self, later: OrderedWrites) -> None:
        """Add later actions. They replace earlier ones of the same items. ``unmark`` stays: only plans of marked keys have it, and no window
        joins those."""
        written_again = {action.key for actions in (*later.early.values(), *later.late.values()) for action in actions}
        for mine, others in ((self.early, later.early), (self.late, later.late)):
            for key in mine if written_again else ():
                mine[key] = [action for action in mine[key] if action.key not in written_again]
            for key, actions in others.items():
                mine[key] += actions


NO_WRITES: Final = OrderedWrites()


@dataclass(frozen=True, slots=True)
class Made:
    """The actions that write a large upstream. They are made each time this is iterated: kept for all upstreams of a key, they would fill the
    memory. ``weight``: the number of these actions, and their bytes."""

    put: Callable[[], tuple[object, Iterable[Action]]]
    marks: Sequence[Action]
    weight: tuple[int, int]

    def __iter__(self) -> Iterator[Action]:
        return chain(self.put()[1], self.marks)


@dataclass(frozen=True, slots=True)
class Piece:
    """Actions that must be in one transaction.

    ``name``, ``upstream``: the claim that the key gets, lets go or waits for by them, and the upstream that they write. ``clusters``: other
    clusters that the actions write for, so that their fences are checked.
    """

    actions: Sequence[Action] | Made
    clusters: frozenset[str] = frozenset()
    name: Name | None = None
    entries: tuple[Entry, ...] = ()
    upstream: str = ""


@dataclass(frozen=True, slots=True)
class KeyWrite:
    """The writes that take a key from ``before`` to ``after``, its final state.

    ``pieces`` may be written before the final state, ``trailing`` actions only with it or after it. ``entries``: audit entries of the final
    state.
    """

    before: KeyState
    after: KeyState
    pieces: tuple[Piece, ...] = ()
    entries: tuple[Entry, ...] = ()
    trailing: tuple[Action, ...] = ()

    @property
    def changes(self) -> Iterator[Entry]:
        """The audit entries of all changes of the key."""
        yield from (entry for piece in self.pieces for entry in piece.entries)
        yield from self.entries

    def with_further(self, early: Iterable[Action], late: Iterable[Action]) -> KeyWrite:
        """The same, with ``early`` and ``late`` actions (``OrderedWrites``). A late action on an item that the pieces write is left out: it would
        remove a mark that this plan has just made anew."""
        # Writes of upstreams are made only when they are sent: of a large key they take seconds. No late action is on an upstream.
        written = {action.key for piece in self.pieces if not piece.upstream for action in piece.actions}
        first = [Piece((action,)) for action in early]
        trailing = tuple(action for action in late if action.key not in written)
        return replace(self, pieces=(*first, *self.pieces), trailing=trailing)

    def steps(self, own: Sequence[Action], room: int) -> list[list[Piece]]:
        """Group the pieces so that each group fits one transaction. The key's final state goes with the last group.

        Args:
            own: the actions that store the final state. Storing a state between two steps takes about as much room.
            room: how many actions a transaction may have.
        """
        # A state between two steps may write all slices that the key has now, its item and its open mark.
        own_actions, own_bytes = max(len(own), self.before.slices) + 2, _bytes(own)
        most = _ROOM_BYTES  # steps with large upstreams are smaller: see _STEP_BYTES
        if any(isinstance(piece.actions, Made) for piece in self.pieces):
            most = min(most, max(_STEP_BYTES, _STEPS_OF_OWN * own_bytes))
        groups: list[list[Piece]] = [[]]
        count, size, clusters = own_actions, own_bytes, {self.before.key.cluster}
        for piece in self.pieces:
            made = piece.actions
            actions, weight = made.weight if isinstance(made, Made) else (len(made), _bytes(made))
            full = count + actions > room or size + weight > most
            if groups[-1] and (full or len(clusters | piece.clusters) > MAX_CLUSTERS):
                groups.append([])
                count, size, clusters = own_actions, own_bytes, {self.before.key.cluster}
            count, size = count + actions, size + weight
            clusters |= piece.clusters
            groups[-1].append(piece)
        return groups


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of planning some keys. ``to_plan_next``: keys to plan next, for example because they were given a name. ``changed_objects``:
    shared objects that changed and whose readers have to be planned, with the numbers of their marks."""

    writes: tuple[KeyWrite, ...]
    to_plan_next: tuple[ObjectKey, ...] = ()
    changed_objects: Mapping[Reference, int] = field(default_factory=dict)


@dataclass(slots=True)
class Recorded:
    """What was recorded, and what has to follow.

    ``opened``: keys that are open now. ``to_plan_next``: keys to plan next. ``written``: keys that were written. ``changed_objects``: shared
    objects that changed, with the numbers of their marks. Only of lists: ``held``: why deletions are held back; ``missed``: see ``ListMerge``.
    """

    opened: dict[ObjectKey, None] = field(default_factory=dict)
    to_plan_next: dict[ObjectKey, None] = field(default_factory=dict)
    written: set[ObjectKey] = field(default_factory=set)
    changed_objects: dict[Reference, int] = field(default_factory=dict)
    held: Mapping[Resource, str] = field(default_factory=dict)
    missed: AbstractSet[ObjectKey] = frozenset()

    def add(self, other: Recorded) -> None:
        """Add what another part of the same change has recorded."""
        self.opened |= other.opened
        self.to_plan_next |= other.to_plan_next
        self.written |= other.written
        self.changed_objects |= other.changed_objects


@dataclass(slots=True)
class Preview:
    """What recording would lead to.

    ``states``: keys as they would be. ``news``: why a key changes, in one word. ``entries``: audit entries of the changes. ``held``: by
    resource, why deletions would be held back.
    """

    states: dict[ObjectKey, KeyState] = field(default_factory=dict)
    news: dict[ObjectKey, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    held: dict[Resource, str] = field(default_factory=dict)

    def add(self, pairs: Sequence[tuple[KeyState, KeyState]], planned: Planned) -> None:
        """Add a section of keys."""
        self.states |= {before.key: before for before, _ in pairs}
        for write in planned.writes:
            self.states[write.after.key] = write.after
            if word := describe_change(write.before, write.after):
                self.news[write.after.key] = word
            self.entries += write.changes

    @property
    def set_aside(self) -> list[ObjectKey]:
        """Keys whose endpoints would be set aside (``domain.large_keys``)."""
        return sorted(key for key, state in self.states.items() if state.set_aside)


@dataclass(slots=True)
class Chunk:
    """One transaction: its actions, its audit entries, and the states of its keys as they are after it.

    ``begins_whole``: no earlier transaction has a part of the first key. A new plan would not know which part of a key is written already.
    ``has_room``: it is the last one, and may be filled: its keys can be planned again with others. ``left``: the last key, if a later
    transaction writes more of it: as it is after this transaction, and its final state. ``places``: by item, the index of its action.
    ``committed`` is called once it is written. ``counts``: how many more names, places in queues and record sets each namespace has; each count
    is one more action.
    """

    token: str
    begins_whole: bool = True
    has_room: bool = False
    left: tuple[KeyState, KeyState] | None = None
    states: list[KeyState] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    clusters: set[str] = field(default_factory=set)
    committed: Callable[[], None] = lambda: None
    size: int = 0
    places: dict[Key, int] = field(default_factory=dict)
    counts: Counter[CountKey] = field(default_factory=Counter)

    def takes(self, actions: Sequence[Action], clusters: AbstractSet[str], room: int, size: int = 0) -> bool:
        """Whether these actions may join the transaction.

        They may if they fit, and if the transaction has no action on the same items: it may name an item once. Two writes of one claim
        can be merged into one, however, if they only count waiters (``_merge_counts``).
        """
        return not self.actions or (
            len(self.actions) + len(actions) + len(self.counts) <= room
            and self.size + size <= _ROOM_BYTES
            and len(self.clusters | clusters) <= MAX_CLUSTERS
            and all(self._joined(action) for action in actions if action.key in self.places)
        )

    def _joined(self, action: Action) -> Put | None:
        """An action merged with that on the same item, if possible."""
        return _merge_counts(self.actions[self.places[action.key]], action)

    def add(self, actions: Iterable[Action], clusters: Iterable[str], size: int = 0) -> None:
        """Add actions that ``takes`` has accepted."""
        self.size += size
        for action in actions:
            if action.key in self.places and (one := self._joined(action)) is not None:
                self.actions[self.places[action.key]] = one
                continue
            self.places[action.key] = len(self.actions)
            self.actions.append(action)
        self.clusters.update(clusters)


@dataclass(frozen=True, slots=True)
class Ending:
    """Further actions of the last transaction, for the fences of ``clusters``. ``committed`` is called once they are written."""

    actions: tuple[Action, ...] = ()
    committed: Callable[[], None] = lambda: None
    clusters: frozenset[str] = frozenset()


def chunks_of(
    writes: Iterable[KeyWrite],
    table: StateTable,
    token: Callable[[], str],
    room: int,
    ending: Callable[[str], Ending] = lambda _token: Ending(),
    counted: Callable[[KeyState], Mapping[str, int]] = lambda _state: {},
) -> Iterator[Chunk]:
    """Cut writes into transactions of at most ``room`` actions, for at most ``MAX_CLUSTERS`` clusters each.

    Args:
        ending: makes the further actions of the last transaction, such as checkpoints, from its token.
        counted: returns how much a key takes of its namespace's limits.
    """
    # ``chunk``: the transaction that is being filled. It is yielded once the next actions do not fit, and a new one begins.
    chunk = Chunk(token())
    for write in writes:
        state, cluster = write.before, write.before.key.cluster
        # The actions that store a state hold the token of their transaction: for another transaction they are made again.
        stored, own = table.put(state, write.after, chunk.token)
        # 1. The steps of the key: one, or several if it does not fit one transaction.
        groups = write.steps(own, room - len(counted(state)))
        for number, group in enumerate(groups, 1):
            final = number == len(groups)
            after = write.after if final else _partly(state, write.after, group)
            of_pieces = [action for piece in group for action in piece.actions]
            clusters = {cluster}.union(*(piece.clusters for piece in group))
            if len(groups) > 1:  # this step stores another state, or in another transaction
                stored, own = table.put(state, after, chunk.token)
            # How much the key changes the counts of its namespace. Each changed count is one more action.
            more = _changed_counts(counted(state), counted(after), write.after.key.namespace)
            size = _bytes(of_pieces) + _bytes(own)
            if not chunk.takes([*of_pieces, *own], clusters, room - len(more), size):
                yield chunk
                chunk = Chunk(token(), begins_whole=number == 1)
                stored, own = table.put(state, after, chunk.token)
            chunk.add([*of_pieces, *own], clusters, size)
            chunk.entries += (entry for piece in group for entry in piece.entries)
            chunk.counts.update(more)
            chunk.states.append(stored)
            if final:
                chunk.entries += write.entries
            else:
                # The next step writes the same key's item again, so it needs another transaction.
                chunk.left = stored, write.after
                yield chunk
                chunk = Chunk(token(), begins_whole=False)
            state = stored
        # 2. What may be written only with the final state or after it.
        for action in write.trailing:
            if not chunk.takes([action], {cluster}, room):
                yield chunk
                chunk = Chunk(token(), begins_whole=False)
            chunk.add([action], {cluster})
    # 3. The further actions, with the last transaction of the section or in one of their own.
    last = ending(chunk.token)
    if not chunk.takes(last.actions, last.clusters, room):
        yield chunk
        chunk = Chunk(token())
        last = ending(chunk.token)
    chunk.add(last.actions, last.clusters)
    chunk.committed = last.committed
    # If its keys can be planned again, and no checkpoint goes with it, the committer fills it up with keys of the next section.
    chunk.has_room = chunk.begins_whole and not last.actions
    if chunk.actions:
        yield chunk


def _changed_counts(before: Mapping[str, int], after: Mapping[str, int], namespace: str) -> Mapping[CountKey, int]:
    """By kind and namespace, how much the counts of a key change."""
    return {(kind, namespace): count - before[kind] for kind, count in after.items() if count != before[kind]}


def _bytes(actions: Iterable[Action]) -> int:
    return sum(item_bytes(action.item) for action in actions if isinstance(action, Put))


def _merge_counts(first: Action, then: Action) -> Put | None:
    """Merge two writes of one claim that only change how many keys wait for it. None: they cannot be merged.

    A transaction may write an item once. So without merging, each key that begins to wait for one name would need a transaction of its own.

    ``then`` must be conditional on the version that ``first`` writes, and must change nothing but this version and the number of waiters. Then
    writing ``then`` alone, on the conditions of ``first``, has the same effect.

    Claims are as ``ClaimTable.change`` writes them: of the items written here, only claims have an ``owner``. Their conditions are exactly
    the version and the owner, in this order.
    """
    if not (isinstance(first, Put) and isinstance(then, Put) and "owner" in first.item):
        return None
    owner = Equals("owner", first.item["owner"])
    counted = {name: first.item[name] for name in ("version", "waiting")}
    # ``then`` with the two fields of ``first`` must be ``first`` again.
    follows = owner in first.conditions and then.conditions == (Equals("version", first.item["version"]), owner)
    return replace(then, conditions=first.conditions) if follows and {**then.item, **counted} == first.item else None


def _partly(state: KeyState, after: KeyState, pieces: Iterable[Piece]) -> KeyState:
    """The state to store with a step of a key that is not the last: as before, but with the claims and upstreams that these pieces write.

    Those are as in ``after``, the final state. Everything else, above all the parts, changes only with the last step.
    """
    names, upstreams = {piece.name for piece in pieces}, {piece.upstream for piece in pieces}
    others = {name: each for name, each in state.upstreams.items() if name not in upstreams}
    return replace(
        state,
        claims=(state.claims - names) | (after.claims & names),
        waits=(state.waits - names) | (after.waits & names),
        shared=(state.shared - names) | (after.shared & names),
        upstreams=others | {name: each for name, each in after.upstreams.items() if name in upstreams},
    )


def record_entries(before: KeyState, after: KeyState, why: str) -> list[Entry]:
    """Audit entries of record sets that a key intends from now on, changes, or no longer intends."""
    entries: list[Entry] = []
    for key in sorted(before.intended.keys() | after.intended.keys()):
        old, new = before.intended.get(key), after.intended.get(key)
        if old != new:
            what = f"intended {key.label} in {key.zone_id}"
            entries.append(Entry(what, describe(old), describe(new), why, str(after.key)))
    return entries
