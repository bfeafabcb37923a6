"""A host gives an actor its messages one by one, and steps in between."""

from collections.abc import Callable

import pytest

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Activity, Host
from simulation.machine import Machine
from simulation.process import Process


class Teller:
    """Notes what it is told and when; ``waits`` says what its steps return."""

    def __init__(self, process: Process, waits: dict[str, float | None] | None = None) -> None:
        self.process = process
        self.seen: list[str] = []
        self.waits = waits or {}
        self.next: float | None = ON_MESSAGE
        self.every = 0.0
        self.publishes: Callable[[], None] = lambda: None

    def receive(self, message: object) -> None:
        self.note(str(message))
        self.publishes()
        if message == "bad":
            raise ValueError("a bad message")
        if message == "worse":
            raise ValueError("worse")
        if message == "hang":
            self.process.sleep(60.0)
        self.next = self.waits.get(str(message), ON_MESSAGE)

    def step(self) -> float | None:
        self.note("step")
        if self.every:
            self.process.sleep(self.every)
            return AT_ONCE
        wait, self.next = self.next, ON_MESSAGE
        return wait

    def handle_error(self, error: Exception) -> float | None:
        self.note(f"failed: {error}")
        if str(error) == "worse":
            raise error
        return 5.0

    def figures(self) -> tuple[str, ...]:
        if self.seen and self.seen[-2:][0].endswith("unspeakable"):
            raise ValueError("cannot be told")
        return tuple(self.seen)

    def note(self, what: str) -> None:
        self.seen.append(f"{self.process.monotonic() - 1000.0:g} {what}")


class Stage:
    """One actor on a machine whose time is virtual."""

    def __init__(self, **waits: float | None) -> None:
        machine = Machine(None)
        self.outside = Process(machine, "outside")
        machine.begin(self.outside)
        self.process = Process(machine, "one")
        self.activity = Activity(self.process)
        self.actor = Teller(self.process, waits)
        self.host = Host("teller", self.actor, self.process, self.activity)

    @property
    def told(self) -> list[str]:
        """What the actor has published."""
        return list(self.host.figures)


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
    assert stage.activity.idle


def test_activity_counts_actors_that_have_something_to_do() -> None:
    stage = Stage(later=3.0)
    idle = [stage.activity.idle]
    stage.host.send("later")
    idle.append(stage.activity.idle)
    stage.host.start()
    stage.outside.sleep(1.0)
    idle.append(stage.activity.idle)
    assert idle == [True, False, True]


# --- figures ---


def test_figures_are_published_at_most_once_a_second_and_the_last_change_without_another_step() -> None:
    stage = Stage()
    stage.host.start()
    stage.outside.sleep(0.5)
    for message in ("a", "b"):
        stage.host.send(message)
        stage.outside.sleep(0.2)
    assert stage.told == ["0 step"]
    stage.outside.sleep(0.2)
    known = ["0 step", "0.5 a", "0.5 step", "0.7 b", "0.7 step"]
    assert stage.told == known
    assert stage.actor.seen == [*known]
    stage.outside.sleep(100.0)
    stage.host.send("c")
    stage.outside.sleep(0.1)
    assert stage.told == [*known, "101.1 c", "101.1 step"]


def test_actor_that_is_never_idle_publishes_once_a_second() -> None:
    stage = Stage()
    stage.actor.every = 0.1
    stage.host.start()
    stage.outside.sleep(2.05)  # a step takes a tenth of a second
    assert stage.host.figures[-1] == "1.9 step"
    stage.outside.sleep(0.9)
    assert stage.host.figures[-1] == "1.9 step"


def test_figures_are_not_those_between_two_steps_of_one_piece_of_work() -> None:
    stage = Stage(first=AT_ONCE)
    stage.host.start()
    stage.outside.sleep(10.0)
    stage.host.send("first")
    stage.outside.sleep(0.1)
    assert stage.told == ["0 step", "10 first", "10 step", "10 step"]


def test_what_follows_in_a_step_that_published_is_published_too() -> None:
    stage = Stage()
    stage.host.start()
    stage.outside.sleep(10.0)
    stage.actor.publishes = stage.host.publish
    stage.host.send("a")
    stage.outside.sleep(0.5)
    assert stage.told == ["0 step", "10 a"]
    stage.outside.sleep(0.6)
    assert stage.told == ["0 step", "10 a", "10 step"]


def test_figures_of_the_end_are_published_at_once() -> None:
    stage = Stage(end=None)
    stage.host.start()
    stage.outside.sleep(0.3)
    assert not stage.host.figures_are_final
    stage.host.send("end")
    assert stage.host.join(1.0)
    assert stage.told == ["0 step", "0.3 end", "0.3 step"]
    assert stage.host.figures_are_final


def test_actor_that_never_began_has_its_last_figures_and_one_whose_thread_broke_has_not() -> None:
    stage = Stage()
    assert stage.host.figures_are_final
    stage.host.start()
    stage.outside.sleep(0.3)
    stage.host.send("worse")
    assert stage.host.join(1.0)
    assert stage.told == ["0 step"]
    assert not stage.host.figures_are_final


def test_figures_that_cannot_be_made_end_no_actor(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.host.start()
    stage.outside.sleep(2.0)
    stage.host.send("unspeakable")
    stage.outside.sleep(2.0)
    assert stage.told == ["0 step"]
    assert caplog.messages == ["figures could not be published"]
    stage.host.send("good")
    stage.outside.sleep(2.0)
    assert stage.host.figures[-2:] == ("4 good", "4 step")


def test_i10_actor_that_hangs_in_a_step_is_as_old_as_the_step() -> None:
    stage = Stage()
    stage.host.start()
    stage.outside.sleep(10.0)
    assert (stage.host.age, stage.activity.stuck(30.0)) == (0.0, {})
    stage.host.send("hang")
    stage.outside.sleep(40.0)
    stage.host.send("waits")
    stage.outside.sleep(5.0)
    assert stage.host.age == 45.0
    assert stage.activity.stuck(30.0) == {"teller": 45.0}
    stage.outside.sleep(60.0)
    assert (stage.host.age, stage.activity.stuck(30.0)) == (0.0, {})


def test_i10_actor_that_takes_no_message_is_as_old_as_the_oldest() -> None:
    stage = Stage()
    stage.host.send("never taken")
    stage.outside.sleep(31.0)
    stage.host.send("another")
    stage.outside.sleep(9.0)
    assert stage.activity.stuck(30.0) == {"teller": 40.0}
