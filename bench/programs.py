"""All programs, and in which order they run.

What takes time runs with nothing beside it. Programs whose figures are counts or memory run beside one another.
"""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib import import_module
from typing import Any, Final

from bench.figures import Figure

PROGRAMS: Final = {
    "watch-stream": "bench.watch_stream",
    "resumed-session": "bench.resumed_session",
    "change-batches": "bench.change_batches",
    "event-lag": "bench.event_lag",
    "memory": "bench.memory",
    "first-lists": "bench.first_lists",
    "hand-over": "bench.hand_over",
    "request-units": "bench.request_units",
    "planning": "bench.planning",
    "command-start": "bench.command_start",
    "event-to-proxy": "bench.event_to_proxy",
    "neighbours": "bench.neighbours",
    "ingresses": "bench.ingresses",
    "tenants": "bench.tenants",
}
"""Each program's name and module, in the order of docs/benchmarks.md."""
BESIDE_OTHERS: Final = ("first-lists", "request-units", "resumed-session", "memory")
"""What these find does not depend on how fast the machine is. The longest comes first; the next two wait most of the time."""
_AT_A_TIME: Final = 3


def measure(name: str, *, small: bool = False) -> list[Figure]:
    """Run one program. ``small``: a size that shows that the program works, but measures nothing."""
    program: Any = import_module(PROGRAMS[name])
    return list(program.run(program.SMALL) if small else program.run())


type Done = Future[tuple[float, list[Figure]]]
"""The seconds that a program took, and its figures; or what it raised."""


def run(names: Sequence[str], *, small: bool = False) -> Iterator[tuple[str, Done]]:
    """Run these programs. Each comes when it is done."""
    beside = [name for name in BESIDE_OTHERS if name in names]
    for name in names:
        if name not in beside or len(beside) == 1:
            done: Done = Future()
            try:
                done.set_result(_timed(name, small=small))
            except Exception as error:  # noqa: BLE001 - the other programs still run
                done.set_exception(error)
            yield name, done
    if len(beside) > 1:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(_AT_A_TIME, context, max_tasks_per_child=1) as pool:
            running = {pool.submit(_timed, name, small=small): name for name in beside}
            for each in as_completed(running):
                yield running[each], each


def _timed(name: str, *, small: bool) -> tuple[float, list[Figure]]:
    began = time.monotonic()
    figures = measure(name, small=small)
    return time.monotonic() - began, figures
