"""Plays a story with one session after the other, some of which meet faults; then lets the sessions run to quiet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from chaos.gate import Gate
from chaos.story import Step
from chaos.sync_session import SyncSession
from chaos.world import World
from kubesync.domain.errors import ErrorCode
from kubesync.session.report import SessionReport

_AFTER_DEATH_SECONDS = 30.0
_QUIET_SECONDS = (8.0, 60.0, 1200.0, 1200.0)
_MOST_SESSIONS = 60

type Arm = Callable[[Gate], None]


@dataclass(slots=True)
class Play:
    """A story under way. ``position`` is the next step; ``marks`` are worlds as they stood at each hand-over."""

    world: World
    story: Sequence[Step]
    position: int = 0
    quiet_rounds: int = 0
    reports: list[SessionReport | None] = field(default_factory=list)
    linger: bool = False

    @property
    def over(self) -> bool:
        return self.position >= len(self.story) and self.quiet_rounds >= len(_QUIET_SECONDS)

    def copy(self) -> Play:
        return Play(self.world.copy(), self.story, self.position, self.quiet_rounds, list(self.reports), self.linger)

    def one_session(self, arm: Arm | None = None) -> Gate:
        """Run one session until a hand-over, the story's end, or its death. ``arm`` arranges what strikes it."""
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
        report = self.world.run(session, gate)
        self.reports.append(report)
        if report is None or report.code == ErrorCode.NOT_MASTER:
            self.world.clock.advance(_AFTER_DEATH_SECONDS)
        return gate

    def advance(self, gate: Gate) -> bool:
        """The next step of the story, or of the quiet after it. False: the session's time is up."""
        self.world.outside()
        try:
            if self.position < len(self.story):
                step = self.story[self.position]
                self.position += 1
                if step.hand_over:
                    return False
                step.happen(self.world)
                return True
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
