"""The order in which the keys of a long window are recorded (I9)."""

from collections.abc import Iterable

from hypothesis import given, strategies as st

from kubesync.domain.objects import ObjectKey
from kubesync.domain.window import Turns


def key(text: str) -> ObjectKey:
    namespace, _, name = text.partition("/")
    return ObjectKey("prod", namespace, name)


def add(turns: Turns, *texts: str, since: float = 0.0, fair: bool = True, **asked: str) -> None:
    """``asked``: by the keys' names, names that they ask for."""
    keys = [key(text) for text in texts]
    names = {each: frozenset(filter(None, asked.get(each.name, "").split(","))) for each in keys}
    turns.add(keys, names, since, fair=fair)


def order(turns: Turns) -> list[str]:
    return [f"{each.namespace}/{each.name}" for each in turns.keys]


def test_i9_namespaces_take_turns() -> None:
    turns = Turns()
    add(turns, "evil/a", "evil/b", "evil/c", "shop/d", "shop/e", "blog/f")
    assert order(turns) == ["evil/a", "shop/d", "blog/f", "evil/b", "shop/e", "evil/c"]


def test_without_rules_for_names_age_alone_decides() -> None:
    turns = Turns()
    add(turns, "evil/a", "evil/b", "shop/d", fair=False)
    add(turns, "shop/e", fair=False)
    assert order(turns) == ["evil/a", "evil/b", "shop/d", "shop/e"]


def test_i9_what_comes_later_waits_for_one_key_of_each_namespace() -> None:
    turns = Turns()
    add(turns, "evil/a", "evil/b", "evil/c", "evil/d")
    turns.recorded = 2
    add(turns, "shop/e", "evil/f")
    assert order(turns) == ["evil/a", "evil/b", "evil/c", "shop/e", "evil/d", "evil/f"]


def test_key_that_waits_keeps_its_place_and_one_that_is_recorded_gets_another() -> None:
    turns = Turns()
    add(turns, "evil/a", "evil/b", "evil/c", since=1.0)
    turns.recorded = 1
    assert turns.oldest() == (1.0, "evil")
    add(turns, "evil/c", "evil/a", since=2.0)
    assert order(turns) == ["evil/a", "evil/b", "evil/c", "evil/a"]
    turns.recorded = 3
    assert turns.oldest() == (2.0, "evil")
    assert turns.since([key("evil/c")]) == 1.0


def test_i9_who_asks_for_a_name_comes_after_all_that_asked_before() -> None:
    turns = Turns()
    add(turns, "evil/a", "evil/b", "evil/c", "shop/d", "shop/e", c="x.example.com", d="x.example.com")
    assert order(turns) == ["evil/a", "evil/b", "shop/e", "evil/c", "shop/d"]


def test_i9_key_that_asks_for_another_name_while_it_waits_goes_behind_those_that_asked_before() -> None:
    turns = Turns()
    add(turns, "evil/a", "evil/b", "evil/c", "shop/d", c="x.example.com", d="old.example.com")
    add(turns, "shop/d", d="old.example.com,x.example.com")
    assert order(turns) == ["evil/a", "evil/b", "evil/c", "shop/d"]
    add(turns, "shop/d", d="old.example.com,x.example.com")
    assert order(turns) == ["evil/a", "evil/b", "evil/c", "shop/d"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.frozensets(st.sampled_from("xyz"))), max_size=40),
    st.integers(1, 5),
)
def test_i9_keys_of_one_name_and_of_one_namespace_are_recorded_in_the_order_in_which_they_came(
    drawn: list[tuple[str, int, frozenset[str]]], at_a_time: int
) -> None:
    """Keys come in several windows, while others are recorded. Each comes once, so that nobody changes what it asks for."""
    came = {key(f"{namespace}/{number}"): asked for namespace, number, asked in drawn}
    turns = Turns()
    for some in _batches(came, at_a_time):
        turns.add(some, {each: came[each] for each in some}, 0.0, fair=True)
        turns.recorded = min(len(turns.keys), turns.recorded + 2)
    assert sorted(turns.keys) == sorted(came)
    for name in "xyz":
        of_name = [each for each in came if name in came[each]]
        assert [each for each in turns.keys if name in came[each]] == of_name


def _batches(keys: Iterable[ObjectKey], size: int) -> list[list[ObjectKey]]:
    every = list(keys)
    return [every[at : at + size] for at in range(0, len(every), size)]
