"""What threads meet in, besides what Python has itself."""

import threading
from collections.abc import Callable

import pytest

from kubesync.actors.answer import Answer
from kubesync.actors.parallel import ParallelMap, one_by_one
from kubesync.actors.scheduler import Thread
from kubesync.actors.threads import ThreadScheduler


def test_answer_is_waited_for_until_it_is_there() -> None:
    answer: Answer[int] = Answer(ThreadScheduler())
    assert not answer.wait(0)
    assert not answer.done()

    thread = ThreadScheduler().thread("other", lambda: answer.set_result(3))
    thread.start()

    assert answer.result() == 3
    assert answer.done()
    assert answer.wait(0)


def test_answer_raises_the_error_that_was_set() -> None:
    answer: Answer[int] = Answer(ThreadScheduler())
    answer.set_exception(ValueError("no"))

    with pytest.raises(ValueError, match="no"):
        answer.result()


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_parallel_map_gives_results_in_the_order_of_the_things(threads: int) -> None:
    squares = ParallelMap(ThreadScheduler(), threads)(lambda n: n * n, [3, 1, 2])

    assert squares == one_by_one(lambda n: n * n, [3, 1, 2]) == [9, 1, 4]


def test_parallel_map_raises_the_first_error_once_no_call_goes_on_any_more() -> None:
    both, ended = threading.Barrier(2, timeout=10), []

    def call(thing: int) -> int:
        both.wait()
        if thing == 1:
            raise ValueError(f"error {thing}")
        ended.append(thing)
        return thing

    with pytest.raises(ValueError, match="error 1"):
        ParallelMap(ThreadScheduler(), 2)(call, [1, 2])
    assert ended == [2]


def test_parallel_map_begins_nothing_new_after_an_error() -> None:
    begun: list[int] = []
    both = threading.Barrier(2, timeout=10)

    def call(thing: int) -> None:
        begun.append(thing)
        both.wait()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        ParallelMap(ThreadScheduler(), 2)(call, [1, 2, 3, 4])
    assert sorted(begun) == [1, 2]


class FewThreads(ThreadScheduler):
    """A machine that has so many threads left."""

    def __init__(self, left: int) -> None:
        self.made: list[Thread] = []
        self._left = left

    def thread(self, name: str, run: Callable[[], object]) -> Thread:
        if len(self.made) == self._left:
            raise RuntimeError("can't start new thread")
        self.made.append(super().thread(name, run))
        return self.made[-1]


@pytest.mark.parametrize("left", [0, 1, 2])
def test_parallel_map_without_threads_left_does_everything_and_leaves_no_thread_behind(left: int) -> None:
    scheduler = FewThreads(left)

    assert ParallelMap(scheduler, 9)(lambda n: n * n, [3, 1, 2, 5]) == [9, 1, 4, 25]
    assert [thread.is_alive() for thread in scheduler.made] == [False] * left


def test_wakeup_that_was_set_before_ends_one_wait() -> None:
    scheduler = ThreadScheduler()
    wakeup = scheduler.wakeup()
    wakeup.set()

    began = scheduler.monotonic()
    wakeup.wait(60)
    wakeup.wait(0.01)

    assert scheduler.monotonic() - began < 30
