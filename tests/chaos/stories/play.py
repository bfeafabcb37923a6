"""Plays a story with one session after the other, some of which meet faults; then lets the sessions run to quiet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from chaos.stories.oracle import judge_quiet
from chaos.stories.steps import Step, Story
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import SessionReport
from kubesync_local.recovery.recovery import RecoveryRequest
from simulation.gate import Gate
from simulation.world import Running, World

STEP_SECONDS: Final = 4.0
"""In which a session does all that follows from a step."""
_BEGIN_SECONDS: Final = 0.1
_AFTER_DEATH_SECONDS: Final = 30.0
# Between sessions, at the end: longer than any backoff, with time for a name to change hands.
_QUIET_SECONDS: Final = (0.0, 60.0, 1200.0, 1200.0)
_QUIET_STEPS: Final = 2
_BEFORE_A_MISHAP_SECONDS: Final = 60.0
_MOST_SESSIONS: Final = 60
_MOST_WAITS: Final = 8

type Arm = Callable[[Gate], None]


@dataclass(slots=True)
class Play:
    """A story under way. ``position`` is the next step; ``quiet`` counts the sessions after the last one.

    ``patience``: for so many seconds a session goes on once its time is up.
    """

    world: World
    story: Story
    position: int = 0
    quiet: int = 0
    reports: list[SessionReport | None] = field(default_factory=list)
    linger: bool = False
    waits: int = 0
    patience: float = 0.0

    @property
    def over(self) -> bool:
        return self.step is None and self.quiet >= len(_QUIET_SECONDS)

    @property
    def step(self) -> Step | None:
        """The next one; None: the story is told."""
        steps = self.story.steps
        return steps[self.position] if self.position < len(steps) else None

    @property
    def recovery(self) -> RecoveryRequest | None:
        """What the next session is started for, if not to watch."""
        return None if self.step is None else self.step.recovery

    def judge(self) -> list[str]:
        """What is wrong with the world, where it should be quiet."""
        return judge_quiet(self.world, self.story.foreign, self.story.left_upstreams)

    def copy(self, seed: object = None) -> Play:
        """The same at this point, in a world of its own. No session runs."""
        world = self.world.copy(seed)
        return Play(world, self.story, self.position, self.quiet, list(self.reports), self.linger, self.waits)

    def one_session(self, arm: Arm | None = None) -> Gate:
        """Run one session until a hand-over, the story's end, or its death. ``arm`` arranges what strikes it."""
        self.prepare()
        running = self.begin(arm)
        self.drive(running)
        self.ended(running)
        return running.gate

    def begin(self, arm: Arm | None = None) -> Running:
        """Start a session."""
        gate = self.world.new_gate()
        running = self.world.new_session(gate, self.recovery)
        if arm is not None:
            arm(gate)
        running.start()
        return running

    def drive(self, running: Running) -> None:
        """Let the world move on while a session runs, until it is paused or has ended."""
        clock = self.world.clock
        if self.recovery is not None:
            while running.alive and not running.process.paused:
                clock.sleep(_BEGIN_SECONDS)
            return
        clock.sleep(STEP_SECONDS if self.linger else _BEGIN_SECONDS)
        self.linger = False
        while running.alive and not running.process.paused and self.advance(running):
            clock.sleep(STEP_SECONDS)
        clock.sleep(self.patience)
        if running.alive and not running.process.paused:
            running.end()

    def prepare(self) -> None:
        """What happens while no session runs. Mishaps wait until all is quiet: another session comes first."""
        while self.step is not None and self.step.between:
            wrong = self.judge()
            if wrong and self.waits < _MOST_WAITS:
                self.waits += 1
                self.world.clock.sleep(_BEFORE_A_MISHAP_SECONDS)
                self.linger = True
                return
            assert not wrong, f"not quiet before {self.step.name}: {wrong}"
            self.step.happen(self.world)
            self.position += 1
        if self.step is None and self.quiet < len(_QUIET_SECONDS):
            self.world.clock.sleep(_QUIET_SECONDS[self.quiet])

    def ended(self, running: Running) -> None:
        """A session has ended. A recovery that did not get through is asked for again."""
        report = running.report
        self.reports.append(report)
        if report is None or report.code == ErrorCode.NOT_MASTER:
            self.world.clock.sleep(_AFTER_DEATH_SECONDS)
        elif self.recovery is not None and _got_through(report) and (report.clean or self.recovery.dry_run):
            self.position += 1  # a dry run settles no zone, so that it leaves an unclean end as unclean as it was

    def advance(self, running: Running) -> bool:
        """The next step of the story, or of the quiet after it. False: the session's time is up."""
        step = self.step
        if step is None:
            if self.over:
                return False
            self.quiet += 1
            self.world.clock.sleep(STEP_SECONDS * (_QUIET_STEPS - 1))
            return False
        if step.between or step.recovery is not None:
            return False
        self.position += 1
        if step.killed:
            running.kill()
        if step.in_session:
            step.happen(self.world)
        return step.in_session

    def to_the_end(self, arm: Arm | None = None) -> None:
        """Sessions until the story is over and all is quiet."""
        for _ in range(_MOST_SESSIONS):
            if self.over:
                return
            self.one_session(arm)
        raise AssertionError("the story does not end")


def _got_through(report: SessionReport) -> bool:
    """Whether a recovery did what it could for every cluster; else the command fails, and says of which one."""
    return bool(report.recoveries) and not any("error" in cluster for cluster in report.recoveries[0]["clusters"])
