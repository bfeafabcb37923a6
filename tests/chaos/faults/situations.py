"""Section 15: situations that chance seldom brings about, told call by call; random schedules of the same (I1 to I3, I5).

What stands in the end is what the clusters ask for. Where absence is not proven, everything that stood goes on standing meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from chaos.faults.schedules import Deployment
from chaos.faults.struck import Awaited
from chaos.sections import Effort, Section
from chaos.stories.happenings import Course, Happening
from chaos.stories.situations import (
    SITUATIONS,
    Allow,
    Answers,
    AtCall,
    Forget,
    Hold,
    Keep,
    Lost,
    OtherOwner,
    Read,
    Stranger,
    Tale,
    Told,
)
from chaos.stories.verdict import shortened
from kubesync.aws.route53.journal import journal_record_key, make_journal
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Observation, Resource
from kubesync_local.workplace.registry import ClusterRegistry
from sequences.outside import FOREIGN, UnrulyConnector
from simulation.gate import Gate, Outward
from simulation.world import SETTINGS, World

_SCHEDULES: Final = 40
_SHORT_SCHEDULES: Final = 4
# After the last happening, for the calls that follow from it.
_TO_COME_ABOUT_SECONDS: Final = 12.0
_STRANGERS: Final = RecordSet(60, ("192.0.2.99",))
_KUBERNETES: Final = (Resource.SERVICES, "default", "kubernetes")


@dataclass(frozen=True, slots=True)
class Situation:
    """A situation by its name, on one of its schedules."""

    seed: int
    name: str
    number: int


def cases(effort: Effort) -> Sequence[Situation]:
    schedules = range(_SHORT_SCHEDULES if effort.short else _SCHEDULES)
    return [Situation(effort.seed, name, number) for name in SITUATIONS for number in schedules]


class Staging(Deployment):
    """A deployment to which more can happen. ``tell`` once; ``lines`` then say what is wrong."""

    def __init__(self, seed: object) -> None:
        super().__init__(seed)
        self._live: dict[str, dict[tuple[Resource, str, str], Observation]] = {}
        self._standing: set[object] = set()
        self.weather.watches.append(self._look)

    def tell(self, tale: Tale) -> None:
        """Let it happen, and then quiet."""
        self.play(cast(Course, (*tale, (_TO_COME_ABOUT_SECONDS, _AllMet()))))  # ``happen`` knows them all

    def happen(self, happening: Happening | Told | _AllMet) -> None:
        """Let something happen now, for whoever's call it is."""
        world = self.world
        match happening:
            case AtCall():
                self.weather.awaited.append(self._awaited(happening))
            case _AllMet():
                self.lines += [f"the situation does not come about: {each.words}" for each in self.weather.awaited]
            case Hold(changes):
                world.route53.let_through(changes)
            case Forget(name):
                config = next(each for each in world.configured() if each.name == name)
                world.store.transact([ClusterRegistry.forget(config)], f"{name} is forgotten by hand")
                LeaseTable(world.store, SETTINGS.shard).signal()
            case Stranger(zone_id, name, stands):
                world.route53.by_hand("CREATE" if stands else "DELETE", RecordKey(zone_id, name, "A"), _STRANGERS)
            case OtherOwner(zone_id, stands):
                self._other_owner(zone_id, stands=stands)
            case Allow(names):
                world.route53.allowed = names
            case Read(labels):
                for connector in world.connectors.values():
                    assert isinstance(connector, UnrulyConnector)
                    connector.read_only(labels)
            case Answers(name, who):
                self._answers(name, who)
            case Keep(standing):
                self._standing = set(_standing(world)) if standing else set()
            case Lost():
                raise AssertionError("only a call can be lost")
            case _:
                super().happen(happening)

    def _awaited(self, at: AtCall) -> Awaited:
        def happen(gate: Gate, call: Outward) -> None:
            with self.world.unseen():
                for each in at.happenings:
                    if not isinstance(each, Lost):
                        self.happen(each)
            gate.process.sleep(at.seconds)
            for each in at.happenings:
                if isinstance(each, Lost):
                    self.weather.lose(call, each.outcome)

        return Awaited(at.words, at.nth, at.before, happen)

    def _other_owner(self, zone_id: str, *, stands: bool) -> None:
        route53 = self.world.route53
        key = journal_record_key(route53.zone(zone_id), SETTINGS.deployment, SETTINGS.shard)
        theirs = make_journal("another", self.world.epoch(), "0" * 32).record_set
        standing = route53.records(zone_id).get(key)
        if stands:
            assert standing is not None, "it takes the place of ours"
            route53.by_hand("DELETE", key, standing)
            route53.by_hand("CREATE", key, theirs)
        elif standing == theirs:
            route53.by_hand("DELETE", key, theirs)
        else:
            self.lines.append(f"the journal of another deployment became {standing}")

    def _answers(self, name: str, who: str) -> None:
        cluster = self.world.clusters[name]
        itself = self._live.setdefault(name, dict(cluster.live))
        cluster.version += 1
        cluster.live = dict(itself)
        if who != "itself":
            shown = itself[_KUBERNETES]
            cluster.live = {_KUBERNETES: replace(shown, uid="uid-another") if who == "another" else shown}
        cluster.compact()
        cluster.cut()

    def _look(self, call: Outward) -> None:
        """After each write: what has to stand, stands."""
        if not self._standing:
            return
        with self.world.unseen():
            missing = self._standing.difference(_standing(self.world))
        self._standing -= missing
        self.lines += [
            f"{call}: {each} is gone, though nothing proves that nobody wants it" for each in sorted(map(str, missing))
        ]


@dataclass(frozen=True, slots=True)
class _AllMet:
    """Nothing is awaited any more: everything has happened at its call."""


def _standing(world: World) -> list[object]:
    """Record sets of ours, by their keys, and upstreams that have nodes."""
    keys = [key for zone_id in world.route53.ids for key in world.route53.records(zone_id)]
    ours = [key for key in keys if key not in FOREIGN and not key.name.startswith("_kubesync-")]
    return [*ours, *(stored.upstream for stored in UpstreamTable(world.store).read_all() if stored.nodes)]


def play(case: object) -> list[str]:
    assert isinstance(case, Situation)
    staging = Staging(f"{case.seed} {case.name} {case.number}")
    staging.tell(SITUATIONS[case.name](case.number))
    return shortened(staging.lines)


SECTION: Final = Section(
    15,
    "situations told call by call, on random schedules",
    "I1 I2 I3 I5",
    cases,
    play,
    fault=lambda case: case.name if isinstance(case, Situation) else "",
)
