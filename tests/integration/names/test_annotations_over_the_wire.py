"""Annotations of external-dns on real objects: from the API server's JSON to the record sets of the strict stand-in, and to what is reported.

The rules themselves are in ``tests/dns/cases.md``. Here one session reads all objects, and Route 53's own rules decide what stands.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pytest

from harness.dns_cases.notation import line_of
from harness.stack import Stack, a_stack
from kubesync.aws.tables.state import StateTable
from kubesync_local.standins.apiserver import ServerOptions
from kubesync_local.standins.route53.zone.model import Limits

PREFIX: Final = "external-dns.alpha.kubernetes.io/"
LB: Final = "web-0123.elb.eu-west-1.amazonaws.com"
OF_LB: Final = f"alias Z2IFOLAFXWLO4F {LB}"
IP: Final = "60 192.0.2.1"
NOT_POSSIBLE: Final = "RoutingNotPossible"


@dataclass(frozen=True)
class Row:
    """An Ingress of a host with these annotations. Sets: type, identifier and policy, and what it holds; codes of what is reported."""

    asks: Mapping[str, str]
    sets: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    host: str = ""  # of the load balancer; empty: it has an address

    @property
    def words(self) -> str:
        return ",".join(f"{name}={text}" for name, text in self.asks.items()) + (" lb" if self.host else "")


def _blue(**asks: str) -> dict[str, str]:
    return {"set-identifier": "blue", **{name.replace("_", "-"): text for name, text in asks.items()}}


def _good(said: str, **asks: str) -> Row:
    return Row(_blue(**asks), (f"A [blue {said}] {IP}",))


def _wrong(**asks: str) -> Row:
    return Row(_blue(**asks), (), (NOT_POSSIBLE,))


ROWS: Final = (
    Row({"set-identifier": "blue"}, (f"A [blue 1] {IP}",)),
    Row({"aws-weight": "5"}, (f"A {IP}",), ("WeightWithoutIdentifier",)),
    _good("0", aws_weight="0"),
    Row(_blue(aws_weight="256"), (f"A [blue 1] {IP}",), ("InvalidWeight",)),
    _good("latency eu-west-1", aws_region="eu-west-1"),
    _wrong(aws_region="eu-west-9"),
    Row({"aws-region": "eu-west-1"}, (), (NOT_POSSIBLE,)),
    _good("failover SECONDARY", aws_failover="SECONDARY"),
    _good("failover PRIMARY, health check known", aws_failover="PRIMARY", aws_health_check_id="known"),
    _wrong(aws_failover="PRIMARY"),
    _wrong(aws_failover="tertiary"),
    _wrong(aws_failover="SECONDARY", aws_region="eu-west-1"),
    _good("multivalue", aws_multi_value_answer="true"),
    _wrong(aws_multi_value_answer="false"),
    _good("geolocation continent EU", aws_geolocation_continent_code="EU"),
    _wrong(aws_geolocation_continent_code="XX"),
    _good("geolocation country SE", aws_geolocation_country_code="SE"),
    _wrong(aws_geolocation_country_code="SWE"),
    _good("geolocation country US subdivision CA", aws_geolocation_country_code="US", aws_geolocation_subdivision_code="CA"),
    _wrong(aws_geolocation_subdivision_code="CA"),
    _wrong(aws_geolocation_country_code="US", aws_geolocation_subdivision_code="XX"),
    _good("geoproximity eu-west-1 bias 0", aws_geoproximity_region="eu-west-1"),
    _good("geoproximity eu-west-1 bias -99", aws_geoproximity_region="eu-west-1", aws_geoproximity_bias="-99"),
    _wrong(aws_geoproximity_region="eu-west-1", aws_geoproximity_bias="100"),
    _wrong(aws_geoproximity_bias="10"),
    _good("geoproximity us-east-1-bue-1 bias 0", aws_geoproximity_local_zone_group="us-east-1-bue-1"),
    _wrong(aws_geoproximity_local_zone_group=""),
    _good("geoproximity 49.22,-74.01 bias 0", aws_geoproximity_coordinates="49.22,-74.01"),
    _wrong(aws_geoproximity_coordinates="49.225,-74.01"),
    _good("latency eu-west-1, health check known", aws_region="eu-west-1", aws_health_check_id="known"),
    Row({"alias": "true"}, (f"A {OF_LB}", f"AAAA {OF_LB}"), host=LB),
    Row({"alias": "A"}, (f"A {OF_LB}",), host=LB),
    Row({"alias": "AAAA"}, (f"AAAA {OF_LB}",), host=LB),
    Row({"alias": "false"}, (f"CNAME 60 {LB}.",), host=LB),
    Row({"alias": "A", "aws-evaluate-target-health": "false"}, (f"A {OF_LB} (health not evaluated)",), host=LB),
    Row({**_blue(alias="A", aws_failover="PRIMARY"), "aws-evaluate-target-health": "false"}, (), (NOT_POSSIBLE,), host=LB),
    Row(_blue(alias="A", aws_failover="PRIMARY"), (f"A [blue failover PRIMARY] {OF_LB}",), host=LB),
    Row({"alias": "A", "target": "d111.cloudfront.net"}, ("A alias Z2FDTNDATAQYW2 d111.cloudfront.net (health not evaluated)",)),
    Row({"alias": "A", "target": "d111.cloudfront.net", "aws-evaluate-target-health": "true"}, (), (NOT_POSSIBLE,)),
    Row({"alias": "A", "target": "web.example.net", "aws-target-hosted-zone": "Z3"}, ("A alias Z3 web.example.net",)),
    Row({"alias": "A", "target": "web.example.net", "aws-target-hosted-zone": "z-3"}, (), ("UnsupportedAnnotation",)),
    Row({"ingress-hostname-source": "annotation-only"}),
    Row({"ingress-hostname-source": "defined-hosts-only"}, (f"A {IP}",)),
    Row({"ingress-hostname-source": "both"}, (), ("InvalidHostnameSource",)),
    Row({"aws-hosted-zone-id": "ZONE"}, (f"A {IP}",)),
    Row({"aws-hosted-zone-id": "Z9"}, (), ("NoZone",)),
    Row({"ttl": "90"}, ("A 90 192.0.2.1",)),
    Row({"ttl": "soon"}, (f"A {IP}",), ("InvalidTtl",)),
    Row({"target": "192.0.2.77"}, ("A 60 192.0.2.77",)),
    Row({"controller": "other"}, (), ("OtherController",)),
)  # fmt: skip


@pytest.fixture(scope="module")
def seen() -> Iterator[Stack]:
    """All rows, each an Ingress of its own host, as one session leaves them."""
    limits = Limits(health_checks=frozenset({"known"}))
    with a_stack(ServerOptions(bootstrap=False), limits=limits) as stack:
        stack.add_cluster(sources=("service", "ingress"))
        cluster = stack.api.cluster
        for number, row in enumerate(ROWS):
            name, asks = f"i{number:02}", {PREFIX + each: text for each, text in row.asks.items()}
            if asks.get(f"{PREFIX}aws-hosted-zone-id") == "ZONE":
                asks[f"{PREFIX}aws-hosted-zone-id"] = stack.zone_id
            cluster.expose_ingress("shop", name, {"rules": [{"host": f"{name}.example.com"}]}, annotations=asks)
            cluster.set_ingress("shop", name, [{"hostname": row.host} if row.host else {"ip": "192.0.2.1"}])
        running = stack.start()
        running.wait_for(lambda: stack.at_rest() and f"i{len(ROWS) - 2:02}.example.com A" in stack.records())
        assert running.end().clean
        yield stack


@pytest.mark.parametrize("number", [pytest.param(n, id=row.words) for n, row in enumerate(ROWS)])
def test_annotation_becomes_record_sets_or_is_reported(seen: Stack, number: int) -> None:
    row, name = ROWS[number], f"i{number:02}.example.com"
    walked = dict(seen.zones.walk(seen.zone_id))
    stands = [
        line_of(key, each, zones=False).removeprefix(f"{name} ") for key, each in walked.items() if key.name == name
    ]
    states = {state.key.name: state for state in StateTable(seen.store).load_all("prod")}
    assert (sorted(stands), sorted({problem.code for problem in states[f"i{number:02}"].problems})) == (
        sorted(row.sets), sorted(row.reported)
    )  # fmt: skip


def test_no_batch_of_these_was_refused(seen: Stack) -> None:
    assert [call.accepted for call in seen.r53.batches()] == [True] * len(seen.r53.batches())
