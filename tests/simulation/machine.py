"""A machine on which whole deployments run deterministically: parked threads pass one baton, and time is virtual.

Exactly one thread runs. It gives the baton away where it waits, and, on a random schedule, at every point: an outward call, a lock, a
thread that is started. When all wait, the clock jumps to the earliest timer. A seed decides who goes next; the same seed decides the same.

    fixed      whoever runs goes on until it has to wait; who waits gets the baton in the order of becoming ready
    random     at each point the seed chooses among all that could run
"""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

from simulation import ownership

if TYPE_CHECKING:
    from simulation.process import Process

_LEAST_SECONDS: Final = 1e-6
_MOST_AT_A_TIME: Final = 200_000
NEW, READY, WAITING, DONE = "new", "ready", "waiting", "done"


class Killed(BaseException):
    """The process was killed: nothing that its threads still do leaves it."""


class TouchedError(Exception):
    """A thread has touched what belongs to an actor of another thread."""


class DeadlockError(Exception):
    """Nobody can run, and no timer is set. The message says who waits for what."""


class SimThread:
    """A thread of a process. Implements ``Thread``."""

    def __init__(self, machine: Machine, process: Process, name: str, run: Callable[[], object]) -> None:
        self.machine = machine
        self.process = process
        self.name = f"{process.name}/{name}"
        self.number = next(machine.numbers)
        self.state = NEW
        self.waits_for = ""
        self.woken = False
        self.wait_number = 0
        self.joiners: list[SimThread] = []
        self.unwound_by: SimThread | None = None
        self.run = run
        self.is_actor = False
        self.gate = _closed()

    def start(self) -> None:
        machine = self.machine
        machine.check()
        assert self.state is NEW, f"{self.name} was started before"
        self.process.threads.append(self)
        _WORKERS.begin(self)
        machine.make_ready(self)
        machine.point("start")

    def is_alive(self) -> bool:
        return self.state not in (NEW, DONE)

    def join(self, timeout: float | None = None) -> None:
        assert self.state is not NEW, f"{self.name} was never started"
        if self.state is DONE:
            self.machine.check()
            return
        self.joiners.append(self.machine.current)
        self.machine.wait(f"the end of {self.name}", timeout)
        if self.machine.current in self.joiners:
            self.joiners.remove(self.machine.current)


class Machine:
    """Runs threads of several processes, one at a time.

    Args:
        seed: decides who goes next; None: the fixed schedule.
    """

    def __init__(self, seed: object = None, *, now: float = 1000.0) -> None:
        self.now = now
        self.chance = None if seed is None else random.Random(f"machine {seed}")
        self.numbers = count(1)
        self.switches = 0
        self.failures: list[str] = []
        self.processes: list[Process] = []
        self._ready: list[SimThread] = []
        self._timers: list[tuple[float, int, SimThread, int]] = []
        self._order = count()
        self._trace = hashlib.blake2b(digest_size=8)
        self._deadlock = ""
        self._touched = ""
        self._at_a_time = 0
        self.current: SimThread
        self.main: SimThread

    def begin(self, process: Process) -> None:
        """The calling thread plays this process's main thread from now on."""
        self.main = self.current = SimThread(self, process, "main", lambda: None)
        process.threads.append(self.main)

    @property
    def random(self) -> bool:
        return self.chance is not None

    @property
    def trace(self) -> str:
        """Tells two runs apart: everything that was done, in its order, with its time."""
        return self._trace.hexdigest()

    def note(self, what: str) -> None:
        """Something that belongs to the trace."""
        self._trace.update(f"{self.current.name}|{what}|{self.now:.6f}\n".encode())

    # --- the baton ---

    def check(self) -> None:
        """Raise Killed in a thread whose process is dead."""
        if self.current.process.dead:
            raise Killed

    def point(self, what: str) -> None:
        """Somebody else may go first, where the schedule is random."""
        self.check()
        if self.chance is None:
            return
        if self._ready:
            current = self.current
            self._ready.append(current)
            self._pass_on(current)

    def wait(self, what: str, seconds: float | None = None) -> bool:
        """Wait until ``make_ready`` is called for this thread; False: that did not happen in time."""
        self.check()
        current = self.current
        current.waits_for, current.woken, current.state = what, False, WAITING
        current.wait_number += 1
        if seconds is not None:
            # Time has to move: a wait that is shorter than what a number can tell would be repeated for ever.
            at = self.now + max(_LEAST_SECONDS, seconds) if seconds > 0 else self.now
            heappush(self._timers, (at, next(self._order), current, current.wait_number))
        self._pass_on(current)
        return current.woken

    def make_ready(self, thread: SimThread) -> None:
        """It may run. From any thread; nothing happens where it could run already, or its process is dead: ``kill`` unwinds it."""
        if thread.state in (READY, DONE) or thread.process.dead:
            return
        thread.woken, thread.state, thread.waits_for = True, READY, ""
        (thread.process.frozen if thread.process.paused else self._ready).append(thread)

    def _pass_on(self, current: SimThread) -> None:
        self._hand_to(self._next(), current)
        if self._deadlock and current is self.main:
            said, self._deadlock = self._deadlock, ""
            raise DeadlockError(said)
        if self._touched and current is self.main:
            said, self._touched = self._touched, ""
            raise TouchedError(said)
        if current.process.dead:
            raise Killed

    def _hand_to(self, following: SimThread, current: SimThread) -> None:
        if following is current:
            return
        self.switches += 1
        self.current = following
        following.gate.release()
        current.gate.acquire()

    def _next(self) -> SimThread:
        ready = self._ready
        self._at_a_time += 1
        if self._at_a_time > _MOST_AT_A_TIME:
            self._at_a_time = 0
            return self._stuck("time stands still: somebody goes round in circles")
        while not ready:
            if not self._fire():
                return self._stuck()
        chosen = ready.pop(0 if self.chance is None or len(ready) == 1 else int(self.chance.random() * len(ready)))
        self._trace.update(b"%d\n" % chosen.number)
        return chosen

    def _fire(self) -> bool:
        """Let the earliest timer go off, and whatever goes off at the same time. False: there is none."""
        while self._timers:
            at, _, thread, number = heappop(self._timers)
            if thread.state is not WAITING or thread.wait_number != number:
                continue
            if thread.process.paused:
                thread.process.frozen_timers.append((at, thread, number))
                continue
            if at > self.now:
                self.now, self._at_a_time = at, 0
            self._time_out(thread)
            while self._timers and self._timers[0][0] <= self.now:
                _, _, other, number = heappop(self._timers)
                if other.state is WAITING and other.wait_number == number:
                    if other.process.paused:
                        other.process.frozen_timers.append((at, other, number))
                    else:
                        self._time_out(other)
            return True
        return False

    def _time_out(self, thread: SimThread) -> None:
        thread.state, thread.waits_for = READY, ""
        self._ready.append(thread)

    def _stuck(self, why: str = "nobody can run, and no timer is set") -> SimThread:
        self._deadlock = f"{why}:\n{self.waiting()}"
        if self.main in self._ready:
            self._ready.remove(self.main)
        self.main.state = READY
        return self.main

    def touched(self, said: str) -> None:
        """A finding of ``simulation.ownership``: the run fails."""
        if said not in self.failures:
            self.failures.append(said)
            self._touched = self._touched or said

    def waiting(self) -> str:
        """Who waits for what."""
        return "\n".join(
            f"    {thread.name}: {thread.state} {thread.waits_for}"
            for process in self.processes
            for thread in process.threads
            if thread.state is not DONE
        )

    # --- processes ---

    def pause(self, process: Process) -> None:
        """None of its threads goes on until ``resume``. A thread of its own that calls this is stopped here."""
        self.check()
        process.paused, process.paused_at = True, self.now
        process.frozen += [thread for thread in self._ready if thread.process is process]
        self._ready = [thread for thread in self._ready if thread.process is not process]
        if self.current.process is process:
            process.frozen.append(self.current)
            self._pass_on(self.current)

    def resume(self, process: Process, *, clock: str = "right", ahead: float = 0.0) -> None:
        """Let it go on.

        Args:
            clock: ``stopped`` with the process, or ``right``.
            ahead: so many seconds its clock is ahead of the others' from now on.
        """
        assert process.paused
        process.paused = False
        missed = self.now - process.paused_at
        timers, process.frozen_timers = process.frozen_timers, []
        if clock == "stopped":
            process.offset -= missed
            self._timers = [
                (at + missed, order, thread, number) if thread.process is process else (at, order, thread, number)
                for at, order, thread, number in self._timers
            ]
            self._timers += [(at + missed, next(self._order), thread, number) for at, thread, number in timers]
        else:
            self._timers += [(self.now, next(self._order), thread, number) for _, thread, number in timers]
            process.offset += ahead
        heapify(self._timers)
        frozen, process.frozen = process.frozen, []
        self._ready += frozen

    def kill(self, process: Process) -> None:
        """End it at once: its threads unwind, and nothing that they do meanwhile has an effect."""
        if process.dead:
            return
        process.dead, process.paused = True, False
        current = self.current
        self._ready = [thread for thread in self._ready if thread.process is not process]
        for thread in list(process.threads):
            if thread is not current and thread.state is not DONE:
                thread.unwound_by = current
                self._hand_to(thread, current)
        process.frozen, process.frozen_timers = [], []
        self._timers = [timer for timer in self._timers if timer[2].process is not process]
        heapify(self._timers)
        if current.process is process:
            raise Killed

    def finished(self, thread: SimThread) -> None:
        """The last thing that a thread does: it gives the baton away and never gets it again."""
        thread.state = DONE
        if thread in thread.process.threads:
            thread.process.threads.remove(thread)
        for joiner in thread.joiners:
            self.make_ready(joiner)
        following = thread.unwound_by or self._next()
        self.current = following
        following.gate.release()

    def close(self) -> None:
        """End every process but the one of the caller."""
        for process in self.processes:
            if process is not self.current.process:
                self.kill(process)


class _Workers:
    """Real threads, kept for the next one that is started: making one costs more than a hundred switches."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []

    def begin(self, thread: SimThread) -> None:
        worker = self._idle.pop() if self._idle else _Worker(self)
        worker.take(thread)

    def rest(self, worker: _Worker) -> None:
        self._idle.append(worker)

    def forget(self) -> None:
        """After a fork: none of the threads is there any more."""
        self._idle.clear()


class _Worker:
    def __init__(self, workers: _Workers) -> None:
        self._workers = workers
        self._job: SimThread | None = None
        self._gate = _closed()
        threading.Thread(target=self._work, name="simulated", daemon=True).start()

    def take(self, thread: SimThread) -> None:
        self._job = thread
        thread.gate = self._gate

    def _work(self) -> None:
        while True:
            self._gate.acquire()
            thread = self._job
            assert thread is not None
            ownership.enter(thread)
            try:
                if not thread.process.dead:
                    thread.run()
            except Killed:
                pass
            except Exception as error:  # noqa: BLE001 - a thread that dies is a finding
                thread.machine.failures.append(f"{thread.name} ended by {type(error).__name__}: {error}")
            self._job = None
            ownership.leave()
            # Before the baton is given away: whoever gets it may start a thread at once.
            self._workers.rest(self)
            thread.machine.finished(thread)


def _closed() -> threading.Lock:
    made = threading.Lock()
    made.acquire()
    return made


_WORKERS: Final = _Workers()


def forget_workers() -> None:
    """To be called in a process that was forked."""
    _WORKERS.forget()
