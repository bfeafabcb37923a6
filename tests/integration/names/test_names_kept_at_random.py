"""Services ask for one name, simple and weighted, in any order, with and without addresses: who holds it keeps it (I9)."""

import random
from typing import Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.domain.objects import Resource, Service
from simulation.writes import RECORD, SENT

WWW: Final = "www.example.com"
KEYS: Final = [f"{cluster}/{namespace}/x" for cluster in ("prod", "c1") for namespace in ("a", "b", "c")]


def address(key: str) -> str:
    return f"10.9.{KEYS.index(key)}.1"


def asking(key: str, identifier: str, *, pending: bool) -> Service:
    weighted = {"set-identifier": identifier} if identifier else {}
    ips = () if pending else (address(key),)
    return a_service("LoadBalancer", ports=(), annotations={"hostname": WWW, **weighted}, ingress_ips=ips)


def owners(deployment: Deployment) -> dict[str, str]:
    """Owner of each claim of the name, by set identifier."""
    claims = deployment.claims().items()
    return {claim.removeprefix(WWW).removeprefix("#set#"): owner for claim, owner in claims if claim.startswith(WWW)}


def standing(deployment: Deployment) -> dict[str, tuple[str, ...]]:
    return {
        key.identifier: found.values for key, found in deployment.route53.records(ZONE_ID).items() if key.name == WWW
    }


def die(deployment: Deployment, chance: random.Random) -> None:
    """At a write of what has just changed, or after it."""
    deployment.at(chance.choice([RECORD, SENT]), deployment.kill, after=chance.random() < 0.5)
    deployment.pass_time(5.0)
    deployment.spare()
    deployment.kill()
    deployment.pass_time(30.0)
    deployment.start()


@pytest.mark.parametrize("seed", range(12))
def test_i9_whoever_comes_in_whatever_order_no_holder_loses_the_name(seed: int) -> None:
    chance = random.Random(seed)
    deployment = Deployment(domain_filter=("example.com",))
    clusters = {"prod": deployment.cluster, "c1": deployment.add_cluster("c1")}
    asked: dict[str, str] = {}
    pending: dict[str, bool] = {}
    deployment.start()
    for _ in range(40):
        before = owners(deployment)
        key = chance.choice(KEYS)
        cluster, namespace, name = key.split("/")
        if key in asked and chance.random() < 0.3:
            clusters[cluster].delete(Resource.SERVICES, name, namespace)
            del asked[key], pending[key]
        else:
            if key not in asked or chance.random() < 0.3:
                asked[key] = chance.choice(["", "", "one", "two"])
            pending[key] = chance.random() < 0.4
            clusters[cluster].apply(name, asking(key, asked[key], pending=pending[key]), namespace=namespace)
        if chance.random() < 0.15:
            die(deployment, chance)
        deployment.pass_time(8.0)
        claimed = owners(deployment)
        assert set(claimed) <= {""} or "" not in claimed, "one kind holds the name"
        for identifier, owner in before.items():
            if asked.get(owner) == identifier:
                assert claimed.get(identifier) == owner, "who held it and still asks for it in the same way holds it"
        # Whoever waits to change its kind keeps what it has.
        assert standing(deployment) == {i: (address(owner),) for i, owner in claimed.items() if not pending[owner]}
        assert claimed or all(pending.values()), "somebody has it if anybody could"
        lines = {text.split("#wait#")[0] for text in deployment.waiters()}
        assert lines <= {f"{WWW}#set#{identifier}" if identifier else WWW for identifier in claimed}
        assert deployment.heirs() == []
    assert deployment.end().clean
    deployment.close()
