"""What the adapter does beyond the contract: changes once, reads again, forms that are not kubesync's own."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.session import Session as BotocoreSession

from harness.fakes.manual_clock import ManualClock
from harness.fakes.route53 import a_change, a_client, a_set, zone_client
from harness.waiting import wait_until
from kubesync.aws.route53.client import Route53ZoneClient, build_route53_client
from kubesync.aws.route53.rate import Buckets, TokenBucket
from kubesync.aws.route53.zones import BatchChange
from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import (
    Failover,
    Geolocation,
    Geoproximity,
    Latency,
    Multivalue,
    Routing,
    Weighted,
)
from kubesync.domain.errors import (
    BatchRefusedError,
    ZoneError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
    ZoneUnavailableError,
)
from kubesync_local.standins.route53 import ANY_OPERATION, CHANGE, StrictRoute53

if TYPE_CHECKING:
    from mypy_boto3_route53.client import Route53Client

_LIST = "ListResourceRecordSets"
_A = a_change("CREATE", "any", "web.example.com", "A", "192.0.2.1")


def _names(r53: StrictRoute53, zone_id: str) -> list[str]:
    return [key.name for key in r53.records(zone_id) if key.name != "example.com."]


@pytest.mark.parametrize(
    ("fault", "error", "landed"),
    [
        ("throttle", ZoneThrottledError, False),
        ("prior_request_not_complete", ZoneThrottledError, False),
        ("deny", ZoneUnavailableError, False),
        ("server_error", ZoneOutcomeUnknownError, False),
        ("drop_before", ZoneOutcomeUnknownError, False),
        ("drop_after", ZoneOutcomeUnknownError, True),
        ("delay", ZoneOutcomeUnknownError, False),
    ],
)
def test_change_is_sent_once_whatever_happens(
    r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient, fault: str, error: type[ZoneError], landed: bool
) -> None:
    getattr(r53.faults, fault)(times=1)
    with pytest.raises(error):
        adapter.change(zone_id, [_A])
    assert len(r53.batches()) == 1
    assert _names(r53, zone_id) == (["web.example.com."] if landed else [])


def test_delayed_change_lands_later(r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient) -> None:
    r53.faults.delay()
    with pytest.raises(ZoneOutcomeUnknownError):
        adapter.change(zone_id, [_A])
    adapter.change(zone_id, [_A])
    [late] = r53.release()
    assert late.accepted is False
    assert "already exists" in late.messages[0]


def test_change_that_gets_no_answer_in_time_is_unknown(r53: StrictRoute53, zone_id: str) -> None:
    from botocore.config import Config

    session = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1")
    config = Config(read_timeout=0.2, retries={"total_max_attempts": 1})
    client = session.client("route53", endpoint_url=r53.url, config=config)
    r53.faults.stall()
    with pytest.raises(ZoneOutcomeUnknownError):
        zone_client(client, ManualClock()).change(zone_id, [_A])
    wait_until(lambda: r53.held == 1)
    client.close()
    r53.release()
    assert _names(r53, zone_id) == ["web.example.com."]


def test_change_that_finds_no_server_was_not_sent() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    client = a_client(f"http://127.0.0.1:{port}")
    with pytest.raises(ZoneThrottledError, match="nothing was sent"):
        zone_client(client, ManualClock()).change("Z1", [_A])
    client.close()


def test_server_name_that_does_not_resolve_was_not_sent() -> None:
    client = a_client("http://nowhere.invalid")
    with pytest.raises(ZoneThrottledError, match="nothing was sent"):
        zone_client(client, ManualClock()).change("Z1", [_A])
    client.close()


def test_missing_credentials_say_what_to_do(r53: StrictRoute53) -> None:
    bare = BotocoreSession()
    bare.register_component("credential_provider", _NoCredentials())
    bare.set_config_variable("region", "us-east-1")
    client = build_route53_client(boto3.Session(botocore_session=bare), r53.url)
    with pytest.raises(ZoneUnavailableError, match="set AWS_PROFILE"):
        zone_client(client, ManualClock()).change("Z1", [_A])
    client.close()
    assert r53.calls == []


class _NoCredentials:
    def load_credentials(self) -> None:
        return None


def test_client_has_the_times_and_the_single_attempt_of_the_design(boto: Route53Client) -> None:
    config: Any = boto.meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 10)
    assert config.retries["total_max_attempts"] == 1


@pytest.mark.parametrize(
    ("names", "messages"),
    [
        (["a.example.org"], ("RRSet with DNS name a.example.org. is not permitted in zone example.com.",)),
        # botocore keeps no list of this form: the caller has to search for the culprits.
        (["a.example.org", "b.example.org"], ()),
    ],
)
def test_older_form_of_refusal_is_understood(names: list[str], messages: tuple[str, ...]) -> None:
    with StrictRoute53(legacy_errors=True) as r53:
        zone_id = r53.create_zone("example.com")
        client = a_client(r53.url)
        with pytest.raises(BatchRefusedError) as refused:
            zone_client(client, ManualClock()).change(
                zone_id, [a_change("CREATE", zone_id, name, "A", "192.0.2.1") for name in names]
            )
        client.close()
    assert refused.value.messages == messages


def test_read_is_repeated_with_growing_pauses_until_it_succeeds(
    r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient, clock: ManualClock
) -> None:
    r53.faults.throttle(operation=_LIST)
    r53.faults.drop_before(operation=_LIST)
    r53.faults.server_error(operation=_LIST)
    assert len(list(adapter.walk(zone_id))) == 2
    assert clock.slept == pytest.approx([0.1, 0.2, 0.4])


def test_read_gives_up_after_its_attempts(
    r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient, clock: ManualClock
) -> None:
    r53.faults.throttle(times=None, operation=ANY_OPERATION)
    with pytest.raises(ZoneThrottledError):
        adapter.zone(zone_id)
    assert [call.operation for call in r53.calls] == ["GetHostedZone"] * 6
    assert len(clock.slept) == 5


def test_denied_read_is_not_repeated(r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient) -> None:
    r53.faults.deny()
    with pytest.raises(ZoneUnavailableError, match="AccessDenied"):
        adapter.read(zone_id, "web.example.com")
    assert len(r53.calls) == 1


def test_walk_that_fails_in_the_middle_raises(r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient) -> None:
    adapter.change(zone_id, [a_change("CREATE", zone_id, f"n{n:03}.example.com", "A", "192.0.2.1") for n in range(400)])
    walk = adapter.walk(zone_id)
    seen = [next(walk) for _ in range(300)]
    r53.faults.deny(operation=_LIST)
    with pytest.raises(ZoneUnavailableError):
        seen.extend(walk)
    assert len(seen) == 300


def test_buckets_are_asked_before_requests_and_changes(zone_id: str, boto: Route53Client, clock: ManualClock) -> None:
    requests, changes = TokenBucket(1, 2, clock), TokenBucket(10, 20, clock)
    adapter = Route53ZoneClient(boto, clock, Buckets(requests, changes))
    adapter.zone(zone_id)
    adapter.zone(zone_id)
    assert clock.slept == []
    adapter.zone(zone_id)
    assert clock.slept == [pytest.approx(1.0)]
    adapter.change(zone_id, [a_change("CREATE", zone_id, f"n{n}.example.com", "A", "192.0.2.1") for n in range(40)])
    assert clock.slept[1:] == [pytest.approx(2.0)]


def test_alias_goes_both_ways(r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient) -> None:
    alias = RecordSet(None, (), AliasTarget("Z35SXDOTRQ7X7K", "dualstack.lb-1.us-east-1.elb.amazonaws.com"))
    key = RecordKey(zone_id, "web.example.com", "A")
    adapter.change(zone_id, [BatchChange("CREATE", key, alias)])
    assert adapter.read(zone_id, "web.example.com") == {key: alias}
    adapter.change(zone_id, [BatchChange("DELETE", key, alias)])
    assert _names(r53, zone_id) == []


@pytest.mark.parametrize(
    ("fields", "form"),
    [
        (
            {"SetIdentifier": "blue", "CidrRoutingConfig": {"CollectionId": "c", "LocationName": "*"}},
            "CidrRoutingConfig={'CollectionId': 'c', 'LocationName': '*'},SetIdentifier=blue",
        ),
        ({"HealthCheckId": "abc"}, "HealthCheckId=abc"),
    ],
)
def test_set_of_another_form_never_equals_ours(
    zone_id: str, boto: Route53Client, adapter: Route53ZoneClient, fields: dict[str, object], form: str
) -> None:
    simple = {"Name": "web.example.com", "Type": "A", "TTL": 30, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    change = {"Action": "CREATE", "ResourceRecordSet": simple | fields}
    boto.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": [change]})  # type: ignore[list-item]
    [found] = adapter.read(zone_id, "web.example.com").values()
    assert found == RecordSet(30, ("192.0.2.1",), foreign_form=form)
    assert found != a_set("192.0.2.1")


_POLICIES: list[tuple[Routing, dict[str, object]]] = [
    (Weighted(10), {"Weight": 10}),
    (Weighted(0, health_check="abc"), {"Weight": 0, "HealthCheckId": "abc"}),
    (Latency("eu-west-1"), {"Region": "eu-west-1"}),
    (Failover("PRIMARY", health_check="abc"), {"Failover": "PRIMARY", "HealthCheckId": "abc"}),
    (Failover("SECONDARY"), {"Failover": "SECONDARY"}),
    (Geolocation(continent="EU"), {"GeoLocation": {"ContinentCode": "EU"}}),
    (Geolocation(country="*"), {"GeoLocation": {"CountryCode": "*"}}),
    (
        Geolocation(country="US", subdivision="CA"),
        {"GeoLocation": {"CountryCode": "US", "SubdivisionCode": "CA"}},
    ),
    (Geoproximity("eu-west-1"), {"GeoProximityLocation": {"AWSRegion": "eu-west-1", "Bias": 0}}),
    (
        Geoproximity(local_zone_group="us-east-1-bue-1", bias=-99),
        {"GeoProximityLocation": {"LocalZoneGroup": "us-east-1-bue-1", "Bias": -99}},
    ),
    (
        Geoproximity(coordinates="49.22,-74.01", bias=5),
        {"GeoProximityLocation": {"Coordinates": {"Latitude": "49.22", "Longitude": "-74.01"}, "Bias": 5}},
    ),
    (Multivalue(health_check="abc"), {"MultiValueAnswer": True, "HealthCheckId": "abc"}),
]


@pytest.mark.parametrize(("routing", "fields"), _POLICIES)
def test_each_policy_goes_both_ways(
    zone_id: str, boto: Route53Client, adapter: Route53ZoneClient, routing: Routing, fields: dict[str, object]
) -> None:
    key = RecordKey(zone_id, "web.example.com", "A", "blue")
    ours = RecordSet(30, ("192.0.2.1",), routing=routing)
    adapter.change(zone_id, [BatchChange("CREATE", key, ours)])
    listed = boto.list_resource_record_sets(HostedZoneId=zone_id)["ResourceRecordSets"]
    [found] = [dict(each) for each in listed if each.get("SetIdentifier") == "blue"]
    values = {"Name": "web.example.com.", "Type": "A", "TTL": 30, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    assert found == {**values, "SetIdentifier": "blue", **fields}
    assert adapter.read(zone_id, "web.example.com") == {key: ours}
    adapter.change(zone_id, [BatchChange("DELETE", key, ours)])
    assert adapter.read(zone_id, "web.example.com") == {}


def test_location_that_somebody_wrote_in_another_form_reads_as_ours(
    zone_id: str, boto: Route53Client, adapter: Route53ZoneClient
) -> None:
    where = {"Coordinates": {"Latitude": "+49.2", "Longitude": "-0.0"}}
    fields = {"SetIdentifier": "blue", "GeoProximityLocation": where}
    record_set = {"Name": "web.example.com", "Type": "A", "TTL": 30, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record_set | fields}]}
    boto.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch=batch)  # type: ignore[arg-type]
    [found] = adapter.read(zone_id, "web.example.com").values()
    assert found == RecordSet(30, ("192.0.2.1",), routing=Geoproximity(coordinates="49.20,0.00"))


def test_weighted_sets_go_both_ways(r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient) -> None:
    keys = [RecordKey(zone_id, "web.example.com", "A", identifier) for identifier in ("a b#c", "blue")]
    sets = {
        keys[0]: RecordSet(30, ("192.0.2.1",), routing=Weighted(0)),
        keys[1]: RecordSet(30, ("192.0.2.2",), routing=Weighted(255)),
    }
    adapter.change(zone_id, [BatchChange("CREATE", key, sets[key]) for key in keys])
    assert adapter.read(zone_id, "web.example.com") == sets
    adapter.change(zone_id, [BatchChange("DELETE", keys[0], sets[keys[0]])])
    assert adapter.read(zone_id, "web.example.com") == {keys[1]: sets[keys[1]]}


def test_identifier_without_a_policy_is_not_sent(zone_id: str, r53: StrictRoute53, adapter: Route53ZoneClient) -> None:
    key = RecordKey(zone_id, "web.example.com", "A", "blue")
    with pytest.raises(ValueError, match="goes with every routing policy but the simple one"):
        adapter.change(zone_id, [BatchChange("CREATE", key, a_set("192.0.2.1"))])
    assert r53.batches() == []


def test_sets_that_differ_by_identifier_are_read_one_by_one(
    zone_id: str, boto: Route53Client, adapter: Route53ZoneClient
) -> None:
    for identifier in ("blue", "green"):
        record_set = {
            "Name": "web.example.com",
            "Type": "A",
            "SetIdentifier": identifier,
            "Weight": 1,
            "TTL": 30,
            "ResourceRecords": [{"Value": "192.0.2.1"}],
        }
        batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record_set}]}
        boto.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch=batch)  # type: ignore[arg-type]
    found = adapter.read(zone_id, "web.example.com")
    assert [(key.identifier, record_set.routing) for key, record_set in found.items()] == [
        ("blue", Weighted(1)),
        ("green", Weighted(1)),
    ]
    assert len([key for key, _ in adapter.walk(zone_id) if key.name == "web.example.com"]) == 2


def test_page_that_ends_among_sets_of_one_name_loses_and_repeats_none(
    zone_id: str, boto: Route53Client, adapter: Route53ZoneClient
) -> None:
    changes = [
        {
            "Action": "CREATE",
            "ResourceRecordSet": {
                "Name": f"w{number // 100}.example.com",
                "Type": "A",
                "SetIdentifier": f"s{number:03}",
                "Weight": 1,
                "TTL": 30,
                "ResourceRecords": [{"Value": "192.0.2.1"}],
            },
        }
        for number in range(700)
    ]
    boto.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": changes})  # type: ignore[typeddict-item]
    found = [key.identifier for key, _ in adapter.walk(zone_id) if key.identifier]
    assert found == [f"s{number:03}" for number in range(700)]


def test_values_written_by_hand_are_read_canonically(
    zone_id: str, boto: Route53Client, adapter: Route53ZoneClient
) -> None:
    records = [{"Value": "2001:0DB8::0001"}, {"Value": "2001:db8:0:0::2"}]
    record_set = {"Name": "WEB.example.com", "Type": "AAAA", "TTL": 30, "ResourceRecords": records}
    batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record_set}]}
    boto.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch=batch)  # type: ignore[arg-type]
    key = RecordKey(zone_id, "web.example.com", "AAAA")
    found = adapter.read(zone_id, "web.example.com")
    assert found == {key: a_set("2001:db8::1", "2001:db8::2")}
    adapter.change(zone_id, [BatchChange("DELETE", key, found[key])])
    assert adapter.read(zone_id, "web.example.com") == {}


def test_foreign_form_is_never_written(zone_id: str, r53: StrictRoute53, adapter: Route53ZoneClient) -> None:
    weighted = RecordSet(30, ("192.0.2.1",), foreign_form="SetIdentifier=blue,Weight=1")
    with pytest.raises(ValueError, match="never writes"):
        adapter.change(zone_id, [BatchChange("DELETE", RecordKey(zone_id, "web.example.com", "A"), weighted)])
    assert r53.batches() == []


def test_private_zone_is_told_apart(r53: StrictRoute53, adapter: Route53ZoneClient) -> None:
    private = r53.create_zone("Internal.Example.com", private=True)
    zone = adapter.zone(private)
    assert (zone.id, zone.name, zone.private) == (private, "internal.example.com", True)


def test_comment_is_cut_to_what_route53_takes(zone_id: str, r53: StrictRoute53, adapter: Route53ZoneClient) -> None:
    adapter.change(zone_id, [_A], "c" * 300)
    assert [call.comment for call in r53.calls if call.operation == CHANGE] == ["c" * 256]
