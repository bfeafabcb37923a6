"""Two claims of one name are handed on at the same time, that of the simple set and that of a weighted one: it ends (I9).

Whoever is given a claim of the other kind waits for the claim in its way, and hands on what it was given. Where both are on their way,
each would meet the other, for ever: with every step the cluster's actor would write, and record nothing else.
"""

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import Delete, Item, Put
from kubesync.aws.tables.claims import ClaimTable, claim_key
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name
from simulation.writes import RECORD

SIMPLE = Name(ZONE_ID, "shop.example.com")
WEIGHTED = Name(ZONE_ID, "shop.example.com", "blue")
OLDEST = "2021-01-01T00:00:00Z"
YOUNGER = "2022-01-01T00:00:00Z"


class Crossed(Deployment):
    """``blue`` wants a weighted set, three others the simple one. ``blue`` was given the simple claim, ``one`` the weighted one."""

    def __init__(self) -> None:
        super().__init__(domain_filter=("example.com",))
        asks = {"hostname": "shop.example.com", "set-identifier": "blue", "aws-weight": "10"}
        self.apply("blue", a_service(cluster_ips=("10.0.0.9",), ports=(), annotations=asks, created_at=OLDEST))
        for number, name in enumerate(("one", "two", "three"), 1):
            self.simple(name, f"10.0.0.{number}")
        self.run_session()
        (held,) = (key for key, _ in self.route53.records(ZONE_ID).items() if key.name == "shop.example.com")
        self.route53.by_hand("DELETE", held, self.route53.records(ZONE_ID)[held])
        self._waits("blue", SIMPLE)
        self._waits("two", SIMPLE, in_line=True)
        self._waits("one", WEIGHTED)
        self._waits("three", WEIGHTED, in_line=True)
        for claim, owner in ((SIMPLE, "blue"), (WEIGHTED, "one")):
            owned: Item = {"v": 1, "owner": f"prod/shop/{owner}", "version": 9, "waiting": 1}
            self.store.write(Put(claim_key(claim), owned))
            self.store.transact([StateTable.mark_to_plan(ObjectKey("prod", "shop", owner), claim)], f"note {owner}")

    def simple(self, name: str, address: str) -> None:
        asks = {"hostname": "shop.example.com"}
        self.apply(name, a_service(cluster_ips=(address,), ports=(), annotations=asks, created_at=YOUNGER))

    def _waits(self, service: str, name: Name, *, in_line: bool = False) -> None:
        """Write by hand that a Service has nothing of the name, and waits for a claim."""
        state = self.state(service)
        sets = {key: record_set for key, record_set in state.intended.items() if key.name != name.name}
        claims = frozenset(claim for claim in state.claims if claim.name != name.name)
        self.rewrite(service, intended=sets, applied=sets, claims=claims, waits=frozenset({name}), opened=None)
        for key in self.store.dump():
            if "#wait#" in str(key.sort) and str(key.sort).endswith(service):
                self.store.write(Delete(key))
        if in_line:
            place = ClaimTable.waiter_place(name, state.key, YOUNGER)
            self.store.write(Put(place, {"v": 1, "key": str(state.key)}))


@pytest.fixture
def deployment() -> Iterator[Crossed]:
    made = Crossed()
    yield made
    made.close()


def test_i9_two_claims_of_a_name_that_meet_on_their_way_come_to_rest(deployment: Crossed) -> None:
    deployment.at(RECORD, deployment.kill, skip=60)
    deployment.start()
    deployment.pass_time(3.0)
    assert deployment.sets()["shop.example.com A"] == ("10.0.0.2",)
    assert {name: owner for name, owner in deployment.claims().items() if name.startswith("shop.")} == {
        "shop.example.com": "prod/shop/two"
    }
    # Nobody is lost: whoever waits gets the name in turn.
    for gone, address in (("two", "10.0.0.9"), ("blue", "10.0.0.1"), ("one", "10.0.0.3")):
        deployment.delete(gone)
        deployment.pass_time(4.0)
        stands = {
            key.type: s.values
            for key, s in deployment.route53.records(ZONE_ID).items()
            if key.name == "shop.example.com"
        }
        assert stands == {"A": (address,)}
    assert deployment.end().clean
