"""Makes the same call for many things at the same time, in a limited number of threads."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from kubesync.actors.scheduler import Scheduler, Thread


class Map(Protocol):
    """Calls a function once for each thing. Returns the results in the order of the things."""

    def __call__[T, R](self, call: Callable[[T], R], things: Sequence[T]) -> list[R]: ...


def one_by_one[T, R](call: Callable[[T], R], things: Sequence[T]) -> list[R]:
    """Implements ``Map`` in the caller's own thread, one call after the other."""
    return [call(thing) for thing in things]


class ParallelMap:
    """Implements ``Map``. The caller's own thread takes part. With one thread, or one thing, it makes all the calls.

    After an error no new call begins. When all calls have ended, the first error in the order of the things is raised.
    """

    def __init__(self, scheduler: Scheduler, threads: int) -> None:
        self._scheduler = scheduler
        self._threads = threads

    def __call__[T, R](self, call: Callable[[T], R], things: Sequence[T]) -> list[R]:
        results: dict[int, R] = {}  # by the position of the thing
        errors: dict[int, BaseException] = {}  # the same
        left = deque(enumerate(things))  # several threads may take from a deque at the same time

        def work() -> None:
            while not errors:
                try:
                    at, thing = left.popleft()
                except IndexError:  # nothing is left
                    return
                try:
                    results[at] = call(thing)
                except BaseException as error:  # noqa: BLE001 - the caller's thread raises it again
                    errors[at] = error

        helpers: list[Thread] = []
        try:
            # Where the machine has no thread left, those that run, and the caller, do all of it.
            with suppress(RuntimeError):
                for number in range(1, min(self._threads, len(things))):
                    helper = self._scheduler.thread(f"parallel {number}", work)
                    helper.start()
                    helpers.append(helper)
            work()
        finally:
            for helper in helpers:
                helper.join()
        if errors:
            raise errors[min(errors)]
        return [results[at] for at in range(len(things))]
