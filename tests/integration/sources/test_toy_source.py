"""A source that kubesync does not know: everything that a Service has, its objects have, by two files of models and rules."""

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import CONTROL, STATE, Key
from kubesync.domain.objects import ObjectKey
from simulation.writes import RECORD, SENT
from toy.rules import BOXES, TOYS, Box, Toy

WRITES = (RECORD, "checkpoint alone", "batch announced", SENT, "batch closed")


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment(sources=("service", "toy"))
    yield made
    made.close()


def toy(deployment: Deployment, name: str, host: str, *addresses: str, **fields: object) -> None:
    deployment.apply(name, Toy(host, addresses, **fields), resource=TOYS)  # type: ignore[arg-type]


def with_ttl(deployment: Deployment) -> dict[str, tuple[int, tuple[str, ...]]]:
    sets = deployment.route53.records(ZONE_ID).items()
    return {f"{key.name} {key.type}": (found.ttl or 0, found.values) for key, found in sets if key.type == "A"}


def test_toy_has_record_sets_and_an_upstream_and_a_service_of_its_name_keeps_its_own(deployment: Deployment) -> None:
    deployment.start()
    deployment.want("web", "10.0.0.1")
    toy(deployment, "web", "toy.example.com", "192.0.2.7", port=80)
    deployment.pass_time()
    assert deployment.sets() == {"web A": ("10.0.0.1",), "toy.example.com A": ("192.0.2.7",)}
    assert deployment.upstreams()["prod/shop/Toy:web/80/TCP"] == ["192.0.2.7:80"]
    deployment.delete("web")
    deployment.pass_time()
    assert deployment.sets() == {"toy.example.com A": ("192.0.2.7",)}
    deployment.cluster.delete(TOYS, "web")
    deployment.pass_time()
    assert deployment.sets() == {}
    assert deployment.end().clean


def test_plan_waits_for_the_box_and_follows_it(deployment: Deployment) -> None:
    deployment.start()
    toy(deployment, "boxed", "boxed.example.com", "192.0.2.7", box="red")
    deployment.pass_time()
    assert deployment.sets() == {}  # the box does not exist
    deployment.apply("red", Box(120), namespace="", resource=BOXES)
    deployment.pass_time(3.0)
    assert with_ttl(deployment) == {"boxed.example.com A": (120, ("192.0.2.7",))}
    deployment.apply("red", Box(240), namespace="", resource=BOXES)
    deployment.pass_time(3.0)
    assert with_ttl(deployment) == {"boxed.example.com A": (240, ("192.0.2.7",))}
    deployment.cluster.delete(BOXES, "red", "")
    deployment.pass_time(3.0)
    assert deployment.sets() == {}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_i1_session_that_dies_at_any_write_leaves_the_readers_of_a_box_to_the_next(*, after: bool) -> None:
    died = set()
    for number in range(6):
        for kind in WRITES:
            made = Deployment(sources=("service", "toy"))
            try:
                made.apply("red", Box(120), namespace="", resource=BOXES)
                for each in range(3):
                    toy(made, f"t{each}", f"t{each}.example.com", f"192.0.2.{each}", box="red", port=80)
                made.start()
                made.at(kind, made.kill, after=after, skip=number)
                made.apply("red", Box(240), namespace="", resource=BOXES)
                made.cluster.delete(TOYS, "t2")
                made.pass_time(4.0)
                if made.running is not None and made.running.alive:
                    continue
                died.add(kind)
                made.spare()
                made.pass_time(20.0)
                made.start()
                made.pass_time(4.0)
                want = {"t0.example.com A": (240, ("192.0.2.0",)), "t1.example.com A": (240, ("192.0.2.1",))}
                assert with_ttl(made) == want, (kind, number)
                assert made.upstreams() == {
                    "prod/shop/Toy:t0/80/TCP": ["192.0.2.0:80"],
                    "prod/shop/Toy:t1/80/TCP": ["192.0.2.1:80"],
                }
                assert made.end().clean
                assert not [key for key in made.items(STATE) if "#changed#" in str(key.sort)]
            finally:
                made.close()
    assert died >= {SENT}


def test_i2_paused_master_with_toys_writes_nothing_when_it_wakes_up(deployment: Deployment) -> None:
    deployment.apply("red", Box(120), namespace="", resource=BOXES)
    toy(deployment, "a", "a.example.com", "192.0.2.1", box="red")
    deployment.start()
    deployment.at(SENT, deployment.lose_lease)
    deployment.apply("red", Box(240), namespace="", resource=BOXES)
    deployment.pass_time(30.0)
    assert deployment.over().ended == "ERR_NOT_MASTER"


def test_configuration_and_unit_with_another_source_have_a_form_that_older_releases_leave_alone(
    deployment: Deployment,
) -> None:
    assert deployment.items(CONTROL)[Key(CONTROL, "clusters", "prod")]["v"] == 7
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    assert deployment.items(CONTROL)[Key(CONTROL, "inflight#0", ZONE_ID)]["v"] == 1
    toy(deployment, "web", "toy.example.com", "192.0.2.7")
    deployment.pass_time()
    assert deployment.items(CONTROL)[Key(CONTROL, "inflight#0", ZONE_ID)]["v"] == 7
    assert deployment.end().clean
    # A clean end clears what was under way.
    assert deployment.items(CONTROL)[Key(CONTROL, "inflight#0", ZONE_ID)]["v"] == 1


def test_cluster_of_services_alone_is_stored_as_before() -> None:
    made = Deployment()
    assert made.items(CONTROL)[Key(CONTROL, "clusters", "prod")]["v"] == 1
    assert "sources" not in str(made.items(CONTROL)[Key(CONTROL, "clusters", "prod")]["document"])
    made.close()


def test_key_says_its_kind_unless_it_is_a_service() -> None:
    for text, kind, name in (("prod/shop/web", "Service", "web"), ("prod/shop/Toy:web", "Toy", "web")):
        key = ObjectKey.parse(text)
        assert (key.kind, key.name, str(key)) == (kind, name, text)


def test_toy_and_service_that_want_one_name_wait_for_each_other(deployment: Deployment) -> None:
    www = {"external-dns.alpha.kubernetes.io/hostname": "www.example.com"}
    deployment.apply("web", a_service(cluster_ips=("10.0.0.1",), annotations=www))
    deployment.start()
    toy(deployment, "web", "www.example.com", "192.0.2.7")
    deployment.pass_time()
    assert deployment.sets()["www.example.com A"] == ("10.0.0.1",)
    assert deployment.claims()["www.example.com"] == "prod/shop/web"
    deployment.delete("web")
    deployment.pass_time(5.0)
    assert deployment.sets() == {"www.example.com A": ("192.0.2.7",)}
    assert deployment.claims()["www.example.com"] == "prod/shop/Toy:web"
