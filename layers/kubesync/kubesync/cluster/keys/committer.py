"""Writes changes to keys of one cluster, a few at a time. Between two sections the cluster's actor answers its zones.

    section ── states ── what each key becomes ── claims, upstreams ── writes ── transactions
    section ── the next keys ...
    section ── the last keys ... ── what ends the change, in the last transaction (I1)

A section writes everything that it plans. Keys that do not fill a transaction are planned again with the next section. A large key
that needs several transactions gives way to other keys between them, and is planned again from what is written of it. Other
clusters may change claims and upstreams at any time: these are written conditional on their version. Where that fails, this
one section is read and planned again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import batched, chain
from typing import Final

from kubesync.actors.actor import Steps
from kubesync.actors.scheduler import Lock
from kubesync.aws.dynamodb.store import UPSTREAMS, Action
from kubesync.aws.fencing.writer import FencedWriter, StaleStateError
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.aws.tables.of_clusters import Tables
from kubesync.aws.tables.state_codec import bounded
from kubesync.clock import Clock
from kubesync.cluster.claims.allowed_names import namespaces_apart
from kubesync.cluster.keys.alias_targets import Followers
from kubesync.cluster.keys.key_states import KEYS_AT_A_TIME, KeyStates, size_of
from kubesync.cluster.keys.key_writes import (
    MAX_CLUSTERS,
    Chunk,
    Closing,
    KeyWrite,
    Planned,
    Recorded,
    chunks_of,
    no_closing,
    write_full,
)
from kubesync.domain.errors import NotMasterError, StoreBusyError, StoreError
from kubesync.domain.large_keys import LARGE, LargeKeys
from kubesync.domain.merge import Believed
from kubesync.domain.objects import ObjectKey, Observation, Resource
from kubesync.domain.sources.registry import KINDS
from kubesync.domain.state import KeyState

_ATTEMPTS: Final = 8
_WRITE_SECONDS: Final = 2.0
_BUSY_SECONDS: Final = 0.5
_LARGE_SECONDS: Final = 0.05
_CORRECTED_AT_A_TIME: Final = 90
_MOST_TURNS: Final = 40
"""A large key gives way so often. Then it is written to its end, however often it changes meanwhile."""

type Pair = tuple[KeyState, KeyState]
"""A key as stored, and as it is seen now."""


def no_steps(*_: object) -> Steps[None]:
    """Nothing is to be done."""
    yield from ()


@dataclass(frozen=True, slots=True)
class Ending:
    """What ends a change.

    Args:
        closing: actions of the last transaction, given its token.
        due: whether they are written now, asked once everything is planned. Else a later change writes them.
        done: called once everything is written.
        midway: asked after each section, with the keys that are not recorded yet: what is to be written now. None: nothing.
    """

    closing: Callable[[str], Closing]
    due: Callable[[], bool] = lambda: True
    done: Callable[[], None] = lambda: None
    midway: Callable[[Iterable[ObjectKey]], Callable[[str], Closing] | None] = lambda _left: None


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of some keys of one cluster. Everything that is written about keys is one of these:

        a change comes from          see: the key ...             plan                         ending
        -------------------          ----------------             ----                         ------
        a window                     with the events              outputs, again               checkpoints
        complete lists               with the lists and events    outputs, again               checkpoints, identity
        names given to keys          as stored                    outputs, again               -
        resync, removal, recovery    with what the zone holds     outputs, again               -
        a zone, about its batch      with what landed or not      names let go                 -
        old tombstones               without them                 -                            -

    Args:
        keys: in the order in which they are planned: where several want one name, the oldest first.
        see: a stored key as it is to be seen now; None: leave it alone.
        plan: what to write for keys as seen. It does not trust what keys know of the given upstreams.
        listed: resources whose complete lists these keys are merged with.
        news: what was observed of a key, with which ``see`` merges it.
        outputs: outputs are planned. Else even a large key takes little memory: it waits for no turn, and no note comes first.
        more: called between two sections, with the number of keys before: may add keys behind them.
        written: called with what each section has recorded, also where it fails.
    """

    keys: Sequence[ObjectKey]
    see: Callable[[KeyState], KeyState | None]
    plan: Callable[[Sequence[Pair], AbstractSet[str]], Planned]
    ending: Ending | None = None
    listed: AbstractSet[Resource] = frozenset()
    news: Callable[[ObjectKey], Sequence[Observation]] = lambda _key: ()
    outputs: bool = True
    more: Callable[[int], Steps[None]] = no_steps
    written: Callable[[Recorded], None] = lambda _part: None


@dataclass(frozen=True, slots=True)
class Section:
    """Keys of a change that are planned in one step. ``large``: it is one key, larger than LARGE. ``end``: how many keys are before the next
    section. ``last``: none follow. ``again``: keys before it that are not written to their end. ``gives_way``: the large key may stop before
    its end; then it is among those of the next section."""

    keys: Sequence[ObjectKey]
    large: bool
    end: int
    last: bool
    again: Sequence[ObjectKey] = ()
    gives_way: bool = False


class Committer:
    """Writes the keys of one cluster.

    Args:
        fenced_here: clusters whose fence this master has raised.
        large: whoever plans a large key holds it: what that takes of the memory, it takes once. Nobody waits for it within a step.
        on_written: called with the audit entries of each transaction that was written.
    """

    def __init__(
        self,
        states: KeyStates,
        tables: Tables,
        fenced_writer: FencedWriter,
        clock: Clock,
        fenced_here: AbstractSet[str],
        large: Lock,
        on_written: Callable[[Sequence[Entry]], None] = lambda _entries: None,
    ) -> None:
        self.states = states
        self.tables = tables
        self.clock = clock
        self.fenced_here = fenced_here
        self.written_at = 0.0  # monotonic; of the last keys that were written
        self.followers = Followers()
        self._fenced_writer = fenced_writer
        self._large = large
        self._on_written = on_written

    def commit(self, change: Change, recorded: Recorded) -> Steps[None]:
        """Write a change. Adds what was written to ``recorded``, also if this raises.

        Raises:
            NotMasterError: another master writes by now.
            StaleStateError: the table kept changing: try again later.
        """
        aside = self.states.aside  # what was not taken in is in the list
        aside -= {key for key in aside if not change.listed.isdisjoint(KINDS[key.kind].others)}
        yield from self._by_sections(change, partial(self._record, change, recorded), note=True)

    def foresee(
        self, change: Change, found: Callable[[Sequence[Pair], Planned], None], *, note: bool = False
    ) -> Steps[None]:
        """Plan a change as ``commit`` does, without writing it. Calls ``found`` with each section. ``note``: write which large keys are planned."""

        def section(keys: Sequence[ObjectKey], _section: Section, untrusted: AbstractSet[str]) -> tuple[()]:
            found(*self._plan_pairs(change, keys, untrusted))
            return ()

        yield from self._by_sections(change, section, note=note)

    def _by_sections(
        self,
        change: Change,
        do: Callable[[Sequence[ObjectKey], Section, AbstractSet[str]], Sequence[ObjectKey]],
        *,
        note: bool,
    ) -> Steps[None]:
        at, rest, again, turns = 0, list[ObjectKey](), deque[ObjectKey](), Counter[ObjectKey]()
        turn = False  # of a key that gave way
        while True:
            section = yield from self._until_fresh(partial(self._next_section, change, at))
            if again and (turn or not section.keys):
                section = Section([again.popleft()], large=True, end=at, last=at == len(change.keys))
            turn = section.end != at
            section = replace(section, last=section.last and not again, again=[*again])
            large = section.keys[0] if section.large and change.outputs else None
            if large is not None:
                section = replace(section, gives_way=turns[large] < _MOST_TURNS)
            attempt = partial(do, [*dict.fromkeys((*rest, *section.keys))], section)
            rest = [*(yield from self._until_fresh(attempt, change, large, note=note))]
            if section.last and not rest:
                return
            at = section.end
            if large is not None:
                turns[large] = turns[large] + 1 if rest else 0
                again.extend(rest)
                rest = []
            yield 0.0
            yield from change.more(at)
            # One that has changed gets another turn, behind those that asked for its names before.
            waiting = {*change.keys[at:]} if again else set[ObjectKey]()
            again = deque(key for key in again if key not in waiting)

    def _next_section(self, change: Change, at: int, _untrusted: AbstractSet[str]) -> Section:
        """The keys from ``at`` on to plan in one step. A key larger than LARGE gets a section of its own (I4). Reads their sizes."""
        states, size = self.states, 0
        keys = change.keys[at : at + KEYS_AT_A_TIME]
        states.measure(keys)
        for count, key in enumerate(keys):
            of_key = size_of(each.value for each in states.taken_in(key, change.news(key)))
            # Else the list shows all of it.
            if change.listed.isdisjoint(KINDS[key.kind].others):
                of_key += states.size(key)
            if count and size + of_key > LARGE:
                return Section(keys[:count], size > LARGE, at + count, last=False)
            size += of_key
        return Section(keys, size > LARGE, at + len(keys), last=at + len(keys) == len(change.keys))

    def correct_counts(self) -> Steps[None]:
        """Compare the counts of names with the keys that a list has just read, and write those that are wrong."""
        yield from self._until_fresh(partial(self._write_actions, self.states.counts.corrections))
        self.states.counts.done()

    def write_counts(self) -> Steps[None]:
        """The session ends: write what counts have changed by less than a step."""
        yield from self._until_fresh(partial(self._write_actions, self.states.counts.rest))

    def begin_lists(self, believed: Mapping[Resource, Believed]) -> Steps[None]:
        """Note durably which deletions follow from lists, before any is recorded: else a session that dies forgets those it has recorded."""
        yield from self._until_fresh(partial(self._begin_lists, believed))

    def _begin_lists(self, believed: Mapping[Resource, Believed], _untrusted: AbstractSet[str]) -> None:
        name, writer, views = self.states.config.name, self._fenced_writer, self.states.listeners
        unknown = Checkpoint(0, 0, Basis(0, self.states.config.server, 0))
        stored = {resource: views[resource].checkpoint or unknown for resource in believed}
        noted = {
            resource: replace(before, believed=believed[resource], version=before.version + 1)
            for resource, before in stored.items()
            if before.believed != believed[resource]
        }
        if noted:
            token, until = writer.token(), self.clock.monotonic() + _WRITE_SECONDS
            put = self.tables.listeners.put_checkpoint
            writer.run([name], [put(name, r, new, token) for r, new in noted.items()], token, until_monotonic=until)
        for resource, new in noted.items():
            views[resource].checkpoint = new

    def _write_actions(self, made: Callable[[], Iterable[Action]], _untrusted: AbstractSet[str]) -> None:
        writer = self._fenced_writer
        for actions in batched(made(), _CORRECTED_AT_A_TIME):
            until = self.clock.monotonic() + _WRITE_SECONDS
            writer.run([self.states.config.name], list(actions), writer.token(), until_monotonic=until)

    def _until_fresh[R](
        self,
        attempt: Callable[[AbstractSet[str]], R],
        change: Change | None = None,
        large: ObjectKey | None = None,
        *,
        note: bool = True,
    ) -> Steps[R]:
        """Repeat an attempt, up to _ATTEMPTS times, while what it read turns out stale. ``large``: a key that has a section of its own."""
        untrusted: set[str] = set()
        failures = 0
        while True:
            while large is not None and not self._large.acquire(blocking=False):
                yield _LARGE_SECONDS
            try:
                if change is None or large is None:
                    return attempt(untrusted)
                return self._attempt(partial(attempt, untrusted), change, large, note=note)
            except StoreBusyError:
                yield _BUSY_SECONDS
            except StaleStateError as stale:
                # The answer to an earlier transaction was lost, or somebody wrote by hand: read again, plan again.
                self.states.forget()
                untrusted |= {place.partition for place in stale.places if place.table == UPSTREAMS}
                self._reload_checkpoints()
                failures += 1
                if failures == _ATTEMPTS:
                    raise

    def _attempt[R](self, attempt: Callable[[], R], change: Change, key: ObjectKey, *, note: bool) -> R:
        """Plan a large key, and release the lock of large keys. Writes a note before if the session may die of it.

        If earlier sessions have died of it, its endpoints are set aside.

        ``note``: False in a dry run, which writes nothing.
        """
        states = self.states
        try:
            seen = change.see(states.states([key])[key])
            size = 0 if seen is None else size_of(part.value for part in seen.parts.values())
            known = states.large.known(key.namespace, size) or states.config.deleting
            if aside := not known and states.large.set_aside(key.namespace, size, self.clock.epoch()):
                states.aside.add(key)
            if known or aside or not note:
                return attempt()
            self.note(states.large.begun(key.namespace, size))
            try:
                found = attempt()
                self.note(states.large.ended(well=True))
            except Exception:
                self._note_failure()
                raise
            return found
        finally:
            # Not before it is written: what is planned fills the memory until then, and there is room for one such plan.
            self._large.release()

    def note(self, large: LargeKeys) -> None:
        """Note durably which large keys are planned."""
        writer, name = self._fenced_writer, self.states.config.name
        token, until = writer.token(), self.clock.monotonic() + _WRITE_SECONDS
        writer.run([name], [self.tables.listeners.put_large(name, large, token)], token, until_monotonic=until)
        self.states.large = large

    def _note_failure(self) -> None:
        """The session has not died of this key, also where it ends because it has lost the lease."""
        self.states.large = self.states.large.ended(well=False)
        writer, name = self._fenced_writer, self.states.config.name
        token = writer.token()
        with suppress(NotMasterError, StoreError):
            writer.last_word(name, [self.tables.listeners.put_large(name, self.states.large, token)], token)

    def _record(
        self,
        change: Change,
        recorded: Recorded,
        keys: Sequence[ObjectKey],
        section: Section,
        untrusted: AbstractSet[str],
    ) -> Sequence[ObjectKey]:
        """Plan and write one section. Returns keys to plan again: small ones that did not fill a transaction, or a large one that gives way."""
        part, ending, began = Recorded(), change.ending, self.clock.monotonic()
        try:
            if not section.last:
                writes = self._plan(change, keys, part, untrusted)
                if section.large:
                    rest = self._write_large(part, self._chunks(writes), section, began)
                else:
                    rest = write_full(self._chunks(writes), partial(self._write, part))
                left = chain(rest, section.again, change.keys[section.end :])
                if ending is not None and (midway := ending.midway(left)) is not None:
                    for chunk in self._chunks((), midway):
                        self._write(part, chunk)
                return rest
            writes = self._plan(change, [*keys, *self._planned_too_early(change, keys)], part, untrusted)
            ends = ending is not None and ending.due()
            chunks = self._chunks(writes, ending.closing if ending is not None and ends else no_closing)
            if rest := self._write_large(part, chunks, section, began):
                return rest
        finally:
            recorded.add(part)
            change.written(part)
        if ending is not None:
            ending.done()
        return ()

    def _write_large(
        self, part: Recorded, chunks: Iterable[Chunk], section: Section, began: float
    ) -> Sequence[ObjectKey]:
        """Write all. Of a large key as much as takes the time of its plan: then it gives way, if what is left of it decides about no name
        that others may want. Returns it in this case."""
        planned = self.clock.monotonic()
        for chunk in chunks:
            self._write(part, chunk)
            if section.gives_way and chunk.left is not None and chunk.left[0].key == section.keys[0]:
                state, after = chunk.left
                names = (state.claims ^ after.claims) | (state.waits ^ after.waits)
                own = namespaces_apart(self.states.rules) and not self.states.counts.held(replace(state, claims=names))
                if (own or not names) and self.clock.monotonic() - planned >= planned - began:
                    return section.keys
        return ()

    def _planned_too_early(self, change: Change, keys: Sequence[ObjectKey]) -> list[ObjectKey]:
        """Keys that others planned before the lists were complete: until they are planned again, no checkpoint (I5)."""
        views = self.states.listeners
        provisional = {key for resource in change.listed for key in views[resource].provisional}
        return sorted(provisional.difference(keys))

    def _plan(
        self, change: Change, keys: Sequence[ObjectKey], recorded: Recorded, untrusted: AbstractSet[str]
    ) -> Sequence[KeyWrite]:
        pairs, planned = self._plan_pairs(change, keys, untrusted)
        # Open already, perhaps by a transaction whose answer was lost: the zones have to hear of it.
        written = {write.before.key for write in planned.writes}
        recorded.opened |= {before.key: None for before, _ in pairs if before.opened and before.key not in written}
        recorded.promoted |= dict.fromkeys(planned.promoted)
        recorded.shared |= planned.changed
        return planned.writes

    def _plan_pairs(
        self, change: Change, keys: Sequence[ObjectKey], untrusted: AbstractSet[str]
    ) -> tuple[Sequence[Pair], Planned]:
        states = self.states.states(keys)
        pairs = [(states[key], bounded(seen)) for key in keys if (seen := change.see(states[key])) is not None]
        return pairs, change.plan(pairs, untrusted)

    def _chunks(self, writes: Sequence[KeyWrite], closing: Callable[[str], Closing] = no_closing) -> Iterator[Chunk]:
        room = self._fenced_writer.room(MAX_CLUSTERS)
        counted = self.states.counts.taken
        return chunks_of(writes, self.tables.state, self._fenced_writer.token, room, closing, counted)

    def _write(self, recorded: Recorded, chunk: Chunk) -> None:
        actions = [*chunk.actions, *self.states.counts.added(chunk.counts)]
        fitting = self.states.counts.keys_with_room(chunk.counts)
        if chunk.entries:
            name, epoch, now = self.states.config.name, self._fenced_writer.epoch, self.clock.epoch()
            actions.append(self.tables.audit.changes(name, chunk.entries, epoch, now, chunk.token))
        try:
            until = self.clock.monotonic() + _WRITE_SECONDS
            self._fenced_writer.run(chunk.clusters, actions, chunk.token, until_monotonic=until)
        finally:  # also where nobody knows whether it has landed
            self.tables.named.written(actions)
        self.states.counts.written(chunk.counts, chunk.states)
        for state in chunk.states:
            self.states.remember(state)
        self.written_at = self.clock.monotonic()
        for committed in chunk.committed:
            committed()
        self._on_written(chunk.entries)
        recorded.promoted |= dict.fromkeys(fitting)
        recorded.changed |= {state.key for state in chunk.states}
        recorded.opened |= {state.key: None for state in chunk.states if state.opened is not None}

    def _reload_checkpoints(self) -> None:
        stored = self.tables.listeners.checkpoints(self.states.config.name)
        for resource, view in self.states.listeners.items():
            view.checkpoint = stored.get(resource)
