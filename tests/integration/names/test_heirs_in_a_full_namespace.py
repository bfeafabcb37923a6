"""A name that is wanted before and after is never away, also where its namespace has no room for another name (I9)."""

from collections.abc import Iterator

import pytest

from harness.dns_cases.notation import key_of
from harness.dns_cases.passing import NAME, NOTHING, PassingDeployment
from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import STATE, Key
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Service

ONE, TWO, THREE = "A 192.0.2.1", "A 192.0.2.2", "A 192.0.2.3"


def asks(address: str, *names: str, created_at: str = "2026-01-01T00:00:00Z") -> Service:
    annotations = {"hostname": ",".join(names)} if names else {}
    return a_service(
        "LoadBalancer",
        cluster_ips=(),
        ingress_ips=(address,),
        ports=(),
        annotations=annotations,
        created_at=created_at,
    )


class Full(PassingDeployment):
    """Namespace ``shop`` holds as many names as it may: ``a`` has the name."""

    def begin(self, *others: str) -> None:
        self.start()
        self.put("a", asks("192.0.2.1", NAME, *others))
        self.pass_time(4.0)
        self.answers[:] = [self.answer]
        assert self.answer == ONE

    @property
    def count(self) -> int:
        """As stored."""
        item = self.store.get(Key(STATE, "prod#asked", "shop"))
        return 0 if item is None else int(str(item["count"]))

    def holds(self, *keys: str) -> dict[str, set[str]]:
        """Names that these keys have, less those of the template."""
        states = StateTable(self.store).load([key_of(text) for text in keys])
        return {
            key.name: {claim.name for claim in state.claims if ".svc." not in claim.name}
            for key, state in states.items()
        }


@pytest.fixture
def deployment() -> Iterator[Full]:
    made = Full(ttl=30, max_names_per_namespace=1)
    yield made
    made.close()


def test_i9_heir_of_a_full_namespace_stands_in_line_and_the_name_is_never_away(deployment: Full) -> None:
    deployment.begin()
    deployment.put("b", asks("192.0.2.2", NAME))
    deployment.pass_time(3.0)
    assert deployment.reported(["b"]) == [f"prod/shop/b: NameTaken {NAME} in Z1"]
    deployment.put("a", None)
    deployment.pass_time(9.0)
    assert deployment.answers == [ONE, TWO]
    assert (deployment.count, deployment.holds("b"), deployment.reported(["b"])) == (1, {"b": {NAME}}, [])


def test_i9_older_service_does_not_take_the_room_of_a_name_that_passes_on(deployment: Full) -> None:
    deployment.begin()
    deployment.put("b", asks("192.0.2.2", NAME, created_at="2026-01-02T00:00:00Z"))
    deployment.pass_time(3.0)
    deployment.put("a", None)
    deployment.put("c", asks("192.0.2.3", "other.example.com"))
    deployment.pass_time(9.0)
    assert deployment.answers == [ONE, TWO]
    assert (deployment.count, deployment.holds("b", "c")) == (1, {"b": {NAME}, "c": set()})
    assert deployment.reported(["b", "c"]) == ["prod/shop/c: TooManyNames other.example.com"]


def test_i9_owner_that_asks_for_another_name_gets_none_for_one_that_passes_on(deployment: Full) -> None:
    """Else a namespace that passes names on and on would hold any number."""
    deployment.begin()
    deployment.put("b", asks("192.0.2.2", NAME))
    deployment.pass_time(3.0)
    deployment.put("a", asks("192.0.2.1", "other.example.com"))
    deployment.pass_time(9.0)
    assert deployment.answers == [ONE, TWO]
    assert (deployment.count, deployment.holds("a", "b")) == (1, {"a": set(), "b": {NAME}})
    assert deployment.reported(["a"]) == ["prod/shop/a: TooManyNames other.example.com"]


@pytest.mark.parametrize("room", [1, 2])
def test_i9_heir_that_comes_in_the_window_in_which_the_owner_goes_has_its_room(room: int) -> None:
    deployment = Full(ttl=30, max_names_per_namespace=room)
    deployment.begin()
    deployment.put("a", None)
    deployment.put("b", asks("192.0.2.2", NAME, created_at="2026-01-03T00:00:00Z"))
    deployment.put("c", asks("192.0.2.3", "other.example.com", created_at="2026-01-02T00:00:00Z"))
    deployment.put("d", asks("192.0.2.4", "third.example.com", created_at="2026-01-04T00:00:00Z"))
    deployment.pass_time(9.0)
    assert deployment.answers == [ONE, TWO]
    others = {"other.example.com"} if room == 2 else set()
    assert (deployment.count, deployment.holds("b", "c", "d")) == (room, {"b": {NAME}, "c": others, "d": set()})
    deployment.close()


def test_i9_room_that_a_name_leaves_for_good_is_there_at_once(deployment: Full) -> None:
    """Whoever stood in line has left it: nothing is kept free."""
    deployment.begin()
    deployment.put("b", asks("192.0.2.2", NAME))
    deployment.pass_time(3.0)
    deployment.put("a", None)
    deployment.put("b", asks("192.0.2.2"))
    deployment.pass_time(9.0)
    assert (deployment.answers, deployment.count) == ([ONE, NOTHING], 0)
    deployment.put("c", asks("192.0.2.3", NAME))
    deployment.pass_time(4.0)
    assert (deployment.answers[-1], deployment.count) == (THREE, 1)


def test_i9_name_is_shared_only_where_there_is_room_and_else_waited_for(deployment: Full) -> None:
    """Of one namespace, one Service may have the A set and another the AAAA set (ADR 0062): for each it is a name."""
    deployment.begin()
    both = a_service(
        "LoadBalancer",
        cluster_ips=(),
        ingress_ips=("192.0.2.2", "2001:db8::2"),
        ports=(),
        annotations={"hostname": NAME},
    )
    deployment.put("b", both)
    deployment.pass_time(4.0)
    assert (deployment.answer, deployment.count) == (ONE, 1)
    assert deployment.reported(["b"]) == [f"prod/shop/b: NameTaken {NAME} in Z1"]
    deployment.put("a", None)
    deployment.pass_time(9.0)
    assert deployment.answers == [ONE, "A 192.0.2.2 / AAAA 2001:db8::2"]
    assert deployment.count == 1
