"""Reading the audit for the page: it comes to an end, says where it stopped, and goes on there without loss and without repeats."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from harness.page_place import Place
from harness.waiting import PATIENCE_SECONDS, wait_until
from kubesync_local.page import changes
from kubesync_local.page.changes import Changes, Wanted, read_changes

NOON: Final = 1_800_014_400.0  # 2027-01-15T12:00:00Z
DAY: Final = 86_400
CLUSTERS: Final = ["c000", "c001", "c002"]


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place(3, 0)
    made.clock.stands = NOON
    with made.gatherer:
        yield made


def read(place: Place, wanted: Wanted) -> Changes:
    return read_changes(place.gatherer, wanted, CLUSTERS, again=False).value


def names(found: Changes) -> list[str]:
    return [str(row["name"]).removesuffix(".example.com") for row in found.rows]


def all_parts(place: Place, wanted: Wanted) -> list[Changes]:
    """What a person sees who goes on until the end."""
    parts = [read(place, wanted)]
    while (back := parts[-1].back) is not None:
        assert len(parts) < 50
        part = Wanted(wanted.cluster, wanted.service, wanted.name, "30d", float(back), since=parts[0].span.since)
        parts.append(read(place, part))
    return parts


def test_reading_that_takes_too_long_says_how_far_it_came(place: Place) -> None:
    place.audit_seconds = 1.0  # five requests a day: three clusters, named upstreams and the deployment
    place.put_change("c001", NOON - 20 * DAY, "old")
    place.store.calls.clear()

    found = read(place, Wanted("", "", "old.example.com", "30d"))

    assert found == Changes((), more=False, span=found.span, back=1_799_884_800)  # 2027-01-14T00:00:00Z, after two days
    assert len(place.asked("audit")) == 10


def test_going_on_comes_to_the_end_of_the_period(place: Place) -> None:
    place.audit_seconds = 1.0
    place.put_change("c001", NOON - 20 * DAY, "old")

    parts = all_parts(place, Wanted("", "", "old.example.com", "30d"))

    assert [names(each) for each in parts if each.rows] == [["old"]]
    assert {each.span.since for each in parts} == {NOON - 30 * DAY}
    assert parts[-1].back is None


def test_reading_too_many_changes_stops_too_and_loses_and_repeats_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "READ_CHANGES", 3)
    monkeypatch.setattr(changes, "_ITEMS_AT_ONCE", 2)
    for number in range(6):
        place.put_change("c000", NOON - 10 - number, f"a{number}", f"b{number}")
        place.put_change("c001", NOON - 10.5 - number / 4, f"c{number}")
    place.put_change("c002", NOON - 12 * 3600, "midnight")

    parts = all_parts(place, Wanted("", "", "", "30d"))

    shown = [name for each in parts for name in names(each)]
    expected = [f"{kind}{number}" for kind in "abc" for number in range(6)]
    assert sorted(shown) == sorted([*expected, "midnight"])
    times = [str(row["at"]) for each in parts for row in each.rows]
    assert times == sorted(times, reverse=True)
    assert len(parts) > 3


def test_changes_of_one_second_are_read_together_however_many(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "READ_CHANGES", 2)
    place.put_change("c000", NOON - 0.5, *(f"n{number}" for number in range(9)))

    found = read(place, Wanted("", "", "", "1h"))

    assert len(found.rows) == 9


def test_newest_changes_of_all_clusters_are_one_page(place: Place) -> None:
    for number in range(40):
        place.put_change(CLUSTERS[number % 3], NOON - 60 - number * 3600, f"n{number}", f"m{number}")

    first, second = (read(place, Wanted("", "", "", "7d", page=page)) for page in (1, 2))

    assert names(first)[:3] == ["m0", "n0", "m1"]
    assert (len(first.rows), first.more, first.back) == (50, True, None)
    assert (len(second.rows), second.more, second.back) == (30, False, None)
    assert not set(names(first)) & set(names(second))


def test_reading_changes_holds_up_no_other_page(place: Place) -> None:
    place.gatherer.overview()
    place.audit = threading.Event()
    with ThreadPoolExecutor(1) as visitor:
        asked = visitor.submit(read, place, Wanted("", "", "nothing.example.com", "30d"))
        wait_until(lambda: place.asked("audit"))
        place.clock.added += 6

        assert len(place.gatherer.overview().configs) == 3
        assert not asked.done()
        place.audit.set()
        assert asked.result(PATIENCE_SECONDS).rows == ()
