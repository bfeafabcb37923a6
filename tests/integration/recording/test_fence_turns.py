"""Transactions that check the same fence take turns: all fences of one together or none, first come first served."""

import threading
from collections.abc import Iterator

import pytest

from harness.fakes.fencing import raise_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.fakes.store_faults import StoreFaults, writes_to
from kubesync.actors.scheduler import Event
from kubesync.aws.dynamodb.store import CONTROL, Key, Update
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.domain.errors import StoreBusyError

EPOCH = 7
CLUSTERS = ("a", "b", "c", "d")
_SECONDS = 20.0


def place(name: str) -> Key:
    return Key(CONTROL, "test", name)


class QueueClock(ManualClock):
    """``waits``: how many transactions have begun to wait."""

    waits = 0

    def event(self) -> Event:
        self.waits += 1
        return super().event()


class Transactions:
    """Transactions in threads of their own, each of which stops on its way to the table until it is let through."""

    def __init__(self) -> None:
        self.clock = QueueClock()
        self.faults = StoreFaults()
        self.store = MemoryStore(clock=self.clock, faults=self.faults)
        self.writer = FencedWriter(self.store, EPOCH, lambda: None, self.clock)
        for cluster in CLUSTERS:
            raise_fence(self.store, cluster, EPOCH)
        self.order: list[str] = []
        self.errors: list[Exception] = []
        self._changed = threading.Condition()
        self._running: set[str] = set()
        self._let_through: set[str] = set()
        self._threads: list[threading.Thread] = []

    def ask(self, name: str, *clusters: str) -> None:
        """Start a transaction; returns once it has come to the table or waits for its turn."""
        self.faults.do(writes_to(place(name)), lambda _call: self._stop(name), times=None)
        before = self.clock.waits
        thread = threading.Thread(target=self._run, args=(name, clusters))
        thread.start()
        self._threads.append(thread)
        self._wait_for(lambda: name in self._running or self.clock.waits > before)

    def _run(self, name: str, clusters: tuple[str, ...]) -> None:
        try:
            self.writer.run(clusters, [Update(place(name), add={"times": 1})], name)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.errors.append(error)

    def _stop(self, name: str) -> None:
        with self._changed:
            self._running.add(name)
            self.order.append(name)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: name in self._let_through, _SECONDS)
            self._running.discard(name)

    def let_through(self, *names: str) -> None:
        """Returns once these are through."""
        with self._changed:
            self._let_through.update(names)
            self._changed.notify_all()
        self._wait_for(lambda: self._running.isdisjoint(names))

    def running(self, *names: str) -> bool:
        """Whether exactly these come to the table, or have come by then."""
        self._wait_for(lambda: self._running >= set(names))
        return self._running == set(names)

    def _wait_for(self, condition: object) -> None:
        assert callable(condition)
        with self._changed:
            for _ in range(4000):
                if condition():
                    return
                self._changed.wait(0.005)
        raise AssertionError("it never came true")

    def finish(self) -> None:
        self.let_through(*"123456789")
        for thread in self._threads:
            thread.join(_SECONDS)
        assert not any(thread.is_alive() for thread in self._threads)


@pytest.fixture
def transactions() -> Iterator[Transactions]:
    found = Transactions()
    yield found
    found.finish()


def test_transactions_of_other_fences_do_not_wait(transactions: Transactions) -> None:
    transactions.ask("1", "a")
    transactions.ask("2", "b")
    assert transactions.running("1", "2")


def test_transactions_of_one_fence_go_in_the_order_in_which_they_asked(transactions: Transactions) -> None:
    for name in "12345":
        transactions.ask(name, "a")
    assert transactions.running("1")
    for name in "1234":
        transactions.let_through(name)
        assert transactions.running(str(int(name) + 1))
    assert transactions.order == [*"12345"]


def test_transaction_of_two_fences_is_overtaken_by_none_that_checks_one_of_them(transactions: Transactions) -> None:
    transactions.ask("1", "a")
    transactions.ask("2", "a", "b")
    transactions.ask("3", "b")
    transactions.ask("4", "c")
    assert transactions.running("1", "4")
    transactions.let_through("1", "4")
    assert transactions.running("2")
    transactions.let_through("2")
    assert transactions.running("3")


def test_fences_are_taken_all_or_none_whatever_their_order(transactions: Transactions) -> None:
    transactions.ask("1", "a", "b")
    transactions.ask("2", "c", "d")
    transactions.ask("3", "d", "a")
    transactions.ask("4", "b", "c")
    assert transactions.running("1", "2")
    transactions.let_through("2")
    transactions.let_through("1")
    assert transactions.running("3", "4")


def test_one_that_gave_up_waiting_is_waited_for_no_more(transactions: Transactions) -> None:
    transactions.ask("1", "a")
    transactions.writer.until_monotonic = transactions.clock.monotonic() - 1
    transactions.ask("2", "a", "b")
    transactions._wait_for(lambda: transactions.errors)
    assert [type(error) for error in transactions.errors] == [StoreBusyError]
    transactions.ask("3", "b")
    assert transactions.running("1", "3")
