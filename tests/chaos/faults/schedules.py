"""Section 13: whole deployments on random schedules: two masters, churn, and faults, all drawn from a seed (I1, I2, I3).

Whenever no session runs, the next one is started, as by a schedule. In the end everything is answered again, the last sessions run to
quiet, and what stands is what the clusters ask for.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from chaos.faults.struck import Weather
from chaos.sections import Effort, Section
from chaos.stories.happenings import (
    Another,
    ByHand,
    Course,
    Happening,
    Land,
    Lose,
    Pause,
    Skew,
    Slow,
    Storm,
    drawn,
)
from chaos.stories.oracle import judge_quiet
from chaos.stories.requests_story import ask
from chaos.stories.verdict import shortened
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import SIMPLE
from sequences.outside import FOREIGN, UnrulyWorld, an_outside, register
from sequences.player import happen
from sequences.shrinking import shrunk
from sequences.steps import End, Kill, Resync
from simulation.gate import Gate
from simulation.machine import DeadlockError
from simulation.world import SETTINGS, Running, World

_CASES: Final = 2000
_SHORT_CASES: Final = 40
_LENGTH: Final = 24
# A lease of 15 s, by a clock that is ahead by what is drawn, and by as much again after a pause.
_LEASE_SECONDS: Final = 120.0
_SETTLING_SECONDS: Final = 20.0  # longer than a name waits for its heir
_RESYNC_SECONDS: Final = 30.0
_QUIET_SECONDS: Final = (0.0, 60.0, 1200.0, 1200.0)
_AHEAD_SECONDS: Final = 20.0
# A short lease, so that many a master follows another within a course.
_SETTINGS: Final = SETTINGS.model_copy(
    update={"lease_seconds": 4.0, "lease_write_seconds": 3.0, "lease_renew_seconds": 1.0}
)
_MOST_RUNNING: Final = 3


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A random case: the seed draws what happens, and decides who goes next."""

    seed: int
    number: int

    @property
    def course(self) -> Course:
        return drawn(random.Random(f"course {self.seed} {self.number}"), _LENGTH)


def cases(effort: Effort) -> Sequence[Scheduled]:
    return [Scheduled(effort.seed, number) for number in range(_SHORT_CASES if effort.short else _CASES)]


class Deployment:
    """One case under way. ``play`` once; ``lines`` then say what is wrong."""

    def __init__(self, seed: object) -> None:
        self.world: World = a_world(seed)
        self.world.settings = _SETTINGS
        self.weather = Weather(self.world, random.Random(f"weather {seed}"))
        self.lines: list[str] = []
        self._running: list[Running] = []
        self._paused: list[tuple[float, Running, str]] = []
        self._skew = 0.0
        self._by_hand = False

    def play(self, course: Course) -> None:
        """What happens, and then quiet."""
        try:
            for after, happening in course:
                self._tend()
                self._pass(after)
                self.happen(happening)
            self._settle()
        except (DeadlockError, AssertionError) as stuck:
            self.lines.append(str(stuck))
        else:
            self.lines += judge_quiet(self.world, FOREIGN)
        finally:
            self.world.close()
        self.lines += [*self.weather.lines, *self.world.machine.failures]

    # --- sessions ---

    def _alive(self) -> list[Running]:
        self._running = [running for running in self._running if running.alive]
        return self._running

    def _tend(self) -> None:
        """Somebody always runs who is not paused, as by a schedule."""
        if not any(not running.process.paused for running in self._alive()):
            self._start()

    def _start(self) -> None:
        gate = self.world.new_gate()
        running = self.world.new_session(gate)
        self.weather.arm(gate)
        self.weather.epochs[gate.name] = lambda: running.session.report.epoch
        running.process.offset += self._skew
        self._skew = 0.0
        running.start()
        self._running.append(running)

    def _pass(self, seconds: float) -> None:
        """Let time pass, and wake up whoever was paused when it is time."""
        clock, until = self.world.clock, self.world.machine.now + seconds
        while self._paused and self._paused[0][0] <= until:
            at, running, how = self._paused.pop(0)
            clock.sleep(max(0.0, at - self.world.machine.now))
            self._wake(running, how)
        clock.sleep(max(0.0, until - self.world.machine.now))

    def _wake(self, running: Running, how: str) -> None:
        if running.process.paused:
            ahead = _AHEAD_SECONDS if how == "ahead" else 0.0
            self.world.machine.resume(running.process, clock="stopped" if how == "stopped" else "right", ahead=ahead)

    # --- what happens ---

    def happen(self, happening: Happening) -> None:
        """Let something happen now."""
        weather, now = self.weather, self.world.machine.now
        match happening:
            case Kill(0):
                for running in self._alive()[:1]:
                    running.kill()
            case Kill(calls, before):
                weather.strikes.append((weather.calls + calls, before, lambda gate: gate.kill()))
            case Pause(calls, seconds, clock):
                weather.strikes.append((weather.calls + calls, True, self._pause(seconds, clock)))
            case End():
                for running in [each for each in self._alive() if not each.process.paused][:1]:
                    running.end()
            case Another():
                if len(self._alive()) < _MOST_RUNNING:
                    self._start()
            case Storm(service, seconds, probability):
                weather.storms[service] = (now + seconds, probability)
            case Lose(calls, outcome):
                weather.lost.append((weather.calls + calls, outcome))
                weather.lost.sort()
            case Land():
                weather.land_all()
            case Slow(seconds):
                weather.slow = seconds
            case Skew(seconds):
                self._skew = seconds
            case ByHand(nth, deletes):
                self._change_by_hand(nth, deletes=deletes)
            case Resync(dry_run, force):
                ask(self.world, dry_run=dry_run, force=force)
            case _:
                happen(self.world, happening)

    def _pause(self, seconds: float, clock: str) -> Callable[[Gate], None]:
        def strike(gate: Gate) -> None:
            running = next(each for each in self._running if each.gate is gate)
            self._paused.append((self.world.machine.now + seconds, running, clock))
            self._paused.sort(key=lambda each: each[0])
            gate.pause()

        return strike

    def _change_by_hand(self, nth: int, *, deletes: bool) -> None:
        ours = list(_of_ours(self.world))
        if not ours:
            return
        key, record_set = ours[nth % len(ours)]
        self._by_hand = True
        self.world.route53.by_hand("DELETE", key, record_set)
        if not deletes:
            other = RecordSet(record_set.ttl + 1 if record_set.ttl else 61, record_set.values)
            self.world.route53.by_hand("CREATE", key, other)

    # --- the end ---

    def _settle(self) -> None:
        """Everything is answered again; sessions run to quiet."""
        world, weather = self.world, self.weather
        weather.clear()
        for _, running, how in self._paused:
            self._wake(running, how)
        self._paused = []
        self._pass(_SETTLING_SECONDS)
        for running in self._alive():
            running.end()
        self._running = []
        weather.land_all()
        self._pass(_LEASE_SECONDS)
        for gap in _QUIET_SECONDS:
            self._pass(gap)
            self._quiet_session()
        if self._by_hand or held(world):
            ask(world, force=True)
            self._quiet_session(_RESYNC_SECONDS)
            for gap in _QUIET_SECONDS[1:]:
                self._pass(gap)
                self._quiet_session()

    def _quiet_session(self, seconds: float = _SETTLING_SECONDS) -> None:
        self._start()
        self._pass(seconds)
        (running,) = self._running
        report = running.end()
        if report is None or not report.clean:
            self.lines.append(
                f"a session does not end cleanly, though nothing is in its way: {report or running.error}"
            )
        self._running = []


def a_world(seed: object) -> UnrulyWorld:
    """Two registered clusters, and zones with other people's record sets."""
    world = an_outside(seed=seed)
    for name in world.clusters:
        register(world, name)
    return world


def _of_ours(world: World) -> Iterator[tuple[RecordKey, RecordSet]]:
    for zone_id in world.route53.ids:
        for key, record_set in world.route53.records(zone_id).items():
            ours = key.type not in ("SOA", "NS") and not key.name.startswith("_kubesync-") and key not in FOREIGN
            if ours and record_set.alias is None and record_set.routing == SIMPLE:
                yield key, record_set


def held(world: World) -> bool:
    """Whether deletions are held back, until a person lets them through (I5)."""
    table = StateTable(world.store)
    return any(part.held for name in world.clusters for state in table.load_all(name) for part in state.parts.values())


def judged(case: Scheduled, course: Course) -> list[str]:
    """What is wrong after a course on the schedule of a case."""
    deployment = Deployment(f"{case.seed} {case.number}")
    deployment.play(course)
    return deployment.lines


def play(case: object) -> list[str]:
    assert isinstance(case, Scheduled)
    return explained(case, judged)


def explained(case: Scheduled, judge: Callable[[Scheduled, Course], list[str]]) -> list[str]:
    """What is wrong with a case, and the shortest course with which something still is."""
    lines = judge(case, case.course)
    if not lines:
        return []
    least = shrunk(case.course, lambda some: bool(judge(case, some)))
    return [*shortened(judge(case, least) or lines), "shrunk to:", *(f"    {step}," for step in least)]


SECTION: Final = Section(
    13,
    "whole deployments on random schedules",
    "I1 I2 I3",
    cases,
    play,
    fault=lambda _case: "as a random schedule has it",
)
