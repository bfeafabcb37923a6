"""What one namespace does delays no other namespace of its cluster: a change of one Service beside each attack (I9).

Whole sessions on virtual time, with tables that take their time (``harness.slow_tables``).
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from harness.deployment import ZONE_ID
from harness.seen.builders import a_service, an_endpoints
from harness.slow_tables import EVIL, Slow, slow
from kubesync.aws.dynamodb.store import UPSTREAMS
from kubesync.cluster.keys import committer
from kubesync.cluster.keys.planner import Planner
from kubesync.domain.dns.desired import Desired
from kubesync.domain.objects import Port, Resource
from kubesync.domain.state import KeyState
from simulation.writes import RECORD

LARGE = "large.evil.svc.prod.example.com A"
MOST_SECONDS = 5.0


def plans_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of keys, each time that one is planned."""
    planned: list[str] = []
    real = Planner._write

    def write(planner: Planner, wants: tuple[KeyState, KeyState, Desired], *given: Any, **told: Any) -> Any:
        planned.append(wants[0].key.name)
        return real(planner, wants, *given, **told)

    monkeypatch.setattr(Planner, "_write", write)
    return planned


def changes(deployment: Slow, count: int) -> None:
    for number in range(count):
        deployment.evil(number)


def waiters(deployment: Slow, count: int) -> None:
    for number in range(count):
        deployment.evil(number, asks="www.example.com")


def leaving(deployment: Slow, count: int) -> None:
    """They wait already, and all stop to wait."""
    waiters(deployment, count)
    deployment.until(lambda: "h00000 A" in deployment.sets() or len(deployment.sets()) > count)
    deployment.pass_time(10.0)
    for number in range(count):
        deployment.cluster.delete(Resource.SERVICES, f"h{number:05d}", EVIL)


def long_annotations(deployment: Slow, count: int) -> None:
    asked = ",".join(f"{number:x}" for number in range(45_000))
    for number in range(count // 10):
        deployment.evil(number, asks=asked)


def many_nodes(deployment: Slow, count: int) -> None:
    """Services with slices of 1,000 endpoints, which change again and again."""
    for number in range(count // 10):
        deployment.evil(number)
        ips = [f"10.8.{n // 250}.{n % 250}" for n in range(1000)]
        slice_of = an_endpoints(*ips, service=f"h{number:05d}")
        deployment.apply(f"h{number:05d}", slice_of, namespace=EVIL, slice_name=f"h{number}")


def drawn(deployment: Slow, count: int) -> None:
    """Objects of every kind at once: names that are taken, that are free, that nobody gets; long annotations; slices."""
    chance = random.Random(28)
    ips = [f"10.8.{n // 250}.{n % 250}" for n in range(500)]
    for number in range(count):
        free = f"n{number}-{chance.randrange(9)}.example.com"
        asks = chance.choice(("", "www.example.com", f"www.example.com,{free}", free, "x.example.org", "*.example.com"))
        if chance.random() < 0.02:
            asks = ",".join(f"{each:x}" for each in range(45_000))
        deployment.evil(number, asks=asks, created=f"20{chance.randint(10, 26)}-01-02")
        if chance.random() < 0.05:
            name = f"h{number:05d}"
            slice_of = an_endpoints(*ips[: chance.randint(1, 500)], service=name)
            deployment.apply(name, slice_of, namespace=EVIL, slice_name=name)


ATTACKS = {changes: 20_000, waiters: 5_000, leaving: 5_000, long_annotations: 400, many_nodes: 2_000, drawn: 1_000}
"""Each with its whole size. Of long annotations, and of Services with many nodes, there is a tenth."""
WHOLE = (pytest.mark.thorough, pytest.mark.soak, pytest.mark.timeout(7200))


@pytest.mark.parametrize(
    ("attack", "count"),
    [
        pytest.param(attack, count, marks=marks, id=f"{attack.__name__} {count}")
        for attack, whole in ATTACKS.items()
        for count, marks in ((300, ()), (whole, WHOLE))
    ],
)
def test_i9_change_of_a_friend_does_not_wait_for_another_namespace(
    attack: Callable[[Slow, int], None], count: int
) -> None:
    with slow() as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        deployment.pass_time(3.0)
        usual = deployment.lag("usual")
        deployment.pass_time(3.0)
        attack(deployment, count)
        same_window = deployment.lag("same")
        later = deployment.lag("later")
        print(f"{attack.__name__} {count}: {usual:.1f} s alone, {same_window:.1f} s and {later:.1f} s beside it")
        assert max(same_window, later) <= usual + MOST_SECONDS


def many_ports(deployment: Slow, slices: int, ports: int = 100) -> None:
    """A Service that takes several transactions."""
    listed = [Port(f"p{n}", "TCP", 1000 + n) for n in range(ports)]
    deployment.apply("large", a_service(ports=listed), namespace=EVIL)
    for number in range(slices):
        ips = [f"10.8.{number * 4 + n // 250}.{n % 250}" for n in range(1000)]
        targets = [Port(f"p{n}", "TCP", 8000 + n) for n in range(ports)]
        slice_of = an_endpoints(*ips, ports=targets, service="large")
        deployment.apply("large", slice_of, namespace=EVIL, slice_name=f"large-{number}")


@pytest.mark.parametrize("rules", [True, False], ids=["with rules", "without rules"])
@pytest.mark.parametrize("slices", [3, pytest.param(10, marks=(pytest.mark.thorough, pytest.mark.soak))])
def test_i9_change_of_a_friend_does_not_wait_until_a_large_service_is_written(slices: int, *, rules: bool) -> None:
    with slow(write_seconds=1.0, rules=rules) as deployment:
        deployment.slow = (RECORD,)
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        deployment.pass_time(5.0)
        usual = deployment.lag("usual")
        deployment.pass_time(5.0)
        many_ports(deployment, slices)
        same_window, later = deployment.lag("same"), deployment.lag("later")
        there = len(deployment.upstreams())
        assert max(same_window, later) <= usual + MOST_SECONDS
        deployment.until(lambda: LARGE in deployment.sets())
        found = {name: nodes for name, nodes in deployment.upstreams().items() if "/large/" in name}
        assert len(found) == 100 > there, "it was still being written"
        assert {len(nodes) for nodes in found.values()} == {min(1000 * slices, 5323)}


def test_i1_large_service_that_gave_way_is_written_to_its_end_by_the_next_session() -> None:
    with slow(write_seconds=1.0) as deployment:
        deployment.slow = (RECORD,)
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        many_ports(deployment, 2)
        deployment.pass_time(6.0)
        assert LARGE not in deployment.sets()
        some = {name: found["version"] for name, found in heads(deployment).items()}
        assert 0 < len(some) < 100
        deployment.kill()
        deployment.want("friend", "10.0.0.2")
        deployment.pass_time(30.0)
        deployment.begin()
        deployment.until(lambda: LARGE in deployment.sets() and "friend A" in deployment.sets())
        deployment.pass_time(3.0)
        found = heads(deployment)
        assert {head["node_count"] for head in found.values()} == {2000}
        assert len(found) == 100
        assert {name: found[name]["version"] for name in some} == some, "what was written is not written again"


def heads(deployment: Slow) -> dict[str, Any]:
    """Slice 0 of each upstream of the large Service."""
    items = deployment.store.scan(UPSTREAMS)
    return {str(item["upstream"]): item for item in items if "/large/" in str(item["upstream"]) and item["slice"] == 0}


def test_i9_large_service_that_changes_on_and_on_is_written_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "_MOST_TURNS", 3)
    with slow(write_seconds=0.5) as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        many_ports(deployment, 2)
        for number in range(12):
            deployment.want("friend", f"10.0.1.{number}")
            moved = [f"10.9.{number}.{n % 250}" for n in range(250)]
            targets = [Port(f"p{n}", "TCP", 8000 + n) for n in range(100)]
            slice_of = an_endpoints(*moved, ports=targets, service="large")
            deployment.apply("large", slice_of, namespace=EVIL, slice_name="large-0")
            deployment.pass_time(1.5)
        assert LARGE in deployment.sets()


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=(pytest.mark.thorough, pytest.mark.soak))])
def test_i9_first_list_of_many_delays_no_other_namespace(count: int) -> None:
    with slow() as deployment:
        deployment.begin()
        alone = deployment.until(lambda: "owner A" in deployment.sets())
    with slow() as deployment:
        changes(deployment, count)
        deployment.want("friend", "10.0.0.3")
        deployment.begin()
        listed = deployment.until(lambda: "friend A" in deployment.sets())
        later = deployment.lag("later")
        assert max(listed, later) <= alone + MOST_SECONDS


def test_i9_only_waiters_whose_answer_changes_are_planned_when_the_owner_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with slow(write_seconds=0.0) as deployment:
        deployment.begin()
        waiters(deployment, 60)
        deployment.until(lambda: len(deployment.sets()) == 62)
        deployment.pass_time(3.0)
        planned = plans_of(monkeypatch)
        others = []
        for ip in ("10.0.0.7", "10.0.0.8", "10.9.0.1", "10.0.0.9"):
            asks = {"hostname": "www.example.com"}
            deployment.apply("owner", a_service(cluster_ips=(ip,), annotations=asks))
            deployment.pass_time(4.0)
            others.append(len({*planned} - {"owner"}))
            planned.clear()
        assert deployment.sets()["www.example.com A"] == ("10.0.0.9",)
    assert others == [0, 0, 60, 60]


def test_i9_name_that_is_let_go_is_handed_on_while_a_long_window_is_recorded() -> None:
    with slow() as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        deployment.apply("next", a_service(cluster_ips=("10.0.0.9",), annotations={"hostname": "www.example.com"}))
        deployment.until(lambda: "next A" in deployment.sets())
        deployment.pass_time(3.0)
        changes(deployment, 500)
        deployment.delete("owner")
        lag = deployment.until(lambda: deployment.sets().get("www.example.com A") == ("10.0.0.9",))
        assert len(deployment.sets()) < 400, "the window is still being recorded"
        assert lag < 12.0


def test_i9_who_gets_a_name_does_not_depend_on_turns() -> None:
    """``friend`` is the only one of its namespace: it would be first by turns. By age it is last, and before the second."""
    with slow() as deployment:
        deployment.begin()
        deployment.pass_time(5.0)
        for number in range(150):
            deployment.evil(number, asks={120: "x.example.com", 130: "y.example.com"}.get(number, ""))
        young = a_service(annotations={"hostname": "x.example.com"}, created_at="2027-01-01T00:00:00Z")
        old = a_service(annotations={"hostname": "y.example.com"}, created_at="2025-01-01T00:00:00Z")
        deployment.apply("young", young)
        deployment.apply("old", old)
        deployment.quiet()
        claims = deployment.claims()
        assert (claims["x.example.com"], claims["y.example.com"]) == ("prod/evil/h00120", "prod/shop/old")


@pytest.mark.thorough
@pytest.mark.soak
def test_i1_checkpoint_of_a_long_window_moves_and_stays_below_what_is_not_recorded() -> None:
    with slow(write_seconds=2.0) as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        deployment.pass_time(5.0)
        before = deployment.checkpoint()
        first = deployment.cluster.version + 1
        changes(deployment, 700)
        deployment.until(lambda: deployment.checkpoint() > before)
        moved = deployment.checkpoint()
        assert first <= moved + 1 < deployment.cluster.version, "not all of them are recorded"
        deployment.kill()
        deployment.pass_time(30.0)
        deployment.begin()
        deployment.until(lambda: len(deployment.sets()) == 702)
        assert len(deployment.route53.records(ZONE_ID)) == 702 + 3


def test_what_a_session_leaves_waiting_is_recorded_by_the_next() -> None:
    with slow(write_seconds=1.0) as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        changes(deployment, 400)
        deployment.pass_time(5.0)
        deployment.end()
        assert len(deployment.sets()) < 402
        deployment.begin()
        deployment.until(lambda: len(deployment.sets()) == 402)


def test_window_of_one_namespace_is_published_as_one() -> None:
    """Nobody waits for a turn, so its changes share batches however long recording takes."""
    with slow(write_seconds=1.0) as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        deployment.pass_time(3.0)
        there = len(deployment.sets())
        changes(deployment, 480)
        deployment.until(lambda: len(deployment.sets()) > there)
        assert deployment.recorded() == 480


def test_i9_what_is_recorded_is_published_while_others_wait() -> None:
    with slow(write_seconds=1.0) as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        deployment.pass_time(3.0)
        changes(deployment, 480)
        deployment.lag("friend")
        assert deployment.recorded() < 480


def test_i9_change_that_comes_while_a_long_window_is_recorded_does_not_wait_for_its_end() -> None:
    with slow(write_seconds=1.0) as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        deployment.pass_time(3.0)
        changes(deployment, 480)
        deployment.pass_time(3.0)
        deployment.lag("friend")
        assert deployment.recorded() < 400


def test_i9_next_in_line_does_not_wait_for_the_end_of_a_long_window() -> None:
    with slow(write_seconds=1.0) as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        heir = a_service(cluster_ips=("10.0.0.9",), annotations={"hostname": "www.example.com"})
        deployment.apply("next", heir)
        deployment.until(lambda: "next A" in deployment.sets())
        deployment.pass_time(3.0)
        changes(deployment, 480)
        deployment.delete("owner")  # in the same window: it is recorded among the first
        deployment.until(lambda: deployment.sets().get("www.example.com A") == ("10.0.0.9",))
        assert deployment.recorded() < 480
