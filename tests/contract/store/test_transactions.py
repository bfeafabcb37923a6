"""All or nothing: what a transaction writes, what refuses it, and what the refusal tells."""

import uuid

import pytest

from kubesync.aws.dynamodb.store import (
    CONTROL,
    STATE,
    UPSTREAMS,
    Absent,
    AbsentOrBelow,
    Action,
    Check,
    Condition,
    Delete,
    Equals,
    Key,
    Put,
    Store,
    Update,
)
from kubesync.domain.errors import StoreUnavailableError, TransactionRefusedError


def a_token() -> str:
    return str(uuid.uuid4())  # 36 characters: the longest that DynamoDB takes


def test_transaction_does_every_action_in_every_table(store: Store, partition: str) -> None:
    fence = Key(CONTROL, partition, "fence")
    store.write(Put(fence, {"epoch": 4}))
    store.write(Put(Key(STATE, partition, "old"), {"v": 1}))
    store.write(Put(Key(STATE, partition, "counted"), {"v": 1, "gone": True}))
    store.transact(
        [
            Check(fence, (Equals("epoch", 4),)),
            Put(Key(STATE, partition, "new"), {"v": b"\x00"}, (Absent(),)),
            Update(Key(STATE, partition, "counted"), set={"s": ""}, add={"v": 1}, remove=("gone",)),
            Delete(Key(STATE, partition, "old"), (Equals("v", 1),)),
            Put(Key(UPSTREAMS, partition, 0), {"nodes": [{"ip": "::1", "port": 1}]}),
            Update(Key(UPSTREAMS, partition, 1), add={"version": 1}, conditions=(AbsentOrBelow("version", 1),)),
            Delete(Key(UPSTREAMS, partition, 2)),
        ],
        a_token(),
    )
    assert list(store.query(STATE, partition)) == [
        {"pk": partition, "sk": "counted", "v": 2, "s": ""},
        {"pk": partition, "sk": "new", "v": b"\x00"},
    ]
    assert list(store.query(UPSTREAMS, partition)) == [
        {"upstream": partition, "slice": 0, "nodes": [{"ip": "::1", "port": 1}]},
        {"upstream": partition, "slice": 1, "version": 1},
    ]


HOLDS: tuple[tuple[Condition, bool], ...] = (
    (Absent(), False),
    (Equals("epoch", 4), True),
    (Equals("epoch", 5), False),
    (AbsentOrBelow("epoch", 5), True),
    (AbsentOrBelow("epoch", 4), False),
    (AbsentOrBelow("other", 1), True),
)


@pytest.mark.parametrize("kind", ["check", "put", "update", "delete"])
@pytest.mark.parametrize(("condition", "holds"), HOLDS)
def test_transaction_obeys_the_condition_of_every_kind_of_action(
    store: Store, partition: str, kind: str, condition: Condition, holds: bool
) -> None:
    key = Key(CONTROL, partition, "fence")
    other = Key(CONTROL, partition, "other")
    before = store.write(Put(key, {"epoch": 4}))
    actions: dict[str, Action] = {
        "check": Check(key, (condition,)),
        "put": Put(key, {"epoch": 9}, (condition,)),
        "update": Update(key, set={"epoch": 9}, conditions=(condition,)),
        "delete": Delete(key, (condition,)),
    }
    if holds:
        store.transact([Put(other, {}), actions[kind]], a_token())
        assert store.get(other) == {"pk": partition, "sk": "other"}
        return
    with pytest.raises(TransactionRefusedError) as refusal:
        store.transact([Put(other, {}), actions[kind]], a_token())
    assert refusal.value.failed == {1: before}
    assert store.get(other) is None
    assert store.get(key) == before


def test_refusal_names_every_refused_action_and_its_item(store: Store, partition: str) -> None:
    first = store.write(Put(Key(CONTROL, partition, "first"), {"v": 1}))
    third = store.write(Put(Key(CONTROL, partition, "third"), {"v": 3, "data": [b"\xff"]}))
    with pytest.raises(TransactionRefusedError) as refusal:
        store.transact(
            [
                Put(Key(CONTROL, partition, "first"), {}, (Absent(),)),
                Put(Key(CONTROL, partition, "second"), {}),
                Check(Key(CONTROL, partition, "third"), (Equals("v", 4),)),
                Delete(Key(CONTROL, partition, "fourth"), (Equals("v", 4),)),
            ],
            a_token(),
        )
    assert refusal.value.failed == {0: first, 2: third, 3: None}
    assert [item["sk"] for item in store.query(CONTROL, partition)] == ["first", "third"]


def test_transaction_repeated_with_its_token_has_one_effect(store: Store, partition: str) -> None:
    key = Key(CONTROL, partition, "counter")
    actions = [Update(key, add={"epoch": 1}, conditions=(AbsentOrBelow("epoch", 1),))]
    token = a_token()
    store.transact(actions, token)
    store.transact(actions, token)
    assert store.get(key) == {"pk": partition, "sk": "counter", "epoch": 1}


def test_token_used_for_another_transaction_is_refused(store: Store, partition: str) -> None:
    token = a_token()
    store.transact([Put(Key(CONTROL, partition, "a"), {})], token)
    with pytest.raises(StoreUnavailableError):
        store.transact([Put(Key(CONTROL, partition, "b"), {})], token)
    assert store.get(Key(CONTROL, partition, "b")) is None


def test_refused_transaction_can_be_repeated_with_its_token(store: Store, partition: str) -> None:
    fence, key = Key(CONTROL, partition, "fence"), Key(CONTROL, partition, "item")
    actions: list[Action] = [Check(fence, (Equals("epoch", 4),)), Put(key, {})]
    token = a_token()
    with pytest.raises(TransactionRefusedError):
        store.transact(actions, token)
    store.write(Put(fence, {"epoch": 4}))
    store.transact(actions, token)
    assert store.get(key) == {"pk": partition, "sk": "item"}


def test_hundred_actions_go_in_one_transaction(store: Store, partition: str) -> None:
    store.transact([Put(Key(UPSTREAMS, partition, number), {}) for number in range(100)], a_token())
    assert len(list(store.query(UPSTREAMS, partition))) == 100


@pytest.mark.parametrize("count", [0, 101])
def test_number_of_actions_is_bounded(store: Store, partition: str, count: int) -> None:
    with pytest.raises(StoreUnavailableError):
        store.transact([Put(Key(CONTROL, partition, str(number)), {}) for number in range(count)], a_token())
    assert list(store.query(CONTROL, partition)) == []


@pytest.mark.parametrize("token", ["", "x" * 37])
def test_length_of_the_token_is_bounded(store: Store, partition: str, token: str) -> None:
    with pytest.raises(StoreUnavailableError):
        store.transact([Put(Key(CONTROL, partition, "item"), {})], token)


def test_item_named_twice_is_refused(store: Store, partition: str) -> None:
    key = Key(CONTROL, partition, "item")
    with pytest.raises(StoreUnavailableError):
        store.transact([Put(key, {"v": 1}), Check(key, (Absent(),))], a_token())
    assert store.get(key) is None


def test_check_without_condition_is_refused(store: Store, partition: str) -> None:
    with pytest.raises(StoreUnavailableError):
        store.transact([Check(Key(CONTROL, partition, "item"), ())], a_token())


def test_update_that_changes_nothing_is_refused(store: Store, partition: str) -> None:
    with pytest.raises(StoreUnavailableError):
        store.transact([Update(Key(CONTROL, partition, "item"))], a_token())


def test_invalid_action_undoes_the_valid_ones(store: Store, partition: str) -> None:
    text, other = Key(CONTROL, partition, "text"), Key(CONTROL, partition, "other")
    store.write(Put(text, {"v": "a"}))
    with pytest.raises(StoreUnavailableError):
        store.transact([Put(other, {}), Update(text, add={"v": 1})], a_token())
    assert store.get(other) is None


def test_item_over_400_kb_undoes_the_others(store: Store, partition: str) -> None:
    other = Key(CONTROL, partition, "other")
    with pytest.raises(StoreUnavailableError):
        store.transact([Put(other, {}), Put(Key(CONTROL, partition, "big"), {"x": "x" * (401 * 1024)})], a_token())
    assert store.get(other) is None


def test_transaction_over_4_mb_is_refused(store: Store, partition: str, adapter: str) -> None:
    if adapter == "moto":
        pytest.skip("moto does not enforce the size of a transaction")
    actions = [Put(Key(UPSTREAMS, partition, number), {"x": "x" * (390 * 1024)}) for number in range(11)]
    with pytest.raises(StoreUnavailableError):
        store.transact(actions, a_token())
    assert list(store.query(UPSTREAMS, partition)) == []
