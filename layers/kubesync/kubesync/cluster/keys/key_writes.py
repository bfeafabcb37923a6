"""Writes of service keys, cut into transactions: keys whole where they fit, in safe steps where they do not.

A key whose actions exceed one transaction is written in steps: claims and upstreams first, and last of all its parts and
intended record sets. A crash in between loses nothing: until the parts are stored, the events that led here are read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from kubesync.aws.dynamodb.store import Action, Equals, Key, Put, Update
from kubesync.aws.dynamodb.values import item_bytes
from kubesync.aws.tables.audit import Entry, describe
from kubesync.aws.tables.name_counts import Taken
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.sources.registry import news
from kubesync.domain.state import KeyState, Name, Reference, UpstreamState

# Below the 4 MB of a transaction by what checks, an audit item and checkpoints take.
_ROOM_BYTES: Final = 3_500_000
# A step of a large key: to make and send one takes 0.3 s of CPU time for each 500 KB, and the key's own state is written with each.
_STEP_BYTES: Final = 1_000_000
_STEPS_OF_OWN: Final = 4
# A transaction checks a fence for each cluster that it writes for: keys of others inherit names.
MAX_CLUSTERS: Final = 5


@dataclass(frozen=True, slots=True)
class OrderedWrites:
    """Actions besides a key's own: ``early`` not after its final state, ``late`` not before it."""

    early: Mapping[ObjectKey, Sequence[Action]] = field(default_factory=dict)
    late: Mapping[ObjectKey, Sequence[Action]] = field(default_factory=dict)


NO_WRITES: Final = OrderedWrites()


@dataclass(frozen=True, slots=True)
class Made:
    """Makes the actions that write a large upstream, each time it is iterated: those of all upstreams of a key would fill the memory."""

    put: Callable[[], tuple[object, Iterable[Action]]]
    marks: Sequence[Action]
    weight: tuple[int, int]

    def __iter__(self) -> Iterator[Action]:
        return chain(self.put()[1], self.marks)


@dataclass(frozen=True, slots=True)
class Piece:
    """Actions that one transaction has to hold together, and how they change the key's state. ``clusters``: others that they write for."""

    actions: Sequence[Action] | Made
    apply: Callable[[KeyState], KeyState] = lambda state: state
    clusters: frozenset[str] = frozenset()
    entries: tuple[Entry, ...] = ()


def claiming(name: Name, *, shared: bool = False) -> Callable[[KeyState], KeyState]:
    """The change of a key's state that gains a claim. ``shared``: another key owns it."""

    def apply(state: KeyState) -> KeyState:
        names = state.shared | {name} if shared else state.shared - {name}
        return replace(state, claims=state.claims | {name}, waits=state.waits - {name}, shared=names)

    return apply


def unclaiming(name: Name) -> Callable[[KeyState], KeyState]:
    """The change of a key's state that lets go of a claim."""
    return lambda state: replace(state, claims=state.claims - {name}, shared=state.shared - {name})


def waiting(name: Name, *, waits: bool) -> Callable[[KeyState], KeyState]:
    """The change of a key's state that joins, or leaves, the queue of a claim."""
    return lambda state: replace(state, waits=state.waits | {name} if waits else state.waits - {name})


def with_upstream(upstream: str, written: UpstreamState | None) -> Callable[[KeyState], KeyState]:
    """The change of a key's state that writes an upstream, or removes it (None)."""

    def apply(state: KeyState) -> KeyState:
        upstreams = {name: u for name, u in state.upstreams.items() if name != upstream}
        if written is not None:
            upstreams[upstream] = written
        return replace(state, upstreams=upstreams)

    return apply


@dataclass(frozen=True, slots=True)
class KeyWrite:
    """Takes a key from ``before`` to ``after``. ``pieces`` may be written ahead of the final state.

    ``trailing`` actions are written with the final state or after it, never before. ``entries``: of the final state.
    """

    before: KeyState
    after: KeyState
    pieces: tuple[Piece, ...] = ()
    entries: tuple[Entry, ...] = ()
    trailing: tuple[Action, ...] = ()

    @property
    def changes(self) -> Iterator[Entry]:
        """The audit entries of all its changes."""
        yield from (entry for piece in self.pieces for entry in piece.entries)
        yield from self.entries

    def steps(self, own: Sequence[Action], room: int) -> list[list[Piece]]:
        """Group the pieces so that each group fits one transaction. The key's final state goes with the last group.

        Args:
            own: the actions that store the key itself; the states on the way there take about as much.
        """
        own_actions, own_bytes = max(len(own), self.before.slices) + 2, _bytes(own)
        most = _ROOM_BYTES
        if any(isinstance(piece.actions, Made) for piece in self.pieces):
            most = min(most, max(_STEP_BYTES, _STEPS_OF_OWN * own_bytes))
        groups: list[list[Piece]] = [[]]
        count, size, clusters = own_actions, own_bytes, {self.before.key.cluster}
        for piece in self.pieces:
            actions, weight = piece.actions.weight if isinstance(piece.actions, Made) else weight_of(piece.actions)
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
    """What planning a set of keys came to. ``promoted`` keys were given a name and have to be planned next. ``changed``: shared objects
    whose readers have to be planned, with the numbers of their marks."""

    writes: tuple[KeyWrite, ...]
    promoted: tuple[ObjectKey, ...] = ()
    changed: Mapping[Reference, int] = field(default_factory=dict)


@dataclass(slots=True)
class Recorded:
    """What was recorded, and what follows: keys that are open now, keys that were given a name, keys that changed, and shared objects that
    changed (with the numbers of their marks). Of lists also what was held back, and ``ListMerge.missed``."""

    opened: dict[ObjectKey, None] = field(default_factory=dict)
    promoted: dict[ObjectKey, None] = field(default_factory=dict)
    changed: set[ObjectKey] = field(default_factory=set)
    shared: dict[Reference, int] = field(default_factory=dict)
    held: Mapping[Resource, str] = field(default_factory=dict)
    missed: AbstractSet[ObjectKey] = frozenset()

    def add(self, other: Recorded) -> None:
        self.opened |= other.opened
        self.promoted |= other.promoted
        self.changed |= other.changed
        self.shared |= other.shared


@dataclass(slots=True)
class Preview:
    """What recording would lead to: states as they would be, changes, and deletions that would be held back.

    ``news``: why a key changes, in one word.
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
            if word := news(write.before, write.after):
                self.news[write.after.key] = word
            self.entries += write.changes

    @property
    def set_aside(self) -> list[ObjectKey]:
        """Keys whose endpoints would not be taken in."""
        return sorted(key for key, state in self.states.items() if state.set_aside)


@dataclass(slots=True)
class Chunk:
    """One transaction: states as they stand after it, its actions and audit entries.

    ``begins_whole``: no part of its first key is in an earlier one. ``left``: its last key, if more of it follows: as it stands then, and as it
    is to become. ``counts``: by namespace, how many more names its objects hold, places in lines and record sets; each is one more action.
    """

    token: str
    begins_whole: bool = True
    left: tuple[KeyState, KeyState] | None = None
    states: list[KeyState] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    clusters: set[str] = field(default_factory=set)
    committed: list[Callable[[], None]] = field(default_factory=list)
    size: int = 0
    places: dict[Key, int] = field(default_factory=dict)
    counts: Counter[Taken] = field(default_factory=Counter)

    def takes(self, actions: Sequence[Action], clusters: AbstractSet[str], room: int, size: int = 0) -> bool:
        """Whether these actions may join: they fit, and none names an item that is named already. A transaction may name an item once.

        Two updates of one item may still be merged (``_merge_counts``).
        """
        return not self.actions or (
            len(self.actions) + len(actions) + len(self.counts) <= room
            and self.size + size <= _ROOM_BYTES
            and len(self.clusters | clusters) <= MAX_CLUSTERS
            and all(self._joined(action) for action in actions if action.key in self.places)
        )

    def _joined(self, action: Action) -> Update | None:
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
class Closing:
    """What goes into the last transaction, and what to do once that has been written. ``clusters``: that it is written for."""

    actions: tuple[Action, ...] = ()
    committed: Callable[[], None] = lambda: None
    clusters: frozenset[str] = frozenset()


def no_closing(_token: str) -> Closing:
    """Nothing besides the keys."""
    return Closing()


def chunks_of(
    writes: Iterable[KeyWrite],
    table: StateTable,
    token: Callable[[], str],
    room: int,
    closing: Callable[[str], Closing] = no_closing,
    counted: Callable[[KeyState], Mapping[str, int]] = lambda _state: {},
) -> Iterator[Chunk]:
    """Cut writes into transactions of at most ``room`` actions, for at most ``MAX_CLUSTERS`` clusters each.

    Args:
        closing: actions of the last transaction, given its token: checkpoints, inflight.
        counted: how much a key takes of its namespace's limits.
    """
    chunk = Chunk(token())
    for write in writes:
        state, cluster = write.before, write.before.key.cluster
        stored, own = table.put(state, write.after, chunk.token)
        groups = write.steps(own, room - len(counted(state)))
        for number, group in enumerate(groups, 1):
            final = number == len(groups)
            after = write.after if final else _after_pieces(state, group)
            of_pieces = [action for piece in group for action in piece.actions]
            clusters = {cluster}.union(*(piece.clusters for piece in group))
            if len(groups) > 1:
                stored, own = table.put(state, after, chunk.token)
            more = _changes(counted(state), counted(after), write.after.key.namespace)
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
                # The next step changes the same item: it cannot share a transaction with this one.
                chunk.left = stored, write.after
                yield chunk
                chunk = Chunk(token(), begins_whole=False)
            state = stored
        for action in write.trailing:
            if not chunk.takes([action], {cluster}, room):
                yield chunk
                chunk = Chunk(token(), begins_whole=False)
            chunk.add([action], {cluster})
    last = closing(chunk.token)
    if not chunk.takes(last.actions, last.clusters, room):
        yield chunk
        chunk = Chunk(token())
        last = closing(chunk.token)
    chunk.add(last.actions, last.clusters)
    chunk.committed.append(last.committed)
    if chunk.actions:
        yield chunk


def _changes(before: Mapping[str, int], after: Mapping[str, int], namespace: str) -> Mapping[Taken, int]:
    return {(kind, namespace): count - before[kind] for kind, count in after.items() if count != before[kind]}


def write_full(chunks: Iterable[Chunk], write: Callable[[Chunk], None]) -> list[ObjectKey]:
    """Write all chunks but the last, which may have room for keys of the next section. Returns its keys: they are planned again with these.

    If the last one begins with the rest of a key, it is written too: a new plan would not know which part is written already.
    """
    last: Chunk | None = None
    for chunk in chunks:
        if last is not None:
            write(last)
        last = chunk
    if last is None:
        return []
    if last.begins_whole:
        return [state.key for state in last.states]
    write(last)
    return []


def weight_of(actions: Sequence[Action]) -> tuple[int, int]:
    """The number of these actions, and their bytes."""
    return len(actions), _bytes(actions)


def _bytes(actions: Iterable[Action]) -> int:
    return sum(item_bytes(action.item) for action in actions if isinstance(action, Put))


def _merge_counts(first: Action, then: Action) -> Update | None:
    """Merge two updates that only count waiters of a claim, if the second is conditional on the version that the first leaves behind.

    None: they cannot be merged. Else each key that waits for one name would need a transaction of its own.
    """
    if not (isinstance(first, Update) and isinstance(then, Update)) or first.set or then.set:
        return None
    match first.conditions, then.conditions:
        case (Equals("version", int(before)),), (Equals("version", int(after)),) if after == before + first.add.get(
            "version", 0
        ):
            added = {name: first.add.get(name, 0) + then.add.get(name, 0) for name in {**first.add, **then.add}}
            return replace(first, add=added)
    return None


def _after_pieces(state: KeyState, pieces: Iterable[Piece]) -> KeyState:
    """The state once these pieces are written."""
    for piece in pieces:
        state = piece.apply(state)
    return state


def record_entries(before: KeyState, after: KeyState, why: str) -> list[Entry]:
    """Audit entries of record sets that a key newly wants, or no longer wants."""
    entries: list[Entry] = []
    for key in sorted(before.intended.keys() | after.intended.keys()):
        old, new = before.intended.get(key), after.intended.get(key)
        if old != new:
            what = f"intended {key.label} in {key.zone_id}"
            entries.append(Entry(what, describe(old), describe(new), why, str(after.key)))
    return entries
