"""Keys with many endpoints: in steps of their own, one of them at a time in the whole process (I4)."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.cluster_tables import cluster_tables
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import SERVICES, SLICES, a_config, a_key, a_service, an_endpoints, saw
from kubesync.aws.dynamodb.store import Put
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.committer import Change, Committer, Pair, Section
from kubesync.cluster.keys.key_states import KeyStates, size_of
from kubesync.cluster.keys.key_writes import Chunk, Planned, Recorded
from kubesync.domain.errors import NotMasterError
from kubesync.domain.large_keys import Deaths, LargeKeys
from kubesync.domain.objects import EndpointsObject, ObjectKey, Observation, Port, Resource, Service
from kubesync.domain.state import KeyState, Name, Part, PartId
from toy.rules import Toy

ENDPOINT = "10.0.0.1"


def a_committer(large: threading.Lock, store: MemoryStore | None = None) -> Committer:
    store = store or MemoryStore(clock=ManualClock())
    states = KeyStates(a_config(), cluster_tables(store))
    states.large = LargeKeys(well={"shop": 30_000})
    writer = SimpleNamespace(room=lambda _clusters: 90, token=lambda: "token")
    return Committer(states, writer, ManualClock(), large)  # type: ignore[arg-type]


def seen(**endpoints: int) -> Callable[[ObjectKey], Sequence[Observation]]:
    """Keys with slices of so many endpoints, one hundred in each. Others have none."""

    def of(key: ObjectKey) -> list[Observation]:
        slices = -(-endpoints.get(key.name, 0) // 100)
        return [
            saw(an_endpoints(*[ENDPOINT] * 100, ports=()), 6, f"{key.name}-{n}", resource=SLICES) for n in range(slices)
        ]

    return of


def sections(
    committer: Committer,
    keys: Sequence[ObjectKey],
    large: threading.Lock,
    news: Callable[[ObjectKey], Sequence[Observation]] = lambda _key: (),
    listed: Collection[Resource] = (),
) -> list[tuple[list[str], bool]]:
    """The keys that are planned in one step each, and whether other clusters may not plan a large one meanwhile."""
    planned: list[tuple[list[str], bool]] = []

    def plan(pairs: Sequence[Pair]) -> Planned:
        planned.append(([before.key.name for before, _ in pairs], large.locked()))
        return Planned(())

    change = Change(keys, lambda state: state, plan, listed=frozenset(listed), observations=news)
    assert set(committer.commit(change, Recorded())) == {0.0}
    return planned


def test_i4_keys_with_many_endpoints_are_planned_in_steps_of_their_own() -> None:
    large = threading.Lock()
    keys = [a_key(name) for name in ("a", "b", "c", "d", "e", *(f"x{n:02}" for n in range(60)))]

    assert sections(a_committer(large), keys, large, seen(b=12_000, c=8_000, d=20_100, e=100)) == [
        (["a", "b", "c"], False),
        (["d"], True),
        (["e", *(f"x{n:02}" for n in range(49))], False),
        ([f"x{n:02}" for n in range(49, 60)], False),
    ]


def test_i4_keys_that_nobody_has_read_yet_count_with_what_is_stored_of_them() -> None:
    large, store = threading.Lock(), MemoryStore(clock=ManualClock())
    for name, endpoints in {"a": 12_000, "b": 8_000, "c": 20_100, "d": 100}.items():
        parts = {
            PartId(each.resource, each.name): Part("u", 6, 1, each.value) for each in seen(a=endpoints)(a_key("a"))
        }
        _, actions = StateTable(store).put(KeyState(a_key(name)), KeyState(a_key(name), parts=parts), "token")
        store.transact(actions, name)
    committer = a_committer(large, store)

    assert sections(committer, [a_key(name) for name in "abcd"], large) == [
        (["a", "b"], False),
        (["c"], True),
        (["d"], False),
    ]


def test_i4_list_says_how_large_keys_are_now_but_for_kinds_that_it_does_not_show() -> None:
    large = threading.Lock()
    committer = a_committer(large)
    service, toy = a_key("web"), ObjectKey("prod", "shop", "toy", Toy.__name__)
    for key in (service, toy):
        parts = {PartId(SLICES, each.name): Part("u", 6, 1, each.value) for each in seen(web=20_100)(a_key("web"))}
        committer.states.remember(KeyState(key, parts=parts))
    committer.states.aside |= {service, toy}

    assert sections(committer, [service, a_key("a"), toy], large, seen(web=100), listed=[SLICES]) == [
        (["web", "a"], False),
        (["toy"], True),
    ]
    assert committer.states.aside == {toy}


@pytest.mark.parametrize(
    ("rules", "left", "gives_way"),
    [
        (True, (), True),
        (True, ("web-0.web.shop.svc.prod.example.com",), True),
        (True, ("www.example.com",), False),
        (False, (), True),
        (False, ("web-0.web.shop.svc.prod.example.com",), False),
    ],
)
def test_i9_large_key_gives_way_once_what_is_left_decides_about_no_name_of_others(
    monkeypatch: pytest.MonkeyPatch, rules: bool, left: Sequence[str], gives_way: bool
) -> None:
    committer, written = a_committer(threading.Lock()), list[str]()
    committer.states.configure(a_config(domain_filter=("example.com",) if rules else ()), {}, 0.0)
    key = a_key()
    after = KeyState(key, claims=frozenset(Name("Z1", name) for name in left))
    chunks = [Chunk(token, left=(KeyState(key), after)) for token in ("first", "second")]
    monkeypatch.setattr(committer, "_write", lambda _part, chunk: written.append(chunk.token))
    section = Section([key], large=key, end=1, may_stop=True)

    began = committer.clock.monotonic()
    assert list(committer._write_chunks(Recorded(), chunks, section, began)) == ([key] if gives_way else [])
    assert written == (["first"] if gives_way else ["first", "second"])


@pytest.mark.parametrize("fails", [False, True])
def test_i4_one_large_key_is_planned_at_a_time_and_no_actor_waits_for_another(fails: bool) -> None:
    large = threading.Lock()
    committer, planned = a_committer(large), []

    def plan(pairs: Sequence[Pair]) -> Planned:
        assert large.locked()
        planned.append([before.key.name for before, _ in pairs])
        if fails:
            raise ValueError
        return Planned(())

    steps = committer.commit(Change([a_key()], lambda state: state, plan, observations=seen(web=20_100)), Recorded())
    large.acquire()  # another cluster plans one
    assert [next(steps), next(steps)] == [0.05, 0.05]
    assert planned == []
    large.release()
    with pytest.raises(ValueError if fails else StopIteration):
        next(steps)

    assert planned == [["web"]]
    assert not large.locked()


def test_i4_dry_run_waits_for_its_turn_as_well_and_leaves_out_what_sessions_died_of() -> None:
    large = threading.Lock()
    committer, planned = a_committer(large), []
    committer.states.large = LargeKeys(deaths={"shop": Deaths(20_100, 2, retry_at=2e9)})

    def plan(pairs: Sequence[Pair]) -> Planned:
        assert large.locked()
        planned.append([(before.key.name, before.key in committer.states.aside) for before, _ in pairs])
        return Planned(())

    stored = {PartId(each.resource, each.name): Part("u", 6, 1, each.value) for each in seen(web=20_100)(a_key())}
    change = Change([a_key()], lambda state: KeyState(state.key, parts=stored), plan, observations=seen(web=20_100))
    steps = committer.foresee(change, lambda _pairs, _planned: None)
    large.acquire()  # a cluster plans one
    assert [next(steps), next(steps)] == [0.05, 0.05]
    large.release()
    with pytest.raises(StopIteration):
        next(steps)

    assert planned == [[("web", True)]]
    assert not large.locked()


def test_i4_small_keys_do_not_wait_for_a_large_one() -> None:
    large = threading.Lock()
    large.acquire()
    committer = a_committer(large)
    steps = committer.commit(Change([a_key()], lambda state: state, lambda _pairs: Planned(())), Recorded())

    with pytest.raises(StopIteration):
        next(steps)


@pytest.mark.parametrize(
    "long_part",
    [
        (PartId(SERVICES, "long"), a_service(annotations={"hostname": "x" * 250_000})),
        (PartId(SLICES, "long-0"), an_endpoints(ports=[Port("p", "TCP", 80)] * 992)),
    ],
)
def test_i9_services_with_long_annotations_or_many_ports_count_as_several_keys(
    long_part: tuple[PartId, Service | EndpointsObject], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[ObjectKey] = []

    def each(keys: Sequence[ObjectKey]) -> Iterator[KeyState]:
        read.extend(keys)
        return (KeyState(key) for key in keys)

    tables = cluster_tables(MemoryStore(clock=ManualClock()))
    monkeypatch.setattr(tables.state, "load_each", each)
    states = KeyStates(a_config(), tables, lambda: 100)
    part_id, value = long_part
    small, long = [a_key(f"small{n}") for n in range(90)], [a_key(f"long{n}") for n in range(2)]

    for key in small:
        states.remember(KeyState(key))
    states.states(small)
    assert read == []
    for key in long:
        states.remember(KeyState(key, parts={PartId(part_id.resource, key.name): Part("u", 5, 1, value)}))
    states.states(small)

    assert read == small, "two of 62 beside 90 are more than 100"


def test_lease_that_is_lost_while_a_large_key_is_planned_is_no_death_of_it() -> None:
    """The session may not write any more. But nobody has raised the fence, so it can still say that it has not died."""
    noted: list[list[object]] = []
    committer = a_committer(threading.Lock())
    committer.states.large = LargeKeys()
    writer = SimpleNamespace(lost=False, room=lambda _clusters: 90, token=lambda: "token")

    def run(_clusters: object, actions: Sequence[Put], _token: str, **_until: object) -> None:
        if writer.lost:
            raise NotMasterError("the lease is lost")
        noted.append([action.item["under_way"] for action in actions])

    def write_without_lease_check(cluster: str, actions: Sequence[Put], _token: str) -> None:
        noted.append([cluster, *(action.item["under_way"] for action in actions)])

    def plan(_pairs: Sequence[Pair]) -> Planned:
        writer.lost = True
        raise NotMasterError("the lease is lost")

    writer.run, writer.write_without_lease_check = run, write_without_lease_check
    committer._fenced_writer = writer  # type: ignore[assignment]
    parts = {PartId(SLICES, f"{n}"): Part("u", 5, 1, an_endpoints(*[ENDPOINT] * 201, ports=())) for n in range(100)}
    change = Change([a_key()], lambda state: replace(state, parts=parts), plan, observations=seen(web=20_100))

    with pytest.raises(NotMasterError):
        next(committer.commit(change, Recorded()))

    assert noted == [[["shop", 20_100]], ["prod", []]]


def test_memory_of_large_keys_is_bounded() -> None:
    large = LargeKeys()
    for number in range(150):
        large = large.begun(f"well{number}", 30_000).ended(well=True)
    assert large.needs_no_note("well149", 30_000)
    assert not large.needs_no_note("well49", 30_000)
    assert len(large.well) == 100
    for number in range(150):
        large = large.begun(f"dead{number}", 30_000).died(0.0)
    assert list(large.deaths)[::99] == ["dead50", "dead149"]
    assert large.well == {}


@pytest.mark.parametrize(("endpoints", "ports", "size"), [(3, 0, 3), (3, 2, 8), (0, 2, 2)])
def test_size_of_a_key_is_endpoints_times_ports_and_ports(endpoints: int, ports: int, size: int) -> None:
    one = an_endpoints(*[ENDPOINT] * endpoints, ports=[Port("p", "TCP", 80)] * ports)
    assert size_of([a_service(), one, one]) == 2 * size
