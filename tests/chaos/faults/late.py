"""Section 17: mailboxes are delayed at will: an actor sees a message some time after it was sent (I1, I2, I3, I4).

Mostly by milliseconds, sometimes by seconds, seldom by a minute. What one sender sends to one receiver keeps its order, and nothing else does. Or
one cluster sees nothing for a minute, while others go on. At the end nobody is late any more, sessions run to quiet, and what stands
is what the clusters ask for. A session that is told to end does so in time, whatever its actors have not seen.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from chaos.faults.schedules import Deployment, Scheduled, explained, held
from chaos.faults.struck import Weather
from chaos.sections import Effort, Section
from chaos.stories.every_story import CHANGES, REQUESTS, STORIES
from chaos.stories.happenings import Course
from chaos.stories.play import Arm, Play
from chaos.stories.requests_story import ask
from chaos.stories.verdict import shortened
from simulation.machine import Machine
from simulation.post import Delay
from simulation.world import Running

COURSE: Final = "a drawn course"
ALL, CLUSTERS, ZONES, ONE = "all", "clusters", "zones", "one cluster, for a minute"
_CASES: Final = {CHANGES: 100, REQUESTS: 60, COURSE: 140}
_SHORT_CASES: Final = {CHANGES: 6, REQUESTS: 3, COURSE: 11}
_RECEIVERS: Final = (ALL, CLUSTERS, ZONES, ONE)
_SEEN: Final = {ALL: ("",), CLUSTERS: ("/cluster",), ZONES: ("zone ",)}
_MINUTE: Final = 60.0
# Of ten cases, five are rather late, and five very late.
_WEIGHTS: Final = ((900, 97, 3), (700, 280, 20))
_LONGEST_SECONDS: Final = (0.05, 5.0, _MINUTE)
# Within these seconds of a story or a course the minute of one cluster begins.
_BEGINS_SECONDS: Final = 80.0
# The drain margin, and what follows it.
_ENDS_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Late:
    """What is played, and whose mailboxes are late. The seed draws by how much, and who goes next."""

    seed: int
    number: int
    what: str
    late: str


def cases(effort: Effort) -> Sequence[Late]:
    counts = _SHORT_CASES if effort.short else _CASES
    return [
        Late(effort.seed, number, what, _RECEIVERS[number % len(_RECEIVERS)])
        for what, count in counts.items()
        for number in range(count)
    ]


def delay_of(case: Late, machine: Machine) -> Delay:
    """How long messages are held."""
    chance = random.Random(f"late {case}")
    if case.late == ONE:
        slow, since = chance.choice(("prod", "edge")), machine.now + chance.random() * _BEGINS_SECONDS

        def of_one(receiver: str, _message: object) -> float:
            held = receiver == f"{slow}/cluster" and since <= machine.now < since + _MINUTE
            return since + _MINUTE - machine.now if held else 0.0

        return of_one
    words, weights = _SEEN[case.late], chance.choice(_WEIGHTS)

    def drawn(receiver: str, _message: object) -> float:
        if not any(word in receiver for word in words):
            return 0.0
        return chance.random() * chance.choices(_LONGEST_SECONDS, weights)[0]

    return drawn


@dataclass(slots=True)
class _LatePlay(Play):
    """A story whose sessions are late, as long as it is told."""

    weather: Weather = field(kw_only=True)
    late: Delay = field(kw_only=True)
    asked_at: float = 0.0

    def prepare(self) -> None:
        """A person who is told that a resync was not done asks again, until all is quiet."""
        waits = self.waits
        Play.prepare(self)
        if self.waits > waits:
            ask(self.world)

    def begin(self, arm: Arm | None = None) -> Running:
        assert arm is None
        world, weather = self.world, self.weather
        # Before a mishap, and at the end, all has to be quiet.
        world.delay = None if self.step is None or (self.step.between and self.waits) else self.late
        gate = world.new_gate()
        running = world.new_session(gate, self.recovery)
        weather.arm(gate)
        weather.epochs[gate.name] = lambda: running.session.report.epoch
        running.start()
        return running

    def advance(self, running: Running) -> bool:
        goes_on = Play.advance(self, running)
        self.asked_at = self.world.machine.now
        return goes_on

    def ended(self, running: Running) -> None:
        took = self.world.machine.now - self.asked_at
        if running.report is not None and self.recovery is None and took > _ENDS_SECONDS:
            self.weather.lines.append(f"{running.gate.name} took {took:.1f} s to end")
        Play.ended(self, running)


class _LateDeployment(Deployment):
    """A course whose sessions are late, until all is to be quiet."""

    def __init__(self, case: Late) -> None:
        super().__init__(f"{case.seed} {case.number}")
        self.world.delay = delay_of(case, self.world.machine)

    def _settle(self) -> None:
        self.world.delay = None
        super()._settle()


def play(case: object) -> list[str]:
    assert isinstance(case, Late)
    if case.what == COURSE:

        def judged(_scheduled: Scheduled, course: Course) -> list[str]:
            deployment = _LateDeployment(case)
            deployment.play(course)
            return deployment.lines

        return explained(Scheduled(case.seed, case.number), judged)
    story, seed = STORIES[case.what], f"{case.seed} {case.number}"
    world = story.begin().copy(seed)
    weather = Weather(world, random.Random(f"weather {seed}"))
    tried = _LatePlay(world, story, weather=weather, late=delay_of(case, world.machine))
    try:
        tried.to_the_end()
        if held(world):
            # A minute without news may end with a list that lacks many objects: a person lets their deletions through (I5).
            ask(world, force=True)
            tried.quiet = 0
            tried.to_the_end()
    finally:
        world.close()
    return shortened([*weather.lines, *world.machine.failures, *tried.judge()])


SECTION: Final = Section(
    17,
    "mailboxes are delayed at will",
    "I1 I2 I3 I4",
    cases,
    play,
    fault=lambda case: f"{case.what}: {case.late}" if isinstance(case, Late) else "",
)
