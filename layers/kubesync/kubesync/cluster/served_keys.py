"""The keys of one cluster, as its tasks share them; what zones hear of them; and tasks that plan keys without news of their own objects.

A zone that was notified of a key hears of every change of its intent.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Steps
from kubesync.actors.answer import Answer
from kubesync.actors.scheduler import Scheduler
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.key_writes import Recorded
from kubesync.cluster.keys.reconciler import Reconciler
from kubesync.cluster.ports import ClusterPorts, Connector
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Intent, changes_of, intent_of
from kubesync.domain.sources.registry import KINDS
from kubesync.domain.state import KeyState, Reference
from kubesync.log import logger
from kubesync.messages import Promoted, Publish

KEYS_AT_A_TIME: Final = 500
"""So many are published in one step, and with one message. A zone asks for the others when their turn comes."""
_AT_A_TIME: Final = 200


class Published:
    """What zones know of a cluster: which keys want changes there. As a ``Task`` it publishes what was recorded.

    ``served``: whether the cluster is served under a configuration. False: its keys want nothing. None: not configured yet, so that only batches
    of earlier sessions are closed.

    Args:
        send: to a zone.
        to_cluster: to a cluster.
    """

    def __init__(
        self, states: KeyStates, send: Callable[[str, object], object], to_cluster: Callable[[str, object], object]
    ) -> None:
        self._states = states
        self._send = send
        self._to_cluster = to_cluster
        self._notified: dict[ObjectKey, frozenset[str]] = {}
        self._alike: dict[frozenset[str], frozenset[str]] = {}  # most keys are in the same zones: one set for all
        self._zones: set[str] = set()
        self._listed: frozenset[Resource] = frozenset()
        self._recorded: deque[tuple[Recorded, float | None, bool]] = deque()
        self.served: bool | None = None

    def knows(self, key: ObjectKey) -> bool:
        """Whether a zone was notified that the key wants changes."""
        return key in self._notified

    # --- what was recorded ---

    def add(self, recorded: Recorded, since: float | None, *, of_list: bool) -> None:
        """Queue this for publishing, after what was recorded before. ``since``, ``of_list``: see ``Publish``."""
        self._recorded.append((recorded, since, of_list))

    def due_at(self) -> float:
        return AT_ONCE if self._recorded or self._states.listed != self._listed else ON_MESSAGE

    def steps(self) -> Steps[None]:
        """Tell zones what the keys want that were recorded first, and which views are complete now. Raises StoreError."""
        if self._states.listed != self._listed:
            self._listed = self._states.listed
            for zone_id in sorted(self._zones):
                self._send(zone_id, Publish(self._states.config.name, listed=self._listed))
        if self._recorded:
            recorded, since, of_list = self._recorded[0]
            notified = (key for key in sorted(recorded.changed) if self.knows(key))
            keys = list(dict.fromkeys((*recorded.opened, *notified)))
            self.publish(self._states.states(keys[:KEYS_AT_A_TIME]).values(), since, of_list=of_list)
            if rest := keys[KEYS_AT_A_TIME:]:
                self._recorded[0] = Recorded(dict.fromkeys(rest), recorded.promoted), since, of_list
            else:
                self._recorded.popleft()
                self._promote(recorded)
        yield from ()

    def _promote(self, recorded: Recorded) -> None:
        """Send clusters the keys that were given a name. Call it after zones know who leaves the name, not before."""
        for key in recorded.promoted:
            self._to_cluster(key.cluster, Promoted((key,)))

    def publish(
        self, keys: Iterable[KeyState], since: float | None = None, *, inherited: bool = False, of_list: bool = False
    ) -> None:
        """Tell every zone what these keys want there now. The options: see ``Publish``."""
        intents: dict[str, list[Intent]] = defaultdict(list)
        for state in keys:
            changes = () if self._wants_nothing else changes_of(state, self._states.config.policy)
            wanted = frozenset(change.key.zone_id for change in changes)
            for zone_id in sorted(wanted | self._notified.get(state.key, frozenset())):
                intents[zone_id].append(self._intent(state, zone_id))
            self._tell(state.key, wanted)
        self._listed = self._states.listed
        for zone_id, of_zone in intents.items():
            self._zones.add(zone_id)
            full, names = of_zone[:KEYS_AT_A_TIME], tuple(intent.key for intent in of_zone[KEYS_AT_A_TIME:])
            name = self._states.config.name
            self._send(zone_id, Publish(name, tuple(full), names, since, inherited, of_list, listed=self._listed))

    def intents(self, keys: Iterable[ObjectKey], zone_id: str) -> tuple[Intent, ...]:
        """What these keys want in a zone now, to be sent as an answer. The zone counts as informed about them."""
        found: list[Intent] = []
        for key, state in self._states.states(keys).items():
            found.append(intent := self._intent(state, zone_id))
            notified = self._notified.get(key, frozenset())
            self._tell(key, notified | {zone_id} if intent.changes else notified - {zone_id})
        return tuple(found)

    def withdraw(self) -> None:
        """Have zones drop everything of the cluster, until its open keys are taken up. Sends promotions that are still queued."""
        for zone_id in sorted(self._zones):
            self._send(zone_id, Publish(self._states.config.name, restart=True, listed=self._listed))
        self._notified.clear()
        while self._recorded:
            self._promote(self._recorded.popleft()[0])

    @property
    def _wants_nothing(self) -> bool:
        """Whether keys of the cluster want no change now, whatever they intend."""
        return self.served is False or self._states.config.paused

    def _intent(self, state: KeyState, zone_id: str) -> Intent:
        config = self._states.config
        if self._wants_nothing:
            return Intent(state.key)
        needs = KINDS[state.key.kind].of_records(state).intersection(config.resources)
        return intent_of(state, zone_id, config.policy, needs)

    def _tell(self, key: ObjectKey, zones: frozenset[str]) -> None:
        if zones:
            self._notified[key] = self._alike.setdefault(zones, zones)
        else:
            self._notified.pop(key, None)


class ServedKeys:
    """What tasks of the cluster's actor share. Only the actor uses it. ``published``, ``promoted`` and ``readers`` are tasks themselves."""

    def __init__(self, config: ClusterConfig, ports: ClusterPorts) -> None:
        self.ports = ports
        tables, clock = ports.tables, ports.scheduler
        self.states = KeyStates(
            config, tables.state, tables.name_counts, ports.cached_keys, clock.epoch, ports.pause_seconds
        )
        self.committer = Committer(
            self.states, tables, ports.fenced_writer, clock, ports.fenced_here, ports.large, self._written
        )
        self.committer.followers.tell = ports.to_cluster
        self.reconciler = reconciler_of(self.committer, ports.connector, clock)
        self.published = Published(self.states, ports.to_zone, ports.to_cluster)
        self.promoted = PromotedKeys(self)
        self.readers = Readers(self)

    def follow_up(self, recorded: Recorded, since: float | None = None, *, of_list: bool = False) -> None:
        """Queue what follows from a record: publish changed keys, promote keys that were given a name, plan readers of shared objects.

        Args:
            since: when (monotonic) the first event of it was read.
            of_list: see ``Publish``.
        """
        self.published.add(recorded, since, of_list=of_list)
        self.readers.changed(recorded.shared)

    def _written(self, entries: Sequence[Entry]) -> None:
        """Show changes that were written as progress. Errors are only logged."""
        if not entries:
            return
        try:
            self.ports.progress("changes", {"cluster": self.states.config.name, "entries": entries})
        except Exception:  # what people see must not decide about records
            logger.exception("changes could not be shown", cluster=self.states.config.name)


class PromotedKeys:
    """Plans keys that were given a name, some at a time. Keys whose own objects are unknown are planned again once these are known:
    their durable marks stay until then."""

    def __init__(self, served: ServedKeys) -> None:
        self._served = served
        self._keys: dict[ObjectKey, None] = {}
        self._early: set[ObjectKey] = set()

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
        """Plan keys without news of their objects."""
        self._early |= {key for key in keys if not self._served.states.plannable(key)}
        self._served.follow_up((yield from self._served.reconciler.replan(keys, why)))


class Readers:
    """Plans the keys that read shared objects that changed, some at a time. Another change of an object begins with all its readers again."""

    def __init__(self, served: ServedKeys) -> None:
        self._served = served
        self._changed: dict[Reference, int] = {}  # with the numbers of their marks
        self._left: dict[Reference, list[ObjectKey]] = {}

    def changed(self, shared: Mapping[Reference, int]) -> None:
        self._changed |= shared
        for reference in shared:
            self._left.pop(reference, None)

    def forget(self) -> None:
        """Drop everything: durable marks will be read again."""
        self._changed.clear()
        self._left.clear()

    def due_at(self) -> float:
        return AT_ONCE if self._changed else ON_MESSAGE

    def steps(self) -> Steps[None]:
        reference, number = next(iter(self._changed.items()))
        name, table = self._served.states.config.name, self._served.ports.tables.state
        left = self._left.setdefault(reference, []) or sorted(table.readers(name, reference))
        some, rest = left[:_AT_A_TIME], left[_AT_A_TIME:]
        yield from self._served.promoted.plan(some, f"{reference.kind} {reference.name} changed")
        if self._changed.get(reference) != number:
            return  # it changed again
        self._left[reference] = rest
        if not rest:
            writer = self._served.ports.fenced_writer
            # Stale: an earlier try has removed it, and its answer was lost.
            with suppress(StaleStateError):
                writer.run([name], [table.unmark_changed(name, reference, number)], writer.token())
            del self._changed[reference], self._left[reference]


def reconciler_of(committer: Committer, connector: Connector, scheduler: Scheduler) -> Reconciler:
    """Make a reconciler that uses the configuration that the states have at each call."""
    states = committer.states

    def probe_identity() -> Answer[str | None]:
        config, answer = states.config, Answer[str | None](scheduler)

        def run() -> None:
            try:
                answer.set_result(connector.identity(config))
            except BaseException as error:  # noqa: BLE001 - the actor raises it again
                answer.set_exception(error)

        scheduler.thread(f"{config.name}/identity", run).start()
        return answer

    return Reconciler(committer, lambda event: connector.observe(states.config, event), probe_identity)
