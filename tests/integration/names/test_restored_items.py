"""One item of a name, or of the queue, is deleted by hand or restored to an older version of itself: a full resync puts it right (I9, I10)."""

from collections.abc import Iterator

import pytest

from harness.deployment import Deployment
from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import STATE, Delete, Item, Key, Put
from kubesync.aws.tables.claims import claim_key
from kubesync.aws.tables.state import open_key, state_key
from kubesync.domain.objects import ObjectKey, Service
from kubesync.domain.state import Name

SHOP = claim_key(Name("Z1", "shop.example.com"))
WANTS = {"hostname": "shop.example.com"}


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """``first`` has shop.example.com."""
    made = Deployment(domain_filter=("example.com",))
    made.start()
    made.apply("first", wants("10.0.0.1"))
    made.pass_time(3.0)
    assert made.sets()["shop.example.com A"] == ("10.0.0.1",)
    yield made
    assert made.end().clean
    made.close()


def wants(address: str, created_at: str = "2026-01-01T00:00:00Z") -> Service:
    return a_service(cluster_ips=(address,), ports=(), annotations=WANTS, created_at=created_at)


def stored(deployment: Deployment, place: Key) -> Item:
    return {name: value for name, value in deployment.store.dump()[place].items() if name not in ("pk", "sk")}


def test_i9_claim_that_was_deleted_is_made_again_with_those_who_wait(deployment: Deployment) -> None:
    deployment.apply("second", wants("10.0.0.2", "2026-02-01T00:00:00Z"))
    deployment.pass_time(3.0)
    deployment.store.write(Delete(SHOP))
    deployment.resync()
    assert deployment.claims()["shop.example.com"] == "prod/shop/first"
    assert stored(deployment, SHOP)["waiting"] == 1
    deployment.delete("first")
    deployment.pass_time(3.0)
    assert deployment.sets()["shop.example.com A"] == ("10.0.0.2",)


def test_i9_name_whose_restored_claim_names_who_let_it_go_is_given_to_who_wants_it(deployment: Deployment) -> None:
    older = stored(deployment, SHOP)
    deployment.apply("first", a_service(cluster_ips=("10.0.0.1",), ports=()))
    deployment.pass_time(3.0)
    assert "shop.example.com" not in deployment.claims()
    deployment.store.write(Put(SHOP, older))
    deployment.apply("second", wants("10.0.0.2"))
    deployment.pass_time(3.0)
    assert deployment.waiters() == ["shop.example.com#wait#2026-01-01T00:00:00Z#prod/shop/second"]
    assert [problem.code for problem in deployment.state("second").problems] == ["NameTaken"]
    deployment.resync()
    deployment.pass_time(3.0)
    assert deployment.sets()["shop.example.com A"] == ("10.0.0.2",)
    assert deployment.claims()["shop.example.com"] == "prod/shop/second"
    assert deployment.waiters() == []
    assert stored(deployment, SHOP)["waiting"] == 0


def test_i4_owner_that_a_newer_release_wrote_keeps_its_name_and_ends_no_resync(deployment: Deployment) -> None:
    newer, name = ObjectKey("other", "shop", "newer"), claim_key(Name("Z1", "second.example.com"))
    deployment.store.write(Put(state_key(newer), {"v": 99, "form": "of a newer release"}))
    deployment.store.write(Put(name, {"v": 1, "owner": str(newer), "version": 1, "waiting": 0}))
    older = stored(deployment, SHOP)
    deployment.apply("first", a_service(cluster_ips=("10.0.0.1",), ports=()))
    deployment.pass_time(3.0)
    deployment.store.write(Put(SHOP, older))
    both = {"hostname": "shop.example.com,second.example.com"}
    deployment.apply("second", a_service(cluster_ips=("10.0.0.2",), ports=(), annotations=both))
    deployment.pass_time(3.0)
    deployment.resync()
    deployment.pass_time(3.0)
    assert deployment.claims()["shop.example.com"] == "prod/shop/second", "the others are looked at as always"
    assert deployment.claims()["second.example.com"] == "other/shop/newer"
    assert "second.example.com A" not in deployment.sets()


def test_i9_resync_takes_a_name_from_nobody_who_has_it_or_is_about_to(deployment: Deployment) -> None:
    deployment.apply("second", wants("10.0.0.2"))
    deployment.pass_time(3.0)
    before = deployment.items(STATE)
    deployment.resync()
    deployment.pass_time(3.0)
    assert deployment.sets()["shop.example.com A"] == ("10.0.0.1",)
    assert {key for key in before if before[key] != deployment.items(STATE).get(key)} == set(), (
        "and writes nothing (I6)"
    )


def test_i10_open_mark_of_a_key_that_wants_nothing_is_removed_by_the_next_session(deployment: Deployment) -> None:
    """It would count as late for ever, and raise an alarm that nothing ends."""
    gone, here = open_key(ObjectKey("prod", "shop", "gone")), open_key(ObjectKey("prod", "shop", "first"))
    mark: Item = {"v": 1, "attempts": 0, "retry_at": 0, "reason": "", "code": "", "cause": "list", "since": 1000}
    for place in (gone, here):
        deployment.store.write(Put(place, mark))
    deployment.end()
    deployment.start()
    deployment.pass_time(3.0)
    assert deployment.open() == {}
    assert deployment.sets()["shop.example.com A"] == ("10.0.0.1",)
