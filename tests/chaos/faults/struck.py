"""What strikes the outward calls of all sessions of a case: throttling, slow calls, lost answers, writes that land later, deaths."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from harness.fakes.memory_store import LandLater
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync.domain.errors import (
    KubesyncError,
    StoreBusyError,
    StoreOutcomeUnknownError,
    StoreUnavailableError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
    ZoneUnavailableError,
)
from simulation.gate import Gate, Outward
from simulation.world import World
from simulation.writes import KINDS, SENT, SWAPPED

DONE, NOT_DONE, LATER, UNREACHED = "done", "not done", "lands later", "not reached"
_FENCE: Final = re.compile(r"((?:cluster|lease)#[\w-]+)/fence")
_USUAL_LATENCY: Final = 0.02
FENCED: Final = frozenset(KINDS) - {"deployment bound", "epoch drawn", "lease", "fence raised", SENT, SWAPPED}
"""Writes to the tables that check a fence. What is sent to Route 53 is kept out by journals, which are swapped later."""


@dataclass(slots=True)
class Awaited:
    """What happens at a call whose kind and text hold these words, the ``left``-th from now."""

    words: tuple[str, ...]
    left: int
    before: bool
    happen: Callable[[Gate, Outward], None]

    def meets(self, call: Outward) -> bool:
        """Whether it is such a call."""
        said = f"{call.kind} {call.what}"
        return all(word in said for word in self.words)


@dataclass(slots=True)
class Weather:
    """Hooks for the gates of every session. What is arranged holds for whichever session makes the call.

    ``slow``: the longest that a call takes, in seconds. ``storms``: until when a service refuses, and with which probability.
    ``lost``: what becomes of the next writes without answer. ``strikes``: after so many calls, something happens to the caller.
    ``awaited``: what happens at certain calls. ``watches`` look at the world after each write.
    ``epochs``: of each session. ``lines``: writes that a fence should have refused.
    """

    world: World
    chance: random.Random
    slow: float = _USUAL_LATENCY
    storms: dict[str, tuple[float, float]] = field(default_factory=dict)
    lost: list[tuple[int, str]] = field(default_factory=list)
    strikes: list[tuple[int, bool, Callable[[Gate], None]]] = field(default_factory=list)
    awaited: list[Awaited] = field(default_factory=list)
    watches: list[Callable[[Outward], None]] = field(default_factory=list)
    calls: int = 0
    epochs: dict[str, Callable[[], int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    _unanswered: set[int] = field(default_factory=set)

    def arm(self, gate: Gate) -> None:
        gate.on_before = lambda call: self._before(gate, call)
        gate.on_after = lambda call: self._after(gate, call)

    def clear(self) -> None:
        """From now on everything is answered."""
        self.slow = _USUAL_LATENCY
        self.storms, self.lost, self.strikes, self.awaited = {}, [], [], []

    def land_all(self) -> None:
        """Whatever is on its way arrives."""
        while self.world.store.in_flight:
            self.world.store.land()
        while self.world.route53.delayed:
            self.world.route53.land()

    def _before(self, gate: Gate, call: Outward) -> None:
        self.calls += 1
        self._strike(gate, before=True)
        self._meet(gate, call, before=True)
        gate.process.sleep(self.chance.random() * self.slow)
        until, probability = self.storms.get(call.service, (0.0, 0.0))
        if self.world.machine.now < until and self.chance.random() < probability:
            if call.service == "dynamodb":
                raise StoreBusyError("throttled")
            if call.service == "route53":
                raise ZoneThrottledError("throttled")
        if not call.writes or not self.lost or self.lost[0][0] > self.calls:
            return
        _, outcome = self.lost.pop(0)
        self.lose(call, outcome)

    def lose(self, call: Outward, outcome: str) -> None:
        """A write that is about to be made gets no answer. Raises what its caller sees, now or once it is done."""
        if outcome == LATER:
            raise LandLater
        if outcome == UNREACHED:
            raise unreached(call)
        if outcome == NOT_DONE:
            raise _unknown(call)
        self._unanswered.add(id(call))

    def _after(self, gate: Gate, call: Outward) -> None:
        if call.kind in FENCED:
            self._look_at_the_fence(gate, call)
        if call.writes:
            for watch in self.watches:
                watch(call)
        self._strike(gate, before=False)
        self._meet(gate, call, before=False)
        if id(call) in self._unanswered:
            self._unanswered.discard(id(call))
            raise _unknown(call)

    def _meet(self, gate: Gate, call: Outward, *, before: bool) -> None:
        for awaited in list(self.awaited):
            if awaited.before is not before or not awaited.meets(call):
                continue
            awaited.left -= 1
            if not awaited.left:
                self.awaited.remove(awaited)
                awaited.happen(gate, call)

    def _look_at_the_fence(self, gate: Gate, call: Outward) -> None:
        """What has just been written checks a fence, and that fence lets its writer in (I2)."""
        if self.world.store.had_landed or not call.what.startswith("transact"):
            return
        epoch, fences = self.epochs[gate.name](), _FENCE.findall(call.what)
        if not fences:
            self.lines.append(f"{gate.name} wrote without a check of a fence: {call}")
        for partition in fences:
            fence = self.world.store.peek(Key(CONTROL, partition, "fence"))
            if fence is None or fence["epoch"] != epoch:
                self.lines.append(f"{gate.name} of epoch {epoch} wrote, and the fence is {fence}: {call}")

    def _strike(self, gate: Gate, *, before: bool) -> None:
        for strike in list(self.strikes):
            at, when, happen = strike
            # Whoever was paused here finds the others changed when it goes on.
            if when is before and self.calls >= at and strike in self.strikes:
                self.strikes.remove(strike)
                happen(gate)


def _unknown(call: Outward) -> KubesyncError:
    text = "no answer to a write: it may have happened"
    return StoreOutcomeUnknownError(text) if call.service == "dynamodb" else ZoneOutcomeUnknownError(text)


def unreached(call: Outward) -> KubesyncError:
    """Denied, or no connection: not done, and nobody is told to try again."""
    text = "not reached, or access is denied"
    return StoreUnavailableError(text) if call.service == "dynamodb" else ZoneUnavailableError(text)
