"""A process of the simulation: the scheduler that its code is given, its clock, and its way out."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from simulation.machine import Machine, SimThread

if TYPE_CHECKING:
    from kubesync.actors.scheduler import Event, Lock, Thread, Wakeup

EPOCH = 1_800_000_000.0


class Process:
    """Implements ``Scheduler`` on a machine.

    ``offset``: how far its clock is ahead of the machine's. ``dead``: it was killed, or has ended.
    """

    def __init__(self, machine: Machine, name: str, seed: object = 0) -> None:
        self.machine = machine
        self.name = name
        self.offset = 0.0
        self.dead = False
        self.paused = False
        self.paused_at = 0.0
        self.threads: list[SimThread] = []
        self.frozen: list[SimThread] = []
        self.frozen_timers: list[tuple[float, SimThread, int]] = []
        self._chance = random.Random(f"{name} {seed}")
        machine.processes.append(self)

    def monotonic(self) -> float:
        return self.machine.now + self.offset

    def epoch_seconds(self) -> float:
        return EPOCH + self.machine.now + self.offset

    def sleep(self, seconds: float) -> None:
        self.machine.wait(f"{seconds:.3f} s to pass", seconds)

    def thread(self, name: str, run: Callable[[], object]) -> Thread:
        return SimThread(self.machine, self, name, run)

    def thread_id(self) -> int:
        return self.machine.current.number

    def lock(self) -> Lock:
        return SimLock(self.machine)

    def event(self) -> Event:
        return SimEvent(self.machine)

    def wakeup(self) -> Wakeup:
        return SimWakeup(self.machine)

    def random(self) -> float:
        return self._chance.random()

    def token_hex(self, size: int) -> str:
        return f"{self._chance.getrandbits(8 * size):0{2 * size}x}"


class Waiters:
    """Threads that wait for one thing, in the order of their coming."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.threads: list[SimThread] = []

    def wait(self, what: str, seconds: float | None) -> bool:
        current = self.machine.current
        self.threads.append(current)
        try:
            return self.machine.wait(what, seconds)
        finally:
            if current in self.threads:
                self.threads.remove(current)

    def wake_all(self) -> None:
        waiting, self.threads = self.threads, []
        for thread in waiting:
            self.machine.make_ready(thread)


class SimLock:
    """As ``threading.Lock``: whoever comes first after a release gets it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._holder: SimThread | None = None
        self._waiters = Waiters(machine)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        machine = self._machine
        machine.point("lock")
        until = machine.now + timeout
        while self._holder is not None:
            if not blocking or (timeout >= 0 and machine.now >= until):
                return False
            self._waiters.wait(f"a lock of {self._holder.name}", None if timeout < 0 else until - machine.now)
        self._holder = machine.current
        return True

    def release(self) -> None:
        if self._machine.current.process.dead:
            return
        assert self._holder is not None, "a lock that nobody holds was released"
        self._holder = None
        self._waiters.wake_all()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.release()


class SimEvent:
    """As ``threading.Event``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._set = False
        self._waiters = Waiters(machine)

    def set(self) -> None:
        if not self._machine.current.process.dead:
            self._set = True
            self._waiters.wake_all()

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        self._machine.check()
        if not self._set:
            self._waiters.wait("an event", timeout)
        return self._set


class SimWakeup:
    """Implements ``Wakeup``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._count = 0
        self._waiters = Waiters(machine)

    def set(self) -> None:
        if not self._machine.current.process.dead:
            self._count += 1
            self._waiters.wake_all()

    def wait(self, seconds: float) -> None:
        self._machine.check()
        if not self._count:
            self._waiters.wait("a wake-up", max(0.0, seconds))
        self._count -= min(1, self._count)
