"""Plays a script: sessions are begun, stepped, ended and killed as it says; then the last one runs to quiet."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from chaos.stories.requests_story import ask
from harness.seen import named
from harness.seen.named import member
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import ErrorCode, UsageError
from kubesync.domain.objects import EndpointsObject, Resource, Service
from kubesync.domain.plan import Policy
from kubesync.domain.report import SessionReport
from kubesync.domain.sources.ingresses import Ingress
from kubesync.domain.upstreams.named import Member, NamedUpstream
from kubesync_local.registration.named_upstreams import referring_to
from kubesync_local.workplace.readings import ListenerReadings
from sequences.orders import place_of
from sequences.outside import WINDOW_CLOSES_SECONDS, Delivery, UnrulyConnector, an_outside, register
from sequences.steps import (
    Compact,
    Compose,
    Configure,
    Cut,
    Delete,
    Discard,
    End,
    Kill,
    Moment,
    Put,
    Register,
    Resync,
    Round,
    Script,
    Step,
    Unregister,
    Wait,
)
from simulation.gate import Gate, kill_at
from simulation.world import Running, World

_AFTER_DEATH_SECONDS: Final = 30.0
# Longer than any backoff, with time for a name to change hands and for its heir to be refused once more.
QUIET_SECONDS: Final = (1.0, 60.0, 1200.0, 1200.0, 1200.0)
_MOST_SESSIONS: Final = 100
# Longer than a name waits for its heir: the shortest session that can be told to run is far longer.
_QUIET_SESSION_SECONDS: Final = 12.0
_BEGIN_SECONDS: Final = 0.2
ROUND_SECONDS: Final = 4.0
_AS_USUAL: Final = Round()


class Player:
    """One script on one world. ``play`` once; ``world`` then stands as it was left by quiet."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.reports: list[SessionReport | None] = []
        self._steps: list[Step] = []
        self._quiet: list[float] = []
        self._kill: Kill | None = None

    def play(self, script: Iterable[Step], quiet: Iterable[float] = QUIET_SECONDS) -> None:
        """Play it, and let what follows from it come to rest."""
        self._steps, self._quiet = list(script), list(quiet)
        for _ in range(_MOST_SESSIONS):
            self._between_sessions()
            self._session()
            if not self._quiet and not self._steps:
                return
        raise AssertionError("the sessions do not come to an end")

    def _between_sessions(self) -> None:
        while self._steps and not isinstance(self._steps[0], Round | Moment | End):
            step = self._steps.pop(0)
            if isinstance(step, Kill):
                self._kill = step
            else:
                happen(self.world, step)

    def _session(self) -> None:
        world = self.world
        if not self._steps:
            world.clock.advance(self._quiet.pop(0))
        gate = world.new_gate()
        running = world.new_session(gate)
        if self._kill is not None:
            self._strike(gate, self._kill)
            self._kill = None
        running.start()
        if self._steps:
            world.clock.sleep(_BEGIN_SECONDS)
            while running.alive and self._next(running):
                pass
        else:
            world.clock.sleep(_QUIET_SESSION_SECONDS)
        self._let_all_go_on(running)
        report = running.end()
        self.reports.append(report)
        if report is None or report.code == ErrorCode.NOT_MASTER:
            world.clock.sleep(_AFTER_DEATH_SECONDS)

    def _next(self, running: Running) -> bool:
        """The next thing that happens while a session runs. False: its time is up."""
        if not self._steps:
            return False
        step = self._steps.pop(0)
        if isinstance(step, End):
            return False
        if isinstance(step, Kill):
            self._strike(running.gate, step)
        elif isinstance(step, Round):
            self._let_all_go_on(running, step)
            self.world.clock.sleep(ROUND_SECONDS)
        elif isinstance(step, Moment):
            self._a_part(running, step)
        else:
            happen(self.world, step)
        return True

    def _strike(self, gate: Gate, kill: Kill) -> None:
        if not kill.calls and gate.calls:
            gate.kill()
        kill_at(gate, max(1, len(gate.calls) + kill.calls), before=kill.before)

    def _connector(self, running: Running) -> UnrulyConnector:
        found = self.world.connectors[running.gate.name]
        assert isinstance(found, UnrulyConnector)
        return found

    def _let_all_go_on(self, running: Running, round_: Round = _AS_USUAL) -> None:
        connector = self._connector(running)
        connector.deliver(self._delivery(round_, bookmark=round_.bookmark))
        connector.read_only(None)
        self.world.route53.let_through(None)

    def _a_part(self, running: Running, moment: Moment) -> None:
        connector = self._connector(running)
        connector.deliver(self._delivery(moment, bookmark=False))
        connector.read_only(moment.read)
        self.world.route53.let_through(moment.write)
        self.world.clock.sleep(WINDOW_CLOSES_SECONDS if moment.record else _BEGIN_SECONDS)

    def _delivery(self, step: Round | Moment, *, bookmark: bool) -> Delivery:
        floors = self._floors() if step.late else None
        return Delivery(step.order, step.late, bookmark, step.most, floors)

    def _floors(self) -> dict[tuple[str, Resource], int]:
        table = ListenerReadings(self.world.store)
        return {
            (name, resource): checkpoint.resource_version
            for name in self.world.clusters
            for resource, checkpoint in table.checkpoints(name).items()
        }


def happen(world: World, step: Step) -> None:
    """What the world, or a person, does at a step; nothing, where it means nothing."""
    match step:
        case Put(name, namespace, service, value, slice_name):
            cluster = world.clusters[name]
            _, resource, *_ = place_of(step)
            if not isinstance(value, EndpointsObject):
                value = replace(value, created_at=_created_at(world, step))
            cluster.apply(service, value, slice_name=slice_name, namespace=namespace, resource=resource)
        case Delete(name, resource, namespace, place):
            if (resource, namespace, place) in world.clusters[name].live:
                world.clusters[name].delete(resource, place, namespace)
        case Configure(name, settings):
            if _served(world, name):
                world.configure(name, **dict[str, Any](settings))
        case Unregister(name):
            referred_to = referring_to(NamedUpstreamTable(world.store).read(), name)
            if _served(world, name) and not referred_to:  # under another policy what stands would be left there
                world.configure(name, deleting=True, policy=Policy.SYNC)
        case Register(name):
            if name not in {config.name for config in world.configured()}:
                register(world, name)
        case Compose(name, members):
            _compose(world, name, tuple(member(text, weight, backup=backup) for text, weight, backup in members))
        case Discard(name):
            with suppress(UsageError):  # it is not there, or included in another one
                named.unregister(world.store, name)
        case Cut(name):
            world.clusters[name].cut()
        case Compact(name):
            world.clusters[name].cut()
            world.clusters[name].compact()
        case Wait(seconds):
            world.clock.advance(seconds)
        case Resync(dry_run, force):
            ask(world, dry_run=dry_run, force=force)
        case _:
            raise AssertionError(step)


def _served(world: World, name: str) -> bool:
    return any(config.name == name and not config.deleting for config in world.configured())


def _compose(world: World, name: str, members: tuple[Member, ...]) -> None:
    services = NamedUpstream(name, members).services
    if all(_served(world, source.key.cluster) for source in services):
        with suppress(UsageError):  # it would include itself, or something that is not registered
            named.register(world.store, name, *members)


def _created_at(world: World, step: Put) -> str:
    """As the API server gives it: when the object was made, to the second, which several share; never changed."""
    cluster = world.clusters[step.cluster]
    known = cluster.live.get(place_of(step)[1:])
    if known is not None and isinstance(known.value, Service | Ingress):
        return known.value.created_at
    minutes, seconds = divmod(cluster.version // 4, 60)
    return f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"


def played(script: Script) -> Player:
    """A world of two clusters after a script, at rest; all are enabled and may delete: else the past would decide what stands."""
    world = an_outside()
    for name in world.clusters:
        register(world, name)
    player = Player(world)
    usual = (("policy", Policy.SYNC), ("disabled", False))
    last = tuple(Configure(name, usual) for name in _otherwise(script))
    player.play(script + last)
    if _held(world):
        # A large absence was seen in a list: a person lets the deletions through (I5).
        ask(world, force=True)
        player.play(())
    return player


def _otherwise(script: Script) -> list[str]:
    """Clusters that a script leaves disabled, or under another policy."""
    left = {
        (step.cluster, field): value
        for step in script
        if isinstance(step, Configure)
        for field, value in step.settings
        if field in ("policy", "disabled")
    }
    return sorted({cluster for (cluster, _), value in left.items() if value not in (Policy.SYNC, False)})


def afresh(world: World) -> Player:
    """A system that begins from nothing with what the clusters hold now and how they are configured now."""
    made = an_outside({name: cluster.copy() for name, cluster in world.clusters.items()})
    for config in world.configured():
        if not config.deleting:
            made.register(config)
    for entry in _in_order(NamedUpstreamTable(world.store).read().named):
        named.register(made.store, entry.name, *entry.members)
    player = Player(made)
    player.play(())
    return player


def _in_order(registered: Mapping[str, NamedUpstream]) -> Iterator[NamedUpstream]:
    """Those that are included before those that include them."""
    done: set[str] = set()
    while len(done) < len(registered):
        for name, entry in registered.items():
            if name not in done and done.issuperset(entry.includes):
                done.add(name)
                yield entry


def _held(world: World) -> bool:
    table = StateTable(world.store)
    states = [state for name in world.clusters for state in table.load_all(name)]
    return any(state.kept or any(part.held for part in state.parts.values()) for state in states)
