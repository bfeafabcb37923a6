"""What the stand-in refuses of routing policies, asked over the wire with boto3. ``zone.routing`` names the sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from botocore.loaders import Loader

from harness.fakes.route53 import WireZone, a_client
from kubesync_local.standins.route53 import Limits, StrictRoute53
from kubesync_local.standins.route53.zone.routing import REGIONS

if TYPE_CHECKING:
    from mypy_boto3_route53.client import Route53Client

WEB = "web.example.com"
_VALUE = {"TTL": 30, "ResourceRecords": [{"Value": "192.0.2.1"}]}
_LB = {"HostedZoneId": "Z32O12XQLNTSW2", "DNSName": "lb.eu-west-1.elb.amazonaws.com.", "EvaluateTargetHealth": True}
_CDN = {"HostedZoneId": "Z2FDTNDATAQYW2", "DNSName": "d1.cloudfront.net.", "EvaluateTargetHealth": False}


def a_set(identifier: str = "", type_: str = "A", **fields: Any) -> dict[str, Any]:
    """A creation. A set with an alias has neither TTL nor values."""
    held = (
        {}
        if "AliasTarget" in fields
        else _VALUE
        if type_ == "A"
        else {**_VALUE, "ResourceRecords": [{"Value": "a.example.net."}]}
    )
    of_set = {"SetIdentifier": identifier} if identifier else {}
    return {"Action": "CREATE", "ResourceRecordSet": {"Name": WEB, "Type": type_, **held, **of_set, **fields}}


@pytest.mark.parametrize(
    "fields",
    [
        {"Weight": 255},
        {"Region": "eusc-de-east-1"},
        {"Failover": "SECONDARY"},
        {"Failover": "PRIMARY", "HealthCheckId": "abc"},
        {"Failover": "PRIMARY", "AliasTarget": _LB},
        {"MultiValueAnswer": True},
        {"GeoLocation": {"ContinentCode": "EU"}},
        {"GeoLocation": {"CountryCode": "*"}},
        {"GeoLocation": {"CountryCode": "US", "SubdivisionCode": "CA"}},
        {"GeoProximityLocation": {"AWSRegion": "eu-west-1"}},
        {"GeoProximityLocation": {"Coordinates": {"Latitude": "-90.00", "Longitude": "180"}, "Bias": -99}},
        {"GeoProximityLocation": {"LocalZoneGroup": "us-east-1-bue-1", "Bias": 99}},
        {"Weight": 1, "AliasTarget": _CDN},
    ],
)
def test_set_of_each_policy_is_accepted(zone: WireZone, fields: dict[str, Any]) -> None:
    zone.apply(a_set("blue", **fields))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"Weight": 256}, "ResourceRecordSetWeight"),
        ({"Region": "eu-west-9"}, "ResourceRecordSetRegion"),
        ({"Failover": "TERTIARY"}, "ResourceRecordSetFailover"),
        ({"Weight": 1, "Region": "eu-west-1"}, "Expected exactly one of Weight"),
        ({"HealthCheckId": "h" * 65, "Weight": 1}, "maxLength '64'"),
        ({"GeoLocation": {"ContinentCode": "XX"}}, "GeoLocationContinentCode"),
        ({"GeoLocation": {"CountryCode": "eu"}}, "GeoLocationCountryCode"),
        ({"GeoLocation": {"ContinentCode": "EU", "CountryCode": "FR"}}, "goes with no other code"),
        ({"GeoLocation": {"CountryCode": "FR", "SubdivisionCode": "CA"}}, "the country US only"),
        ({"GeoLocation": {"CountryCode": "US", "SubdivisionCode": "XX"}}, "is not supported"),
        ({"GeoProximityLocation": {"Bias": 1}}, "exactly one of AWSRegion"),
        ({"GeoProximityLocation": {"AWSRegion": "eu-west-1", "LocalZoneGroup": "x"}}, "exactly one of AWSRegion"),
        ({"GeoProximityLocation": {"AWSRegion": "eu-west-1", "Bias": 100}}, "type 'Bias'"),
        ({"GeoProximityLocation": {"Coordinates": {"Latitude": "91", "Longitude": "0"}}}, "type 'Latitude'"),
        ({"GeoProximityLocation": {"Coordinates": {"Latitude": "1.234", "Longitude": "0"}}}, "type 'Latitude'"),
        ({"GeoProximityLocation": {"Coordinates": {"Latitude": "1", "Longitude": "181"}}}, "type 'Longitude'"),
    ],
)
def test_set_of_another_form_is_invalid_input(
    boto: Route53Client, zone: WireZone, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(ClientError) as refused:
        boto.change_resource_record_sets(HostedZoneId=zone.id, ChangeBatch={"Changes": [a_set("blue", **fields)]})  # type: ignore[list-item]
    assert refused.value.response["Error"]["Code"] == "InvalidInput"
    assert says in refused.value.response["Error"]["Message"]


def test_policy_needs_an_identifier(boto: Route53Client, zone: WireZone) -> None:
    with pytest.raises(ClientError, match="Missing field 'SetIdentifier'"):
        boto.change_resource_record_sets(HostedZoneId=zone.id, ChangeBatch={"Changes": [a_set(Failover="SECONDARY")]})  # type: ignore[list-item]


def test_regions_are_those_of_the_api() -> None:
    shapes = Loader().load_service_model("route53", "service-2")["shapes"]
    assert sorted(shapes["ResourceRecordSetRegion"]["enum"]) == sorted(REGIONS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (a_set("blue", MultiValueAnswer=True, AliasTarget=_LB), "multivalue answer alias records are not supported"),
        (a_set("blue", "CNAME", MultiValueAnswer=True), "a multivalue answer set cannot be of type CNAME"),
        (a_set("blue", "NS", MultiValueAnswer=True), "a multivalue answer set cannot be of type NS"),
        (
            a_set("blue", Failover="PRIMARY", AliasTarget=_LB | {"EvaluateTargetHealth": False}),
            "a failover alias must evaluate the health of its target",
        ),
        (
            a_set("blue", Failover="SECONDARY", AliasTarget=_LB | {"EvaluateTargetHealth": False}),
            "a failover alias must evaluate the health of its target",
        ),
        (a_set("blue", Failover="PRIMARY"), "a primary failover set must have a health check"),
        (
            a_set(AliasTarget=_CDN | {"EvaluateTargetHealth": True}),
            "an alias to a CloudFront distribution cannot evaluate the health of its target",
        ),
    ],
)
def test_set_that_no_name_may_have_is_refused(zone: WireZone, change: dict[str, Any], says: str) -> None:
    [message] = zone.messages(change)
    assert message.endswith(f"cannot be created as {says}")


_REGION, _OTHER = {"Region": "eu-west-1"}, {"Region": "eu-central-1"}


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (_REGION, _OTHER, ""),
        (_REGION, _REGION, "a latency set of the same value exists with the same name and type."),
        ({"Failover": "SECONDARY"}, {"Failover": "SECONDARY"}, "a failover set of the same value exists"),
        ({"Failover": "SECONDARY"}, {"Failover": "PRIMARY", "HealthCheckId": "abc"}, ""),
        (
            {"GeoLocation": {"CountryCode": "FR"}},
            {"GeoLocation": {"CountryCode": "FR"}},
            "a geolocation set of the same",
        ),
        ({"GeoLocation": {"CountryCode": "FR"}}, {"GeoLocation": {"ContinentCode": "EU"}}, ""),
        ({"Weight": 1}, {"Weight": 1}, ""),
        ({"MultiValueAnswer": True}, {"MultiValueAnswer": True}, ""),
        (
            {"GeoProximityLocation": {"AWSRegion": "eu-west-1"}},
            {"GeoProximityLocation": {"AWSRegion": "eu-west-1"}},
            "",
        ),
        ({"Weight": 1}, _REGION, "a non-latency set exists with the same name and type."),
        (_REGION, {"Weight": 1}, "a non-weighted set exists with the same name and type."),
        ({"Failover": "SECONDARY"}, _REGION, "a non-latency set exists with the same name and type."),
        (_REGION, {"MultiValueAnswer": True}, "a non-multivalue answer set exists with the same name and type."),
    ],
)
def test_what_may_stand_beside_what(zone: WireZone, first: dict[str, Any], second: dict[str, Any], says: str) -> None:
    zone.apply(a_set("blue", **first))
    if says:
        [message] = zone.messages(a_set("green", **second))
        assert f"SetIdentifier green cannot be created as {says}" in message
    else:
        zone.apply(a_set("green", **second))


def test_sets_of_other_types_do_not_matter(zone: WireZone) -> None:
    zone.apply(a_set("blue", **_REGION))
    zone.apply({"Action": "CREATE", "ResourceRecordSet": {
        "Name": WEB, "Type": "AAAA", "SetIdentifier": "blue", "Weight": 1, "TTL": 30,
        "ResourceRecords": [{"Value": "2001:db8::1"}],
    }})  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "most", "word"),
    [({"Weight": 1}, 100, "weighted"), ({"GeoProximityLocation": {"AWSRegion": "eu-west-1"}}, 30, "geoproximity")],
)
def test_sets_of_a_name_have_a_limit(zone: WireZone, fields: dict[str, Any], most: int, word: str) -> None:
    zone.apply(*(a_set(f"s{number}", **fields) for number in range(most)))
    [message] = zone.messages(a_set("more", **fields))
    assert message.endswith(f"{most} {word} sets exist with the same name and type.")
    old = {**a_set("s0", **fields), "Action": "DELETE"}
    zone.apply(old, a_set("more", **fields))


def test_swap_of_roles_is_one_batch(zone: WireZone) -> None:
    primary, secondary = {"Failover": "PRIMARY", "HealthCheckId": "abc"}, {"Failover": "SECONDARY"}
    zone.apply(a_set("blue", **primary), a_set("green", **secondary))
    assert zone.messages({**a_set("blue", **primary), "Action": "DELETE"}, a_set("blue", **secondary)) != ()
    gone = [{**a_set("blue", **primary), "Action": "DELETE"}, {**a_set("green", **secondary), "Action": "DELETE"}]
    zone.apply(*gone, a_set("blue", **secondary), a_set("green", **primary))


@pytest.fixture
def strict() -> Iterator[tuple[Route53Client, str]]:
    limits = Limits(one_value=True, one_ttl=True, health_checks=frozenset({"known"}))
    with StrictRoute53(limits=limits) as server:
        yield a_client(server.url), server.create_zone("example.com")


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ([a_set("blue", Weight=1, HealthCheckId="known")], "", ""),
        ([a_set("blue", Weight=1, HealthCheckId="other")], "NoSuchHealthCheck", "A health check with id other does not exist."),
        ([a_set("blue", Weight=1, ResourceRecords=[{"Value": "192.0.2.1"}, {"Value": "192.0.2.2"}])],
         "InvalidChangeBatch", "a weighted set must have exactly one value"),
        ([a_set("blue", Weight=1), a_set("green", Weight=1, TTL=60)], "InvalidChangeBatch", "have another TTL"),
    ],
)  # fmt: skip
def test_switches_add_rules(
    strict: tuple[Route53Client, str], changes: list[dict[str, Any]], code: str, says: str
) -> None:
    boto, zone_id = strict
    if not code:
        boto.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": changes})  # type: ignore[typeddict-item]
        return
    with pytest.raises(ClientError) as refused:
        boto.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": changes})  # type: ignore[typeddict-item]
    assert refused.value.response["Error"]["Code"] == code
    assert says in refused.value.response["Error"]["Message"]


def test_cloudfront_alias_is_refused_in_a_private_zone(r53: StrictRoute53, boto: Route53Client) -> None:
    answer = boto.create_hosted_zone(
        Name="inside.example.com", CallerReference="private", VPC={"VPCRegion": "eu-west-1", "VPCId": "vpc-1"}
    )
    change = a_set(AliasTarget=_CDN)
    change["ResourceRecordSet"]["Name"] = "web.inside.example.com"
    with pytest.raises(ClientError, match="cannot be in a private zone"):
        boto.change_resource_record_sets(HostedZoneId=answer["HostedZone"]["Id"], ChangeBatch={"Changes": [change]})  # type: ignore[list-item]
