"""Places in lines and record sets are capped for each namespace; what is over a cap comes when there is room (I9)."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import STATE, Delete, Key, Put
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Port
from kubesync.domain.plan import Policy

FILTER: Final = ("example.com",)


def service(*names: str, address: str = "10.0.0.1", created: int = 1, ports: tuple[str, ...] = ()) -> Any:
    return a_service(
        cluster_ips=(address,),
        ports=[Port(port, "TCP", 80 + number) for number, port in enumerate(ports)],
        annotations={"hostname": ",".join(names)} if names else {},
        created_at=f"2026-01-{created:02d}T00:00:00Z",
    )


def capped(**config: Any) -> Deployment:
    return Deployment(domain_filter=FILTER, **config)


def problems(deployment: Deployment, code: str) -> dict[str, int]:
    """How many problems with this code each Service has."""
    states = StateTable(deployment.store).load_all("prod")
    found = Counter(state.key.name for state in states for problem in state.problems if problem.code == code)
    return dict(found)


def lines(deployment: Deployment) -> list[str]:
    """Who waits, for whatever name."""
    return sorted(place.rpartition("/")[2] for place in deployment.waiters())


def of_template(deployment: Deployment) -> set[str]:
    """Services of which the template's name stands."""
    names = (key.name.split(".") for key in deployment.route53.records(ZONE_ID) if key.type == "A")
    return {labels[0] for labels in names if labels[2:3] == ["svc"]}


def over(deployment: Deployment) -> list[str]:
    """Who waits for room, as stored."""
    return sorted(str(key.sort) for key in deployment.items(STATE) if key.partition == "prod#over")


def stored(deployment: Deployment, kind: str, namespace: str = "shop") -> int | None:
    item = deployment.store.get(Key(STATE, f"prod#{kind}", namespace))
    return None if item is None else int(str(item["count"]))


@pytest.fixture
def waiting() -> Iterator[Deployment]:
    """``other`` has ten names; three Services of ``shop`` may wait for one each, and six ask."""
    made = capped(max_waits_per_namespace=3)
    names = [f"n{number}.example.com" for number in range(10)]
    made.apply("owner", service(*names), namespace="other")
    made.start()
    made.pass_time(4.0)
    for number in range(6):
        made.apply(f"w{number}", service(f"n{number}.example.com", address="10.0.0.2", created=number + 1))
    made.pass_time(4.0)
    yield made
    made.close()


def test_i9_waits_beyond_the_cap_are_reported_and_stand_in_no_line(waiting: Deployment) -> None:
    assert lines(waiting) == ["w0", "w1", "w2"]
    assert problems(waiting, "TooManyWaits") == {"w3": 1, "w4": 1, "w5": 1}
    assert problems(waiting, "NameTaken") == {f"w{number}": 1 for number in range(6)}
    assert over(waiting) == ["shop/w3", "shop/w4", "shop/w5"]
    assert {f"w{number}" for number in range(6)} <= of_template(waiting), "everything else of them is published"
    waiting.apply("friend", service("n9.example.com"), namespace="friends")
    waiting.pass_time(4.0)
    assert lines(waiting) == ["friend", "w0", "w1", "w2"], "another namespace has a cap of its own"


@pytest.mark.parametrize("handed_over", [False, True], ids=["same session", "next session"])
def test_i9_wait_beyond_the_cap_stands_in_line_when_another_has_left(waiting: Deployment, *, handed_over: bool) -> None:
    if handed_over:
        assert waiting.end().clean
        waiting.start()
        waiting.pass_time(3.0)
    waiting.apply("w1", service(created=2))
    waiting.pass_time(4.0)
    assert lines(waiting) == ["w0", "w2", "w3"]
    assert problems(waiting, "TooManyWaits") == {"w4": 1, "w5": 1}
    assert over(waiting) == ["shop/w4", "shop/w5"]
    assert waiting.resync()["clusters"][0].get("error") is None
    waiting.pass_time(3.0)
    assert lines(waiting) == ["w0", "w2", "w3"]


def test_i9_who_was_refused_a_name_by_the_release_before_waits_for_room_from_its_next_change_on() -> None:
    deployment = capped(max_names_per_namespace=1)
    deployment.apply("a", service("a.example.com", created=1))
    deployment.apply("b", service("b.example.com", created=2))
    assert deployment.run_session().clean
    assert (problems(deployment, "TooManyNames"), over(deployment)) == ({"b": 1}, ["shop/b"])
    deployment.store.write(Delete(Key(STATE, "prod#over", "shop/b")))  # that release writes no such item
    deployment.apply("b", service("b.example.com", created=2, address="10.0.0.9"))
    deployment.start()
    deployment.pass_time(4.0)
    assert (problems(deployment, "TooManyNames"), over(deployment)) == ({"b": 1}, ["shop/b"])
    deployment.delete("a")
    deployment.pass_time(6.0)
    assert (problems(deployment, "TooManyNames"), over(deployment)) == ({}, [])
    assert deployment.claims()["b.example.com"] == "prod/shop/b"
    assert deployment.end().clean
    deployment.close()


def test_i9_who_waits_already_stays_in_line_when_the_cap_is_lowered(waiting: Deployment) -> None:
    waiting.world.configure("prod", domain_filter=FILTER, max_waits_per_namespace=1)
    waiting.pass_time(70.0)
    assert lines(waiting) == ["w0", "w1", "w2"]


@pytest.fixture
def sets() -> Iterator[Deployment]:
    """The namespace may have five record sets, and has four."""
    made = capped(max_record_sets_per_namespace=5)
    made.start()
    made.pass_time(3.0)
    for number in range(4):
        made.apply(f"s{number}", service(created=number + 1))
    made.pass_time(4.0)
    assert of_template(made) == {"s0", "s1", "s2", "s3"}
    yield made
    made.close()


def test_i9_record_sets_beyond_the_cap_are_reported_and_come_when_there_is_room(sets: Deployment) -> None:
    sets.apply("late", service("late.example.com", created=5))  # two sets: it gets both or none
    sets.apply("small", service(created=6))
    sets.apply("friend", service("friend.example.com"), namespace="other")
    sets.pass_time(4.0)
    assert of_template(sets) == {"s0", "s1", "s2", "s3", "small", "friend"}
    assert "late.example.com" not in sets.claims(), "it holds no name that it cannot publish"
    assert (problems(sets, "TooManyRecordSets"), over(sets)) == ({"late": 1}, ["shop/late"])
    sets.delete("s0")
    sets.pass_time(6.0)
    assert of_template(sets) == {"s1", "s2", "s3", "small", "friend"}, "room for one set is not enough"
    sets.delete("s1")
    sets.pass_time(6.0)
    assert of_template(sets) == {"s2", "s3", "small", "late", "friend"}
    assert sets.claims()["late.example.com"] == "prod/shop/late"
    assert (problems(sets, "TooManyRecordSets"), over(sets)) == ({}, [])


def test_i9_service_that_needs_more_than_half_of_the_cap_comes_when_a_nearly_empty_namespace_has_room() -> None:
    deployment = capped(max_record_sets_per_namespace=5)
    deployment.start()
    deployment.apply("s0", service(created=1))
    deployment.apply("s1", service(created=2))
    deployment.pass_time(4.0)
    deployment.apply(
        "large", service("a.example.com", "b.example.com", "c.example.com", created=3)
    )  # four sets, all or none
    deployment.pass_time(4.0)
    assert (of_template(deployment), over(deployment)) == ({"s0", "s1"}, ["shop/large"])
    deployment.delete("s0")
    deployment.pass_time(6.0)
    assert (of_template(deployment), over(deployment)) == ({"s1", "large"}, [])
    deployment.close()


@pytest.mark.parametrize("apart", [False, True], ids=["in one window", "in two windows"])
def test_i9_who_is_refused_in_the_window_that_makes_room_comes_too(*, apart: bool) -> None:
    deployment = capped(max_waits_per_namespace=1)
    deployment.apply("owner", service("n0.example.com", "n1.example.com"), namespace="other")
    deployment.start()
    deployment.pass_time(4.0)
    deployment.apply("older", service(created=1))
    deployment.apply("younger", service("n1.example.com", created=9))
    deployment.pass_time(4.0)
    assert lines(deployment) == ["younger"]

    deployment.apply("older", service("n0.example.com", created=1))  # planned first, so it finds no room yet
    if apart:
        deployment.pass_time(4.0)
    deployment.apply("younger", service(created=9))
    deployment.pass_time(20.0)

    assert (lines(deployment), problems(deployment, "TooManyWaits"), over(deployment)) == (["older"], {}, [])
    deployment.close()


def test_i9_what_stands_goes_on_beyond_the_cap_and_may_change(sets: Deployment) -> None:
    sets.world.configure("prod", domain_filter=FILTER, max_record_sets_per_namespace=2)
    sets.pass_time(70.0)
    assert of_template(sets) == {"s0", "s1", "s2", "s3"}
    sets.apply("s0", service(address="10.0.0.9"))
    sets.pass_time(4.0)
    assert sets.sets()["s0 A"] == ("10.0.0.9",)
    sets.apply("s0", a_service(cluster_ips=("10.0.0.9", "2001:db8::9"), ports=()))
    sets.pass_time(4.0)
    assert (sets.sets()["s0 A"], sets.sets()["s0 AAAA"]) == (("10.0.0.9",), ("2001:db8::9",)), "a name is whole"
    sets.apply("s1", service("more.example.com", address="10.0.0.8"))
    sets.pass_time(4.0)
    assert (sets.sets()["s1 A"], problems(sets, "TooManyRecordSets")) == (("10.0.0.8",), {"s1": 1})


def test_i9_service_of_a_full_namespace_exchanges_one_name_for_another() -> None:
    deployment = capped(max_record_sets_per_namespace=2)
    deployment.apply("web", service("old.example.com"))
    deployment.start()
    deployment.pass_time(4.0)
    deployment.apply("web", service("new.example.com"))
    deployment.pass_time(6.0)
    assert set(deployment.claims()) == {"new.example.com", "web.shop.svc.prod.example.com"}
    deployment.close()


def test_i9_heir_takes_what_it_is_given_whatever_the_cap_of_record_sets() -> None:
    deployment = capped(max_record_sets_per_namespace=3)
    deployment.apply("a", service("www.example.com"), namespace="other")
    deployment.apply("x", service(created=1))
    deployment.apply("b", service("www.example.com", address="10.0.0.2", created=2))
    deployment.start()
    deployment.pass_time(4.0)
    deployment.apply("y", service(created=3))
    deployment.pass_time(4.0)
    assert of_template(deployment) == {"a", "x", "b", "y"}
    deployment.cluster.delete(deployment.service_resource, "a", "other") if hasattr(
        deployment, "service_resource"
    ) else None
    deployment.apply("a", service(), namespace="other")
    deployment.pass_time(6.0)
    assert deployment.sets()["www.example.com A"] == ("10.0.0.2",)
    assert problems(deployment, "TooManyRecordSets") == {}
    deployment.close()


def test_i9_without_deletions_record_sets_that_stay_count() -> None:
    """Else annotations that change again and again fill the zone."""
    deployment = capped(max_record_sets_per_namespace=4, policy=Policy.UPSERT_ONLY)
    deployment.start()
    for number in range(5):
        deployment.apply("web", service(f"r{number}.example.com"))
        deployment.pass_time(4.0)
    asked = sorted(label for label in deployment.sets() if label.startswith("r"))
    assert asked == ["r0.example.com A", "r1.example.com A", "r2.example.com A"]
    deployment.close()


def test_i9_counts_are_written_in_steps_and_corrected_by_a_list() -> None:
    deployment = capped()
    deployment.start()
    deployment.pass_time(3.0)
    for number in range(19):
        deployment.apply(f"s{number}", service())
    deployment.pass_time(4.0)
    assert stored(deployment, "sets") is None
    deployment.apply("more", service())
    deployment.pass_time(4.0)
    assert stored(deployment, "sets") == 20
    deployment.apply("web", service())
    assert deployment.end().clean
    assert stored(deployment, "sets") == 21, "the rest, when the session ends"
    deployment.start()
    deployment.delete("web")
    deployment.pass_time(4.0)
    deployment.store.write(Put(Key(STATE, "prod#sets", "shop"), {"v": 1, "count": 777}))
    deployment.resync()
    deployment.pass_time(3.0)
    assert stored(deployment, "sets") == 20
    for number in range(19):
        deployment.delete(f"s{number}")
    deployment.delete("more")
    deployment.pass_time(10.0)
    assert stored(deployment, "sets") in (None, 0)
    deployment.close()


def test_notes_and_counts_of_a_removed_cluster_go_with_it(sets: Deployment) -> None:
    sets.apply("late", service("late.example.com"))
    sets.pass_time(4.0)
    assert over(sets) == ["shop/late"]
    sets.world.configure("prod", deleting=True)
    sets.pass_time(20.0)
    assert [key for key in sets.items(STATE) if key.partition.startswith("prod#")] == []


def test_cluster_without_rules_has_no_caps() -> None:
    deployment = Deployment(max_record_sets_per_namespace=1, max_waits_per_namespace=0)
    deployment.apply("a", service("www.example.com", created=1))
    deployment.apply("b", service("www.example.com", created=2))
    assert deployment.run_session(5.0).clean
    assert (of_template(deployment), lines(deployment)) == ({"a", "b"}, ["b"])
    deployment.close()
