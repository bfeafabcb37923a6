"""Every kind of item has a golden one, and nothing is written that has not: neither at another key nor with other attributes."""

import pytest

from harness.fakes.memory_store import Call
from harness.golden.item_kinds import KINDS, golden_forms, kind_of_item, why_unknown
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, UPSTREAMS, Item, Key, Put, Update
from kubesync.aws.tables.items import SCHEMA


def test_every_kind_has_a_golden() -> None:
    assert golden_forms().keys() == KINDS.keys() - WITHOUT_A_FILE


# Bodies of two would be hundreds of kilobytes; see ``test_golden_writes``. The third is written only where there are several shards:
# ``integration/shards``.
WITHOUT_A_FILE = {"resync request, slice", "result of a resync, slice", "heir in another shard"}


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (Key(CONTROL, "zones", "Z1"), "access to a zone"),
        (Key(CONTROL, "zones#0", "Z1"), "problem of a zone"),
        (Key(CONTROL, "inflight#0", "Z1"), "inflight"),
        (Key(CONTROL, "inflight#0", "Z1#001"), "inflight, slice"),
        (Key(CONTROL, "named-marks#0", "prod/shop/web/80/TCP"), "note for the composer"),
        (Key(STATE, "prod#a", "key#shop/web"), "key"),
        (Key(STATE, "prod#a", "key#shop/web#001"), "key, slice"),
        (Key(STATE, "prod#open#0", "shop/web"), "open mark"),
        (Key(STATE, "prod#open#0", "shop/web#gone"), "note of tombstones"),
        (Key(STATE, "names#Z1#a", "*.example.com#set#a%23b"), "claim of a set identifier"),
        (Key(STATE, "names#Z1#a", "example.com#wait##prod/shop/web"), "waiter"),
        (Key(UPSTREAMS, "named/shop", 12), "upstream, slice"),
        (Key(AUDIT, "changes#@named#2027-01-15", "2027-01-15T08:00:00.000Z#s#t"), "changes"),
    ],
)
def test_kind_is_told_by_the_key(key: Key, kind: str) -> None:
    assert kind_of_item(key) == kind


@pytest.mark.parametrize(
    "key",
    [
        Key(CONTROL, "cluster#prod", "unheard-of"),
        Key(CONTROL, "unheard-of", "Z1"),
        Key(STATE, "prod#open#0", "shop/web#unheard-of"),
        Key(STATE, "prod#open#4", "shop/web"),
        Key(UPSTREAMS, "prod/shop/web/80/TCP", "0#1"),
        Key(AUDIT, "sessions#0", "2027-01-15T08:00:00.000Z#s"),
    ],
)
def test_item_without_a_golden_is_noticed(key: Key) -> None:
    with pytest.raises(LookupError):
        kind_of_item(key)
    assert why_unknown([_call(Put(key, {"v": 1}))])


@pytest.mark.parametrize(
    ("item", "known"),
    [
        ({"v": 1, "uid": "u"}, True),
        ({"v": 1}, False),
        ({"v": 1, "uid": "u", "unheard_of": 1}, False),
    ],
)
def test_attribute_that_no_golden_has_or_that_all_have_is_noticed(item: Item, *, known: bool) -> None:
    assert bool(why_unknown([_call(Put(Key(CONTROL, "cluster#prod", "identity"), item))])) is not known


def test_attribute_that_is_set_alone_is_noticed_where_no_golden_has_it() -> None:
    place = Key(CONTROL, "lease#0", "lease")
    assert not why_unknown([_call(Update(place, set={"released": True}, add={"renewal": 1}))])
    assert why_unknown([_call(Update(place, set={"unheard_of": True}))])
    assert why_unknown([_call(Update(place, add={"unheard_of": 1}))])


def test_item_of_a_newer_release_is_its_own_affair() -> None:
    assert not why_unknown([_call(Put(Key(CONTROL, "cluster#prod", "identity"), {"v": SCHEMA + 1, "unheard_of": 1}))])


def _call(action: Put | Update) -> Call:
    return Call("write", (action.key.table,), actions=(action,))
