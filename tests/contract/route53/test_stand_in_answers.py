"""What the stand-in would answer: policies and health. ``zone.answers`` names the sources. Sets are made over the wire."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from harness.fakes.route53 import WireZone
from kubesync_local.standins.route53.zone.answers import Client, HealthCheck, Resolver

WEB: Final = "web.example.com"
EU: Final = Client(("eu-west-1", "us-east-1"), "EU", "SE")
TEXAS: Final = Client(("us-east-1", "eu-west-1"), "NA", "US", "TX")


def made(zone: WireZone, *sets: Mapping[str, Any]) -> None:
    """Make these sets at ``WEB``; ``at`` is the last part of the address, and the set identifier."""
    for number, fields in enumerate(sets):
        held: dict[str, Any] = {"Name": WEB, "Type": "A", "SetIdentifier": f"s{number}", **fields}
        if "AliasTarget" not in fields:
            held |= {"TTL": 30, "ResourceRecords": [{"Value": f"192.0.2.{held.pop('at')}"}]}
        zone.apply({"Action": "CREATE", "ResourceRecordSet": held})


def answers(
    zone: WireZone, dead: str = "", client: Client = EU, *, dead_outside: bool = False, name: str = WEB
) -> list[str]:
    """Every possible answer, as the last parts of its addresses. ``dead``: health checks that are not healthy."""
    checks = {each: HealthCheck(lambda: True) for each in "abcd"}
    for each in dead:
        checks[each].healthy = False
    resolver = Resolver(list(zone.r53.records(zone.id).values()), checks, lambda _name: not dead_outside)
    found = resolver.possible(f"{name}.", "A", client)
    return ["+".join(sorted(value.rpartition("192.0.2.")[2] for value in each)) for each in found]


@pytest.mark.parametrize(
    ("dead", "expected"),
    [("", ["1", "2"]), ("a", ["2"]), ("b", ["1"]), ("ab", ["3"]), ("abc", ["1", "2"])],
)
def test_weighted(zone: WireZone, dead: str, expected: list[str]) -> None:
    made(
        zone,
        {"at": 1, "Weight": 9, "HealthCheckId": "a"},
        {"at": 2, "Weight": 1, "HealthCheckId": "b"},
        {"at": 3, "Weight": 0, "HealthCheckId": "c"},
    )
    assert answers(zone, dead) == expected


def test_weights_that_are_all_zero_and_sets_without_health_checks(zone: WireZone) -> None:
    made(zone, {"at": 1, "Weight": 0, "HealthCheckId": "a"}, {"at": 2, "Weight": 0})
    assert answers(zone) == ["1", "2"]
    assert answers(zone, "a") == ["2"]


@pytest.mark.parametrize(("dead", "expected"), [("", ["1"]), ("a", ["2"]), ("b", ["1"]), ("ab", ["1"])])
def test_failover(zone: WireZone, dead: str, expected: list[str]) -> None:
    made(
        zone,
        {"at": 2, "Failover": "SECONDARY", "HealthCheckId": "b"},
        {"at": 1, "Failover": "PRIMARY", "HealthCheckId": "a"},
    )
    assert answers(zone, dead) == expected


@pytest.mark.parametrize(("dead", "eu", "us"), [("", "1", "2"), ("a", "2", "2"), ("b", "1", "1"), ("ab", "1", "2")])
def test_latency(zone: WireZone, dead: str, eu: str, us: str) -> None:
    made(
        zone,
        {"at": 1, "Region": "eu-west-1", "HealthCheckId": "a"},
        {"at": 2, "Region": "us-east-1", "HealthCheckId": "b"},
    )
    assert (answers(zone, dead, EU), answers(zone, dead, TEXAS)) == ([eu], [us])


@pytest.mark.parametrize(("dead", "expected"), [("", ["1+2+3"]), ("a", ["2+3"]), ("ab", ["3"]), ("abc", ["1+2+3"])])
def test_multivalue(zone: WireZone, dead: str, expected: list[str]) -> None:
    made(
        zone,
        *({"at": at, "MultiValueAnswer": True, "HealthCheckId": check} for at, check in ((1, "a"), (2, "b"), (3, "c"))),
    )
    assert answers(zone, dead) == expected


def test_multivalue_answers_with_at_most_eight(zone: WireZone) -> None:
    made(zone, *({"at": at, "MultiValueAnswer": True} for at in range(1, 11)))
    assert [len(each.split("+")) for each in answers(zone)] == [8]


def test_geolocation(zone: WireZone) -> None:
    made(
        zone,
        {"at": 1, "GeoLocation": {"CountryCode": "US", "SubdivisionCode": "TX"}, "HealthCheckId": "a"},
        {"at": 2, "GeoLocation": {"CountryCode": "US"}},
        {"at": 3, "GeoLocation": {"ContinentCode": "EU"}},
    )
    assert (answers(zone, client=TEXAS), answers(zone, "a", TEXAS), answers(zone)) == (["1"], ["2"], ["3"])
    assert answers(zone, client=Client((), "AS", "JP")) == []
    made(zone, {"at": 4, "GeoLocation": {"CountryCode": "*"}, "SetIdentifier": "default"})
    assert answers(zone, client=Client((), "AS", "JP")) == ["4"]


def test_alias_evaluates_its_target_outside_and_inside_the_zone(zone: WireZone) -> None:
    lb = {"HostedZoneId": "Z32O12XQLNTSW2", "DNSName": "lb.eu-west-1.elb.amazonaws.com.", "EvaluateTargetHealth": True}
    made(zone, {"Failover": "PRIMARY", "AliasTarget": lb}, {"at": 2, "Failover": "SECONDARY"})
    assert answers(zone) == ["lb.eu-west-1.elb.amazonaws.com."]
    assert answers(zone, dead_outside=True) == ["2"]
    for name, evaluates in (("front", True), ("blind", False)):
        inside = {"HostedZoneId": zone.id, "DNSName": f"{WEB}.", "EvaluateTargetHealth": evaluates}
        held = {"Name": f"{name}.example.com", "Type": "A", "SetIdentifier": "x", "Weight": 1, "AliasTarget": inside}
        zone.apply({"Action": "CREATE", "ResourceRecordSet": held})
    assert answers(zone, name="front.example.com", dead_outside=True) == ["2"]
    assert answers(zone, name="nothing.example.com") == []


def test_health_check_changes_its_mind_after_three_probes_in_a_row() -> None:
    alive = [True]
    check = HealthCheck(lambda: alive[0], interval_seconds=10.0)
    seen = []
    for now in range(120):
        alive[0] = not 5 <= now < 60
        check.pass_time(float(now))
        seen.append(check.healthy)
    assert (seen.index(False), seen.index(True, 60)) == (30, 80)
