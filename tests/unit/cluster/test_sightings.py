"""Observations by service key, the notes about slices, and what lists imply for parts."""

from collections.abc import Iterable

from harness.seen.builders import ENDPOINTS, SERVICES, SLICES, a_key, a_list, a_service, an_endpoints, saw
from kubesync.aws.dynamodb.store import Delete, Put
from kubesync.aws.tables.state import slice_key
from kubesync.cluster.keys.list_diff import Absences, StoredPart
from kubesync.cluster.keys.observations import sort_observations
from kubesync.domain.merge import with_observations
from kubesync.domain.objects import Snapshot
from kubesync.domain.sources.registry import created_at
from kubesync.domain.state import KeyState, Part, PartId

PODS = an_endpoints("10.1.0.1", service="web")
OTHER = an_endpoints("10.1.0.1", service="other")
PLACE = slice_key("prod", "shop", "web-1")


def test_services_and_endpoints_belong_to_the_key_of_their_own_name() -> None:
    found = sort_observations("prod", [saw(a_service(), 1), saw(PODS, 2, resource=ENDPOINTS)], {})
    assert [seen.resource_version for seen in found.by_key[a_key()]] == [1, 2]
    assert found.ordered.early == {}
    assert found.ordered.late == {}


def test_new_slice_is_noted_no_later_than_its_part() -> None:
    found = sort_observations("prod", [saw(PODS, 1, "web-1")], {})
    assert found.ordered.early == {a_key(): [Put(PLACE, {"v": 1, "service": "web"})]}
    assert found.ordered.late == {}


def test_known_slice_is_not_noted_again() -> None:
    found = sort_observations("prod", [saw(PODS, 1, "web-1")], {("shop", "web-1"): "web"})
    assert (found.ordered.early, found.ordered.late) == ({}, {})


def test_slice_at_another_service_is_gone_at_the_old_one_and_noted_no_earlier() -> None:
    found = sort_observations("prod", [saw(OTHER, 7, "web-1")], {("shop", "web-1"): "web"})
    assert [(seen.deleted, seen.resource_version) for seen in found.by_key[a_key()]] == [(True, 7)]
    assert [seen.deleted for seen in found.by_key[a_key("other")]] == [False]
    assert (found.ordered.early, found.ordered.late) == ({}, {a_key(): [Put(PLACE, {"v": 1, "service": "other"})]})


def test_deleted_slice_is_forgotten_with_the_key_that_had_it() -> None:
    for last in (PODS, OTHER, None):
        found = sort_observations(
            "prod", [saw(last, 7, "web-1", deleted=True, resource=SLICES)], {("shop", "web-1"): "web"}
        )
        assert {key: [seen.deleted for seen in seens] for key, seens in found.by_key.items()} == {a_key(): [True]}
        assert found.ordered.late == {a_key(): [Delete(PLACE)]}


def test_deleted_slice_nobody_knew_is_gone_where_its_label_says() -> None:
    found = sort_observations("prod", [saw(PODS, 7, "web-1", deleted=True)], {})
    assert [seen.deleted for seen in found.by_key[a_key()]] == [True]
    assert (found.ordered.early, found.ordered.late) == ({}, {})


def test_slice_seen_twice_is_noted_once_as_it_was_last() -> None:
    found = sort_observations("prod", [saw(PODS, 1, "web-1"), saw(OTHER, 2, "web-1")], {})
    assert [seen.deleted for seen in found.by_key[a_key()]] == [False, True]
    assert found.ordered.early == {a_key("other"): [Put(PLACE, {"v": 1, "service": "other"})]}
    back = sort_observations("prod", [saw(OTHER, 1, "web-1"), saw(PODS, 2, "web-1")], {("shop", "web-1"): "web"})
    assert (back.ordered.early, back.ordered.late) == ({}, {})
    gone = sort_observations("prod", [saw(PODS, 1, "web-1"), saw(PODS, 2, "web-1", deleted=True)], {})
    assert (gone.ordered.early, gone.ordered.late) == ({}, {})


def test_slice_that_cannot_be_understood_stays_where_it_was() -> None:
    bad = saw(None, 3, "web-1", problem="bad", resource=SLICES)
    found = sort_observations("prod", [bad], {("shop", "web-1"): "web"})
    assert list(found.by_key) == [a_key()]
    assert sort_observations("prod", [bad], {}).by_key == {}


def test_creation_time_is_that_of_the_newest_sighting() -> None:
    first, renewed = a_service(created_at="2026-01-01T00:00:00Z"), a_service(created_at="2026-02-01T00:00:00Z")
    found = sort_observations("prod", [saw(first, 1), saw(renewed, 2, uid="new")], {})
    seen = with_observations(KeyState(a_key()), found.of(a_key()), {SERVICES: 1})
    assert created_at(seen) == "2026-02-01T00:00:00Z"


def compared(listed: Snapshot, *parts: tuple[str, int], generation: int = 1, of: int = 1) -> Absences:
    """What a list of this generation says about stored parts of Service web, each a name and a version of the generation ``of``."""
    found = Absences(listed, generation, lambda namespace: namespace == "shop")
    for name, version in parts:
        key = a_key(name if listed.resource is SERVICES else "web")
        found.see(key, PartId(listed.resource, name), Part("uid", version, of, None))
    return found


def names(found: Iterable[StoredPart]) -> list[str]:
    return [part_id.name for _, part_id in found]


def test_absent_are_parts_that_are_not_listed_and_not_newer_i5() -> None:
    found = compared(a_list(20, saw(a_service(), 5)), ("web", 5), ("gone", 20), ("newer", 21))
    assert (names(found.missing), names(found.unlisted), names(found.moved), found.live) == (["gone"], [], [], 3)


def test_absent_parts_of_other_namespaces_are_not_listed_but_not_missing_i5() -> None:
    found = compared(a_list(20))
    found.see(a_key("web", namespace="other"), PartId(SERVICES, "web"), Part("uid", 5, 1, None))
    assert (names(found.missing), names(found.unlisted), found.live) == ([], ["web"], 0)


def test_tombstones_are_counted_and_neither_live_nor_absent() -> None:
    found = compared(a_list(20))
    found.see(a_key(), PartId(SERVICES, "web"), Part("uid", 7, 1, None, deleted=True))
    assert (found.tombstones, found.live, found.missing) == ({7: 1}, 0, {})


def test_parts_of_an_older_generation_are_never_newer_than_a_list() -> None:
    assert names(compared(a_list(20), ("old", 900), generation=2, of=1).missing) == ["old"]
    assert names(compared(a_list(20), ("young", 900), generation=2, of=2).missing) == []


def test_moved_are_slices_that_are_listed_at_another_service() -> None:
    listed = a_list(
        20,
        saw(OTHER, 6, "web-1"),
        saw(PODS, 6, "web-2"),
        saw(OTHER, 6, "web-3"),
        saw(None, 6, "web-4", problem="bad"),
        resource=SLICES,
    )
    found = compared(listed, ("web-1", 5), ("web-2", 5), ("web-3", 30), ("web-4", 5))
    assert (names(found.moved), names(found.missing)) == (["web-1"], [])
