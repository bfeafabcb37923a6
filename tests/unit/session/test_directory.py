"""The directory of actors: who runs, who has failed, start, stop, figures."""

from typing import Final

from harness.waiting import wait_until
from kubesync.actors.actor import ON_MESSAGE, Activity, Host
from kubesync.actors.directory import Directory
from kubesync.actors.threads import ThreadScheduler

LAST: Final = "end"


class Counter:
    """Counts its messages, and ends with the last one. ``deaf``: it never ends."""

    def __init__(self, *, deaf: bool) -> None:
        self.count = 0
        self.deaf = deaf
        self.ended = False

    def receive(self, message: object) -> None:
        self.count += 1
        self.ended = message == LAST and not self.deaf

    def step(self) -> float | None:
        return None if self.ended else ON_MESSAGE

    def handle_error(self, error: Exception) -> float | None:
        raise error

    def figures(self) -> int:
        return self.count


class Counters:
    """A directory of counters; ``made``: their names."""

    def __init__(self, *, on_demand: bool = False) -> None:
        self.scheduler = ThreadScheduler()
        self.made: list[str] = []
        self.directory: Directory[int] = Directory(self._make, self.scheduler, on_demand=on_demand)

    def _make(self, name: str) -> Host[int]:
        self.made.append(name)
        return Host(name, Counter(deaf=name == "deaf"), self.scheduler, Activity(self.scheduler))


def test_actor_is_made_once() -> None:
    counters = Counters()
    assert not counters.directory.send("a", "hello")
    counters.directory.start("a")
    counters.directory.start("a")
    assert counters.directory.send("a", "hello")
    assert counters.made == ["a"]
    counters.directory.end(LAST, counters.scheduler.monotonic() + 5.0)
    assert counters.directory.figures == {"a": 2}


def test_actor_that_is_needed_is_made_by_its_first_message() -> None:
    counters = Counters(on_demand=True)
    assert counters.directory.send("a", "hello")
    wait_until(lambda: counters.directory.figures == {"a": 1})
    counters.directory.end(LAST, counters.scheduler.monotonic() + 5.0)


def test_actor_that_is_made_at_the_end_ends_too_and_later_ones_do_not_start() -> None:
    counters = Counters(on_demand=True)
    counters.directory.end(LAST, counters.scheduler.monotonic() + 5.0)
    counters.directory.start("late")
    wait_until(lambda: counters.directory.figures == {"late": 1})
    counters.directory.end(LAST, counters.scheduler.monotonic() - 1.0)
    counters.directory.send("too late", "hello")
    assert counters.directory.figures == {"late": 1, "too late": 0}
    assert counters.directory.not_ended_well(lambda _count: True) == frozenset()


def test_actor_that_hangs_or_whose_figures_are_bad_has_failed() -> None:
    counters = Counters()
    for name in ("deaf", "well", "bad"):
        counters.directory.start(name)
    counters.directory.send("bad", "hello")
    counters.directory.end(LAST, counters.scheduler.monotonic())
    wait_until(lambda: counters.directory.not_ended_well(lambda count: count < 2) == {"deaf", "bad"})
    counters.directory.end(LAST, counters.scheduler.monotonic())
