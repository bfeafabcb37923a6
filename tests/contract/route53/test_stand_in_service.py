"""The stand-in as a service: zones, listings, faults, throttling, what it tells tests, and how it ends."""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from harness.fakes.manual_clock import ManualClock
from harness.fakes.route53 import a_change, a_client, zone_client
from harness.waiting import wait_until
from kubesync.aws.route53.client import Route53ZoneClient
from kubesync.aws.route53.rate import TokenBucket
from kubesync.domain.errors import (
    BatchRefusedError,
    ZoneDeniedError,
    ZoneError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
)
from kubesync_local.standins.route53 import SetKey, StrictRoute53

if TYPE_CHECKING:
    from mypy_boto3_route53.client import Route53Client


class AccountBucket(TokenBucket):
    """A bucket of the account: whoever asks for more tokens than there are now gets none."""

    def try_take(self, tokens: float = 1) -> bool:
        enough = self.take(tokens) < 1e-9
        if not enough:
            self.take(-tokens)
        return enough


def _fill(adapter: Route53ZoneClient, zone_id: str, *names: str) -> None:
    adapter.change(zone_id, [a_change("CREATE", zone_id, name, "A", "192.0.2.1") for name in names])


def _code(refused: pytest.ExceptionInfo[ClientError]) -> tuple[str, int]:
    answer = refused.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


class TestZones:
    def test_public_zone_has_name_servers_and_its_own_sets(self, r53: StrictRoute53, boto: Route53Client) -> None:
        made = boto.create_hosted_zone(
            Name="Example.COM", CallerReference="1", HostedZoneConfig={"Comment": "mine", "PrivateZone": False}
        )
        assert made["ResponseMetadata"]["HTTPStatusCode"] == 201
        zone_id = made["HostedZone"]["Id"].removeprefix("/hostedzone/")
        assert made["Location"] == f"https://route53.amazonaws.com/2013-04-01/hostedzone/{zone_id}"
        assert len(made["DelegationSet"]["NameServers"]) == 4
        found = boto.get_hosted_zone(Id=zone_id)
        assert found["HostedZone"] == made["HostedZone"]
        assert found["HostedZone"]["Name"] == "example.com."
        assert found["HostedZone"]["Config"] == {"Comment": "mine", "PrivateZone": False}
        assert found["HostedZone"]["ResourceRecordSetCount"] == 2
        assert list(r53.records(zone_id)) == [SetKey("example.com.", "NS"), SetKey("example.com.", "SOA")]

    def test_private_zone_has_its_vpc(self, boto: Route53Client) -> None:
        made = boto.create_hosted_zone(
            Name="example.com",
            CallerReference="1",
            HostedZoneConfig={"PrivateZone": True},
            VPC={"VPCRegion": "eu-west-1", "VPCId": "vpc-1"},
        )
        assert made["VPC"] == {"VPCRegion": "eu-west-1", "VPCId": "vpc-1"}
        found = boto.get_hosted_zone(Id=made["HostedZone"]["Id"])
        assert found["HostedZone"]["Config"]["PrivateZone"] is True
        assert found["VPCs"] == [{"VPCRegion": "eu-west-1", "VPCId": "vpc-1"}]

    def test_zone_that_cannot_be_made(self, boto: Route53Client) -> None:
        boto.create_hosted_zone(Name="example.com", CallerReference="1")
        with pytest.raises(ClientError) as refused:
            boto.create_hosted_zone(Name="example.org", CallerReference="1")
        assert _code(refused) == ("HostedZoneAlreadyExists", 409)
        with pytest.raises(ClientError) as refused:
            boto.create_hosted_zone(Name="a..b", CallerReference="2")
        assert _code(refused) == ("InvalidDomainName", 400)
        with pytest.raises(ClientError) as refused:
            boto.create_hosted_zone(Name="a.b", CallerReference="2", HostedZoneConfig={"PrivateZone": True})
        assert _code(refused) == ("InvalidInput", 400)
        boto.create_hosted_zone(Name="a.b", CallerReference="3", VPC={"VPCRegion": "eu-west-1", "VPCId": "vpc-1"})
        with pytest.raises(ClientError) as refused:
            boto.create_hosted_zone(Name="a.b", CallerReference="4", VPC={"VPCRegion": "eu-west-1", "VPCId": "vpc-1"})
        assert _code(refused) == ("ConflictingDomainExists", 400)

    def test_zone_goes_only_when_empty(
        self, r53: StrictRoute53, boto: Route53Client, zone_id: str, adapter: Route53ZoneClient
    ) -> None:
        _fill(adapter, zone_id, "a.example.com")
        with pytest.raises(ClientError) as refused:
            boto.delete_hosted_zone(Id=zone_id)
        assert _code(refused) == ("HostedZoneNotEmpty", 400)
        adapter.change(zone_id, [a_change("DELETE", zone_id, "a.example.com", "A", "192.0.2.1")])
        change = boto.delete_hosted_zone(Id=zone_id)["ChangeInfo"]
        assert boto.get_change(Id=change["Id"])["ChangeInfo"]["Status"] == "INSYNC"
        with pytest.raises(ClientError) as refused:
            boto.get_hosted_zone(Id=zone_id)
        assert _code(refused) == ("NoSuchHostedZone", 404)

    def test_zones_are_listed_in_pages(self, r53: StrictRoute53, boto: Route53Client) -> None:
        made = sorted(r53.create_zone(f"z{number}.example.com") for number in range(5))
        pages = boto.get_paginator("list_hosted_zones").paginate(PaginationConfig={"PageSize": 2})
        listed = [zone["Id"] for page in pages for zone in page["HostedZones"]]
        assert listed == [f"/hostedzone/{zone_id}" for zone_id in made]

    def test_zones_are_listed_by_reversed_name(self, r53: StrictRoute53, boto: Route53Client) -> None:
        for name in ("b.com", "a.org", "x.a.com", "a.com"):
            r53.create_zone(name)
        first = boto.list_hosted_zones_by_name(MaxItems="3")
        assert [zone["Name"] for zone in first["HostedZones"]] == ["a.com.", "x.a.com.", "b.com."]
        assert (first["IsTruncated"], first["NextDNSName"]) == (True, "a.org.")
        rest = boto.list_hosted_zones_by_name(DNSName=first["NextDNSName"], HostedZoneId=first["NextHostedZoneId"])
        assert [zone["Name"] for zone in rest["HostedZones"]] == ["a.org."]
        assert rest["IsTruncated"] is False

    def test_tags_are_empty(self, boto: Route53Client, zone_id: str) -> None:
        answer = boto.list_tags_for_resource(ResourceType="hostedzone", ResourceId=zone_id)
        assert answer["ResourceTagSet"]["Tags"] == []


class TestListing:
    def test_order_is_by_reversed_labels_then_type(
        self, boto: Route53Client, zone_id: str, adapter: Route53ZoneClient
    ) -> None:
        _fill(adapter, zone_id, "b.example.com", "a-b.example.com", "x.a.example.com", "a.example.com", "*.example.com")
        adapter.change(zone_id, [a_change("CREATE", zone_id, "a.example.com", "AAAA", "2001:db8::1")])
        listed = boto.list_resource_record_sets(HostedZoneId=zone_id)["ResourceRecordSets"]
        assert [(found["Name"], found["Type"]) for found in listed] == [
            ("example.com.", "NS"),
            ("example.com.", "SOA"),
            ("\\052.example.com.", "A"),
            ("a-b.example.com.", "A"),
            ("a.example.com.", "A"),
            ("a.example.com.", "AAAA"),
            ("x.a.example.com.", "A"),
            ("b.example.com.", "A"),
        ]

    def test_start_is_by_name_and_type_whether_that_exists_or_not(
        self, boto: Route53Client, zone_id: str, adapter: Route53ZoneClient
    ) -> None:
        _fill(adapter, zone_id, "a.example.com", "c.example.com")
        page = boto.list_resource_record_sets(
            HostedZoneId=zone_id, StartRecordName="A.example.com", StartRecordType="AAAA", MaxItems="1"
        )
        assert [found["Name"] for found in page["ResourceRecordSets"]] == ["c.example.com."]
        assert page["IsTruncated"] is False
        page = boto.list_resource_record_sets(HostedZoneId=zone_id, StartRecordName="b.example.com")
        assert [found["Name"] for found in page["ResourceRecordSets"]] == ["c.example.com."]

    def test_page_says_where_the_next_one_starts(
        self, boto: Route53Client, zone_id: str, adapter: Route53ZoneClient
    ) -> None:
        _fill(adapter, zone_id, "a.example.com", "b.example.com")
        page = boto.list_resource_record_sets(HostedZoneId=zone_id, MaxItems="3")
        assert (page["IsTruncated"], page["MaxItems"]) == (True, "3")
        assert (page["NextRecordName"], page["NextRecordType"]) == ("b.example.com.", "A")

    def test_page_holds_at_most_300(self, boto: Route53Client, zone_id: str, adapter: Route53ZoneClient) -> None:
        _fill(adapter, zone_id, *(f"n{number}.example.com" for number in range(400)))
        page = boto.list_resource_record_sets(HostedZoneId=zone_id, MaxItems="1000")
        assert (len(page["ResourceRecordSets"]), page["MaxItems"]) == (300, "300")

    @pytest.mark.parametrize(
        "query",
        [
            {"StartRecordType": "A"},
            {"StartRecordName": "a.example.com", "StartRecordIdentifier": "blue"},
            {"StartRecordName": "a..example.com"},
            {"StartRecordName": "a.example.com", "StartRecordType": "AAAAA"},
            {"MaxItems": "0"},
            {"MaxItems": "many"},
        ],
    )
    def test_start_without_sense_is_refused(self, boto: Route53Client, zone_id: str, query: dict[str, str]) -> None:
        with pytest.raises(ClientError) as refused:
            boto.list_resource_record_sets(HostedZoneId=zone_id, **query)  # type: ignore[arg-type]
        assert _code(refused) == ("InvalidInput", 400)


class TestFaults:
    def test_predicate_chooses_the_calls(self, r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient) -> None:
        r53.faults.throttle(times=None, when=lambda call: len(call.changes) > 1)
        _fill(adapter, zone_id, "a.example.com")
        with pytest.raises(ZoneThrottledError):
            _fill(adapter, zone_id, "b.example.com", "c.example.com")
        r53.faults.clear()
        _fill(adapter, zone_id, "b.example.com", "c.example.com")

    def test_stalled_batch_is_answered_when_released(
        self, r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient
    ) -> None:
        r53.faults.stall()
        done = threading.Event()

        def change() -> None:
            _fill(adapter, zone_id, "a.example.com")
            done.set()

        thread = threading.Thread(target=change)
        thread.start()
        wait_until(lambda: r53.held == 1)
        assert not done.is_set()
        assert SetKey("a.example.com.", "A") not in r53.records(zone_id)
        [call] = r53.release()
        assert done.wait(120)
        thread.join()
        assert (call.accepted, call.answered) == (True, True)
        assert SetKey("a.example.com.", "A") in r53.records(zone_id)

    def test_buckets_throttle_for_real(self) -> None:
        clock = ManualClock()
        with StrictRoute53(requests=AccountBucket(10, 3, clock), changes=AccountBucket(100, 5, clock)) as r53:
            zone_id = r53.create_zone("example.com")
            client = a_client(r53.url)
            adapter = zone_client(client, ManualClock())
            _fill(adapter, zone_id, *(f"n{number}.example.com" for number in range(5)))
            with pytest.raises(ZoneThrottledError, match="Throttling: Rate exceeded"):
                _fill(adapter, zone_id, "one.example.com")
            clock.advance(0.05)
            _fill(adapter, zone_id, "one.example.com")
            with pytest.raises(ClientError) as refused:
                client.get_hosted_zone(Id=zone_id)
            assert _code(refused) == ("Throttling", 400)
            client.close()


def test_calls_say_what_came_and_what_became_of_it(
    r53: StrictRoute53, zone_id: str, adapter: Route53ZoneClient
) -> None:
    _fill(adapter, zone_id, "a.example.com")
    r53.faults.throttle()
    with pytest.raises(ZoneThrottledError):
        _fill(adapter, zone_id, "b.example.com")
    adapter.zone(zone_id)
    assert [(call.operation, call.zone_id, call.accepted, call.code) for call in r53.calls] == [
        ("ChangeResourceRecordSets", zone_id, True, ""),
        ("ChangeResourceRecordSets", zone_id, False, "Throttling"),
        ("GetHostedZone", zone_id, True, ""),
    ]
    [change] = r53.calls[0].changes
    assert (change.action, change.record_set.key, change.record_set.values) == (
        "CREATE",
        SetKey("a.example.com.", "A"),
        ("192.0.2.1",),
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not xml", b"<Code>InvalidInput</Code>"),
        (b"<ChangeBatch/>", b"<Code>MalformedInput</Code>"),
        (
            b'<ChangeResourceRecordSetsRequest xmlns="https://route53.amazonaws.com/doc/2013-04-01/"/>',
            b"<Code>InvalidInput</Code>",
        ),
        (
            (
                b'<ChangeResourceRecordSetsRequest xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><ChangeBatch>'
                b"<Changes/></ChangeBatch></ChangeResourceRecordSetsRequest>"
            ),
            b"The content of element 'Changes' is not complete",
        ),
    ],
)
def test_body_that_cannot_be_read_is_refused(r53: StrictRoute53, zone_id: str, body: bytes, code: bytes) -> None:
    connection = http.client.HTTPConnection(r53.url.removeprefix("http://"), timeout=120)
    connection.request("POST", f"/2013-04-01/hostedzone/{zone_id}/rrset/", body)
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    assert response.status == 400
    assert code in answer
    assert b"<RequestId>" in answer


def test_unknown_operation_is_said_to_be_unknown(boto: Route53Client) -> None:
    with pytest.raises(ClientError, match="the Route 53 stand-in does not know this operation") as refused:
        boto.list_health_checks()
    assert _code(refused) == ("UnknownOperationException", 501)


def test_changes_from_several_threads_are_judged_one_after_another(r53: StrictRoute53, zone_id: str) -> None:
    accepted: list[int] = []
    refused: list[int] = []

    clients = [a_client(r53.url) for _ in range(6)]

    def compete(number: int) -> None:
        change = a_change("CREATE", zone_id, "a.example.com", "A", f"192.0.2.{number}")
        try:
            zone_client(clients[number], ManualClock()).change(zone_id, [change])
            accepted.append(number)
        except BatchRefusedError:
            refused.append(number)

    threads = [threading.Thread(target=compete, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    assert (len(accepted), len(refused)) == (1, 5)
    assert sorted(call.accepted is True for call in r53.batches()) == [False] * 5 + [True]
    assert r53.records(zone_id)[SetKey("a.example.com.", "A")].values == (f"192.0.2.{accepted[0]}",)


def test_server_ends_with_idle_and_stalled_connections_open() -> None:
    server = StrictRoute53().start()
    zone_id = server.create_zone("example.com")
    idle, stalled = a_client(server.url), a_client(server.url)
    idle.get_hosted_zone(Id=zone_id)
    server.faults.stall()
    outcomes: list[type[Exception]] = []

    def change() -> None:
        try:
            _fill(zone_client(stalled, ManualClock()), zone_id, "a.example.com")
        except ZoneError as error:
            outcomes.append(type(error))

    thread = threading.Thread(target=change)
    thread.start()
    wait_until(lambda: server.held == 1)
    server.close()
    thread.join(120)
    assert outcomes == [ZoneOutcomeUnknownError]
    assert SetKey("a.example.com.", "A") not in server.records(zone_id)
    assert not [thread for thread in threading.enumerate() if thread.name in ("route53", "route53-call")]
    idle.close()
    stalled.close()


def test_command_serves_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "kubesync_local.standins.route53", "--zone", "example.com"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        zone_id, name = process.stdout.readline().split()
        client = a_client(url)
        assert client.get_hosted_zone(Id=zone_id)["HostedZone"]["Name"] == name + "."
        client.close()
        process.send_signal(2)
        assert process.wait(120) == 0


def test_names_that_are_not_allowed_deny_a_whole_batch(
    r53: StrictRoute53, adapter: Route53ZoneClient, zone_id: str
) -> None:
    _fill(adapter, zone_id, "old.example.com")
    r53.allow_names(["*.prod.example.com"])
    with pytest.raises(ZoneDeniedError, match="AccessDenied: User: AKIATEST is not authorized to perform: "):
        _fill(adapter, zone_id, "a.prod.example.com", "b.example.com")
    with pytest.raises(ZoneDeniedError):
        adapter.change(zone_id, [a_change("DELETE", zone_id, "old.example.com", "A", "192.0.2.1")])
    assert [call.code for call in r53.batches()] == ["", "AccessDenied", "AccessDenied"]
    _fill(adapter, zone_id, "a.prod.example.com", "*.prod.example.com")
    assert sorted(key.name for key in r53.records(zone_id) if key.type == "A") == [
        "\\052.prod.example.com.",
        "a.prod.example.com.",
        "old.example.com.",
    ]
    r53.allow_names(None)
    _fill(adapter, zone_id, "b.example.com")
