"""Writes of keys cut into transactions: never over a limit, nothing named twice, final states and checkpoints last."""

from dataclasses import dataclass, replace
from itertools import count

from hypothesis import given, settings, strategies as st

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_key
from kubesync.aws.dynamodb.store import CONTROL, STATE, Action, Delete, Key, Put
from kubesync.aws.dynamodb.wire import item_bytes
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.state import StateTable, state_key
from kubesync.cluster.keys.key_writes import MAX_CLUSTERS, Chunk, Ending, KeyWrite, Made, Piece, chunks_of
from kubesync.domain.state import KeyState, Name

ROOM = 94
TABLE = StateTable(MemoryStore(clock=ManualClock()))


def place(name: str) -> Key:
    return Key(STATE, "p", name)


def a_piece(number: int, actions: int, *, cluster: str = "", shared: str = "", size: int = 0) -> Piece:
    """A piece that claims a name; ``shared``: it also names an item that other keys name."""
    name = Name("Z1", f"n{number}")
    made: list[Action] = [Put(place(f"{number}-{n}"), {"body": "x" * size}) for n in range(actions)]
    if shared:
        made.append(Delete(place(shared)))
    clusters = frozenset({cluster}) if cluster else frozenset[str]()
    return Piece(tuple(made), clusters, name)


def a_write(name: str, *pieces: Piece, trailing: int = 0) -> KeyWrite:
    before = KeyState(a_key(name))
    after = replace(before, claims=frozenset(piece.name for piece in pieces if piece.name))
    notes = tuple(Delete(place(f"{name}-note-{n}")) for n in range(trailing))
    return KeyWrite(before, after, pieces, (Entry(name, None, None, "test"),), notes)


def checkpoints(token: str) -> Ending:
    return Ending((Put(Key(CONTROL, "cluster#prod", "checkpoint#services"), {"tx": token}),))


def cut(*writes: KeyWrite, room: int = ROOM) -> list[Chunk]:
    tokens = (f"t{n}" for n in count())
    return list(chunks_of(writes, TABLE, lambda: next(tokens), room, checkpoints))


@dataclass(frozen=True)
class Plan:
    pieces: tuple[tuple[int, str, str], ...]
    trailing: int


plans = st.builds(
    Plan,
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["", *"abcdefg"]), st.sampled_from(["", "s", "t"])), max_size=9
    ).map(tuple),
    st.sampled_from([0, 0, 1, 30]),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(plans, max_size=6))
def test_every_transaction_is_within_its_limits_and_the_last_word_comes_last(keys: list[Plan]) -> None:
    numbers = count()
    writes = []
    for index, plan in enumerate(keys):
        # One key never names an item twice by itself.
        once = {shared: at for at, (_, _, shared) in enumerate(plan.pieces)}
        pieces = [
            a_piece(next(numbers), actions, cluster=cluster, shared=shared if once[shared] == at else "")
            for at, (actions, cluster, shared) in enumerate(plan.pieces)
        ]
        writes.append(a_write(f"k{index}", *pieces, trailing=plan.trailing))
    chunks = cut(*writes, room=20)

    for chunk in chunks:
        assert 1 <= len(chunk.actions) <= 20
        assert len({action.key for action in chunk.actions}) == len(chunk.actions)
        assert len(chunk.clusters) <= MAX_CLUSTERS
    everything = [action.key for chunk in chunks for action in chunk.actions]
    assert sorted(k.sort for k in everything if str(k.sort).startswith("checkpoint")) == ["checkpoint#services"]
    assert everything[-1].sort == "checkpoint#services"
    assert [entry.what for chunk in chunks for entry in chunk.entries] == [f"k{n}" for n in range(len(keys))]
    for write in writes:
        wanted = [a.key for piece in write.pieces for a in piece.actions] + [a.key for a in write.trailing]
        assert all(everything.count(key) >= 1 for key in wanted)
        states = [state for chunk in chunks for state in chunk.states if state.key == write.after.key]
        assert states[-1].claims == write.after.claims
        final = max(at for at, chunk in enumerate(chunks) if any(s.key == write.after.key for s in chunk.states))
        for at, chunk in enumerate(chunks):
            names = {action.key for action in chunk.actions}
            assert not (
                at > final and names & {a.key for p in write.pieces for a in p.actions if a.key.sort not in ("s", "t")}
            )
            assert not (at < final and names & {action.key for action in write.trailing})


def test_key_that_fits_goes_whole_and_shares_its_transaction() -> None:
    chunks = cut(a_write("a", a_piece(1, 2)), a_write("b", a_piece(2, 2)))
    assert [len(chunk.actions) for chunk in chunks] == [7]
    assert [state.key.name for state in chunks[0].states] == ["a", "b"]


def test_transaction_is_filled_to_the_last_action() -> None:
    # 3 pieces of 30 and the key's own item are 91; two more actions and the checkpoint are 94.
    whole = a_write("a", *(a_piece(n, 30) for n in range(3)))
    assert [len(c.actions) for c in cut(whole, a_write("b", a_piece(9, 1)))] == [94]
    assert [len(c.actions) for c in cut(whole, a_write("b", a_piece(9, 2)))] == [94, 1]


def test_steps_of_one_key_grow_from_transaction_to_transaction() -> None:
    chunks = cut(a_write("a", *(a_piece(n, 30) for n in range(7))))
    assert [len(chunk.actions) for chunk in chunks] == [91, 91, 32]
    assert [len(chunk.states[-1].claims) for chunk in chunks] == [3, 6, 7]
    assert [chunk.states[-1].version for chunk in chunks] == [1, 2, 3]
    assert [len(chunk.entries) for chunk in chunks] == [0, 0, 1]


def test_item_that_two_keys_name_takes_two_transactions() -> None:
    chunks = cut(a_write("a", a_piece(1, 1, shared="s")), a_write("b", a_piece(2, 1, shared="s")))
    assert [[state.key.name for state in chunk.states] for chunk in chunks] == [["a"], ["b"]]


def test_transaction_of_many_keys_checks_no_more_fences_than_there_is_room_for() -> None:
    chunks = cut(*(a_write(f"k{n}", a_piece(n, 1, cluster=f"c{n}")) for n in range(9)))
    assert [sorted(chunk.clusters) for chunk in chunks] == [
        ["c0", "c1", "c2", "c3", "prod"],
        ["c4", "c5", "c6", "c7", "prod"],
        ["c8", "prod"],
    ]


def test_transaction_is_cut_before_it_has_4_megabytes() -> None:
    chunks = cut(*(a_write(f"k{n}", a_piece(n, 1, size=300_000)) for n in range(30)))
    sizes = [sum(item_bytes(a.item) for a in chunk.actions if isinstance(a, Put)) for chunk in chunks]
    assert max(sizes) <= 3_500_000
    assert [len(chunk.states) for chunk in chunks] == [11, 11, 8]
    of_one_key = cut(a_write("k", *(a_piece(n, 1, size=300_000) for n in range(30))))
    assert [len(chunk.actions) for chunk in of_one_key] == [12, 12, 10]


def test_nothing_to_write_still_writes_the_checkpoints() -> None:
    assert [len(chunk.actions) for chunk in cut()] == [1]
    tokens = (f"t{n}" for n in count())
    assert list(chunks_of([], TABLE, lambda: next(tokens), ROOM)) == []


def test_token_of_an_item_is_that_of_its_transaction() -> None:
    for chunk in cut(*(a_write(f"k{n:03d}", a_piece(n, 3)) for n in range(100))):
        heads = [a for a in chunk.actions if isinstance(a, Put) and "tx" in a.item]
        assert heads
        assert {a.item["tx"] for a in heads} == {chunk.token}


def test_state_of_a_key_over_100_kb_leaves_room_for_its_slices() -> None:
    from hashlib import sha256

    from kubesync.domain.dns.records import Problem

    texts = tuple(Problem("Test", "", sha256(b"%d" % n).hexdigest()) for n in range(12_000))
    pieces = tuple(a_piece(n, 10) for n in range(9))
    write = KeyWrite(
        KeyState(a_key()), replace(KeyState(a_key()), problems=texts, claims=frozenset({Name("Z1", "n")})), pieces
    )
    chunks = cut(write)
    assert all(len(chunk.actions) <= ROOM for chunk in chunks)
    assert chunks[-1].states[-1].slices == 5
    assert state_key(a_key()) in {action.key for action in chunks[-1].actions}


def test_writes_of_an_upstream_are_not_made_to_add_others() -> None:
    made: list[int] = []

    def put() -> tuple[object, list[Action]]:
        made.append(1)
        return None, [Put(Key(STATE, "upstream", "0"), {})]

    state, early, late = KeyState(a_key()), Delete(Key(STATE, "early", "1")), Delete(Key(STATE, "late", "1"))
    write = KeyWrite(state, state, (Piece(Made(put, (), (1, 100)), upstream="prod/shop/web/80/TCP"),))

    assert write.with_further([early], [late]).trailing == (late,)
    assert made == [], "of a large key this takes seconds"
