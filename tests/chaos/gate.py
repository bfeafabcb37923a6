"""The way out of one process: every call to DynamoDB, Route 53 or Kubernetes passes its gate, before and after its effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

type Hook = Callable[[Outward], None]


class Killed(BaseException):
    """The process was killed: nothing that it still does leaves it."""


@dataclass(frozen=True, slots=True)
class Outward:
    """One outward call of a process; ``number`` counts from 1. ``kind``: of a write, see ``chaos.writes``."""

    number: int
    service: str
    what: str
    writes: bool
    kind: str = ""

    def __str__(self) -> str:
        return f"call {self.number}: {self.service} {self.what}"


class Gate:
    """What strikes the calls of one process.

    Args:
        name: of the process, for reports.
        before: called before a call has its effect; may raise, or block.
        after: called once it has had its effect, before the caller learns about it.
    """

    def __init__(self, name: str, before: Hook | None = None, after: Hook | None = None) -> None:
        self.name = name
        self.calls: list[Outward] = []
        self.dead = False
        self.on_before: Hook = before or _pass
        self.on_after: Hook = after or _pass

    def before(self, service: str, what: str, *, writes: bool, kind: str = "") -> Outward:
        if self.dead:
            raise Killed
        call = Outward(len(self.calls) + 1, service, what, writes, kind)
        self.calls.append(call)
        self.on_before(call)
        return call

    def after(self, call: Outward) -> None:
        self.on_after(call)

    def calls_of(self, service: str) -> list[Outward]:
        """Those to one service so far."""
        return [call for call in self.calls if call.service == service]

    def kill(self) -> None:
        """From now on the process is dead; raises Killed."""
        self.dead = True
        raise Killed


def kill_at(gate: Gate, number: int, *, before: bool) -> None:
    """Kill the process at a call, before or after its effect. After a refused call: before it does anything else."""

    def strike(call: Outward) -> None:
        if call.number == number:
            gate.kill()

    def strike_next(call: Outward) -> None:
        if call.number > number:
            gate.kill()

    if before:
        gate.on_before = strike
    else:
        gate.on_before, gate.on_after = strike_next, strike


def _pass(_call: Outward) -> None:
    return None
