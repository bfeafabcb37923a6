"""Objects of one namespace share a name by types (ADR 0062): other types than addresses, the update, and sessions that die."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.deployment import ZONE_ID
from harness.dns_cases.passing import NAME, PassingDeployment
from harness.seen.builders import a_service
from kubesync.aws.tables.claims import claim_key
from kubesync.domain.objects import Service
from kubesync.domain.state import Name
from simulation.writes import RECORD, SENT
from toy.rules import TOYS, Toy

PLACE = claim_key(Name(ZONE_ID, NAME))
FOUR, SIX = "192.0.2.1", "2001:db8::2"
OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.fixture
def deployment() -> Iterator[PassingDeployment]:
    made = PassingDeployment(ttl=30, sources=("service", "ingress", "toy"))
    made.start()
    yield made
    made.close()


def balancer(*addresses: str, created: str = OLD, **annotations: str) -> Service:
    asks = {"hostname": NAME, **annotations}
    return a_service(
        type="LoadBalancer", cluster_ips=(), ports=(), ingress_ips=addresses, annotations=asks, created_at=created
    )


def both(deployment: PassingDeployment, *, six: tuple[str, ...] = (SIX,)) -> None:
    deployment.put("a", balancer(FOUR))
    deployment.pass_time(3.0)
    deployment.put("b", balancer(*six, created=YOUNG))
    deployment.pass_time(3.0)


def test_text_and_mail_of_one_namespace_stand_beside_addresses_of_another_object(deployment: PassingDeployment) -> None:
    deployment.put("a", balancer(FOUR))
    deployment.pass_time(3.0)
    for name, kind, value in (("t", "TXT", '"hello"'), ("m", "MX", "10 mail.example.net.")):
        deployment.cluster.apply(name, Toy(NAME, (), other=((kind, value),), created_at=YOUNG), resource=TOYS)
        deployment.pass_time(3.0)
    assert deployment.answer == 'A 192.0.2.1 / MX 10 mail.example.net. / TXT "hello"'
    item = deployment.items("state")[PLACE]
    assert item["types"] == {"MX": "prod/shop/Toy:m", "TXT": "prod/shop/Toy:t"}
    assert (item["owner"], item["v"]) == ("prod/shop/a", 5)
    deployment.put("a", None)
    deployment.pass_time(9.0)
    assert deployment.answer == 'MX 10 mail.example.net. / TXT "hello"'
    assert deployment.items("state")[PLACE]["owner"] == "prod/shop/Toy:m"


def test_i9_mail_of_another_namespace_waits_for_the_name(deployment: PassingDeployment) -> None:
    deployment.put("a", balancer(FOUR))
    deployment.pass_time(3.0)
    mail = Toy(NAME, (), other=(("MX", "10 mail.example.net."),), created_at=YOUNG)
    deployment.cluster.apply("m", mail, namespace="web", resource=TOYS)
    deployment.pass_time(3.0)
    assert deployment.answer == "A 192.0.2.1"
    assert deployment.reported(["web/Toy:m"]) == ["prod/web/Toy:m: NameTaken www.example.com in Z1"]


def test_name_of_one_owner_has_the_claim_that_it_always_had(deployment: PassingDeployment) -> None:
    deployment.put("a", balancer(FOUR, "2001:db8::1"))
    deployment.pass_time(3.0)
    assert {k: v for k, v in deployment.items("state")[PLACE].items() if k not in ("pk", "sk")} == {
        "v": 1, "owner": "prod/shop/a", "version": 1, "waiting": 0,
    }  # fmt: skip
    both(deployment)
    deployment.put("b", None)
    deployment.pass_time(9.0)
    item = deployment.items("state")[PLACE]
    assert (item["v"], "types" in item) == (1, False), "the types are split no more"


def test_i5_who_shares_a_name_has_a_form_that_an_older_release_leaves_alone(deployment: PassingDeployment) -> None:
    both(deployment)
    heads = {
        str(key.sort): item["v"] for key, item in deployment.items("state").items() if str(key.sort).startswith("key#")
    }
    assert heads == {"key#shop/a": 1, "key#shop/b": 5}
    deployment.put("a", None)
    deployment.pass_time(9.0)
    heads = {
        str(key.sort): item["v"] for key, item in deployment.items("state").items() if str(key.sort).startswith("key#")
    }
    assert heads["key#shop/b"] == 1, "it has the name alone"


def test_who_waited_before_the_update_waits_until_something_about_it_changes(deployment: PassingDeployment) -> None:
    """An older release has it wait for all of the name. No list and no full resync publishes it, an event does."""
    both(deployment, six=("192.0.2.2",))
    deployment.end()
    ((part_id, part),) = deployment.state("b").parts.items()
    newer = balancer("192.0.2.2", SIX, created=YOUNG)
    deployment.cluster.apply("b", newer)
    seen = deployment.cluster.live[part_id.resource, "shop", "b"]
    deployment.rewrite("b", parts={part_id: replace(part, resource_version=seen.resource_version, value=newer)})
    deployment.start()
    deployment.resync()
    deployment.pass_time(9.0)
    assert deployment.answer == "A 192.0.2.1"
    deployment.put("b", balancer("192.0.2.3", SIX, created=YOUNG))
    deployment.pass_time(3.0)
    assert deployment.answer == f"A 192.0.2.1 / AAAA {SIX}"


def test_type_that_is_free_goes_to_who_wants_it_however_many_others_stand_in_line_before(
    deployment: PassingDeployment,
) -> None:
    deployment.put("a", balancer(FOUR, "2001:db8::1"))
    deployment.pass_time(3.0)
    for number in range(22):
        deployment.put(f"four-{number:02}", balancer(f"192.0.2.{100 + number}", created=YOUNG))
    deployment.put("six", balancer(SIX, created="2026-01-03T00:00:00Z"))
    deployment.pass_time(6.0)
    assert deployment.answer == "A 192.0.2.1 / AAAA 2001:db8::1"
    deployment.put("a", balancer(FOUR))
    deployment.pass_time(6.0)
    assert deployment.answer == f"A 192.0.2.1 / AAAA {SIX}"


def test_type_that_passes_on_has_an_answer_while_the_next_one_is_planned(deployment: PassingDeployment) -> None:
    deployment.put("a", balancer(FOUR, "2001:db8::1"))
    deployment.pass_time(3.0)
    deployment.put("b", balancer(SIX, created=YOUNG))
    deployment.pass_time(3.0)
    del deployment.answers[:-1]
    deployment.at(RECORD, lambda: deployment.hold(2.0), skip=1)  # that of ``b``
    deployment.put("a", balancer(FOUR))
    deployment.pass_time(9.0)
    assert deployment.answers == ["A 192.0.2.1 / AAAA 2001:db8::1", f"A 192.0.2.1 / AAAA {SIX}"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("write", [RECORD, SENT, "batch announced", "batch closed"])
def test_i1_session_that_dies_at_any_write_leaves_each_type_with_one_owner(write: str, *, after: bool) -> None:
    died = 0
    for number in range(4):
        deployment = PassingDeployment(ttl=30)
        deployment.start()
        deployment.put("a", balancer(FOUR, "2001:db8::1"))
        deployment.pass_time(3.0)
        deployment.put("b", balancer("192.0.2.2", SIX, created=YOUNG))
        deployment.pass_time(3.0)
        deployment.at(write, deployment.kill, after=after, skip=number)
        deployment.put("a", balancer(FOUR))
        deployment.pass_time(9.0)
        deployment.spare()
        if deployment.running is None or not deployment.running.alive:
            died += 1
            deployment.pass_time(20.0)
            deployment.start()
            deployment.pass_time(9.0)
        assert deployment.answer == f"A 192.0.2.1 / AAAA {SIX}"
        deployment.put("a", None)
        deployment.pass_time(9.0)
        assert deployment.answer == f"A 192.0.2.2 / AAAA {SIX}"
        assert (deployment.open(), deployment.heirs()) == ({}, [])
        deployment.close()
    assert died
