"""The keys of one cluster, as the tasks of its actor share them.

- ``Published`` tells zones what keys want. A zone that was told of a key is told of each later change of the key's intent.
- ``PromotedKeys`` plans keys that were given a name. ``Readers`` plans keys that read a shared object that changed.
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
        # By key, the zones that know of changes that the key wants.
        self._notified: dict[ObjectKey, frozenset[str]] = {}
        self._alike: dict[frozenset[str], frozenset[str]] = {}  # equal sets of zones are held in memory once
        self._zones: set[str] = set()  # zones that were told of any key
        self._listed: frozenset[Resource] = frozenset()  # the complete views that zones know of
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
        """Tell zones which views are complete now, and publish the keys that were recorded first. Raises StoreError."""
        if self._states.listed != self._listed:
            self._listed = self._states.listed
            for zone_id in sorted(self._zones):
                self._ports.to_zone(zone_id, Publish(self._states.config.name, listed=self._listed))
        if self._recorded:
            recorded, since, of_list = self._recorded[0]
            notified = (key for key in sorted(recorded.changed) if self.knows(key))
            keys = list(dict.fromkeys((*recorded.opened, *notified)))
            self.publish(self._states.states(keys[:KEYS_AT_A_TIME]).values(), since, of_list=of_list)
            if rest := keys[KEYS_AT_A_TIME:]:
                self._recorded[0] = Recorded(dict.fromkeys(rest), recorded.to_plan_next), since, of_list
            else:
                self._recorded.popleft()
                self._promote(recorded)
        yield from ()

    def _promote(self, recorded: Recorded) -> None:
        """Tell clusters which of their keys were given a name. Call this only after zones know which key leaves the name (``zone.passing``)."""
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
        self._listed = self._states.listed
        for zone_id, of_zone in intents.items():
            self._zones.add(zone_id)
            name = self._states.config.name
            self._ports.to_zone(zone_id, Publish(name, tuple(of_zone), since, inherited, of_list, listed=self._listed))
        return idle

    def intents(self, keys: Iterable[ObjectKey], zone_id: str) -> tuple[Intent, ...]:
        """What these keys want in a zone now, to be sent to the zone as an answer. Remembers what the zone is told."""
        found: list[Intent] = []
        for key, state in self._states.states(keys).items():
            found.append(intent := self._intent(state, zone_id))
            notified = self._notified.get(key, frozenset())
            self._remember_zones(key, notified | {zone_id} if intent.changes else notified - {zone_id})
        return tuple(found)

    def withdraw(self) -> None:
        """Let zones drop all keys of the cluster, until its open keys are taken up again. Sends promotions that are still queued."""
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
        """What a key wants in a zone now."""
        config = self._states.config
        if self._wants_nothing:
            return Intent(state.key)
        needs = KINDS[state.key.kind].of_records(state).intersection(config.resources)
        return intent_of(state, zone_id, config.policy, needs)

    def _remember_zones(self, key: ObjectKey, zones: frozenset[str]) -> None:
        """Remember which zones know of changes that a key wants."""
        if zones:
            self._notified[key] = self._alike.setdefault(zones, zones)
        else:
            self._notified.pop(key, None)


class ServedKeys:
    """What the tasks of a cluster's actor share. Only the actor uses it. ``published``, ``promoted`` and ``readers`` are tasks, too.

    ``commands``: of the session, those that wait.
    """

    def __init__(self, config: ClusterConfig, ports: ClusterPorts) -> None:
        self.ports = ports
        self.commands: deque[object] = deque()
        clock = ports.scheduler
        self.states = KeyStates(config, ports.tables, ports.cached_keys, clock.epoch_seconds, ports.pause_seconds)
        self.committer = Committer(self.states, ports.fenced_writer, clock, ports.large, self._written)
        self.committer.dependents.tell = ports.to_cluster
        self.reconciler = Reconciler(self.committer, ports.connector)
        self.published = Published(self.states, ports)
        self.promoted = PromotedKeys(self)
        self.readers = Readers(self)

    def followed(self, work: Callable[[Recorded], Steps[None]]) -> Steps[None]:
        """Do this, and queue what has to follow from what it writes, also if it fails: its next try finds that stored, and no change any more."""
        recorded = Recorded()
        try:
            yield from work(recorded)
        finally:
            self.follow_up(recorded)

    def follow_up(self, recorded: Recorded, since: float | None = None, *, of_list: bool = False) -> None:
        """Queue what has to follow: publish changed keys, promote keys that were given a name, plan readers of shared objects.

        Args:
            since: when (monotonic) the first event of the recorded keys was read.
            of_list: see ``Publish``.
        """
        self.published.add(recorded, since, of_list=of_list)
        self.readers.changed(recorded.shared)

    def _written(self, entries: Sequence[Entry]) -> None:
        """Show written changes as progress. An error is only logged, because the changes are durable already."""
        if not entries:
            return
        try:
            self.ports.progress("changes", {"cluster": self.states.config.name, "entries": entries})
        except Exception:  # an error of what people see must not fail the commit
            logger.exception("changes could not be shown", cluster=self.states.config.name)


class PromotedKeys:
    """Plans keys that were given a name, some at a time.

    A key whose main object is not listed yet cannot be planned completely. It is planned again once the object's resource is listed, and its
    durable mark stays until then.
    """

    def __init__(self, served: ServedKeys) -> None:
        self._served = served
        self._keys: dict[ObjectKey, None] = {}
        self._early: set[ObjectKey] = set()  # keys whose main objects were not listed when they were planned

    def add(self, keys: Collection[ObjectKey]) -> None:
        self._keys |= dict.fromkeys(keys)

    def due_at(self) -> float:
        return AT_ONCE if self._keys or any(map(self._served.states.plannable, self._early)) else ON_MESSAGE

    def steps(self) -> Steps[None]:
        early = {key for key in self._early if self._served.states.plannable(key)}
        waiting, self._early = [*self._keys, *early], self._early - early
        keys, self._keys = waiting[:_AT_A_TIME], dict.fromkeys(waiting[_AT_A_TIME:])
        try:
            yield from self.plan(keys, "a name was let go")
        except BaseException:
            self.add(keys)
            raise

    def plan(self, keys: Collection[ObjectKey], why: str) -> Steps[None]:
        """Plan keys although nothing new was seen of their objects."""
        self._early |= {key for key in keys if not self._served.states.plannable(key)}
        yield from self._served.followed(partial(self._served.reconciler.replan, keys, why))


@dataclass(slots=True, eq=False)
class _Changed:
    """A shared object that changed.

    ``number``: of its durable mark. ``left``: its readers that are not planned yet; None: not read yet. ``provisional``: readers whose plan
    is provisional (``KeyStates.provisional``); the last one stands for all of them.
    """

    number: int
    left: list[ObjectKey] | None = None
    provisional: list[ObjectKey] = field(default_factory=list)


class Readers:
    """Plans the readers of shared objects that changed, some at a time. If an object changes again, all its readers are planned again.

    The mark of an object stays until it is known what all its readers want: else the change is forgotten if the session dies (I1).
    """

    def __init__(self, served: ServedKeys) -> None:
        self._served = served
        self._changed: dict[Reference, _Changed] = {}

    def changed(self, shared: Mapping[Reference, int]) -> None:
        self._changed |= {reference: _Changed(number) for reference, number in shared.items()}

    def forget(self) -> None:
        """Drop everything, because the durable marks will be read again."""
        self._changed.clear()

    def due_at(self) -> float:
        return AT_ONCE if self._next() is not None else ON_MESSAGE

    def _next(self) -> Reference | None:
        """The first object that has readers to plan, or whose mark can perhaps be removed."""
        states = self._served.states
        for reference, known in self._changed.items():
            if known.left != [] or not known.provisional or not states.provisional(known.provisional[-1]):
                return reference
        return None

    def steps(self) -> Steps[None]:
        """Plan some readers of one object. Once the plans of all its readers are final, remove its mark."""
        reference = self._next()
        assert reference is not None, "only where it is due"
        known, states, table = self._changed[reference], self._served.states, self._served.states.tables.state
        name = states.config.name
        if known.left is None:
            known.left = sorted(table.readers(name, reference))
        if some := known.left[:_AT_A_TIME]:
            yield from self._served.promoted.plan(some, f"{reference.kind} {reference.name} changed")
            if self._changed.get(reference) is not known:
                return  # the object changed again
            known.left = known.left[_AT_A_TIME:]
            known.provisional += filter(states.provisional, some)
        while known.provisional and not states.provisional(known.provisional[-1]):
            known.provisional.pop()  # its plan is final: it was planned again when the rest was known
        if not known.left and not known.provisional:
            # Stale: an earlier try has removed the mark, and its answer was lost.
            with suppress(StaleStateError):
                self._served.ports.write(name, [table.unmark_changed(name, reference, known.number)])
            del self._changed[reference]
