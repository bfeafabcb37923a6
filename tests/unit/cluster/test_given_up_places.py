"""A key gives up its place in a queue while another cluster gives it the claim: the write is refused, whatever was read in between."""

import pytest

from harness.cluster_tables import cluster_tables
from harness.deployment import ZONE_ID
from harness.fed import FedDeployment
from harness.seen.builders import a_service, saw
from kubesync.cluster.claims.claim_book import ClaimBook
from kubesync.domain.errors import TransactionRefusedError
from kubesync.domain.objects import ObjectKey, Service
from kubesync.domain.state import KeyState, Name

NAME = Name(ZONE_ID, "x.example.com")
OWNER, WAITER = ObjectKey("prod", "shop", "a"), ObjectKey("prod", "shop", "b")


def wants(day: int) -> Service:
    created = f"2026-01-{day:02d}T00:00:00Z"
    return a_service(cluster_ips=(f"10.0.0.{day}",), ports=(), annotations={"hostname": NAME.name}, created_at=created)


def a_book(deployment: FedDeployment) -> ClaimBook:
    book = ClaimBook(cluster_tables(deployment.store), KeyState, lambda _key, _name: None)
    book.read(frozenset({NAME}))
    return book


def test_i1_place_that_is_gone_when_it_is_given_up_is_not_given_up() -> None:
    deployment = FedDeployment()
    deployment.session().begin(saw(wants(1), 5, "a"), saw(wants(2), 6, "b"))
    book = a_book(deployment)  # has read the claim, and not its queue
    handed_on, _ = a_book(deployment).let_go(NAME, OWNER)
    deployment.store.transact(handed_on, "another-cluster")

    actions, _ = book.give_up(NAME, WAITER)

    with pytest.raises(TransactionRefusedError):
        deployment.store.transact(actions, "this-cluster")
