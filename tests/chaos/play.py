"""Plays a story with one session after the other, some of which meet faults; then lets the sessions run to quiet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.gate import Gate
from chaos.oracle import judge_quiet
from chaos.steps import Step, Story
from chaos.sync_session import SyncSession
from chaos.world import World
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import SessionReport
from kubesync.operations.recovery import RecoveryRequest

_AFTER_DEATH_SECONDS = 30.0
_QUIET_SECONDS = (8.0, 60.0, 1200.0, 1200.0)
_BEFORE_A_MISHAP_SECONDS = 60.0
_MOST_SESSIONS = 60
_MOST_WAITS = 8

type Arm = Callable[[Gate], None]


@dataclass(slots=True)
class Play:
    """A story under way. ``position`` is the next step; ``marks`` are worlds as they stood at each hand-over."""

    world: World
    story: Story
    position: int = 0
    quiet_rounds: int = 0
    reports: list[SessionReport | None] = field(default_factory=list)
    linger: bool = False
    waits: int = 0

    @property
    def over(self) -> bool:
        return self.step is None and self.quiet_rounds >= len(_QUIET_SECONDS)

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

    def copy(self) -> Play:
        return Play(
            self.world.copy(), self.story, self.position, self.quiet_rounds, list(self.reports), self.linger, self.waits
        )

    def one_session(self, arm: Arm | None = None) -> Gate:
        """Run one session until a hand-over, the story's end, or its death. ``arm`` arranges what strikes it."""
        self.prepare()
        gate = Gate(f"session-{self.world.sessions + 1}")
        if arm is not None:
            arm(gate)
        lingering = self.linger

        def drive(_session: SyncSession) -> bool:
            nonlocal lingering
            if lingering:  # a round of its own for what the last one left behind, before the world moves on
                lingering = False
                return True
            return self.advance(gate)

        session = self.world.new_session(gate, drive)
        self.ended(self.world.run(session, gate, self.recovery))
        return gate

    def prepare(self) -> None:
        """What happens while no session runs. Mishaps wait until all is quiet: another session comes first."""
        while self.step is not None and self.step.between:
            wrong = self.judge()
            if wrong and self.waits < _MOST_WAITS:
                self.waits += 1
                self.world.clock.advance(_BEFORE_A_MISHAP_SECONDS)
                self.linger = True
                return
            assert not wrong, f"not quiet before {self.step.name}: {wrong}"
            self.step.happen(self.world)
            self.position += 1

    def ended(self, report: SessionReport | None) -> None:
        """A session has ended (None: it was killed). A recovery that did not get through is asked for again."""
        self.reports.append(report)
        if report is None or report.code == ErrorCode.NOT_MASTER:
            self.world.clock.advance(_AFTER_DEATH_SECONDS)
        elif self.recovery is not None and _got_through(report) and (report.clean or self.recovery.dry_run):
            self.position += 1  # a dry run settles no zone, so that it leaves an unclean end as unclean as it was

    def advance(self, gate: Gate) -> bool:
        """The next step of the story, or of the quiet after it. False: the session's time is up."""
        self.world.outside()
        try:
            step = self.step
            if step is not None:
                if step.in_session or step.hand_over or step.killed:
                    self.position += 1
                if step.in_session:
                    step.happen(self.world)
                if step.killed:
                    gate.kill()
                return step.in_session
            if self.quiet_rounds < len(_QUIET_SECONDS):
                self.world.clock.advance(_QUIET_SECONDS[self.quiet_rounds])
                self.quiet_rounds += 1
                return True
            return False
        finally:
            self.world.enter(gate)

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
