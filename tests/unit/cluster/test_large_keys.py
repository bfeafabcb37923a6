"""Keys with many endpoints: in steps of their own, one of them at a time in the whole process (I4)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import SERVICES, SLICES, a_config, a_key, a_service, an_endpoints, saw
from kubesync.aws.tables.name_counts import NameCountTable
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.committer import Change, Committer, Outbox, Pair
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.planner import Planned
from kubesync.domain.large_keys import LargeKeys
from kubesync.domain.objects import ObjectKey, Observation
from kubesync.domain.state import KeyState, Part, PartId

ENDPOINT = "10.0.0.1"


def a_committer(large: threading.Lock) -> Committer:
    store = MemoryStore(clock=ManualClock())
    states = KeyStates(a_config(), StateTable(store), NameCountTable(store))
    states.large = LargeKeys(well=30_000)
    tables, writer = SimpleNamespace(state=None), SimpleNamespace(room=lambda _clusters: 90, token=lambda: "token")
    return Committer(states, tables, writer, ManualClock(), set(), large)  # type: ignore[arg-type]


def seen(**endpoints: int) -> Callable[[ObjectKey], Sequence[Observation]]:
    """Keys with slices of so many endpoints, one hundred in each. Others have none."""

    def of(key: ObjectKey) -> list[Observation]:
        slices = -(-endpoints.get(key.name, 0) // 100)
        return [
            saw(an_endpoints(*[ENDPOINT] * 100, ports=()), 6, f"{key.name}-{n}", resource=SLICES) for n in range(slices)
        ]

    return of


def test_i4_keys_with_many_endpoints_are_planned_in_steps_of_their_own() -> None:
    committer = a_committer(threading.Lock())
    keys = [a_key(name) for name in ("a", "b", "c", "d", "e", *(f"x{n:02}" for n in range(60)))]

    sections = list(committer.sections(keys, seen(b=12_000, c=8_000, d=20_100, e=100), set()))

    assert [([key.name for key in section], size) for section, size in sections] == [
        (["a", "b", "c"], 20_000),
        (["d"], 20_100),
        (["e", *(f"x{n:02}" for n in range(49))], 100),
        ([f"x{n:02}" for n in range(49, 60)], 0),
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_i4_one_large_key_is_planned_at_a_time_and_no_actor_waits_for_another(fails: bool) -> None:
    large = threading.Lock()
    committer, planned = a_committer(large), []

    def plan(pairs: Sequence[Pair], _untrusted: object) -> Planned:
        assert large.locked()
        planned.append([before.key.name for before, _ in pairs])
        if fails:
            raise ValueError
        return Planned(())

    steps = committer.commit(Change([a_key()], lambda state: state, plan, news=seen(web=20_100)), Outbox())
    large.acquire()  # another cluster plans one
    assert [next(steps), next(steps)] == [0.05, 0.05]
    assert planned == []
    large.release()
    with pytest.raises(ValueError if fails else StopIteration):
        next(steps)

    assert planned == [["web"]]
    assert not large.locked()


def test_i4_small_keys_do_not_wait_for_a_large_one() -> None:
    large = threading.Lock()
    large.acquire()
    committer = a_committer(large)
    steps = committer.commit(Change([a_key()], lambda state: state, lambda _pairs, _: Planned(())), Outbox())

    with pytest.raises(StopIteration):
        next(steps)


def test_i9_services_with_long_annotations_count_as_several_keys() -> None:
    read: list[ObjectKey] = []

    def each(keys: Sequence[ObjectKey]) -> Iterator[KeyState]:
        read.extend(keys)
        return (KeyState(key) for key in keys)

    table = SimpleNamespace(each=each)
    states = KeyStates(a_config(), table, NameCountTable(MemoryStore(clock=ManualClock())), lambda: 100)  # type: ignore[arg-type]
    name = {"hostname": "x" * 250_000}
    small, long = [a_key(f"small{n}") for n in range(90)], [a_key(f"long{n}") for n in range(2)]

    for key in small:
        states.remember(KeyState(key))
    states.states(small)
    assert read == []
    for key in long:
        states.remember(KeyState(key, parts={PartId(SERVICES, key.name): Part("u", 5, 1, a_service(annotations=name))}))
    states.states(small)

    assert read == small, "two of 62 beside 90 are more than 100"
