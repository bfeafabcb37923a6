"""The merge window: the newest event per object, lists that replace what was pending, checkpoints that never run ahead."""

from hypothesis import given, settings, strategies as st

from harness.seen.builders import SERVICES, SLICES, a_list
from kubesync.domain.objects import RawEvent, Resource, Snapshot
from kubesync.domain.window import Window


def event(version: int, name: str = "web", resource: Resource = SERVICES, namespace: str = "shop") -> RawEvent:
    return RawEvent("MODIFIED", resource, namespace, name, "u", version, b"%d" % version)


def test_newest_event_of_each_object_is_kept_in_the_order_of_versions() -> None:
    window = Window(1.0)
    for version, name in ((5, "b"), (6, "a"), (7, "b"), (8, "c")):
        window.add_events([event(version, name)], 100.0)
    content = window.close()
    assert [(e.name, e.resource_version) for e in content.events] == [("a", 6), ("b", 7), ("c", 8)]
    assert content.received == 4
    assert content.checkpoints == {SERVICES: 8}
    assert content.opened_at == 100.0
    assert not content.empty


def test_same_name_elsewhere_is_another_object() -> None:
    window = Window(1.0)
    for index, (namespace, resource) in enumerate([("a", SERVICES), ("b", SERVICES), ("a", SLICES)], 1):
        window.add_events([event(index, namespace=namespace, resource=resource)], 0.0)
    assert len(window.close().events) == 3


def test_window_closes_its_length_after_the_first_event_only() -> None:
    window = Window(1.5)
    window.add_bookmark(SERVICES, 3)
    assert window.closes_at() is None
    window.add_events([event(5)], 10.0)
    window.add_events([event(6)], 11.0)
    assert window.closes_at() == 11.5
    window.close()
    assert window.closes_at() is None
    window.add_snapshot(a_list(9), 20.0)
    assert window.closes_at() == 21.5


def test_bookmarks_move_the_checkpoint_forward_only() -> None:
    window = Window(1.0)
    for version in (5, 9, 7):
        window.add_bookmark(SERVICES, version)
    content = window.close()
    assert content.checkpoints == {SERVICES: 9}
    assert content.opened_at is None
    assert content.empty


def test_list_replaces_what_its_listener_had_pending_up_to_its_version() -> None:
    window = Window(1.0)
    window.add_events([event(5, "old")], 0.0)
    window.add_events([event(12, "new")], 0.0)
    window.add_events([event(3, "slice", SLICES)], 0.0)
    window.add_snapshot(a_list(10), 0.0)
    window.add_events([event(10, "late")], 0.0)
    window.add_events([event(11, "web")], 0.0)
    content = window.close()
    assert [(e.name, e.resource_version) for e in content.events] == [("slice", 3), ("web", 11), ("new", 12)]
    assert content.checkpoints == {SERVICES: 11, SLICES: 3}


def test_list_of_a_restored_store_replaces_everything_and_takes_the_checkpoint_back() -> None:
    window = Window(1.0)
    window.add_events([event(900)], 0.0)
    window.add_snapshot(a_list(50, went_back=True), 0.0)
    window.add_events([event(51, "after")], 0.0)
    content = window.close()
    assert [e.resource_version for e in content.events] == [51]
    assert content.checkpoints == {SERVICES: 51}


def test_new_generation_is_not_forgotten_with_the_list_that_began_it() -> None:
    window = Window(1.0)
    window.add_snapshot(a_list(50, went_back=True), 0.0)
    window.add_snapshot(a_list(60), 0.0)
    content = window.close()
    assert content.snapshots == {SERVICES: Snapshot(SERVICES, 60, (), store_went_back=True)}
    assert window.close().snapshots == {}


@st.composite
def streams(draw: st.DrawFn) -> list[RawEvent | Snapshot | int]:
    """What one listener says, in its order: events, bookmarks (as ints) and lists at versions that never fall."""
    said: list[RawEvent | Snapshot | int] = []
    version = 0
    for kind in draw(st.lists(st.sampled_from(["event", "event", "event", "bookmark", "list"]), max_size=25)):
        version += draw(st.integers(1, 3))
        if kind == "event":
            said.append(event(version, draw(st.sampled_from("abc"))))
        else:
            said.append(version if kind == "bookmark" else a_list(version))
    return said


@settings(deadline=None, max_examples=40)
@given(streams(), st.sets(st.integers(0, 25)))
def test_i1_windows_lose_nothing_and_checkpoints_never_run_ahead(
    said: list[RawEvent | Snapshot | int], closings: set[int]
) -> None:
    window = Window(1.0)
    read = last_list = 0
    newest: dict[str, int] = {}
    recorded: dict[str, int] = {}
    for index, heard in enumerate([*said, None]):
        if index in closings or heard is None:
            content = window.close()
            if SERVICES in content.snapshots:
                recorded = {}
            for e in content.events:
                recorded[e.name] = e.resource_version
            assert content.checkpoints.get(SERVICES, read) == read
            assert len({e.name for e in content.events}) == len(content.events)
            assert recorded == newest
        if isinstance(heard, RawEvent):
            window.add_events([heard], 0.0)
            read = newest[heard.name] = heard.resource_version
        elif isinstance(heard, Snapshot):
            window.add_snapshot(heard, 0.0)
            read = last_list = heard.resource_version
            newest = {}
        elif heard is not None:
            window.add_bookmark(SERVICES, heard)
            read = heard
    assert last_list <= read


def test_event_between_a_list_and_what_was_pending_does_not_replace_the_newer_one() -> None:
    window = Window(1.0)
    window.add_events([event(10)], 0.0)
    window.add_snapshot(a_list(8), 0.0)
    window.add_events([event(9)], 0.0)
    assert [e.resource_version for e in window.close().events] == [10]


def test_i9_what_was_replaced_takes_no_room() -> None:
    window = Window(1.0)
    for version in range(1, 11):
        window.add_events([event(version)._replace(line=b"x" * 1000)], 0.0)
    assert not window.over(1000)
    window.add_events([event(11, "api")._replace(line=b"x" * 1000)], 0.0)
    assert window.over(1999)
    assert not window.over(2000)
    assert window.close().size == 2000
    assert not window.over(0)
