"""Ingresses beside Services, and alone: whole sessions in the simulation."""

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync.domain.objects import Resource
from kubesync.domain.sources.ingresses import INGRESSES, Ingress
from simulation.writes import RECORD, SENT

HOSTNAME = "external-dns.alpha.kubernetes.io/hostname"
WRITES = (RECORD, "checkpoint alone", "batch announced", SENT, "batch closed")


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment(sources=("service", "ingress"))
    yield made
    made.close()


def ingress(deployment: Deployment, name: str, host: str, *addresses: str, **fields: object) -> None:
    value = Ingress(hosts=(host,), ingress_ips=addresses, **fields)  # type: ignore[arg-type]
    deployment.apply(name, value, resource=INGRESSES)


def test_ingress_and_service_of_one_name_are_two_keys(deployment: Deployment) -> None:
    deployment.start()
    deployment.want("web", "10.0.0.1")
    ingress(deployment, "web", "www.example.com", "192.0.2.1", "2001:db8::1")
    deployment.pass_time()
    both = {"web A": ("10.0.0.1",), "www.example.com A": ("192.0.2.1",), "www.example.com AAAA": ("2001:db8::1",)}
    assert deployment.sets() == both
    assert deployment.claims()["www.example.com"] == "prod/shop/Ingress:web"
    assert not [name for name in deployment.upstreams() if "Ingress" in name]
    deployment.delete("web")
    deployment.pass_time()
    assert deployment.sets() == {name: values for name, values in both.items() if name != "web A"}
    deployment.cluster.delete(INGRESSES, "web")
    deployment.pass_time()
    assert deployment.sets() == {}
    assert deployment.end().clean


def test_host_name_of_a_load_balancer_becomes_a_cname_and_a_change_of_it_one_batch(deployment: Deployment) -> None:
    deployment.start()
    for host in ("lb-1.example.net", "lb-2.example.net"):
        ingress(deployment, "web", "www.example.com", ingress_hostnames=(host,))
        deployment.pass_time()
        assert deployment.sets() == {"www.example.com CNAME": (f"{host}.",)}


def test_ingress_waits_for_the_service_that_has_its_host(deployment: Deployment) -> None:
    deployment.apply("web", a_service(cluster_ips=("10.0.0.1",), annotations={HOSTNAME: "www.example.com"}))
    deployment.start()
    ingress(deployment, "web", "www.example.com", "192.0.2.1")
    deployment.pass_time()
    assert deployment.sets()["www.example.com A"] == ("10.0.0.1",)
    deployment.delete("web")
    deployment.pass_time(5.0)
    assert deployment.sets() == {"www.example.com A": ("192.0.2.1",)}


def test_cluster_of_ingresses_alone_reads_nothing_else() -> None:
    made = Deployment(sources=("ingress",))
    try:
        made.want("web", "10.0.0.1")
        ingress(made, "web", "www.example.com", "192.0.2.1")
        made.start()
        made.pass_time()
        assert made.sets() == {"www.example.com A": ("192.0.2.1",)}
        assert made.items(CONTROL)[Key(CONTROL, "inflight#0", ZONE_ID)]["v"] == 3
        assert made.end().clean
        assert made.items(CONTROL)[Key(CONTROL, "clusters", "prod")]["v"] == 2
    finally:
        made.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_i1_session_that_dies_at_any_write_leaves_the_ingress_to_the_next(*, after: bool) -> None:
    died = set()
    for number in range(4):
        for kind in WRITES:
            made = Deployment(sources=("service", "ingress"))
            try:
                ingress(made, "web", "www.example.com", "192.0.2.1")
                ingress(made, "gone", "gone.example.com", "192.0.2.3")
                made.start()
                made.at(kind, made.kill, after=after, skip=number)
                ingress(made, "web", "www.example.com", "192.0.2.2")
                made.cluster.delete(INGRESSES, "gone")
                made.pass_time(4.0)
                if made.running is not None and made.running.alive:
                    continue
                died.add(kind)
                made.spare()
                made.pass_time(20.0)
                made.start()
                made.pass_time(4.0)
                assert made.sets() == {"www.example.com A": ("192.0.2.2",)}, (kind, number)
                assert made.end().clean
            finally:
                made.close()
    assert died >= {SENT}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_i1_source_that_is_taken_out_takes_its_record_sets_wherever_a_session_dies(*, after: bool) -> None:
    died = set()
    for number in range(3):
        for kind in WRITES:
            made = Deployment(sources=("service", "ingress"))
            try:
                made.want("web", "10.0.0.1")
                for each in range(3):
                    ingress(made, f"i{each}", f"i{each}.example.com", "192.0.2.1")
                made.start()
                made.pass_time(4.0)
                assert len(made.sets()) == 4
                made.at(kind, made.kill, after=after, skip=number)
                made.world.configure("prod", sources=("service",))
                made.pass_time(20.0)
                if made.running is None or not made.running.alive:
                    died.add(kind)
                    made.spare()
                    made.start()
                    made.pass_time(20.0)
                assert made.sets() == {"web A": ("10.0.0.1",)}, (kind, number)
                assert not [name for name, owner in made.claims().items() if "Ingress" in owner]
                assert made.end().clean
            finally:
                made.close()
    assert died >= {RECORD, SENT}


def test_service_that_waits_for_an_ingress_gets_the_name_when_the_source_is_taken_out(deployment: Deployment) -> None:
    ingress(deployment, "web", "www.example.com", "192.0.2.1")
    deployment.start()
    deployment.pass_time()
    deployment.apply("web", a_service(cluster_ips=("10.0.0.1",), annotations={HOSTNAME: "www.example.com"}))
    deployment.pass_time()
    assert deployment.sets()["www.example.com A"] == ("192.0.2.1",)
    deployment.world.configure("prod", sources=("service",))
    deployment.pass_time(20.0)
    assert deployment.sets()["www.example.com A"] == ("10.0.0.1",)


def test_i5_list_of_ingresses_of_another_cluster_deletes_nothing() -> None:
    made = Deployment(sources=("ingress",))
    try:
        made.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
        ingress(made, "web", "www.example.com", "192.0.2.1")
        made.run_session()
        assert made.sets() == {"www.example.com A": ("192.0.2.1",)}
        made.cluster.delete(Resource.SERVICES, "kubernetes", "default")
        made.cluster.delete(INGRESSES, "web")
        made.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")  # with another uid
        made.cluster.compact()
        made.start()
        made.pass_time(20.0)
        assert made.sets() == {"www.example.com A": ("192.0.2.1",)}
        made.resync("prod", force=True)
        made.pass_time(5.0)
        assert made.sets() == {}
    finally:
        made.close()


def test_i5_list_of_ingresses_of_the_same_cluster_is_believed() -> None:
    made = Deployment(sources=("ingress",))
    try:
        made.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
        ingress(made, "web", "www.example.com", "192.0.2.1")
        made.run_session()
        made.cluster.delete(INGRESSES, "web")
        made.cluster.compact()
        made.start()
        made.pass_time(20.0)
        assert made.sets() == {}
    finally:
        made.close()


def many(deployment: Deployment) -> dict[str, tuple[str, ...]]:
    for number in range(12):
        ingress(deployment, f"i{number:02}", f"i{number:02}.example.com", "192.0.2.1")
    deployment.start()
    deployment.pass_time(5.0)
    assert len(deployment.sets()) == 12
    return dict(deployment.sets())


def test_i5_source_that_nobody_confirmed_to_take_out_keeps_its_record_sets_until_forced(deployment: Deployment) -> None:
    stands = many(deployment)
    deployment.world.configure("prod", sources=("service",), allowed_deletions=0)
    deployment.pass_time(20.0)
    assert deployment.sets() == stands
    deployment.resync("prod", force=True)
    deployment.pass_time(10.0)
    assert deployment.sets() == {}
    assert not [name for name, owner in deployment.claims().items() if "Ingress" in owner]


def test_i5_source_that_comes_back_finds_its_record_sets_as_they_were(deployment: Deployment) -> None:
    stands = many(deployment)
    sent = len(deployment.calls(SENT))
    deployment.world.configure("prod", sources=("service",), allowed_deletions=0)
    deployment.pass_time(20.0)
    deployment.world.configure("prod", sources=("service", "ingress"))
    deployment.pass_time(20.0)
    assert deployment.sets() == stands
    assert len(deployment.calls(SENT)) == sent
    ingress(deployment, "i00", "i00.example.com", "192.0.2.99")
    deployment.cluster.delete(INGRESSES, "i01")
    deployment.pass_time(5.0)
    changed = {**stands, "i00.example.com A": ("192.0.2.99",)}
    assert deployment.sets() == {name: values for name, values in changed.items() if name != "i01.example.com A"}
