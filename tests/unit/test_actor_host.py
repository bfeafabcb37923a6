"""A host gives an actor its messages one by one, and steps in between."""

from __future__ import annotations

import pytest

from kubesync.actors.actor import AT_ONCE, WHEN_TOLD, Activity, Host
from simulation.machine import Machine
from simulation.process import Process


class Teller:
    """Notes what it is told and when; ``waits`` says what its steps return."""

    def __init__(self, process: Process, waits: dict[str, float | None] | None = None) -> None:
        self.process = process
        self.seen: list[str] = []
        self.waits = waits or {}
        self.next: float | None = WHEN_TOLD

    def receive(self, message: object) -> None:
        self.note(str(message))
        if message == "bad":
            raise ValueError("a bad message")
        self.next = self.waits.get(str(message), WHEN_TOLD)

    def step(self) -> float | None:
        self.note("step")
        wait, self.next = self.next, WHEN_TOLD
        return wait

    def failed(self, error: Exception) -> float | None:
        self.note(f"failed: {error}")
        return 5.0

    def note(self, what: str) -> None:
        self.seen.append(f"{self.process.monotonic() - 1000.0:g} {what}")


class Stage:
    """One actor on a machine whose time is virtual."""

    def __init__(self, **waits: float | None) -> None:
        machine = Machine(None)
        self.outside = Process(machine, "outside")
        machine.begin(self.outside)
        process = Process(machine, "one")
        self.activity = Activity(process)
        self.actor = Teller(process, waits)
        self.host = Host("teller", self.actor, process, self.activity)


def test_messages_are_received_in_order_and_a_step_follows() -> None:
    stage = Stage()
    stage.host.start()
    stage.outside.sleep(1.0)
    stage.host.send("a")
    stage.host.send("b")
    stage.outside.sleep(1.0)

    assert stage.actor.seen == ["0 step", "1 a", "1 b", "1 step"]


def test_messages_that_came_before_the_start_are_not_lost() -> None:
    stage = Stage()
    stage.host.send("early")
    stage.host.start()
    stage.outside.sleep(1.0)

    assert stage.actor.seen == ["0 early", "0 step"]


def test_actor_steps_again_when_its_time_has_come() -> None:
    stage = Stage(later=3.0, now=AT_ONCE)
    stage.host.start()
    stage.host.send("later")
    stage.outside.sleep(10.0)
    stage.host.send("now")
    stage.outside.sleep(10.0)

    assert stage.actor.seen == ["0 later", "0 step", "3 step", "10 now", "10 step", "10 step"]


def test_wake_lets_a_sleeping_actor_step_before_its_time() -> None:
    stage = Stage(later=30.0)
    stage.host.start()
    stage.host.send("later")
    stage.outside.sleep(2.0)
    stage.host.wake()
    stage.outside.sleep(1.0)

    assert stage.actor.seen == ["0 later", "0 step", "2 step"]


def test_actor_decides_what_becomes_of_it_after_an_error_and_the_next_message_is_not_lost() -> None:
    stage = Stage()
    stage.host.start()
    stage.host.send("bad")
    stage.outside.sleep(1.0)
    stage.host.send("good")
    stage.outside.sleep(9.0)

    assert stage.actor.seen == ["0 bad", "0 failed: a bad message", "1 good", "1 step"]


@pytest.mark.parametrize("late", [False, True])
def test_actor_that_has_ended_takes_nothing_more(late: bool) -> None:
    stage = Stage(end=None)
    stage.host.start()
    stage.host.send("end")
    assert stage.host.join(1.0)
    if late:
        stage.host.send("late")
    stage.outside.sleep(1.0)

    assert not stage.host.alive
    assert stage.actor.seen == ["0 end", "0 step"]
    assert stage.activity.none


def test_activity_counts_actors_that_have_something_to_do() -> None:
    stage = Stage(later=3.0)
    idle = [stage.activity.none]
    stage.host.send("later")
    idle.append(stage.activity.none)
    stage.host.start()
    stage.outside.sleep(1.0)
    idle.append(stage.activity.none)
    assert idle == [True, False, True]
