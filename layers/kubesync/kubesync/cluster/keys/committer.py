"""Writes changes to keys of one cluster, a few at a time. Between two sections the cluster's actor answers its zones.

    section ── states ── what each key becomes ── claims, upstreams ── writes ── transactions
    section ── the next keys ...
    section ── the last keys ... ── the ending of the change, in the last transaction (I1)

A section writes what it plans, except keys that do not fill a transaction: these are planned again with the next section. A large key
that needs several transactions gives way to other keys between them. Later it is planned again from what is written of it. Other
clusters may change claims and upstreams, so these are written conditional on their version. If that fails, the section is planned again.

If sessions die of the plan of a large key, its endpoints are *set aside*: they are not taken in, everything else is (``domain.large_keys``).
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import batched
from typing import Final

from kubesync.actors.actor import Steps
from kubesync.actors.scheduler import Lock, Scheduler
from kubesync.aws.dynamodb.store import UPSTREAMS, Action
from kubesync.aws.fencing.writer import FencedWriter, StaleStateError
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.aws.tables.state_codec import bounded
from kubesync.cluster.claims.allowed_names import namespaces_apart
from kubesync.cluster.claims.dependents import Dependents
from kubesync.cluster.keys.key_states import KEYS_AT_A_TIME, KeyStates, size_of
from kubesync.cluster.keys.key_writes import MAX_CLUSTERS, Chunk, Ending, KeyWrite, Planned, Recorded, chunks_of
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
"""A large key gives way at most so often. Then all of it is written, however often it changes meanwhile."""

type Pair = tuple[KeyState, KeyState]
"""A key as stored, and the key as it is seen now."""


def no_steps(*_: object) -> Steps[None]:
    """Do nothing."""
    yield from ()


@dataclass(frozen=True, slots=True)
class Change:
    """What to do with some keys of one cluster. Whatever is written about keys is written as a ``Change``:

        a change comes from          ``see`` returns the key ...    ``plan`` plans               ``ending``
        -------------------          ---------------------------    --------------               -----------
        a window                     with the events                outputs                      checkpoints
        complete lists               with the lists and events      outputs                      checkpoints, identity
        names given to keys          as stored                      outputs                      -
        resync, removal, recovery    with what the zone holds       outputs                      -
        a zone, about its batch      with what landed or not        claims that are let go       -
        old tombstones               without the tombstones         -                            -

    Args:
        keys: in the order of planning. The first of several keys that want one name gets it, so the oldest key comes first.
        see: returns a stored key as it is seen now; None: leave the key alone.
        plan: returns what to write for pairs of keys. It must not trust what keys know of ``Committer.untrusted`` upstreams.
        ending: makes the further actions of the last transaction of a section, from its token and the keys that are not recorded with it.
        listed: resources whose complete lists these keys are merged with.
        observations: returns the observations of a key, which ``see`` merges into it.
        outputs: whether outputs are planned. Otherwise even a large key takes little memory, and needs neither the lock of large keys nor a note.
        more: called between two sections, with the number of keys before them. May add keys behind these.
        written: called with what each section has recorded, also if the section fails.
    """

    keys: Sequence[ObjectKey]
    see: Callable[[KeyState], KeyState | None]
    plan: Callable[[Sequence[Pair]], Planned]
    ending: Callable[[str, Sequence[ObjectKey]], Ending] = lambda _token, _left: Ending()
    listed: AbstractSet[Resource] = frozenset()
    observations: Callable[[ObjectKey], Sequence[Observation]] = lambda _key: ()
    outputs: bool = True
    more: Callable[[int], Steps[None]] = no_steps
    written: Callable[[Recorded], None] = lambda _part: None


@dataclass(frozen=True, slots=True)
class Section:
    """Keys of a change that are planned in one step. ``large``: the key, larger than LARGE, whose outputs are planned. ``end``: how many keys of
    the change there are up to the end of this section. ``left``: the keys that are recorded later. ``may_stop``: the large key may give way."""

    keys: Sequence[ObjectKey]
    large: ObjectKey | None
    end: int
    left: Sequence[ObjectKey] = ()
    may_stop: bool = False


class Committer:
    """Writes the keys of one cluster.

    Args:
        large: the lock of large keys, one for all clusters: the memory has room for one plan of a large key. A step never blocks on it.
        on_written: called with the audit entries of each transaction that was written.
    """

    def __init__(
        self,
        states: KeyStates,
        fenced_writer: FencedWriter,
        clock: Scheduler,
        large: Lock,
        on_written: Callable[[Sequence[Entry]], None] = lambda _entries: None,
    ) -> None:
        self.states = states
        self.clock = clock
        # Upstreams whose stored versions turned out to be others than the keys know. Empty again once what was planned is written.
        self.untrusted: set[str] = set()
        self.written_at = 0.0  # when (monotonic) keys were written last
        self.dependents = Dependents()
        self._fenced_writer = fenced_writer
        self._large = large
        self._on_written = on_written

    def commit(self, change: Change, recorded: Recorded) -> Steps[None]:
        """Write a change. Adds what was written to ``recorded``, also if this raises.

        Raises:
            NotMasterError: another master writes by now.
            StaleStateError: the table kept changing: try again later.
        """
        # A complete list shows all endpoints again, so those that were set aside before are tried once more. Changes ``states.aside`` itself.
        aside = self.states.aside
        aside -= {key for key in aside if not change.listed.isdisjoint(KINDS[key.kind].others)}
        yield from self._by_sections(change, partial(self._record, change, recorded), note=True)

    def foresee(
        self, change: Change, found: Callable[[Sequence[Pair], Planned], None], *, note: bool = False
    ) -> Steps[None]:
        """Plan a change as ``commit`` does, without writing it. Calls ``found`` with each section. ``note``: write which large keys are planned."""

        def plan(section: Section) -> tuple[()]:
            found(*self._plan_pairs(change, section.keys))
            return ()

        yield from self._by_sections(change, plan, note=note)

    def _by_sections(self, change: Change, do: Callable[[Section], Sequence[ObjectKey]], *, note: bool) -> Steps[None]:
        """Cut a change into sections, and call ``do`` with one after the other. ``do`` returns keys that it has not written to their end:

        - small keys that did not fill a transaction: they join the next section (``unfilled``);
        - a large key that gave way to other keys: it gets a section of its own again, later (``unfinished``).

        As long as there are unfinished keys, their sections alternate with sections of other keys, so that neither wait for long.

        ``at``: how many keys of the change were taken into sections. ``turns``: by large key, how often it gave way. ``others_next``: the next
        section is of other keys, because the last one was of an unfinished key or no other keys were left. ``note``: see ``_attempt_large``.
        """
        at, others_next, turns = 0, True, Counter[ObjectKey]()
        unfilled, unfinished = list[ObjectKey](), deque[ObjectKey]()
        while True:
            section = yield from self._until_fresh(partial(self._next_section, change, at))
            # 1. It is the turn of an unfinished key, or no other keys are left. Then ``at`` stays: the section of other keys comes after it.
            if unfinished and not (others_next and section.keys):
                section = Section([unfinished[0]], unfinished.popleft(), end=at)
            others_next = section.end == at
            at, large = section.end, section.large
            keys, left = [*dict.fromkeys((*unfilled, *section.keys))], [*unfinished, *change.keys[at:]]
            # 2. Plan and write the section.
            may_stop = large is not None and turns[large] < _MOST_TURNS
            attempt: Callable[[], Sequence[ObjectKey]] = partial(do, Section(keys, large, at, left, may_stop))
            if large is not None:
                attempt = partial(self._attempt_large, attempt, change, large, note=note)
            rest = yield from self._until_fresh(attempt, large=large is not None)
            if not (left or rest):
                return
            # 3. What it left goes on later. Meanwhile others may add keys to the change.
            unfilled = [*rest] if large is None else []
            if large is not None:
                turns[large] = turns[large] + 1 if rest else 0
                unfinished.extend(rest)
            yield 0.0
            yield from change.more(at)
            # An unfinished key that has changed is again among the keys to come: keys that want its names may stand before it there.
            to_come = {*change.keys[at:]} if unfinished else set[ObjectKey]()
            unfinished = deque(key for key in unfinished if key not in to_come)

    def _next_section(self, change: Change, at: int) -> Section:
        """The next section: keys from number ``at`` on. A key larger than LARGE gets a section of its own (I4). Reads unknown sizes."""
        states, size = self.states, 0
        keys = change.keys[at : at + KEYS_AT_A_TIME]
        states.measure(keys)
        for count, key in enumerate(keys):
            of_key = size_of(each.value for each in states.taken_in(key, change.observations(key)))
            # If the key's endpoints were listed, its observations are all of them: what is stored does not add to the size.
            if change.listed.isdisjoint(KINDS[key.kind].others):
                of_key += states.size(key)
            if count and size + of_key > LARGE:
                keys = keys[:count]
                break
            size += of_key
        return Section(keys, keys[0] if change.outputs and size > LARGE else None, at + len(keys))

    def write_counts(self, made: Callable[[], Iterable[Action]]) -> Steps[None]:
        """Write how many names, places in queues and record sets namespaces have (``name_counts``), some at a time.

        ``made``: ``NameCounts.corrections`` after a complete list, ``NameCounts.rest`` at the end of the session. Called again if a write fails.
        Corrections are compared anew. ``rest`` gives each count out once: a count whose write failed may have landed, and written again it would
        count twice. The next complete list corrects what is lost.
        """

        def write() -> None:
            for actions in batched(made(), _CORRECTED_AT_A_TIME):
                self._run(actions, self._fenced_writer.token())

        yield from self._until_fresh(write)

    def begin_lists(self, believed: Mapping[Resource, Believed]) -> Steps[None]:
        """Note durably how many deletions of lists are believed (I5), before any is recorded: else a session that dies forgets them."""
        yield from self._until_fresh(partial(self._begin_lists, believed))

    def _begin_lists(self, believed: Mapping[Resource, Believed]) -> None:
        """Write the checkpoints of these listeners again, each with its new ``believed`` and otherwise as it is stored, if that changes it."""
        name, views = self.states.config.name, self.states.listeners
        unknown = Checkpoint(0, 0, Basis(0, self.states.config.server, 0))
        stored = {resource: views[resource].checkpoint or unknown for resource in believed}
        noted = {
            resource: replace(before, believed=believed[resource], version=before.version + 1)
            for resource, before in stored.items()
            if before.believed != believed[resource]
        }
        if noted:
            token, put = self._fenced_writer.token(), self.states.tables.listeners.put_checkpoint
            self._run([put(name, r, new, token) for r, new in noted.items()], token)
        for resource, new in noted.items():
            views[resource].checkpoint = new

    def _run(self, actions: Sequence[Action], token: str) -> None:
        """Write actions that only this cluster's fence has to protect."""
        until = self.clock.monotonic() + _WRITE_SECONDS
        self._fenced_writer.run([self.states.config.name], actions, token, until_monotonic=until)

    def _until_fresh[R](self, attempt: Callable[[], R], *, large: bool = False) -> Steps[R]:
        """Repeat an attempt while DynamoDB is busy, and up to _ATTEMPTS times while what was read turns out stale. ``large``: wait for the
        lock of large keys. The attempt releases it (``_attempt_large``)."""
        failures = 0
        while True:
            while large and not self._large.acquire(blocking=False):
                yield _LARGE_SECONDS
            try:
                found = attempt()
            except StoreBusyError:
                yield _BUSY_SECONDS
            except StaleStateError as stale:
                # The answer to an earlier transaction was lost, another cluster changed a claim, or a person wrote by hand.
                self.states.forget()
                self.untrusted |= {place.partition for place in stale.places if place.table == UPSTREAMS}
                stored = self.states.tables.listeners.checkpoints(self.states.config.name)
                for resource, view in self.states.listeners.items():
                    view.checkpoint = stored.get(resource)
                failures += 1
                if failures == _ATTEMPTS:
                    raise
            else:
                self.untrusted.clear()
                return found

    def _attempt_large[R](self, attempt: Callable[[], R], change: Change, key: ObjectKey, *, note: bool) -> R:
        """Plan a large key (``attempt``), and then release the lock of large keys, which ``_until_fresh`` has taken.

        the key                                            what is planned          a note before it (``LargeKeys``)
        -------                                            ---------------          --------------------------------
        is not so large, or as large a one went well       the key                  no
        is of a cluster that is being deleted              that its outputs go      no
        too many sessions have died of such a key          all but its endpoints    no: its endpoints are *set aside*
        else                                               the key                  yes: if the session dies, the next one knows of which key

        ``note``: False: a dry run, which writes nothing.
        """
        states = self.states
        try:
            seen = change.see(states.states([key])[key])
            size = 0 if seen is None else size_of(part.value for part in seen.parts.values())
            known = states.large.needs_no_note(key.namespace, size) or states.config.deleting
            # ``known``: the session will not die of it.
            if aside := not known and states.large.must_set_aside(key.namespace, size, self.clock.epoch_seconds()):
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
            # Only here, after the plan is written: until then it fills the memory.
            self._large.release()

    def note(self, large: LargeKeys) -> None:
        """Store what is known of large keys: which one is being planned now, and how earlier plans ended."""
        token = self._fenced_writer.token()
        self._run([self.states.tables.listeners.put_large(self.states.config.name, large, token)], token)
        self.states.large = large

    def _note_failure(self) -> None:
        """Note that the plan of a large key failed, but that the session did not die of it. Also written after the lease is lost."""
        self.states.large = self.states.large.ended(well=False)
        writer, name = self._fenced_writer, self.states.config.name
        token = writer.token()
        action = self.states.tables.listeners.put_large(name, self.states.large, token)
        with suppress(NotMasterError, StoreError):
            writer.write_without_lease_check(name, [action], token)

    def _record(self, change: Change, recorded: Recorded, section: Section) -> Sequence[ObjectKey]:
        """Plan and write one section: the ``do`` of ``_by_sections``. Returns keys that are not written to their end."""
        part, keys, began = Recorded(), section.keys, self.clock.monotonic()
        try:
            if not section.left:  # the last section: with it the checkpoints become valid
                keys = [*keys, *self._planned_too_early(change, keys)]
            chunks = self._chunks(self._plan(change, keys, part), lambda token: change.ending(token, section.left))
            return self._write_chunks(part, chunks, section, began)
        finally:
            recorded.add(part)
            change.written(part)

    def _write_chunks(
        self, part: Recorded, chunks: Iterable[Chunk], section: Section, began: float
    ) -> Sequence[ObjectKey]:
        """Write chunks. Returns keys that it has not written to their end.

        Small keys of the last chunk are returned if it may have room for keys of the next section. A large key gives way once writing has
        taken as long as planning did, but not while the rest of it changes claims that other namespaces may want.
        """
        planned = self.clock.monotonic()  # from ``began`` to now the section was planned
        for chunk in chunks:
            if section.large is None and section.left and chunk.has_room:
                return [state.key for state in chunk.states]
            self._write(part, chunk)
            if section.may_stop and chunk.left is not None and chunk.left[0].key == section.large:
                may_stop = not self._others_may_want(*chunk.left)
                if may_stop and self.clock.monotonic() - planned >= planned - began:
                    return [section.large]
        return ()

    def _others_may_want(self, state: KeyState, after: KeyState) -> bool:
        """Whether a key that comes from one state to the other changes claims that other namespaces may want, too.

        If namespaces are apart, only names that count for the limit of a namespace can be wanted by others: not a key's own name.
        """
        names = (state.claims ^ after.claims) | (state.waits ^ after.waits)
        if not names:
            return False
        return not namespaces_apart(self.states.rules) or bool(
            self.states.counts.counted_names(replace(state, claims=names))
        )

    def _planned_too_early(self, change: Change, keys: Sequence[ObjectKey]) -> list[ObjectKey]:
        """Keys that other changes planned before the lists were complete. No checkpoint is valid before they are planned again (I5)."""
        views = self.states.listeners
        provisional = {key for resource in change.listed for key in views[resource].provisional}
        return sorted(provisional.difference(keys))

    def _plan(self, change: Change, keys: Sequence[ObjectKey], recorded: Recorded) -> Sequence[KeyWrite]:
        """Plan keys. Returns the writes. Adds to ``recorded`` what has to follow also where nothing is written."""
        pairs, planned = self._plan_pairs(change, keys)
        # These keys are open already, perhaps by a transaction whose answer was lost. Their zones must still be told.
        written = {write.before.key for write in planned.writes}
        recorded.opened |= {before.key: None for before, _ in pairs if before.opened and before.key not in written}
        recorded.to_plan_next |= dict.fromkeys(planned.to_plan_next)
        recorded.changed_objects |= planned.changed_objects
        return planned.writes

    def _plan_pairs(self, change: Change, keys: Sequence[ObjectKey]) -> tuple[Sequence[Pair], Planned]:
        """Read keys, and let the change see and plan them. Of a key that fits no transaction, the largest objects are left out (``bounded``)."""
        states = self.states.states(keys)
        pairs = [(states[key], bounded(seen)) for key in keys if (seen := change.see(states[key])) is not None]
        return pairs, change.plan(pairs)

    def _chunks(self, writes: Sequence[KeyWrite], ending: Callable[[str], Ending]) -> Iterator[Chunk]:
        room = self._fenced_writer.room(MAX_CLUSTERS)
        counted = self.states.counts.usage
        return chunks_of(writes, self.states.tables.state, self._fenced_writer.token, room, ending, counted)

    def _write(self, recorded: Recorded, chunk: Chunk) -> None:
        """Write one transaction, with its counts and audit entries, and take over what it changed: caches, counts, ``recorded``."""
        actions = [*chunk.actions, *self.states.counts.additions(chunk.counts)]
        # Keys that waited until their namespaces have room, and may fit now: they are planned next.
        fitting = self.states.counts.keys_with_room(chunk.counts, chunk.states)
        if chunk.entries:
            name, epoch, now = self.states.config.name, self._fenced_writer.epoch, self.clock.epoch_seconds()
            actions.append(self.states.tables.audit.changes(name, chunk.entries, epoch, now, chunk.token))
        try:
            until = self.clock.monotonic() + _WRITE_SECONDS
            self._fenced_writer.run(chunk.clusters, actions, chunk.token, until_monotonic=until)
        finally:  # also if it is not known whether the transaction landed
            self.states.tables.named.wake_composer(actions)
        self.states.counts.written(chunk.counts, chunk.states)
        for state in chunk.states:
            self.states.remember(state)
        self.written_at = self.clock.monotonic()
        chunk.committed()
        self._on_written(chunk.entries)
        recorded.to_plan_next |= dict.fromkeys(fitting)
        recorded.written |= {state.key for state in chunk.states}
        recorded.opened |= {state.key: None for state in chunk.states if state.opened is not None}
