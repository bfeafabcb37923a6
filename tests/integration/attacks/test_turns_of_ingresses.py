"""Ingresses of one namespace delay no Service and no Ingress of another one, and change nothing of it (I9). See ``test_turns``."""

import random
from collections.abc import Callable

import pytest

from harness.slow_tables import EVIL, Slow, slow
from kubesync.domain.sources.ingresses import INGRESSES, Ingress

MOST_SECONDS = 5.0
TAKEN = "www.example.com"
"""A name of the friendly namespace."""


def evil(deployment: Slow, number: int, *hosts: str, tls: tuple[str, ...] = (), address: str = "192.0.2.66") -> None:
    made = Ingress(hosts=hosts, tls_hosts=tls, ingress_ips=(address,), created_at="2025-01-02T00:00:00Z")
    deployment.apply(f"i{number:05d}", made, resource=INGRESSES, namespace=EVIL)


def own_hosts(deployment: Slow, count: int) -> None:
    """Three names each: far more than the namespace may have."""
    for number in range(count):
        host = f"n{number}.example.com"
        evil(deployment, number, host, f"www.{host}", tls=(f"tls.{host}",))


def taken_host(deployment: Slow, count: int) -> None:
    """All want a name that another namespace has."""
    for number in range(count):
        evil(deployment, number, TAKEN)


def changing(deployment: Slow, count: int) -> None:
    """They are there already, and all get another load balancer, twice."""
    own_hosts(deployment, count)
    deployment.until(lambda: "n0.example.com A" in deployment.sets())
    for address in ("192.0.2.67", "192.0.2.68"):
        for number in range(count):
            host = f"n{number}.example.com"
            evil(deployment, number, host, f"www.{host}", tls=(f"tls.{host}",), address=address)
        deployment.pass_time(0.5)


def leaving(deployment: Slow, count: int) -> None:
    """They wait already, and all go."""
    taken_host(deployment, count)
    deployment.pass_time(15.0)
    for number in range(count):
        deployment.cluster.delete(INGRESSES, f"i{number:05d}", EVIL)


def drawn(deployment: Slow, count: int) -> None:
    """Hosts that are taken, free, of nobody's domain or no host at all; many rules; names of the other namespace."""
    chance = random.Random(29)
    for number in range(count):
        free = f"n{number}-{chance.randrange(9)}.example.com"
        others = ("shop.example.org", "*.example.com", "example.com", "owner.shop.svc.prod.example.com", "-", "")
        picks: tuple[tuple[str, ...], ...] = ((TAKEN,), (free,), (TAKEN, free), others, (chance.choice(others), free))
        hosts = chance.choice(picks)
        if chance.random() < 0.02:
            hosts = tuple(f"{number}-{each:x}.example.com" for each in range(10_000))
        evil(deployment, number, *hosts, tls=chance.choice(((), (TAKEN,), (free,), hosts)))


ATTACKS = (own_hosts, taken_host, changing, leaving, drawn)
WHOLE = (pytest.mark.thorough, pytest.mark.soak, pytest.mark.timeout(7200))


@pytest.mark.parametrize(
    ("attack", "count"),
    [
        pytest.param(attack, count, marks=marks, id=f"{attack.__name__} {count}")
        for attack in ATTACKS
        for count, marks in ((300, ()), (5_000, WHOLE))
    ],
)
def test_i9_change_of_a_friend_does_not_wait_for_ingresses_of_another_namespace(
    attack: Callable[[Slow, int], None], count: int
) -> None:
    with slow(sources=("service", "ingress")) as deployment:
        deployment.begin()
        deployment.until(lambda: "owner A" in deployment.sets())
        deployment.pass_time(3.0)
        usual = max(deployment.lag("usual"), lag_of_an_ingress(deployment, "usual"))
        deployment.pass_time(3.0)
        attack(deployment, count)
        beside = [
            deployment.lag("same"),
            lag_of_an_ingress(deployment, "same"),
            deployment.lag("later"),
            lag_of_an_ingress(deployment, "later"),
        ]
        print(f"{attack.__name__} {count}: {usual:.1f} s alone; beside it {', '.join(f'{s:.1f} s' for s in beside)}")
        assert max(beside) <= usual + MOST_SECONDS
        sets = deployment.sets()
        assert (sets[f"{TAKEN} A"], sets["owner A"]) == (("10.0.0.1",), ("10.0.0.1",))


@pytest.mark.parametrize("count", [300, pytest.param(5_000, marks=WHOLE)])
def test_i9_first_list_of_many_ingresses_delays_no_other_namespace(count: int) -> None:
    """Only ``owner`` waits for older ones: it asks for the name that they ask for, and who gets a name does not depend on turns."""
    seconds = []
    for attack in (None, drawn):
        with slow(sources=("service", "ingress")) as deployment:
            if attack:
                attack(deployment, count)
            deployment.want("friend", "10.0.0.3")
            friend = Ingress(hosts=("friend.example.com",), ingress_ips=("192.0.2.1",))
            deployment.apply("friend", friend, resource=INGRESSES)
            deployment.begin()
            seconds.append(deployment.until(lambda: deployment.sets().keys() >= {"friend A", "friend.example.com A"}))
            later = lag_of_an_ingress(deployment, "later")
    print(f"first list {count}: {seconds[0]:.1f} s alone; beside it {seconds[1]:.1f} s, and {later:.1f} s")
    assert max(seconds[1], later) <= seconds[0] + MOST_SECONDS


def lag_of_an_ingress(deployment: Slow, name: str) -> float:
    """A friend makes an Ingress now: seconds until it is published."""
    host = f"{name}-ingress.example.com"
    deployment.apply(name, Ingress(hosts=(host,), ingress_ips=("192.0.2.1",)), resource=INGRESSES)
    return deployment.until(lambda: f"{host} A" in deployment.sets(), within=60.0)
