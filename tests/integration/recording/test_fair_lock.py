"""Threads get the lock in the order in which they asked for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from harness.waiting import wait_until
from kubesync.actors.fair_lock import FairLock
from kubesync.actors.threads import ThreadScheduler


def started(target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target)
    thread.start()
    return thread


def test_who_asked_first_has_it_first_and_the_holder_goes_to_the_back() -> None:
    lock = FairLock(ThreadScheduler())
    turns: list[str] = []

    def take(name: str) -> None:
        with lock:
            turns.append(name)

    threads: list[threading.Thread] = []
    lock.acquire()
    for number in range(5):
        threads.append(started(partial(take, f"waiter {number}")))
        wait_until(lambda: len(lock._waiting) == number + 1)  # noqa: B023 - called at once
    lock.release()
    take("holder")  # at once, as a reconciler does after each section
    for thread in threads:
        thread.join(120)
    assert turns == ["waiter 0", "waiter 1", "waiter 2", "waiter 3", "waiter 4", "holder"]


def test_holder_may_take_it_again_and_keeps_it_until_it_has_let_go_as_often() -> None:
    lock = FairLock(ThreadScheduler())
    got: list[bool] = []
    with lock, lock:
        started(lambda: got.append(lock.acquire(timeout=0.01))).join(120)
    assert got == [False]
    assert lock.acquire(timeout=0)
    lock.release()


def test_who_gave_up_waiting_is_passed_over() -> None:
    lock = FairLock(ThreadScheduler())
    got: list[str] = []
    lock.acquire()
    started(lambda: got.append(f"impatient {lock.acquire(timeout=0.01)}")).join(120)

    def patient() -> None:
        with lock:
            got.append("patient")

    thread = started(patient)
    wait_until(lambda: len(lock._waiting) == 1)
    lock.release()
    thread.join(120)
    assert got == ["impatient False", "patient"]


def test_only_who_has_it_lets_go_of_it() -> None:
    lock = FairLock(ThreadScheduler())
    with pytest.raises(RuntimeError):
        lock.release()
    errors: list[RuntimeError] = []

    def steal() -> None:
        try:
            lock.release()
        except RuntimeError as error:
            errors.append(error)

    with lock:
        started(steal).join(120)
    assert len(errors) == 1


def test_it_is_never_had_by_two_at_a_time() -> None:
    lock = FairLock(ThreadScheduler())
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(300):
            if lock.acquire(timeout=0.001 if len(most) % 3 else -1):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                lock.release()

    threads = [started(work) for _ in range(6)]
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert set(most) == {1}
    assert lock.acquire(timeout=0)
