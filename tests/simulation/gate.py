"""The way out of one process: every call to DynamoDB, Route 53 or Kubernetes passes its gate, before and after its effect."""

from collections.abc import Callable
from dataclasses import dataclass

from simulation.machine import Killed, SimThread
from simulation.process import Process

type Hook = Callable[[Outward], None]


@dataclass(frozen=True, slots=True)
class Outward:
    """One outward call of a process; ``number`` counts from 1. ``kind``: of a write, see ``simulation.writes``.

    ``thread``: who makes it. ``at``: by the machine's clock.
    """

    number: int
    service: str
    what: str
    writes: bool
    kind: str = ""
    thread: str = ""
    at: float = 0.0

    def __str__(self) -> str:
        return f"call {self.number}: {self.service} {self.what}"


class Gate:
    """What strikes the calls of one process.

    ``on_before`` is called before a call has its effect; it may raise, wait, kill or pause. ``on_after`` is called once the call has had
    its effect, before the caller learns about it. ``effects``: the writes that had one. ``killed``: it was killed here.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[Outward] = []
        self.effects: list[Outward] = []
        self.killed = False
        self._under_way: dict[int, Outward] = {}
        self.on_before: Hook = _pass
        self.on_after: Hook = _pass
        self.process: Process

    def before(self, service: str, what: str, *, writes: bool, kind: str = "") -> Outward:
        machine = self.process.machine
        machine.point(what)
        call = Outward(len(self.calls) + 1, service, what, writes, kind, machine.current.name, machine.now)
        machine.note(what)
        self.calls.append(call)
        self._under_way[machine.current.number] = call
        self.on_before(call)
        machine.check()
        return call

    def under_way(self, thread: SimThread) -> Outward:
        """The call that a thread makes now."""
        return self._under_way[thread.number]

    def after(self, call: Outward) -> None:
        if call.writes:
            self.effects.append(call)
        self.on_after(call)
        self.process.machine.point("answer")

    def calls_of(self, service: str) -> list[Outward]:
        """Those to one service so far."""
        return [call for call in self.calls if call.service == service]

    def kill(self) -> None:
        """The process dies now. Does not return in one of its own threads."""
        self.killed = True
        self.process.machine.kill(self.process)

    def pause(self) -> None:
        """All its threads stop here until somebody resumes it."""
        self.process.machine.pause(self.process)


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


__all__ = ["Gate", "Killed", "Outward", "kill_at"]
