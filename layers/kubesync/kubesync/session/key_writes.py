"""Writes of service keys, cut into transactions: keys whole where they fit, in safe steps where they do not.

A key whose actions exceed one transaction is written in steps: claims and upstreams first, and last of all its parts and
intended record sets. A crash in between loses nothing: until the parts are stored, the events that led here are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kubesync.aws.audit import Entry
from kubesync.aws.dynamodb_values import item_bytes
from kubesync.aws.state import StateTable
from kubesync.aws.store import Action, Put
from kubesync.domain.state import KeyState

# A key's own item, one more slice of it, and its open mark come on top of the actions of its pieces.
_OWN_ACTIONS = 3
# Below the 4 MB of a transaction by what checks, an audit item and checkpoints take.
_ROOM_BYTES = 3_500_000


@dataclass(frozen=True, slots=True)
class Piece:
    """Actions that belong together, and what they make of the key's state. ``clusters``: others that they write for."""

    actions: tuple[Action, ...]
    apply: Callable[[KeyState], KeyState]
    clusters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class KeyWrite:
    """A key from ``before`` to ``after``, by way of pieces that may be written ahead of it."""

    before: KeyState
    after: KeyState
    pieces: tuple[Piece, ...] = ()
    entries: tuple[Entry, ...] = ()

    def steps(self, room: int) -> list[list[Piece]]:
        """Pieces in groups that fit one transaction each; the key's final state goes with the last."""
        own = _OWN_ACTIONS + self.before.slices
        groups: list[list[Piece]] = [[]]
        count, size = own, 0
        for piece in self.pieces:
            weight = _bytes(piece.actions)
            if groups[-1] and (count + len(piece.actions) > room or size + weight > _ROOM_BYTES):
                groups.append([])
                count, size = own, 0
            size += weight
            groups[-1].append(piece)
            count += len(piece.actions)
        return groups


@dataclass(slots=True)
class Chunk:
    """One transaction: states as they stand after it, its actions and audit entries."""

    token: str
    states: list[KeyState] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    entries: list[tuple[str, Entry]] = field(default_factory=list)
    clusters: set[str] = field(default_factory=set)
    committed: list[Callable[[], None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Closing:
    """What goes into the last transaction, and what to do once that has been written."""

    actions: tuple[Action, ...] = ()
    committed: Callable[[], None] = lambda: None


def chunks_of(
    writes: Iterable[KeyWrite],
    table: StateTable,
    token: Callable[[], str],
    room: int,
    closing: Callable[[str], Closing] = lambda _token: Closing(),
) -> Iterator[Chunk]:
    """Cut writes into transactions of at most ``room`` actions.

    Args:
        closing: actions of the last transaction, given its token: checkpoints, inflight.
    """
    chunk, size = Chunk(token()), 0
    for write in writes:
        state = write.before
        groups = write.steps(room)
        for number, group in enumerate(groups, 1):
            final = number == len(groups)
            after = write.after if final else _applied(state, group)
            of_pieces = [action for piece in group for action in piece.actions]
            stored, own = table.put(state, after, chunk.token)
            added = _bytes([*of_pieces, *own])
            full = len(chunk.actions) + len(of_pieces) + len(own) > room or size + added > _ROOM_BYTES
            # One transaction may name an item once: a claim that one key lets go and another gives up takes two.
            again = not {action.key for action in chunk.actions}.isdisjoint(a.key for a in [*of_pieces, *own])
            if chunk.actions and (full or again):
                yield chunk
                chunk, size = Chunk(token()), 0
                stored, own = table.put(state, after, chunk.token)
            size += added
            chunk.actions += [*of_pieces, *own]
            chunk.states.append(stored)
            chunk.clusters |= {stored.key.cluster}.union(*(piece.clusters for piece in group))
            if final:
                chunk.entries += [(stored.key.cluster, entry) for entry in write.entries]
            else:
                # The next step changes the same item: it cannot share a transaction with this one.
                yield chunk
                chunk, size = Chunk(token()), 0
            state = stored
    last = closing(chunk.token)
    if chunk.actions and len(chunk.actions) + len(last.actions) > room:
        yield chunk
        chunk = Chunk(token())
        last = closing(chunk.token)
    chunk.actions += last.actions
    chunk.committed.append(last.committed)
    if chunk.actions:
        yield chunk


def _bytes(actions: Iterable[Action]) -> int:
    return sum(item_bytes(action.item) for action in actions if isinstance(action, Put))


def _applied(state: KeyState, pieces: Iterable[Piece]) -> KeyState:
    for piece in pieces:
        state = piece.apply(state)
    return state
