"""The registry of named upstreams: changes exclude each other; what is referred to stays; notes go with each change."""

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.named import member, notes, register, unregister
from kubesync.aws.dynamodb.store import CONTROL, Key, Put
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.errors import ChangedMeanwhileError, UsageError
from kubesync.domain.upstreams.named import Member, NamedUpstream
from kubesync_local.registration.named_upstreams import NamedRegistry, including, member_text, referring_to
from kubesync_local.workplace.registry import ClusterRegistry

WEB = member("prod/shop/web/80", 3, backup=True)
NODE = member("[2001:db8::1]:80")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(clock=ManualClock())


@pytest.fixture
def table(store: MemoryStore) -> NamedRegistry:
    return NamedRegistry(store)


def entry(name: str, *members: Member, shard: str = "0") -> NamedUpstream:
    return NamedUpstream(name, members, shard)


def test_what_is_registered_is_read_back(store: MemoryStore, table: NamedRegistry) -> None:
    register(store, "inner", NODE)
    register(store, "shop", WEB, member("inner", 2), NODE)
    registry = table.read()
    assert registry.named["shop"] == NamedUpstream("shop", (WEB, member("inner", 2), NODE), "0")
    assert (registry.version, table.version()) == (2, 2)
    assert referring_to(registry, "prod") == ["shop"]
    assert including("inner", registry) == ["shop"]
    assert [member_text(each) for each in registry.named["shop"].members] == [
        {"service": "prod/shop/web/80/TCP", "weight": 3, "backup": True},
        {"upstream": "inner", "weight": 2},
        {"static": "[2001:db8::1]:80"},
    ]


def test_item_has_this_form(store: MemoryStore) -> None:
    register(store, "shop", WEB)
    assert store.get(Key(CONTROL, "named-upstreams", "shop")) == {
        "pk": "named-upstreams",
        "sk": "shop",
        "v": 1,
        "revision": 1,
        "shard": "0",
        "document": '{"members":[{"service":"prod/shop/web/80/TCP","weight":3,"backup":true}]}',
        "held_by": [],
    }


def test_change_leaves_a_note_with_a_version_of_its_own(store: MemoryStore) -> None:
    register(store, "shop", NODE)
    assert notes(store) == {"named/shop": 1}
    register(store, "edge", NODE, shard="b")
    register(store, "shop", WEB)
    assert (notes(store), notes(store, "b")) == ({"named/shop": 3}, {"named/edge": 2})
    unregister(store, "shop")
    assert notes(store) == {"named/shop": 4}


def test_of_two_changes_at_the_same_time_one_is_refused(store: MemoryStore, table: NamedRegistry) -> None:
    """Else each could include the other: neither knows of the other's."""
    register(store, "a", NODE)
    register(store, "b", NODE)
    seen = table.read()
    table.put(entry("a", member("b")), seen)
    with pytest.raises(
        ChangedMeanwhileError, match=r"^named upstreams were changed by somebody else meanwhile: try again$"
    ):
        table.put(entry("b", member("a")), seen)
    with pytest.raises(UsageError, match=r"^named upstream b would include itself: b > a > b$"):
        table.put(entry("b", member("a")), table.read())


def test_removal_is_refused_while_another_includes_it(store: MemoryStore, table: NamedRegistry) -> None:
    register(store, "inner", NODE)
    register(store, "one", member("inner"))
    register(store, "two", member("inner"))
    with pytest.raises(UsageError, match=r"^named upstream inner is included in one, two: remove it there first"):
        table.remove("inner", table.read())
    unregister(store, "one")
    unregister(store, "two")
    table.remove("inner", table.read())
    assert table.read().named == {}


def test_removal_is_refused_while_somebody_holds_it(store: MemoryStore, table: NamedRegistry) -> None:
    register(store, "shop", NODE)
    seen = table.read()
    assert table.hold("shop", "edge-eu", seen)
    with pytest.raises(ChangedMeanwhileError, match=r"^named upstreams were changed by somebody else meanwhile"):
        table.remove("shop", seen)
    assert not table.hold("shop", "edge-eu", table.read())
    assert table.hold("shop", "edge-us", table.read())
    register(store, "shop", WEB)
    assert table.read().named["shop"].held_by == ("edge-eu", "edge-us")
    with pytest.raises(
        UsageError, match=r"^named upstream shop is held by edge-eu, edge-us: `kubesync upstream release shop"
    ):
        table.remove("shop", table.read())
    with pytest.raises(UsageError, match=r"^named upstream shop is not held by 'x', but by edge-eu, edge-us$"):
        table.release("shop", "x", table.read())
    table.release("shop", "edge-eu", table.read())
    table.release("shop", "edge-us", table.read())
    table.remove("shop", table.read())


def test_holding_changes_nothing_that_would_have_to_be_composed(store: MemoryStore, table: NamedRegistry) -> None:
    register(store, "shop", NODE)
    store.write(table.unmark("0", "named/shop", 1))
    table.hold("shop", "edge", table.read())
    table.release("shop", "edge", table.read())
    assert notes(store) == {}


def test_everything_behind_one_belongs_to_one_shard(store: MemoryStore, table: NamedRegistry) -> None:
    register(store, "inner", NODE, shard="b")
    with pytest.raises(UsageError, match=r"^named upstream inner belongs to shard b, outer to shard 0"):
        table.put(entry("outer", member("inner")), table.read())
    with pytest.raises(UsageError, match=r"^named upstream inner belongs to shard b: remove it, and add it again"):
        table.put(entry("inner", NODE), table.read())


@pytest.mark.parametrize(
    "fields",
    [
        {"v": 2, "document": "{}", "shard": "0", "held_by": []},
        {"v": 1, "document": '{"members":[{"service":"prod/shop/web/80/TCP","slow_start":30}]}', "shard": "0", "held_by": []},
        {"v": 1, "document": '{"members":[{"service":"prod/shop"}]}', "shard": "0", "held_by": []},
    ],
)  # fmt: skip
def test_i4_one_that_a_newer_release_wrote_stops_no_other_and_is_left_alone(
    fields: dict[str, str | int | list[str]], store: MemoryStore, table: NamedRegistry
) -> None:
    register(store, "shop", NODE)
    store.write(Put(Key(CONTROL, "named-upstreams", "newer"), fields))
    registry = table.read()
    assert (list(registry.named), list(registry.unreadable)) == (["shop"], ["newer"])
    for change in (
        lambda: table.put(entry("newer", NODE), registry),
        lambda: table.remove("newer", registry),
        lambda: table.hold("newer", "edge", registry),
    ):
        with pytest.raises(UsageError, match=r"^named upstream newer was written by a newer release"):
            change()


def test_cluster_that_is_removed_at_the_same_moment_is_seen(store: MemoryStore, table: NamedRegistry) -> None:
    """Whichever comes second is refused: a named upstream never refers to a cluster that is being removed."""
    clusters = ClusterRegistry(store)
    zones = (ZoneReference(id="Z1", name="example.com"),)
    config = clusters.put(ClusterConfig(name="prod", server="https://prod", domain="example.com", zones=zones))
    seen = table.read()
    gone = config.model_copy(update={"deleting": True})
    table.put(entry("shop", WEB), seen, [clusters.unchanged(config)])
    with pytest.raises(
        ChangedMeanwhileError, match=r"^cluster prod, or something that refers to it, was changed meanwhile: try again$"
    ):
        clusters.put(gone, [table.unchanged(seen)])
    table.remove("shop", table.read())
    clusters.put(gone, [table.unchanged(table.read())])
    with pytest.raises(ChangedMeanwhileError, match=r"^a cluster was changed by somebody else meanwhile: try again$"):
        table.put(entry("shop", WEB), table.read(), [clusters.unchanged(config)])
