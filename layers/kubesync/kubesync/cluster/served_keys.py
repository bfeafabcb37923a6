"""The keys of one cluster, as the tasks of its actor share them.

- ``Published`` tells zones what keys want. A zone that was told of a key is told of each later change of the key's intent.
- ``PromotedKeys`` plans keys that were promoted. ``Readers`` plans keys that read a shared object that changed.

Words: an *intent* is what a key wants in one zone. A key is *promoted* when it has to be planned next because of another key: it was given a
name, may be given one, or follows a name that changed. A
*shared object* has no key of its own: plans of many keys read it. What is *recorded* is durable; then it has to be published.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Steps
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.key_writes import Recorded
from kubesync.cluster.keys.reconciler import Reconciler
from kubesync.cluster.ports import ClusterPorts
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Intent, changes_of, intent_of
from kubesync.domain.sources.registry import KINDS
from kubesync.domain.state import KeyState, Reference
from kubesync.log import logger
from kubesync.messages import Promoted, Publish

KEYS_AT_A_TIME: Final = 500
"""So many keys are published in one step, and so many intents in one message."""
_AT_A_TIME: Final = 200
"""So many promoted keys, or readers, are planned in one step."""


class Published:
    """Tells zones which keys of a cluster want changes, and remembers what each zone was told. This ``Task`` publishes what was recorded.

    ``served``: whether the cluster is served. False: its keys want nothing. None: it is not configured yet, and only batches of earlier
    sessions are closed.
    """

    def __init__(self, states: KeyStates, ports: ClusterPorts) -> None:
        self._states = states
        self._ports = ports
        # By key, the zones that know of changes that the key wants: they must learn when it wants others, or none.
        self._notified: dict[ObjectKey, frozenset[str]] = {}
        self._alike: dict[frozenset[str], frozenset[str]] = {}  # equal sets of zones are held in memory once
        self._zones: set[str] = set()  # zones that were told of any key
        self._listed: frozenset[Resource] = frozenset()  # the complete views that zones know of
        # To be published: the arguments of ``add``.
        self._recorded: deque[tuple[Recorded, float | None, bool]] = deque()
        self.served: bool | None = None

    def knows(self, key: ObjectKey) -> bool:
        """Whether a zone was notified that the key wants changes."""
        return key in self._notified

    # --- what was recorded ---

    def add(self, recorded: Recorded, since: float | None, *, of_list: bool) -> None:
        """Queue what was recorded for publishing. ``since``, ``of_list``: see ``Publish``."""
        self._recorded.append((recorded, since, of_list))

    def due_at(self) -> float:
        return AT_ONCE if self._recorded or self._states.listed != self._listed else ON_MESSAGE

    def steps(self) -> Steps[None]:
        """Tell zones which views are complete now, and publish the oldest of what was recorded: at most KEYS_AT_A_TIME keys. Raises StoreError.

        A key that is closed and that no zone knows of is not published: it wants nothing.
        """
        if self._states.listed != self._listed:
            self._listed = self._states.listed
            for zone_id in sorted(self._zones):
                self._ports.to_zone(zone_id, Publish(self._states.config.name, listed=self._listed))
        if self._recorded:
            recorded, since, of_list = self._recorded[0]
            notified = (key for key in sorted(recorded.written) if self.knows(key))
            keys = list(dict.fromkeys((*recorded.opened, *notified)))
            self.publish(self._states.states(keys[:KEYS_AT_A_TIME]).values(), since, of_list=of_list)
            # The rest is published by the next steps. Only after the last of it, clusters are told which keys to plan next.
            if rest := keys[KEYS_AT_A_TIME:]:
                self._recorded[0] = Recorded(dict.fromkeys(rest), recorded.to_plan_next), since, of_list
            else:
                self._recorded.popleft()
                self._promote(recorded)
        yield from ()

    def _promote(self, recorded: Recorded) -> None:
        """Tell clusters which of their keys to plan next. Call this only after zones know which key leaves the name (``zone.passing``)."""
        for key in recorded.to_plan_next:
            self._ports.to_cluster(key.cluster, Promoted((key,)))

    def publish(
        self, keys: Iterable[KeyState], since: float | None = None, *, inherited: bool = False, of_list: bool = False
    ) -> Sequence[ObjectKey]:
        """Tell zones what these keys, at most KEYS_AT_A_TIME, want there now: each zone where a key wants a change, or wanted one before.

        ``keys`` are taken one after the other: many large ones do not fit into memory together. ``since``, ``inherited``, ``of_list``: see
        ``Publish``. Returns the keys that want no change.
        """
        intents: dict[str, list[Intent]] = defaultdict(list)
        idle: list[ObjectKey] = []
        for state in keys:
            changes = () if self._wants_nothing else changes_of(state, self._states.config.policy)
            wanted = frozenset(change.key.zone_id for change in changes)
            for zone_id in sorted(wanted | self._notified.get(state.key, frozenset())):
                intents[zone_id].append(self._intent(state, zone_id))
            self._remember_zones(state.key, wanted)
            if not wanted:
                idle.append(state.key)
        name, listed = self._states.config.name, self._states.listed  # other zones learn of new views in the next step
        for zone_id, of_zone in intents.items():
            self._zones.add(zone_id)
            self._ports.to_zone(zone_id, Publish(name, tuple(of_zone), since, inherited, of_list, listed=listed))
        return idle

    def take_intents(self, keys: Iterable[ObjectKey], zone_id: str) -> tuple[Intent, ...]:
        """What these keys want in a zone now, for the answer to a message of this zone. Notes what the zone is told, so the caller has to send the
        answer."""
        intents: list[Intent] = []
        for key, state in self._states.states(keys).items():
            intents.append(intent := self._intent(state, zone_id))
            notified = self._notified.get(key, frozenset())
            self._remember_zones(key, notified | {zone_id} if intent.changes else notified - {zone_id})
        return tuple(intents)

    def withdraw(self) -> None:
        """Let zones drop all keys of the cluster, until its open keys are taken up again: another configuration begins, the same one begins again, or
        none does.

        What is not published yet is dropped. But clusters are still told which keys to plan next: otherwise only the next session would find the
        marks of these keys.
        """
        for zone_id in sorted(self._zones):
            self._ports.to_zone(zone_id, Publish(self._states.config.name, restart=True, listed=self._listed))
        self._notified.clear()
        while self._recorded:
            self._promote(self._recorded.popleft()[0])

    @property
    def _wants_nothing(self) -> bool:
        """Whether the cluster's keys want no change now, because the cluster is not served or is paused."""
        return self.served is False or self._states.config.paused

    def _intent(self, state: KeyState, zone_id: str) -> Intent:
        """What a key wants in a zone now, with the resources whose views must be complete before it may be applied (I5)."""
        config = self._states.config
        if self._wants_nothing:
            return Intent(state.key)
        needs = KINDS[state.key.kind].of_records(state).intersection(config.resources)
        return intent_of(state, zone_id, config.policy, needs)

    def _remember_zones(self, key: ObjectKey, zones: frozenset[str]) -> None:
        """Remember which zones know of changes that a key wants. None of them: forget the key."""
        if zones:
            self._notified[key] = self._alike.setdefault(zones, zones)
        else:
            self._notified.pop(key, None)


class ServedKeys:
    """What the tasks of a cluster's actor share. Only the actor uses it. ``published``, ``promoted`` and ``readers`` are tasks, too.

    ``commands``: messages of the session and of operations that wait for the actor. Only it changes them.
    """

    def __init__(self, config: ClusterConfig, ports: ClusterPorts) -> None:
        self.ports = ports
        self.commands: deque[object] = deque()
        clock = ports.scheduler
        self.states = KeyStates(config, ports.tables, ports.cached_keys, clock.epoch_seconds, ports.pause_seconds)
        self.committer = Committer(self.states, ports.fenced_writer, clock, ports.large, self._show_changes)
        self.committer.dependents.tell = ports.to_cluster
        self.reconciler = Reconciler(self.committer, ports.connector)
        self.published = Published(self.states, ports)
        self.promoted = PromotedKeys(self)
        self.readers = Readers(self)

    def carry_out(self, work: Callable[[Recorded], Steps[None]]) -> Steps[None]:
        """Do this, and queue what has to follow from what it writes. ``work`` adds what it writes to the ``Recorded`` that it gets.

        Also if it fails: its next try finds stored what this one has written, so it would see no change, and nothing would follow.
        """
        recorded = Recorded()
        try:
            yield from work(recorded)
        finally:
            self.follow_up(recorded)

    def follow_up(self, recorded: Recorded, since: float | None = None, *, of_list: bool = False) -> None:
        """Queue what has to follow: publish changed keys, then tell clusters of keys to plan next; plan readers of shared objects.

        Args:
            since: when (monotonic) the first event of the recorded keys was read.
            of_list: see ``Publish``.
        """
        self.published.add(recorded, since, of_list=of_list)
        self.readers.add(recorded.changed_objects)

    def _show_changes(self, entries: Sequence[Entry]) -> None:
        """Show written changes as progress. An error is only logged, because the changes are durable already."""
        if not entries:
            return
        try:
            self.ports.progress("changes", {"cluster": self.states.config.name, "entries": entries})
        except Exception:  # an error of what people see must not fail the commit
            logger.exception("changes could not be shown", cluster=self.states.config.name)


class PromotedKeys:
    """Plans keys that were promoted, or whose view is complete now, some at a time.

    A key whose main object is not listed yet cannot be planned completely. It is planned again once the object's resource is listed, and its
    durable mark stays until then.
    """

    def __init__(self, served: ServedKeys) -> None:
        self._served = served
        self._keys: dict[ObjectKey, None] = {}  # to plan, in this order
        self._early: set[ObjectKey] = set()  # keys whose main objects were not listed when they were planned

    def add(self, keys: Collection[ObjectKey]) -> None:
        self._keys |= dict.fromkeys(keys)

    def due_at(self) -> float:
        return AT_ONCE if self._keys or any(map(self._served.states.plannable, self._early)) else ON_MESSAGE

    def steps(self) -> Steps[None]:
        """Plan some keys: first those that were promoted, then those that were planned before their main objects were listed, if these are listed
        by now. After an error they are planned again."""
        early = {key for key in self._early if self._served.states.plannable(key)}
        waiting, self._early = [*self._keys, *early], self._early - early
        keys, self._keys = waiting[:_AT_A_TIME], dict.fromkeys(waiting[_AT_A_TIME:])
        try:
            yield from self.plan(keys, "a name was let go")
        except BaseException:
            self.add(keys)
            raise

    def plan(self, keys: Collection[ObjectKey], why: str) -> Steps[None]:
        """Plan keys although nothing new was seen of their objects, and queue what follows. ``why``: for the audit."""
        self._early |= {key for key in keys if not self._served.states.plannable(key)}
        yield from self._served.carry_out(partial(self._served.reconciler.replan, keys, why))


@dataclass(slots=True, eq=False)
class _Changed:
    """A shared object that changed, and how far the planning of its readers is.

    ``number``: of its durable mark. ``left``: its readers that are not planned yet; None: they are not read yet. ``provisional``: readers that
    were planned while a view was not complete (``KeyStates.provisional``): they are planned again elsewhere. Only the last one is checked; if
    its plan is final, the next one is.
    """

    number: int
    left: list[ObjectKey] | None = None
    provisional: list[ObjectKey] = field(default_factory=list)


class Readers:
    """Plans the readers of shared objects that changed, some at a time. If an object changes again, all its readers are planned again.

    The durable mark of an object, "plan its readers", stays until the plans of all of them are final: else the change is forgotten if the
    session dies (I1).
    """

    def __init__(self, served: ServedKeys) -> None:
        self._served = served
        self._changed: dict[Reference, _Changed] = {}

    def add(self, shared: Mapping[Reference, int]) -> None:
        """Queue shared objects that changed, each with the number of its mark. An object that is queued already begins again."""
        self._changed |= {reference: _Changed(number) for reference, number in shared.items()}

    def forget(self) -> None:
        """Drop everything, because the durable marks will be read again."""
        self._changed.clear()

    def due_at(self) -> float:
        return AT_ONCE if self._next() is not None else ON_MESSAGE

    def _next(self) -> Reference | None:
        """Return the first object for which there is something to do now. None: there is none.

        ``left``: readers that are not planned yet (None: not read yet). ``provisional``: readers that were planned before all was known. See
        ``_Changed``.

        left         provisional                         to do
        ----         -----------                         -----
        None, some   any                                 plan readers
        empty        empty, or the last one is final     perhaps the mark can be removed
        empty        the last one is still provisional   nothing until it is planned again
        """
        states = self._served.states
        for reference, changed in self._changed.items():
            if changed.left != [] or not changed.provisional or not states.provisional(changed.provisional[-1]):
                return reference
        return None

    def steps(self) -> Steps[None]:
        """Plan some readers of one object. Once the plans of all its readers are final, remove its mark."""
        reference = self._next()
        assert reference is not None, "only where it is due"
        changed, states, table = self._changed[reference], self._served.states, self._served.states.tables.state
        name = states.config.name
        if changed.left is None:
            changed.left = sorted(table.readers(name, reference))
        if some := changed.left[:_AT_A_TIME]:
            yield from self._served.promoted.plan(some, f"{reference.kind} {reference.name} changed")
            if self._changed.get(reference) is not changed:
                return  # meanwhile the object changed again, or everything was dropped (``forget``)
            changed.left = changed.left[_AT_A_TIME:]
            changed.provisional += filter(states.provisional, some)
        while changed.provisional and not states.provisional(changed.provisional[-1]):
            changed.provisional.pop()  # its plan is final: it was planned again when the rest was known
        if not changed.left and not changed.provisional:
            # Stale: an earlier try has removed the mark, and its answer was lost.
            with suppress(StaleStateError):
                self._served.ports.write(name, [table.unmark_changed(name, reference, changed.number)])
            del self._changed[reference]
