"""Change batches: what goes together, what fits, in which order, and how a refused one is halved."""

from math import ceil

import pytest
from hypothesis import given, settings, strategies as st

from harness.seen.builders import a_key
from kubesync.domain.batches import (
    BatchLimits,
    Unit,
    at_fault,
    fill,
    halves,
    in_stable_order,
    together,
    units_of,
    without_rivals,
)
from kubesync.domain.dns.records import AliasTarget, RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import SIMPLE, Weighted

ROOM = BatchLimits(elements=998, characters=31_800)


def a_change(name: str, kind: str = "A", before: int = 1, after: int = 1, length: int = 8) -> RecordChange:
    """So many values before and after; 0: no set."""
    sides = [
        RecordSet(60, tuple(f"{n:0{length}d}" for n in range(count))) if count else None for count in (before, after)
    ]
    return RecordChange(RecordKey("Z1", name, kind), *sides)


def a_unit(name: str, *, before: int = 1, after: int = 1, length: int = 8, key: str = "web") -> Unit:
    return Unit(a_key(key), (a_change(name, before=before, after=after, length=length),))


def test_changes_of_one_name_go_apart_unless_a_cname_comes_or_goes() -> None:
    changes = [
        a_change("b", "A"),
        a_change("b", "AAAA"),
        a_change("a", "CNAME", before=0),
        a_change("a", "A", after=0),
        a_change("a", "AAAA", after=0),
    ]
    assert [[(c.key.name, c.key.type) for c in unit.changes] for unit in units_of(a_key(), changes)] == [
        [("a", "A"), ("a", "AAAA"), ("a", "CNAME")],
        [("b", "A")],
        [("b", "AAAA")],
    ]


def weighted(name: str, kind: str, identifier: str, *, gone: bool = False) -> RecordChange:
    found = RecordSet(60, ("10.0.0.1",), routing=Weighted(1) if identifier else SIMPLE)
    return RecordChange(RecordKey("Z1", name, kind, identifier), *((found, None) if gone else (None, found)))


def test_simple_set_that_becomes_a_weighted_one_changes_in_one_batch() -> None:
    changes = [weighted("a", "A", "blue"), weighted("a", "A", "", gone=True), weighted("a", "SRV", "blue")]
    units = units_of(a_key(), changes)
    assert [[(c.key.type, c.key.identifier) for c in unit.changes] for unit in units] == [
        [("A", ""), ("A", "blue")],
        [("SRV", "blue")],
    ]
    assert units[0].wanted == RecordKey("Z1", "a", "A", "blue")


def test_weighted_sets_of_several_keys_share_a_name_in_one_batch() -> None:
    units = [Unit(a_key(key), (weighted("a", "A", key),)) for key in ("green", "blue")]
    assert without_rivals(in_stable_order(units)) == [units[1], units[0]]


@pytest.mark.parametrize(
    ("first", "second"),
    [(("A", ""), ("A", "blue")), (("A", "blue"), ("CNAME", "green")), (("AAAA", ""), ("CNAME", "green"))],
)
def test_of_sets_that_exclude_each_other_one_goes_first(first: tuple[str, str], second: tuple[str, str]) -> None:
    units = [Unit(a_key(owner), (weighted("a", *of_set),)) for owner, of_set in (("one", first), ("two", second))]
    other = Unit(a_key("three"), (weighted("b", "A", ""),))
    assert without_rivals([*units, other]) == [units[0], other]
    assert without_rivals([*reversed(units), other]) == [units[1], other]


def test_who_waits_for_another_key_brings_no_set_of_the_name() -> None:
    """Its other family waits too, what it has at the name follows its address, and what goes goes."""
    first = Unit(a_key("one"), (weighted("a", "AAAA", ""),))
    late, beside, elsewhere = units_of(
        a_key("two"), [weighted("a", "A", "blue"), weighted("a", "AAAA", "blue"), weighted("b", "A", "blue")]
    )
    goes = Unit(a_key("two"), (weighted("a", "SRV", "blue", gone=True),))
    assert without_rivals([first, late, beside, elsewhere, goes]) == [first, elsewhere, goes]
    assert without_rivals([late, beside, first]) == [late, beside]


def test_set_that_goes_is_in_nobodys_way() -> None:
    units = [
        Unit(a_key("one"), (weighted("a", "A", "", gone=True),)),
        Unit(a_key("two"), (weighted("a", "A", "blue"),)),
    ]
    assert without_rivals(units) == units


def test_unit_weighs_what_it_takes_away_and_what_it_adds() -> None:
    unit = a_unit("a", before=3, after=5, length=10)
    assert (unit.elements, unit.characters, unit.growth) == (8, 80, 0)
    created = a_unit("a", before=0, after=2)
    assert (created.elements, created.characters, created.growth) == (2, 16, 1)
    alias = RecordSet(None, (), AliasTarget("ZELB", "lb.example.org"))
    aliased = Unit(a_key(), (RecordChange(RecordKey("Z1", "a", "A"), None, alias),))
    assert (aliased.elements, aliased.characters) == (1, 0)


@pytest.mark.parametrize("changed", [1, 499, 500, 998, 999, 5000])
def test_changed_single_valued_sets_take_the_fewest_batches(changed: int) -> None:
    left = [a_unit(f"n{n:05d}") for n in range(changed)]
    batches = 0
    while left:
        taken, oversized = fill([(unit,) for unit in left], ROOM)
        left = left[len(taken) :]
        assert oversized == []
        batches += 1
    assert batches == ceil(2 * changed / 998)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 40)), max_size=40),
    st.builds(BatchLimits, st.integers(1, 60), st.integers(1, 900)),
)
def test_limits_are_never_exceeded_and_no_unit_is_lost(sizes: list[tuple[int, int, int]], limits: BatchLimits) -> None:
    units = [
        a_unit(f"n{index:02d}", before=before, after=after, length=length)
        for index, (before, after, length) in enumerate(sizes)
    ]
    left, seen = units, list[Unit]()
    while left:
        taken, oversized = fill([(unit,) for unit in left], limits)
        assert sum(unit.elements for unit in taken) <= limits.elements
        assert sum(unit.characters for unit in taken) <= limits.characters
        assert all(u.elements > limits.elements or u.characters > limits.characters for u in oversized)
        assert taken or oversized, "it goes forward"
        seen += [*taken, *oversized]
        left = [unit for unit in left if unit not in taken and unit not in oversized]
    assert sorted(unit.name for unit in seen) == [unit.name for unit in units]


def test_unit_too_large_for_any_batch_holds_up_none_behind_it_i4() -> None:
    units = [a_unit("a"), a_unit("big", after=999), a_unit("c")]
    taken, oversized = fill([(unit,) for unit in units], ROOM)
    assert [[u.name for u in part] for part in (taken, oversized)] == [["a", "c"], ["big"]]


def test_order_is_by_name_then_type_whatever_came_first() -> None:
    units = [a_unit("b"), Unit(a_key("x"), (a_change("a", "SRV"),)), Unit(a_key("y"), (a_change("a", "A"),))]
    names = [(u.name, u.changes[0].key.type) for u in in_stable_order(units)]
    assert names == [("a", "A"), ("a", "SRV"), ("b", "A")]
    assert in_stable_order(reversed(units)) == in_stable_order(units)


@pytest.mark.parametrize("identifier", ["", "blue"])
@pytest.mark.parametrize("gone", [(False, False), (True, True)])
def test_of_two_keys_that_touch_one_set_only_the_first_goes_and_nothing_else_waits_i3_i4(
    gone: tuple[bool, bool], identifier: str
) -> None:
    one, two = (
        Unit(a_key(owner), (weighted("a", "A", identifier, gone=goes),))
        for owner, goes in zip(("one", "two"), gone, strict=True)
    )
    other = a_unit("b")
    assert without_rivals(in_stable_order([two, other, one])) == [one, other]
    assert without_rivals(in_stable_order([two, other])) == [two, other]


def passing(name: str, one: str = "one", other: str = "other", before: int = 1, after: int = 1) -> list[Unit]:
    """A key takes its set away, another one creates its own."""
    return [a_unit(name, before=before, after=0, key=one), a_unit(name, before=0, after=after, key=other)]


def test_who_takes_a_set_away_goes_together_with_who_creates_it() -> None:
    leaves, comes = passing("a")
    beside = a_unit("b")
    assert together([comes, beside, leaves]) == [(comes, leaves), (beside,)]
    assert without_rivals([comes, beside, leaves]) == [comes, beside, leaves]


@pytest.mark.parametrize(
    ("gone", "comes", "joined"),
    [
        (("A", ""), ("A", ""), True),
        (("A", ""), ("A", "blue"), True),
        (("A", "blue"), ("A", ""), True),
        (("A", ""), ("CNAME", ""), True),
        (("CNAME", ""), ("AAAA", ""), True),
        (("A", "blue"), ("A", "green"), False),
        (("A", ""), ("AAAA", ""), False),
    ],
)
def test_units_go_together_where_one_keeps_the_other_out(
    gone: tuple[str, str], comes: tuple[str, str], *, joined: bool
) -> None:
    units = [Unit(a_key("one"), (weighted("a", *gone, gone=True),)), Unit(a_key("two"), (weighted("a", *comes),))]
    assert (len(together(units)) == 1) is joined
    same_key = [units[0], Unit(a_key("one"), units[1].changes)]
    assert len(together(same_key)) == 2, "units of one key land one after the other, whatever the order"


def test_what_goes_together_grows_to_one_group() -> None:
    units = [Unit(a_key(f"k{n}"), (weighted("a", "A", identifier, gone=True),)) for n, identifier in enumerate("xyz")]
    comes = Unit(a_key("new"), (weighted("a", "A", ""),))
    assert together([*units, comes]) == [(*units, comes)]


def test_group_that_does_not_fit_is_left_for_the_next_batch_whole() -> None:
    first, joined = a_unit("a", before=400, after=400), passing("b", before=200, after=200)
    assert fill([(first,), joined], BatchLimits(1000, 31_800)) == ([first], [])


def test_of_a_group_that_fits_no_batch_what_is_created_is_at_fault() -> None:
    joined = passing("a", before=400, after=400)
    assert fill([joined], BatchLimits(700, 31_800)) == ([], [joined[1]])


def test_halves_do_not_part_what_goes_together() -> None:
    groups = [passing("a"), [a_unit("b")], [a_unit("c")]]
    assert [[unit.name for unit in half] for half in halves(groups)] == [["a", "a"], ["b", "c"]]


def standing(*units: Unit) -> dict[RecordKey, RecordSet]:
    return {c.key: c.before for unit in units for c in unit.changes if c.before is not None}


def test_of_a_refused_group_the_new_set_is_at_fault_where_the_old_one_stands() -> None:
    leaves, comes = passing("a")
    foreign = {RecordKey("Z1", "a", "CNAME"): RecordSet(60, ("x.",))}
    assert at_fault([leaves, comes], frozenset({leaves, comes}), standing(leaves) | foreign) == {comes: foreign}


def test_of_a_refused_group_the_old_set_is_at_fault_where_it_does_not_stand_as_known() -> None:
    leaves, comes = passing("a")
    changed = {RecordKey("Z1", "a", "A"): RecordSet(60, ("192.0.2.9",))}
    assert at_fault([leaves, comes], frozenset({comes}), changed) == {leaves: changed}
    assert at_fault([leaves, comes], frozenset({comes}), {}) == {leaves: {}}


@given(st.integers(2, 50))
def test_halves_hold_everything_in_order_and_neither_is_empty(count: int) -> None:
    units = [a_unit(f"n{n:02d}") for n in range(count)]
    first, second = halves([(unit,) for unit in units])
    assert first + second == units
    assert first
    assert second
