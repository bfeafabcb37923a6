"""A namespace that asks for whatever it can think of, beside one that must not notice: its records never change, nothing delays them (I9)."""

import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Resource, Service
from kubesync_local.standins.route53.zone.model import Limits
from simulation.writes import SENT

FRIENDS: Final = {
    "web.shop.svc.prod.example.com": "10.1.0.1",
    "api.shop.svc.prod.example.com": "10.1.0.2",
    "shop.example.com": "10.1.0.1",
    "www.shop.example.com": "10.1.0.1",
    "first.example.com": "10.1.0.2",
}
# Nobody has these yet. Services of the friendly namespace will want them.
LATER: Final = ("later.shop.svc.prod.example.com", "later.shop.example.com", "a.b.shop.example.com")
ALLOWED: Final = {"allow_wildcards": True, "allow_apex": True, "allow_underscores": True}
_LABELS: Final = (
    "*",
    "_http",
    "_tcp",
    "a",
    "www",
    "web",
    "api",
    "later",
    "shop",
    "evil",
    "svc",
    "prod",
    "_kubesync-test-0",
    "x-y",
)


def asked_names(chance: random.Random) -> Iterator[str]:
    """Names of others, above, below and beside them, in every spelling."""
    others = [
        *FRIENDS,
        *LATER,
        "_kubesync-test-0.example.com",
        "example.com",
        "prod.example.com",
        "svc.prod.example.com",
    ]
    for _ in range(chance.randint(1, 12)):
        name = chance.choice(others)
        how = chance.randrange(7)
        if how == 0:
            name = ".".join([*chance.choices(_LABELS, k=chance.randint(1, 3)), name])
        elif how == 1:
            name = f"*.{name.partition('.')[2]}"
        elif how == 2:
            name = ".".join([*chance.choices(_LABELS, k=chance.randint(0, 4)), "example.com"])
        elif how == 3:
            name = name.upper() + "."
        elif how == 4:
            name = f"  {name} "
        elif how == 5:
            name = f"{chance.choice(_LABELS)}{name}"
        yield name


def hostile(chance: random.Random, number: int) -> Service:
    """One drawn set of annotations."""
    asks = {chance.choice(("hostname", "internal-hostname")): ",".join(asked_names(chance))}
    if chance.random() < 0.3:
        asks["hostname"] = ",".join(asked_names(chance))
    if chance.random() < 0.3:
        asks["target"] = chance.choice(
            ("192.0.2.66", "evil.example.org", "192.0.2.66,2001:db8::66", "shop.example.com")
        )
    if chance.random() < 0.3:
        asks["set-identifier"] = chance.choice(("evil", "prod", "shop"))
        asks["aws-weight"] = str(chance.randint(0, 255))
    if chance.random() < 0.2:
        asks["ttl"] = chance.choice(("1", "86400", "never"))
    if chance.random() < 0.2:
        asks["alias"] = chance.choice(("true", "false", "A"))
    kind = chance.choice(("ClusterIP", "ClusterIP", "LoadBalancer", "ExternalName"))
    created = f"20{chance.randint(10, 40)}-01-01T00:00:00Z"  # also older than any Service of the other namespace
    if kind == "ExternalName":
        return a_service(kind, external_name="evil.example.org", annotations=asks, created_at=created)
    ingress = ("192.0.2.66",) if kind == "LoadBalancer" else ()
    return a_service(
        kind, cluster_ips=(f"10.66.0.{number % 250}",), annotations=asks, created_at=created, ingress_ips=ingress
    )


def befriended(**options: Any) -> Deployment:
    deployment = Deployment(
        domain_filter=("example.com",), namespace_domains=("shop=shop.example.com",), srv=True, **options
    )
    deployment.apply(
        "web",
        a_service(
            cluster_ips=("10.1.0.1",), ports=(), annotations={"hostname": "shop.example.com,www.shop.example.com"}
        ),
    )
    deployment.apply(
        "api", a_service(cluster_ips=("10.1.0.2",), ports=(), annotations={"hostname": "first.example.com"})
    )
    deployment.start()
    deployment.pass_time()
    assert friendly(deployment) == FRIENDS
    return deployment


def friendly(deployment: Deployment, *more: str) -> dict[str, str]:
    """What stands at the friendly names, whatever its type."""
    sets = deployment.route53.records(ZONE_ID)
    wanted = {*FRIENDS, *more}
    found = {key: record_set for key, record_set in sets.items() if key.name in wanted}
    assert {key.type for key in found} == {"A"}
    assert {key.identifier for key in found} == {""}
    return {key.name: ",".join(record_set.values) for key, record_set in found.items()}


@pytest.mark.parametrize(("seed", "options"), [(1, {}), (2, ALLOWED)], ids=["the default", "everything allowed"])
def test_i9_records_of_a_namespace_never_change_whatever_another_one_asks_for(
    seed: int, options: dict[str, bool]
) -> None:
    chance = random.Random(seed)
    deployment = befriended(**options)
    begun = len(deployment.sent)
    for number in range(500):
        deployment.apply(f"evil-{number % 12}", hostile(chance, number), namespace="evil")
        if number % 5 == 4:
            deployment.pass_time()
        if number % 100 == 99:
            assert friendly(deployment) == FRIENDS
    deployment.pass_time(10.0)
    assert friendly(deployment) == FRIENDS
    keys = {change.key for batch in deployment.sent[begun:] for change in batch}
    changed = {key.name for key in keys}
    # At a name of the common domain it may try to add a weighted set; Route 53 refuses it beside the simple one.
    assert {key for key in keys if key.name in FRIENDS and not key.identifier} == set(), "no batch touches them"
    assert changed & FRIENDS.keys() <= {"first.example.com"}
    assert changed - {"_kubesync-test-0.example.com"}, "the other namespace gets some names"
    owners = deployment.claims()
    assert {owners[name] for name in FRIENDS} == {"prod/shop/web", "prod/shop/api"}
    # What belongs to the friendly namespace is free, though nobody had it yet.
    assert [name for name in LATER if name in owners] == []
    deployment.apply(
        "later", a_service(cluster_ips=("10.1.0.3",), ports=(), annotations={"hostname": ",".join(LATER[1:])})
    )
    deployment.pass_time(3.0)
    assert friendly(deployment, *LATER) == {**FRIENDS, **dict.fromkeys(LATER, "10.1.0.3")}
    # Nobody but the namespace itself waits for its names.
    lines = {place.split("#wait#")[0].split("#set#")[0] for place in deployment.waiters()}
    assert lines & {*FRIENDS, *LATER} <= {"first.example.com"}
    assert [name for name in changed if name.endswith((".shop.svc.prod.example.com", ".shop.example.com"))] == []
    assert deployment.end().clean
    deployment.close()


def flooding(*names: str) -> Service:
    annotations = {"hostname": ",".join(names)} if names else {}
    return a_service(cluster_ips=("10.66.0.1",), ports=(), annotations=annotations)


def test_i9_flood_of_refused_names_delays_no_other_change() -> None:
    """20,000 names in one annotation, and as many of 400 Services: outside the domains, reserved, or too many."""
    deployment = befriended(max_names_per_namespace=50)
    many = [f"flood-{number:03d}" for number in range(400)]
    deployment.apply("holder", flooding(*(f"held{n}.example.com" for n in range(50))), namespace="evil")
    for name in ("flood", *many):
        deployment.apply(name, flooding(), namespace="evil")
    deployment.pass_time(8.0)
    assert len(deployment.route53.records(ZONE_ID)) == 5 + 50 + 402 + 3, "NS, SOA and the journal"
    batches = len(deployment.sent)

    one = [*(f"n{n}.org" for n in range(15_000)), *(f"n{n}.example.com" for n in range(5_000))]
    assert 217_000 <= len(",".join(one)) <= 262_144, "as long as annotations may be"
    deployment.apply("flood", flooding(*one), namespace="evil")
    for name in many:
        own = [f"{name}-{n}.{('org', 'example.com', 'shop.svc.prod.example.com')[n % 3]}" for n in range(50)]
        deployment.apply(name, flooding(*own), namespace="evil")
    # The last in the window, by age and by name.
    deployment.apply(
        "zoe", a_service(cluster_ips=("10.1.0.9",), ports=(), annotations={"hostname": "zoe.shop.example.com"})
    )
    deployment.pass_time()
    (following,) = deployment.sent[batches:]
    assert sorted(c.key.name for c in following if c.key.type == "A") == [
        "zoe.shop.example.com",
        "zoe.shop.svc.prod.example.com",
    ]

    assert deployment.waiters() == []
    assert [name for name in deployment.claims() if name.startswith(("n", "flood")) and ".evil.svc." not in name] == []
    states = {state.key.name: state for state in StateTable(deployment.store).load_all("prod")}
    assert {problem.code for problem in states["flood"].problems} == {"OutsideDomains", "TooManyNames"}
    assert {problem.code for problem in states["flood-399"].problems} == {
        "OutsideDomains",
        "TooManyNames",
        "NameReserved",
    }
    assert max(len(state.problems) for state in states.values()) <= 33, "what is stored and shown is bounded"
    assert deployment.end().clean
    deployment.close()


def slow_zone(deployment: Deployment, seconds: float = 0.4) -> None:
    """Each batch takes its time, as where the rates of Route 53 are used up."""
    deployment.at(SENT, lambda: deployment.hold(seconds), times=None)


def test_i9_names_that_change_all_the_time_delay_no_other_change() -> None:
    """One namespace changes more record sets a second than Route 53 takes: it would fill each batch, for ever."""
    deployment = befriended()
    flipping = [[f"a{number}-{n}.example.com" for n in range(40)] for number in range(5)]

    def flip(ttl: int) -> None:
        for number, names in enumerate(flipping):
            asks = {"hostname": ",".join(names), "ttl": str(ttl)}
            changed = a_service(cluster_ips=(f"10.66.0.{number}",), ports=(), annotations=asks)
            deployment.apply(f"flip-{number}", changed, namespace="evil")
        deployment.pass_time(1.0)

    flip(30)
    deployment.pass_time(5.0)
    slow_zone(deployment)
    for ttl in range(60, 64):
        flip(ttl)
    deployment.apply("zoe", a_service(cluster_ips=("10.1.0.9",), ports=()))
    begun = len(deployment.sent)
    for ttl in range(64, 68):
        flip(ttl)
    names = [{change.key.name for change in batch} for batch in deployment.sent[begun:]]
    sent_in = [number for number, of_one in enumerate(names) if "zoe.shop.svc.prod.example.com" in of_one]
    # One window, and the batch that is under way when it is recorded.
    assert sent_in, "it waits as long as the others change"
    assert sent_in[0] <= 4
    assert {len(batch) for batch in deployment.sent[begun + 1 : -1]} <= {39, 40}, "batches stay full"
    deployment.close()


def test_i9_thousands_of_new_services_delay_no_other_change() -> None:
    """The zone knows only the names of most of them, and of the friendly one too: it asks for that all the same."""
    deployment = befriended()
    slow_zone(deployment, 3.0)
    for number in range(1500):
        deployment.apply(f"a{number}", a_service(cluster_ips=("10.66.0.1",), ports=()), namespace="evil")
    deployment.pass_time(4.0)
    deployment.apply("zoe", a_service(cluster_ips=("10.1.0.9",), ports=()))
    begun = len(deployment.sent)
    deployment.pass_time(16.0)
    names = [{change.key.name for change in batch} for batch in deployment.sent[begun:]]
    sent_in = [number for number, of_one in enumerate(names) if "zoe.shop.svc.prod.example.com" in of_one]
    # The batch that is under way when its window is recorded, and the next one.
    assert sent_in in ([0], [1])
    deployment.close()


def test_i9_full_zone_gives_room_to_each_namespace_in_turn() -> None:
    deployment = befriended(limits=Limits(sets_of_zone=30))
    for number in range(60):
        deployment.apply(f"a{number:02d}", a_service(cluster_ips=("10.66.0.1",), ports=()), namespace="evil")
    deployment.pass_time(4.0)
    assert len(deployment.route53.records(ZONE_ID)) == 30
    deployment.apply("zoe", a_service(cluster_ips=("10.1.0.9",), ports=()))
    deployment.pass_time(4.0)
    for number in range(4):
        deployment.cluster.delete(Resource.SERVICES, f"a{number:02d}", "evil")
    deployment.pass_time(10.0)
    assert "zoe.shop.svc.prod.example.com" in {key.name for key in deployment.route53.records(ZONE_ID)}
    deployment.close()
