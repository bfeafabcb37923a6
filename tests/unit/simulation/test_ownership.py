"""A thread that touches an attribute of another thread's actor fails the run of a simulation."""

import pytest

from kubesync.actors.actor import ON_MESSAGE, Activity, Host
from simulation import ownership
from simulation.machine import Machine, TouchedError
from simulation.process import Process


class Counter:
    """An actor that counts its messages, in a part of its own. What it publishes depends on ``shares``."""

    def __init__(self, *, shares: bool = False) -> None:
        self.part = Part()
        self._shares = shares

    def receive(self, message: object) -> None:
        self.part.counts.append(message)

    def step(self) -> float | None:
        return ON_MESSAGE

    def handle_error(self, error: Exception) -> float | None:
        raise error

    def figures(self) -> list[object]:
        return self.part.counts if self._shares else list(self.part.counts)


class Part:
    def __init__(self) -> None:
        self.counts: list[object] = []


ownership.guard(Counter)
ownership.guard(Part)


class Stage:
    """An actor's thread and one other thread, in one process."""

    def __init__(self, *, shares: bool = False) -> None:
        self.machine = Machine(None)
        self.outside = Process(self.machine, "outside")
        self.machine.begin(self.outside)
        self.process = Process(self.machine, "one")
        self.actor = Counter(shares=shares)
        self.host = Host("counter", self.actor, self.process, Activity(self.process))
        self.read: list[object] = []

    def run(self, *, touches: str = "") -> None:
        def other() -> None:
            self.host.send("a message")
            self.process.sleep(5.0)
            self.host.send("another one")
            self.process.sleep(5.0)
            self.read = self.host.figures
            if touches == "actor":
                self.read = [self.actor.part]
            elif touches == "part":
                self.part.counts = []
            elif touches == "new":
                self.actor.part = Part()

        self.part = self.actor.part
        self.host.start()
        self.process.thread("other", other).start()
        self.outside.sleep(20.0)


def test_thread_that_sends_and_reads_figures_touches_nothing() -> None:
    stage = Stage()
    stage.run()

    assert stage.read == ["a message", "another one"]
    assert stage.machine.failures == []


@pytest.mark.parametrize(
    ("touches", "found"),
    [
        ("actor", "one/other touches Counter.part of one/counter"),
        ("part", "one/other touches Part.counts of one/counter"),
        ("new", "one/other touches Counter.part of one/counter"),
    ],
)
def test_thread_that_touches_an_actor_or_a_part_of_it_fails_the_run(touches: str, found: str) -> None:
    stage = Stage()
    with pytest.raises(TouchedError, match=found):
        stage.run(touches=touches)
    assert stage.machine.failures == [found]


def test_figures_that_change_after_they_were_published_fail_the_run() -> None:
    stage = Stage(shares=True)
    with pytest.raises(TouchedError, match="figures of counter have changed"):
        stage.run()
