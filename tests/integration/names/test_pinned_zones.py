"""``aws-hosted-zone-id``: names of an object in one hosted zone of its cluster alone, and in the others they are free."""

from collections.abc import Iterator
from typing import Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.control.clusters import ZoneReference

WWW: Final = "www.example.com"
PRIVATE: Final = "Z2"
SUB: Final = "Z3"


class Zones(Deployment):
    """A public and a private zone ``example.com``, and a public zone ``sub.example.com``."""

    def __init__(self) -> None:
        names = {ZONE_ID: "example.com", PRIVATE: "example.com", SUB: "sub.example.com"}
        zones = tuple(ZoneReference(id=each, name=name, private=each == PRIVATE) for each, name in names.items())
        super().__init__(domain_filter=("example.com",), zones=zones, template="none")
        self.route53.create(PRIVATE, "example.com")
        self.route53.create(SUB, "sub.example.com")
        self.start()

    def ask(self, name: str, address: str, pin: str = "", at: str = WWW, identifier: str = "") -> None:
        asked = {"hostname": at, "aws-hosted-zone-id": pin, "set-identifier": identifier}
        asked = {key: text for key, text in asked.items() if text}
        ips = (address,) if address else ()
        self.apply(name, a_service("LoadBalancer", ports=(), ingress_ips=ips, annotations=asked))
        self.pass_time(6.0)

    def stands(self, name: str = WWW) -> dict[str, str]:
        """By zone, what stands at a name."""
        return {
            zone: ", ".join(f"{key.identifier} {each.values[0]}".strip() for key, each in sets)
            for zone in (ZONE_ID, PRIVATE, SUB)
            if (sets := [(k, s) for k, s in self.route53.records(zone).items() if (k.name, k.type) == (name, "A")])
        }


@pytest.fixture
def deployment() -> Iterator[Zones]:
    made = Zones()
    yield made
    made.close()


@pytest.mark.parametrize("identifier", ["", "a"])
def test_two_services_share_a_name_by_zone_though_the_first_had_both(deployment: Zones, identifier: str) -> None:
    deployment.ask("a", "192.0.2.1", identifier=identifier)
    deployment.ask("b", "10.0.0.2", pin=PRIVATE)
    mine = f"{identifier} 192.0.2.1".strip()
    assert deployment.stands() == {ZONE_ID: mine, PRIVATE: mine}
    deployment.ask("a", "192.0.2.1", pin=ZONE_ID, identifier=identifier)
    assert deployment.stands() == {ZONE_ID: mine, PRIVATE: "10.0.0.2"}
    assert [deployment.state(name).problems for name in "ab"] == [(), ()]
    assert (deployment.refusals, deployment.waiters(), deployment.heirs()) == ([], [], [])


def test_zone_that_the_cluster_does_not_have_brings_no_name_back_that_an_earlier_pin_has_left(
    deployment: Zones,
) -> None:
    deployment.ask("a", "192.0.2.1")
    deployment.ask("a", "192.0.2.1", pin=PRIVATE)
    assert deployment.stands() == {PRIVATE: "192.0.2.1"}
    deployment.ask("a", "192.0.2.1", pin="Z9")
    assert deployment.stands() == {PRIVATE: "192.0.2.1"}, "what is held stays, and nothing comes"
    assert [(problem.code, problem.subject) for problem in deployment.state("a").problems] == [("NoZone", "Z9")]


def test_pinned_name_is_kept_while_there_is_no_address(deployment: Zones) -> None:
    """Also in a zone that would not be its own: the parent's."""
    below = f"a.{WWW.replace('www', 'sub')}"
    deployment.ask("a", "192.0.2.1", pin=ZONE_ID, at=below)
    deployment.ask("a", "", pin=ZONE_ID, at=below)
    deployment.ask("b", "192.0.2.2", pin=ZONE_ID, at=below)
    assert deployment.stands(below) == {}
    assert [problem.code for problem in deployment.state("b").problems] == ["NameTaken"]
    deployment.ask("a", "192.0.2.1", pin=ZONE_ID, at=below)
    assert deployment.stands(below) == {ZONE_ID: "192.0.2.1"}
