"""Whole sessions whose listeners are fed by the test: it says which lists, events and bookmarks arrive, with their versions and uids.

Otherwise as ``harness.deployment``: production's own assembly on virtual time. What is fed at once arrives in one window. Route 53 answers
nothing until ``land``, so that a test sees what is recorded before it is published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from harness.deployment import ZONE_ID, HandledRoute53
from harness.fakes.fed_listeners import FedConnector, FedListener
from harness.fakes.memory_store import Call
from harness.fakes.store_faults import CrashError, DiesAt
from harness.seen.builders import a_config, a_list, identity
from harness.seen.resync_requests import collected, leave
from harness.seen.stored import StoredItems, unpacked_state
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, Key
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.state import StateTable
from kubesync.domain.credential_ends import Credential
from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import ObjectKey, Observation, RawEvent, Resource, Snapshot
from kubesync.domain.report import SessionReport
from kubesync.domain.sources import services
from kubesync.domain.state import KeyState
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.workplace.readings import ListenerReadings
from simulation.cluster import ScriptedCluster
from simulation.world import SETTINGS, Running, World

# The lease of a session that died is over.
_LEASE_OVER: Final = 20.0
# A window of one second, and what follows from it.
_WINDOW: Final = 1.3
_ROOM: Final = 10**12  # more bytes than there is room for


class _FedWorld(World):
    connector_type = FedConnector


class _Hooks:
    """Hooks of the store: those of the simulation, then those of a test. ``calls`` holds every call of a session."""

    def __init__(self, owner: FedDeployment, simulated: Any) -> None:
        self._owner = owner
        self._simulated = simulated
        self.calls: list[Call] = []

    def before(self, call: Call) -> None:
        self._simulated.before(call)
        if self._owner.under_way:
            self.calls.append(call)
            self._play(self._owner.faults.before, call)

    def after(self, call: Call) -> None:
        if self._owner.under_way:
            self._play(self._owner.faults.after, call)
        self._simulated.after(call)

    def _play(self, hook: Callable[[Call], None], call: Call) -> None:
        try:
            hook(call)
        except CrashError:
            assert self._owner.running is not None
            self._owner.running.kill()


class _NoFaults:
    def before(self, call: Call) -> None: ...
    def after(self, call: Call) -> None: ...


class FedDeployment(StoredItems):
    """Tables, a zone and a clock that outlive sessions; ``session`` begins the next one, after the last one has died."""

    def __init__(self, config: ClusterConfig | None = None, *others: ClusterConfig) -> None:
        self.configs = [config or a_config(), *others]
        self.route53 = HandledRoute53()
        self.route53.create(ZONE_ID, "example.com")
        clusters = {each.name: ScriptedCluster(each.name) for each in self.configs}
        self.world = _FedWorld(clusters, self.route53, settings=SETTINGS.model_copy(update={"batch_elements": 1000}))
        self.store = self.world.store
        self.clock = self.world.clock
        self.faults: Any = _NoFaults()
        self.ahead = 0.0  # seconds, of the clocks of sessions that begin from now on
        self.running: Running | None = None
        self._hooks = _Hooks(self, self.store.faults)
        self.store.faults = self._hooks
        self.route53.let_through(0)
        for each in self.configs:
            self.world.register(each)

    @property
    def under_way(self) -> bool:
        """Whether the call that is made now is a session's."""
        return self.world.machine.current.process is not self.clock

    @property
    def calls(self) -> list[Call]:
        """Calls of sessions so far; may be cleared."""
        return self._hooks.calls

    def session(self) -> FedSession:
        """The next session: the last one dies, its lease ends, and this one takes over."""
        if self.running is not None and self.running.alive:
            self.running.kill()
            self.clock.advance(_LEASE_OVER)
        return FedSession(self)

    def hold(self, seconds: float) -> None:
        """In a hook of ``faults``: the call takes so long; other threads go on."""
        self.world.machine.current.process.sleep(seconds)

    def spare(self) -> None:
        """No more faults."""
        self.faults = _NoFaults()

    def writes(self) -> list[Call]:
        """Transactions and single writes of sessions about what is recorded: the lease left out."""
        return [call for call in self.calls if call.actions and not _of_the_lease(call)]

    def settled(self) -> dict[Key, dict[str, object]]:
        """What two runs have to agree about: everything but audit, lease, journals, times, and how often an item was written."""
        kept = {
            key: {name: value for name, value in item.items() if name not in ("expires_at", "works_since", "since")}
            for key, item in self.store.dump().items()
            if key.table != AUDIT and not (key.table == CONTROL and not key.partition.startswith("cluster#"))
        }
        return unpacked_state(kept)

    def audited(self, cluster: str = "prod") -> list[dict[str, Any]]:
        """Changes that the audit holds of a cluster, newest first."""
        now = self.clock.epoch_seconds()
        return list(AuditLog(self.store).read_changes(cluster, now, Span(now - 1e6, now + 1e6)))


class FedSession:
    """One session; the first cluster is meant where none is named."""

    def __init__(self, deployment: FedDeployment) -> None:
        self.deployment = deployment
        self.state_table = StateTable(deployment.store)
        self.claim_table = ClaimTable(deployment.store)
        self.listeners = ListenerReadings(deployment.store)
        gate = deployment.world.new_gate()
        self.running = deployment.running = deployment.world.new_session(gate)
        connector = deployment.world.connectors[gate.name]
        assert isinstance(connector, FedConnector)
        self._connector = connector
        self.running.process.offset = deployment.ahead
        self.running.start()
        for _ in range(40):
            self.wait(0.25)
            if self._connector.listeners or not self.running.alive:
                break
        self.wait(0.1)

    # --- what arrives ---

    def record(
        self,
        *seen: Observation,
        lists: Sequence[Snapshot] = (),
        bookmarks: Mapping[Resource, int] | None = None,
        cluster: str = "",
    ) -> None:
        """One window: lists first, then events, then bookmarks. Returns once it is recorded."""
        name = cluster or self.deployment.configs[0].name
        for snapshot in lists:
            self.feed(snapshot, name)
        for observation in seen:
            raw = self._raw(observation)
            self._listener(name, raw.resource).feed(lambda sink, event=raw: sink.on_events([event]))  # type: ignore[misc]
        for resource, version in (bookmarks or {}).items():
            self._listener(name, resource).feed(lambda sink, to=version: sink.on_bookmark(to))  # type: ignore[misc]
        self.wait(_WINDOW)

    def feed(self, listed: Snapshot, cluster: str = "") -> None:
        """A complete list arrives. Returns at once."""
        self._listener(cluster or self._name, listed.resource).feed(lambda sink: sink.on_snapshot(listed))

    def begin(self, *items: Observation, slices: Sequence[Observation] = (), version: int = 10) -> None:
        """The first lists of both listeners, default/kubernetes among the services."""
        source = next(r for (name, r) in self._connector.listeners if name == self._name and r is not Resource.SERVICES)
        self.record(lists=(a_list(version, identity(), *items), a_list(version, *slices, resource=source)))

    def listener(self, resource: Resource, cluster: str = "") -> FedListener:
        """The newest listener of a resource."""
        return self._listener(cluster or self._name, resource)

    def fill_room(self) -> None:
        """Another cluster, of which the test says nothing else, holds all room for lists."""
        reservation = self._connector.spaces[self._name, Resource.SERVICES]
        turn = reservation.cluster.room.for_cluster()
        self._listener(self._name, Resource.SERVICES).feed(lambda _sink: turn.for_list().take(_ROOM, math.inf))
        self.wait(0.1)

    def wait_for_room(self, resource: Resource) -> None:
        """The listener waits for room for a list. Returns at once."""
        reservation = self._connector.spaces[self._name, resource]
        self._listener(self._name, resource).feed(lambda _sink: reservation.take(1, math.inf))

    def hang(self, resource: Resource) -> FedListener:
        """A listener that does not end when it is cut."""
        found = self._listener(self._name, resource)
        found.hangs = True
        return found

    def stale(self, resource: Resource, cluster: str = "") -> None:
        """The listener's version is too old: it will list."""
        self._listener(cluster or self._name, resource).feed(lambda sink: sink.on_stale())

    def resumed(self, resource: Resource) -> None:
        """The listener's watch is accepted."""
        self._listener(self._name, resource).feed(lambda sink: sink.on_resumed())

    def resumes_from(self, resource: Resource, cluster: str = "") -> int | None:
        """The version that a listener goes on from; None: it has to list."""
        return self._listener(cluster or self._name, resource).resumed_from

    def probe_says(self, who: str | ListenerError | None) -> None:
        """What the cluster answers when it is asked who it is."""
        self._connector.probed = who

    def ends(self, **credentials: tuple[float, ...]) -> None:
        """When credentials end, as the session's connections have seen. By their names, such as ``TOKEN``."""
        self._connector.ends = {Credential[name]: ends for name, ends in credentials.items()}

    def configure(self, **changes: Any) -> None:
        """Change the first cluster's configuration; the session takes it up."""
        self.deployment.world.configure(self._name, **changes)
        self.wait(4.0)

    def resync(self, *lists: Snapshot, force: bool = False) -> dict[str, Any]:
        """A full resync that a person asks this session for; both listeners list again, and get these lists. Its answer."""
        request = self.ask_for_resync(force=force)
        self.record(lists=lists)
        return self.wait_for_answer(request)

    def ask_for_resync(self, *, force: bool = False) -> ResyncRequest:
        """The same, until both listeners are to list again."""
        before = dict(self._connector.listeners)
        request = self._ask(dry_run=False, force=force)
        for _ in range(200):
            self.wait(0.5)
            if all(self._connector.listeners[place] is not before[place] for place in before):
                return request
        raise AssertionError("the listeners are not made again")

    def dry_run(self, *lists: Snapshot, force: bool = False) -> dict[str, Any]:
        """A dry run of a resync that a person asks this session for, which finds these lists. Its answer."""
        self._connector.listed = {found.resource: found for found in lists}
        return self.wait_for_answer(self._ask(dry_run=True, force=force))

    def _ask(self, *, dry_run: bool, force: bool) -> ResyncRequest:
        return leave(self.deployment.world, dry_run=dry_run, force=force, name="asked")

    def answer(self, request: ResyncRequest) -> dict[str, Any] | None:
        """The answer to a resync. None: not yet."""
        return collected(self.deployment.world, request)

    def wait_for_answer(self, request: ResyncRequest, seconds: int = 60) -> dict[str, Any]:
        for _ in range(seconds):
            self.wait(1.0)
            if (answer := self.answer(request)) is not None:
                return answer
        raise AssertionError("the resync is not answered")

    def land(self) -> None:
        """Route 53 answers until nothing is open any more, then no longer."""
        self.deployment.route53.let_through(None)
        self.wait(5.0)
        self.deployment.route53.let_through(0)

    def end(self) -> SessionReport:
        """Hand over in good order."""
        self.deployment.route53.let_through(None)
        report = self.running.end()
        assert report is not None, self.running.error
        self.deployment.route53.let_through(0)
        return report

    def wait(self, seconds: float) -> None:
        """Let time pass. Raises CrashError where the session has died meanwhile."""
        self.deployment.clock.advance(seconds)
        if self.running.gate.killed:
            self.deployment.clock.advance(_LEASE_OVER)
            raise CrashError

    @property
    def _name(self) -> str:
        return self.deployment.configs[0].name

    def _listener(self, cluster: str, resource: Resource) -> FedListener:
        return self._connector.listeners[cluster, resource]

    def _raw(self, seen: Observation) -> RawEvent:
        self._connector.observations.append(seen)
        line = str(len(self._connector.observations) - 1).encode()
        kind = "DELETED" if seen.deleted else "MODIFIED"
        return RawEvent(kind, seen.resource, seen.namespace, seen.name, seen.uid, seen.resource_version, line)

    # --- what stands ---

    def state(self, name: str = "web", *, cluster: str = "", namespace: str = "shop") -> KeyState:
        """As stored."""
        key = ObjectKey(cluster or self._name, namespace, name)
        return self.state_table.load([key])[key]

    def intended(self, name: str = "web", **where: str) -> dict[str, list[str]]:
        return {f"{k.name} {k.type}": list(s.values) for k, s in self.state(name, **where).intended.items()}

    def identity(self) -> str | None:
        """Who the cluster was when that was last known."""
        return self.listeners.remembered({self._name: services.KIND.resources})[self._name].identity

    def open(self, cluster: str = "") -> set[str]:
        """Names of the keys that are open."""
        return {key.name for key, _mark in self.state_table.open_keys(cluster or self._name)}


def runs_that_die(
    play: Callable[[FedDeployment], object],
    config: ClusterConfig | None = None,
    *,
    prepare: Callable[[FedDeployment], object],
) -> Iterator[tuple[str, FedDeployment]]:
    """Every deployment whose session died at one of the transactions of ``play``, which was then played again by the next (I1)."""
    for after in (False, True):
        for transaction in range(1, 1000):
            deployment = FedDeployment(config)
            prepare(deployment)
            deployment.faults = DiesAt(transaction, after=after)
            try:
                play(deployment)
            except CrashError:
                deployment.faults = _NoFaults()
                play(deployment)
                yield f"{'after' if after else 'before'} transaction {transaction}", deployment
            else:
                break


def _of_the_lease(call: Call) -> bool:
    return all(
        action.key.table == CONTROL and action.key.partition.startswith(("lease", "resync")) for action in call.actions
    )


__all__ = ["CrashError", "FedDeployment", "FedSession", "runs_that_die"]
