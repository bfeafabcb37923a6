"""The machine on which deployments are simulated: one runs at a time, time is virtual, a seed decides."""

from collections.abc import Callable, Iterator

import pytest

from kubesync.actors.answer import Answer
from kubesync.actors.parallel import ParallelMap
from simulation.machine import DeadlockError, Killed, Machine
from simulation.process import Process


class Room:
    """A machine, the process that looks on, and one that is looked at."""

    def __init__(self, seed: object = None) -> None:
        self.machine = Machine(seed)
        self.outside = Process(self.machine, "outside")
        self.machine.begin(self.outside)
        self.process = Process(self.machine, "one")
        self.said: list[str] = []

    def run(self, *threads: Callable[[], object], seconds: float = 1000.0) -> list[str]:
        """What they said, once all have ended."""
        started = [self.process.thread(f"t{number}", run) for number, run in enumerate(threads)]
        for thread in started:
            thread.start()
        self.outside.sleep(seconds)
        return self.said


@pytest.fixture(params=[None, 1, 2, 3], ids=["fixed", "seed 1", "seed 2", "seed 3"])
def room(request: pytest.FixtureRequest) -> Iterator[Room]:
    made = Room(request.param)
    yield made
    made.machine.close()
    assert made.machine.failures == []


def test_sleepers_wake_in_the_order_of_their_time_and_nobody_waits_for_it(room: Room) -> None:
    def sleeper(seconds: float) -> Callable[[], object]:
        def run() -> None:
            room.process.sleep(seconds)
            room.said.append(f"{seconds} at {room.process.monotonic() - 1000.0:g}")

        return run

    assert room.run(sleeper(86_400.0), sleeper(1.0), sleeper(30.0), seconds=100_000.0) == [
        "1.0 at 1",
        "30.0 at 30",
        "86400.0 at 86400",
    ]


def test_lock_lets_one_in_at_a_time(room: Room) -> None:
    lock, inside = room.process.lock(), 0

    def run() -> None:
        nonlocal inside
        for _ in range(5):
            with lock:
                inside += 1
                room.machine.point("inside")
                room.process.sleep(0.5)
                room.said.append(str(inside))
                inside -= 1

    assert room.run(run, run, run) == ["1"] * 15


def test_lock_that_is_not_to_be_had_in_time_is_given_up(room: Room) -> None:
    lock = room.process.lock()

    def holder() -> None:
        with lock:
            room.process.sleep(10.0)

    def waiter() -> None:
        room.process.sleep(1.0)
        room.said.append(f"{lock.acquire(timeout=2.0)} at {room.process.monotonic() - 1000.0:g}")
        room.said.append(f"{lock.acquire(blocking=False)}")
        room.said.append(f"{lock.acquire(timeout=60.0)} at {room.process.monotonic() - 1000.0:g}")

    assert room.run(holder, waiter) == ["False at 3", "False", "True at 10"]


def test_events_answers_and_wakeups_are_waited_for(room: Room) -> None:
    answer: Answer[str] = Answer(room.process)
    wakeup = room.process.wakeup()

    def asker() -> None:
        room.said.append(f"{answer.wait(1.0)} {answer.result()}")
        wakeup.wait(60.0)
        wakeup.wait(7.0)
        room.said.append(f"{room.process.monotonic() - 1000.0:g}")

    def other() -> None:
        room.process.sleep(5.0)
        answer.set_result("done")
        room.process.sleep(5.0)
        wakeup.set()

    assert room.run(asker, other) == ["False done", "17"]


def test_parallel_map_runs_on_it(room: Room) -> None:
    lock = room.process.lock()

    def one(number: int) -> int:
        with lock:
            room.process.sleep(1.0)
            return number * number

    def run() -> None:
        room.said.append(str(ParallelMap(room.process, 3)(one, [1, 2, 3, 4, 5])))
        room.said.append(f"{room.process.monotonic() - 1000.0:g}")

    assert room.run(run) == ["[1, 4, 9, 16, 25]", "5"]


def test_paused_process_does_nothing_and_its_clock_stops_or_goes_on() -> None:
    for clock, wakes_at in (("right", "50 of 50"), ("stopped", "50 of 10")):
        room = Room()

        def run(room: Room = room) -> None:
            room.process.sleep(10.0)
            room.said.append(f"{room.machine.now - 1000.0:g} of {room.process.monotonic() - 1000.0:g}")

        room.process.thread("sleeper", run).start()
        room.outside.sleep(5.0)
        room.machine.pause(room.process)
        room.outside.sleep(40.0)
        assert room.said == []
        room.machine.resume(room.process, clock=clock)
        room.outside.sleep(20.0)
        assert room.said == ([wakes_at] if clock == "stopped" else ["45 of 45"])


def test_killed_process_unwinds_and_has_no_effect(room: Room) -> None:
    lock, held = room.process.lock(), []

    def run() -> None:
        try:
            with lock:
                room.process.sleep(100.0)
                room.said.append("it went on")
        except Killed:
            held.append("unwound")
            raise
        finally:
            with lock:  # raises again: nothing of it can wait
                room.said.append("it took a lock")

    for number in range(3):
        room.process.thread(f"t{number}", run).start()
    room.outside.sleep(1.0)
    room.machine.kill(room.process)
    room.outside.sleep(1000.0)
    assert room.said == []
    assert room.process.threads == []


def test_killed_thread_that_waits_for_another_to_end_never_runs_again(room: Room) -> None:
    # The thread that is waited for unwinds first. To wake the other must not let it run: it has unwound by then.
    longer = room.process.thread("longer", lambda: room.process.sleep(100.0))
    longer.start()
    room.process.thread("waiting", longer.join).start()
    room.outside.sleep(1.0)
    room.machine.kill(room.process)
    room.outside.sleep(1000.0)
    assert room.process.threads == []


def test_thread_that_kills_its_own_process_goes_no_further() -> None:
    room = Room()

    def run() -> None:
        room.said.append("before")
        room.machine.kill(room.process)
        room.said.append("after")

    assert room.run(run, lambda: room.process.sleep(2000.0)) == ["before"]
    assert room.process.threads == []


def test_deadlock_says_who_waits_for_what() -> None:
    room = Room()
    one, two = room.process.lock(), room.process.lock()

    def take(first: object, second: object) -> Callable[[], object]:
        def run() -> None:
            with first:  # type: ignore[attr-defined]
                room.process.sleep(1.0)
                with second:  # type: ignore[attr-defined]
                    room.said.append("never")

        return run

    threads = [room.process.thread(name, run) for name, run in (("a", take(one, two)), ("b", take(two, one)))]
    for thread in threads:
        thread.start()
    with pytest.raises(DeadlockError) as deadlock:
        threads[0].join()
    assert "one/a: waiting a lock of one/b" in str(deadlock.value)
    assert "one/b: waiting a lock of one/a" in str(deadlock.value)
    room.machine.close()


def test_thread_that_goes_round_in_circles_is_found() -> None:
    room = Room()

    def run() -> None:
        while True:
            room.process.sleep(0.0)

    room.process.thread("spinning", run).start()
    with pytest.raises(DeadlockError, match="time stands still"):
        room.outside.sleep(1.0)
    room.machine.close()


def test_error_of_a_thread_is_a_failure() -> None:
    room = Room()

    def run() -> None:
        raise ValueError("no")

    room.run(run)
    assert room.machine.failures == ["one/t0 ended by ValueError: no"]


def _order(seed: object) -> tuple[list[str], str]:
    room = Room(seed)

    def run(name: str) -> Callable[[], object]:
        def work() -> None:
            for step in range(4):
                room.machine.point("step")
                room.said.append(f"{name}{step}")

        return work

    said = room.run(run("a"), run("b"), run("c"))
    return said, room.machine.trace


def test_same_seed_gives_the_same_order_and_another_seed_another_one() -> None:
    assert _order(7) == _order(7)
    assert len({tuple(_order(seed)[0]) for seed in range(20)}) > 10
    assert len({_order(seed)[1] for seed in range(20)}) > 10


def test_fixed_schedule_lets_each_go_on_until_it_waits() -> None:
    assert _order(None)[0] == [f"{name}{step}" for name in "abc" for step in range(4)]
