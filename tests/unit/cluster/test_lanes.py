"""What a lane of a cluster's actor holds, and whose turn it is."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING

from harness.fakes.manual_clock import ManualClock
from kubesync.actors.backoff import Backoff
from kubesync.cluster.tasks import Command, Lane

if TYPE_CHECKING:
    from kubesync.actors.actor import Steps


class Lists:
    """Stands for the complete lists of a cluster, which a recovery lets a command record."""


def test_command_that_is_done_is_held_in_memory_no_longer() -> None:
    waiting = [Lists()]
    held = weakref.ref(waiting[0])

    def obey(_lists: Lists) -> Steps[None]:
        waiting.clear()
        yield 0.0

    def tasks() -> tuple[Command, ...]:
        return tuple(Command(partial(obey, each)) for each in waiting)

    lane = Lane(ManualClock(), Backoff(1, 1), tasks)
    assert lane.advance() is None
    assert held() is not None
    lane.advance()
    assert held() is None


def test_tasks_take_turns_also_with_a_command_between() -> None:
    done: list[str] = []

    def do(name: str) -> Steps[None]:
        done.append(name)
        yield from ()

    turns, commands = tuple(Command(partial(do, name)) for name in "abc"), list[Command]()
    lane = Lane(ManualClock(), Backoff(1, 1), lambda: tuple(commands) or turns)
    for _ in "ab":
        lane.advance()
    commands.append(Command(partial(do, "stop")))
    lane.advance()
    commands.clear()
    lane.advance()
    lane.advance()
    assert done == ["a", "b", "stop", "c", "a"]
