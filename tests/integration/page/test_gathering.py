"""What reading for the page costs, who reads, how old what it shows may be, and what happens when a table does not answer."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from harness.page_place import Place
from harness.waiting import PATIENCE_SECONDS, wait_until
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.page import gathering
from kubesync_local.page.gathering import Named


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place(3, 20)
    with made.gatherer:
        yield made


def test_overview_reads_no_service_whatever_their_number() -> None:
    small, large = Place(3, 1), Place(3, 300)
    for each in (small, large):
        with each.gatherer:
            each.gatherer.overview()

    assert len(small.store.calls) == len(large.store.calls)
    assert [call for call in large.asked("state") if "#open#" not in call.partition] == []
    assert [call for call in large.store.calls if call.operation == "scan"] == []


def test_named_upstreams_hold_up_no_page(place: Place) -> None:
    place.put_named("edge", "gone")
    place.upstreams = threading.Event()

    assert place.gatherer.named(0) == Named()  # a page says that they are being read
    wait_until(lambda: place.asked("upstreams"))
    place.clock.added += 60
    assert len(place.gatherer.overview().configs) == 3
    assert place.gatherer.changes("any question", lambda _: 7, again=False).value == 7

    place.upstreams.set()
    found = place.gatherer.named(PATIENCE_SECONDS)
    assert [(row["name"], row["code"], row["subject"]) for row in found.problems] == [
        ("edge", "MissingUpstream", "c000/shop/gone/80/TCP")
    ]


def test_each_member_of_named_upstreams_is_read_once_and_several_at_a_time(place: Place) -> None:
    for number in range(12):
        place.put_named(f"n{number}", "gone", "lost")
    place.store.calls.clear()
    place.upstreams = threading.Event()

    place.gatherer.named(0)
    wait_until(lambda: len(place.asked("upstreams")) == 8)
    place.upstreams.set()
    found = place.gatherer.named(PATIENCE_SECONDS)

    assert len(found.problems) == 24
    assert len(place.asked("upstreams")) == 14
    place.store.calls.clear()
    place.gatherer.named(PATIENCE_SECONDS)
    assert place.store.calls == []


def test_named_upstreams_that_cannot_be_read_hide_nothing_else(place: Place) -> None:
    place.put_named("edge", "gone")
    before = place.gatherer.named(PATIENCE_SECONDS)
    place.denied = "named/edge"
    place.clock.added += 61

    failed = place.gatherer.named(PATIENCE_SECONDS)

    assert failed.failed == "access to table kubesync-test-state is denied: no right"
    assert failed.problems == before.problems != []
    assert len(place.gatherer.overview().configs) == 3
    assert sorted(place.gatherer.facts(place.configs, PATIENCE_SECONDS)) == ["c000", "c001", "c002"]
    place.denied = ""
    place.clock.added += 16
    assert place.gatherer.named(PATIENCE_SECONDS).failed == ""


def test_many_visitors_at_once_cost_what_one_costs(place: Place) -> None:
    place.gatherer.overview()
    one = len(place.store.calls)
    place.store.calls.clear()
    place.clock.added += 60

    with ThreadPoolExecutor(16) as visitors:
        seen = list(visitors.map(lambda _: place.gatherer.overview(), range(16)))

    assert len(place.store.calls) == one
    assert len({each.read_at for each in seen}) == 1


def test_overview_is_read_again_after_five_seconds_or_when_somebody_asks(place: Place) -> None:
    first = place.gatherer.overview()
    assert place.gatherer.overview() is first
    assert place.gatherer.overview(again=True) is first  # it is quite new
    place.clock.added += 2
    assert place.gatherer.overview() is first
    second = place.gatherer.overview(again=True)
    assert second is not first
    place.clock.added += 6
    assert place.gatherer.overview() is not second


def test_facts_are_read_by_one_thread_and_visitors_do_not_wait_for_ever(place: Place) -> None:
    configs, place.gate = place.configs, threading.Event()
    with ThreadPoolExecutor(8) as visitors:
        asked = [visitors.submit(place.gatherer.facts, configs, 0.05) for _ in range(8)]
        assert [each.result(PATIENCE_SECONDS) for each in asked] == [{}] * 8  # nothing is known yet, and a page says so
        place.gate.set()
        facts = place.gatherer.facts(configs, PATIENCE_SECONDS)

    assert place.most == 1
    assert {name: known.service_count for name, known in facts.items()} == {"c000": 20, "c001": 20, "c002": 20}


def test_facts_are_kept_for_ten_times_as_long_as_reading_took(place: Place) -> None:
    configs = place.configs
    first = place.gatherer.facts(configs, PATIENCE_SECONDS)
    place.gatherer._facts.known["c000"] = slow = replace(first["c000"], seconds=20.0)
    place.clock.added += 100
    assert place.gatherer.facts(configs[:1], PATIENCE_SECONDS)["c000"] is slow
    assert place.gatherer.facts(configs, 1)["c001"] is first["c001"]  # all together are as slow
    place.clock.added += 150
    assert place.gatherer.facts(configs[:1], PATIENCE_SECONDS)["c000"].read_at > slow.read_at + 200


def test_cluster_that_cannot_be_read_hides_no_other(place: Place) -> None:
    place.denied = "c001#"
    configs = [ClusterConfig(name=f"c00{n}", server="https://10.0.0.1", domain="x.example.com",
        zones=(ZoneReference(id="Z1", name="example.com"),)) for n in range(3)]  # fmt: skip

    facts = place.gatherer.facts(configs, PATIENCE_SECONDS)

    assert sorted(facts) == ["c000", "c002"]
    assert place.gatherer.failed("c001") == "access to table kubesync-test-state is denied: no right"
    assert place.gatherer.failed("c000") == ""
    place.denied = ""
    place.clock.added += 20
    assert sorted(place.gatherer.facts(configs, PATIENCE_SECONDS)) == ["c000", "c001", "c002"]
    assert place.gatherer.failed("c001") == ""


def test_error_of_the_tables_is_not_kept(place: Place) -> None:
    place.denied = "clusters"
    with pytest.raises(StoreUnavailableError):
        place.gatherer.overview()
    place.denied = ""
    assert len(place.gatherer.overview().configs) == 3


def test_rows_of_services_are_dropped_before_memory_fills(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "KEPT_SERVICES", 45)
    configs = place.configs

    facts = place.gatherer.facts(configs, PATIENCE_SECONDS)

    assert [len(known.services) for _, known in sorted(facts.items())] == [0, 20, 20]
    assert [known.service_count for _, known in sorted(facts.items())] == [20, 20, 20]
    again = place.gatherer.facts(configs[:1], PATIENCE_SECONDS, services=True)
    assert len(again["c000"].services) == 20
    assert len(place.gatherer.facts(configs, 0)["c001"].services) == 0  # used longest ago


def test_nothing_is_read_when_nobody_looks(place: Place) -> None:
    place.gatherer.facts(place.configs, PATIENCE_SECONDS)
    place.store.calls.clear()
    place.clock.added += 3_600

    assert place.gatherer._pending() == set()  # the thread waits until somebody asks
    assert place.store.calls == []


def test_thread_ends_with_the_page(place: Place) -> None:
    place.gatherer.facts(place.configs, PATIENCE_SECONDS)
    place.gatherer.__exit__(None)

    wait_until(lambda: not place.gatherer._thread.is_alive())
