"""The ways in which the store in memory can be made to fail."""

import threading
from collections.abc import Callable

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, LandLater, MemoryStore
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, AbsentOrBelow, Check, Key, Put, Update
from kubesync.domain.errors import StoreBusyError, StoreOutcomeUnknownError, StoreUnavailableError

KEY = Key(CONTROL, "p", "s")
ADD = Update(KEY, add={"v": 1}, conditions=(AbsentOrBelow("v", 1),))


class Crash(BaseException):
    pass


class Hooks:
    def __init__(
        self, before: Callable[[Call], None] = lambda _: None, after: Callable[[Call], None] = lambda _: None
    ) -> None:
        self.before = before
        self.after = after


def raising(error: BaseException) -> Callable[[Call], None]:
    def hook(call: Call) -> None:
        raise error

    return hook


@pytest.mark.parametrize("call", [lambda s: s.write(ADD), lambda s: s.transact([ADD], "t")], ids=["write", "transact"])
@pytest.mark.parametrize("error", [Crash(), StoreBusyError("x"), StoreOutcomeUnknownError("x")], ids=repr)
@pytest.mark.parametrize("landed", [False, True])
def test_hook_before_prevents_the_effect_and_hook_after_does_not(
    call: Callable[[MemoryStore], None], error: BaseException, landed: bool
) -> None:
    hooks = Hooks(after=raising(error)) if landed else Hooks(before=raising(error))
    store = MemoryStore(clock=ManualClock(), faults=hooks)
    with pytest.raises(type(error)):
        call(store)
    store.faults = Hooks()
    assert store.get(KEY) == ({"pk": "p", "sk": "s", "v": 1} if landed else None)


@pytest.mark.parametrize("call", [lambda s: s.write(ADD), lambda s: s.transact([ADD], "t")], ids=["write", "transact"])
def test_write_in_flight_lands_when_it_is_told_to(call: Callable[[MemoryStore], None]) -> None:
    store = MemoryStore(clock=ManualClock(), faults=Hooks(before=raising(LandLater())))
    with pytest.raises(StoreOutcomeUnknownError):
        call(store)
    store.faults = Hooks()
    assert store.get(KEY) is None
    assert store.land()
    assert store.get(KEY) == {"pk": "p", "sk": "s", "v": 1}
    assert store.in_flight == []


@pytest.mark.parametrize("call", [lambda s: s.write(ADD), lambda s: s.transact([ADD], "t")], ids=["write", "transact"])
def test_write_in_flight_is_refused_when_its_condition_fails_by_then(call: Callable[[MemoryStore], None]) -> None:
    store = MemoryStore(clock=ManualClock(), faults=Hooks(before=raising(LandLater())))
    with pytest.raises(StoreOutcomeUnknownError):
        call(store)
    store.faults = Hooks()
    store.write(Put(KEY, {"v": 5}))
    assert not store.land()
    assert store.get(KEY) == {"pk": "p", "sk": "s", "v": 5}


def test_late_transaction_does_nothing_after_its_repeat_with_the_same_token() -> None:
    store = MemoryStore(clock=ManualClock(), faults=Hooks(before=raising(LandLater())))
    actions = [Update(KEY, add={"v": 1})]
    with pytest.raises(StoreOutcomeUnknownError):
        store.transact(actions, "t")
    store.faults = Hooks()
    store.transact(actions, "t")
    assert store.land()
    assert store.get(KEY) == {"pk": "p", "sk": "s", "v": 1}


def test_token_is_forgotten_after_ten_minutes() -> None:
    clock = ManualClock()
    store = MemoryStore(clock=clock)
    actions = [Update(KEY, add={"v": 1})]
    for seconds, expected in ((0.0, 1), (599.0, 1), (1.0, 2)):
        clock.advance(seconds)
        store.transact(actions, "t")
        assert store.dump() == {KEY: {"pk": "p", "sk": "s", "v": expected}}


def test_transactions_that_name_one_item_collide_while_one_is_under_way() -> None:
    entered, go_on = threading.Event(), threading.Event()

    def pause(call: Call) -> None:
        if call.token == "slow":
            entered.set()
            assert go_on.wait(timeout=120)

    store = MemoryStore(clock=ManualClock(), faults=Hooks(before=pause), conflicts=True)
    store.write(Put(KEY, {}))
    other = Key(STATE, "p", "s")
    slow = threading.Thread(
        target=store.transact, args=([Check(KEY, (AbsentOrBelow("v", 1),)), Put(other, {})], "slow")
    )
    slow.start()
    assert entered.wait(timeout=120)
    with pytest.raises(StoreBusyError):
        store.transact([Check(KEY, (AbsentOrBelow("v", 1),))], "fast")
    with pytest.raises(StoreBusyError):
        store.write(Put(other, {"v": 1}))
    store.transact([Put(Key(STATE, "p", "free"), {})], "elsewhere")
    assert store.get(KEY) == {"pk": "p", "sk": "s"}
    go_on.set()
    slow.join(timeout=120)
    assert store.get(other) == {"pk": "p", "sk": "s"}
    store.transact([Check(KEY, (AbsentOrBelow("v", 1),))], "fast")


def test_calls_are_counted_as_dynamodb_would() -> None:
    store = MemoryStore(clock=ManualClock())
    for number in range(9):
        store.write(Put(Key(AUDIT, "p", str(number)), {"x": "x" * (300 * 1024)}))
    store.calls.clear()
    assert len(list(store.query(AUDIT, "p"))) == 9
    assert len(list(store.scan(AUDIT))) == 9
    store.batch_get([Key(CONTROL, "p", str(number)) for number in range(201)])
    store.transact([Put(KEY, {})], "t")
    assert [call.operation for call in store.calls] == [
        *["query"] * 3,
        *["scan"] * 3,
        *["batch_get_item"] * 3,
        "transact_write_items",
    ]
    assert [len(call.keys) for call in store.calls[6:9]] == [100, 100, 1]
    assert store.calls[-1] == Call("transact_write_items", (CONTROL,), actions=(Put(KEY, {}),), token="t")


def test_throttled_transaction_with_another_content_keeps_its_token_free() -> None:
    store = MemoryStore(clock=ManualClock(), faults=Hooks(before=raising(StoreBusyError("x"))))
    with pytest.raises(StoreBusyError):
        store.transact([ADD], "t")
    store.faults = Hooks()
    store.transact([Put(KEY, {"v": 9})], "t")
    with pytest.raises(StoreUnavailableError):
        store.transact([ADD], "t")
    assert store.dump() == {KEY: {"pk": "p", "sk": "s", "v": 9}}
