"""How the stand-in judges batches, asked over the wire with boto3. The rules name their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from harness.fakes.route53 import WireZone, a_client, wire_change
from kubesync_local.standins.route53 import Limits, StrictRoute53

if TYPE_CHECKING:
    from mypy_boto3_route53.client import Route53Client

_REPLACED = "but the values provided do not match the current values"


def test_batch_is_applied_as_a_whole_or_not_at_all(zone: WireZone) -> None:
    zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"]))
    messages = zone.messages(
        wire_change("DELETE", "a.example.com", "A", ["192.0.2.1"]),
        wire_change("CREATE", "b.example.com", "A", ["192.0.2.2"]),
        wire_change("DELETE", "c.example.com", "A", ["192.0.2.3"]),
    )
    assert messages == ("Tried to delete resource record set [name='c.example.com.', type='A'] but it was not found",)


def test_delete_then_create_of_one_name_replaces_it(zone: WireZone) -> None:
    zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"]))
    zone.apply(
        wire_change("DELETE", "a.example.com", "A", ["192.0.2.1"]),
        wire_change("CREATE", "a.example.com", "A", ["192.0.2.2"]),
    )
    [stored] = [stored for key, stored in zone.r53.records(zone.id).items() if key.name == "a.example.com."]
    assert stored.values == ("192.0.2.2",)


def test_delete_of_other_values_then_create_is_refused_for_both(zone: WireZone) -> None:
    zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"]))
    assert zone.messages(
        wire_change("DELETE", "a.example.com", "A", ["192.0.2.9"]),
        wire_change("CREATE", "a.example.com", "A", ["192.0.2.2"]),
    ) == (
        f"Tried to delete resource record set [name='a.example.com.', type='A'] {_REPLACED}",
        "Tried to create resource record set [name='a.example.com.', type='A'] but it already exists",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        wire_change("DELETE", "a.example.com", "A", ["192.0.2.1"]),
        wire_change("DELETE", "a.example.com", "A", ["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
        wire_change("DELETE", "a.example.com", "A", ["192.0.2.1", "192.0.2.3"]),
        wire_change("DELETE", "a.example.com", "A", ["192.0.2.1", "192.0.2.2"], ttl=31),
        wire_change("DELETE", "a.example.com", "A", ["192.0.2.1", "192.0.2.2"], HealthCheckId="abc"),
    ],
)
def test_delete_must_match_in_everything(zone: WireZone, wrong: dict[str, object]) -> None:
    zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1", "192.0.2.2"]))
    assert zone.messages(wrong) == (
        f"Tried to delete resource record set [name='a.example.com.', type='A'] {_REPLACED}",
    )


def test_delete_matches_whatever_the_order_and_the_case_of_the_name(zone: WireZone) -> None:
    zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1", "192.0.2.2"]))
    zone.apply(wire_change("DELETE", "A.Example.COM.", "A", ["192.0.2.2", "192.0.2.1"]))
    assert zone.names() == [("example.com.", "NS"), ("example.com.", "SOA")]


def test_create_of_what_exists_is_refused_also_when_equal(zone: WireZone) -> None:
    create = wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"])
    zone.apply(create)
    assert zone.messages(create) == (
        "Tried to create resource record set [name='a.example.com.', type='A'] but it already exists",
    )


def test_upsert_creates_and_replaces(zone: WireZone) -> None:
    zone.apply(wire_change("UPSERT", "a.example.com", "A", ["192.0.2.1"]))
    zone.apply(wire_change("UPSERT", "a.example.com", "A", ["192.0.2.2"], ttl=60))
    zone.apply(wire_change("DELETE", "a.example.com", "A", ["192.0.2.2"], ttl=60))
    assert len(zone.names()) == 2


def test_every_bad_change_has_a_message(zone: WireZone) -> None:
    assert zone.messages(
        wire_change("CREATE", "a.example.com", "A", ["no"]),
        wire_change("CREATE", "b.example.com", "A", ["192.0.2.1"]),
        wire_change("DELETE", "c.example.com", "AAAA", ["2001:db8::1"]),
        wire_change("CREATE", "*.example.org", "A", ["192.0.2.1"]),
    ) == (
        (
            "Invalid Resource Record: 'FATAL problem: ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address) "
            "encountered with 'no''"
        ),
        "Tried to delete resource record set [name='c.example.com.', type='AAAA'] but it was not found",
        "RRSet with DNS name \\052.example.org. is not permitted in zone example.com.",
    )


def test_messages_can_be_fewer_than_bad_changes() -> None:
    with StrictRoute53(limits=Limits(messages=1)) as r53:
        client = a_client(r53.url)
        zone = WireZone(r53, client, r53.create_zone("example.com"))
        deletes = [wire_change("DELETE", f"{name}.example.com", "A", ["192.0.2.1"]) for name in "abc"]
        assert len(zone.messages(*deletes)) == 1
        client.close()


class TestCname:
    def test_it_is_refused_where_other_types_are(self, zone: WireZone) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"]))
        assert zone.messages(wire_change("CREATE", "a.example.com", "CNAME", ["x.example.org"])) == (
            (
                "RRSet of type CNAME with DNS name a.example.com. is not permitted as it conflicts with other records with "
                "the same DNS name in zone example.com."
            ),
        )

    def test_other_types_are_refused_where_it_is(self, zone: WireZone) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "CNAME", ["x.example.org"]))
        assert zone.messages(wire_change("UPSERT", "a.example.com", "TXT", ['"x"'])) == (
            (
                "RRSet of type TXT with DNS name a.example.com. is not permitted because a conflicting RRSet of type CNAME "
                "with the same DNS name already exists in zone example.com."
            ),
        )

    def test_it_is_refused_at_the_apex(self, zone: WireZone) -> None:
        assert zone.messages(wire_change("CREATE", "example.com", "CNAME", ["x.example.org"])) == (
            "RRSet of type CNAME with DNS name example.com. is not permitted at apex in zone example.com.",
        )

    def test_it_has_one_value(self, zone: WireZone) -> None:
        [message] = zone.messages(wire_change("CREATE", "a.example.com", "CNAME", ["x.example.org", "y.example.org"]))
        assert "must contain exactly one resource record" in message

    def test_it_gives_way_and_comes_within_one_batch(self, zone: WireZone) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "CNAME", ["x.example.org"]))
        zone.apply(
            wire_change("DELETE", "a.example.com", "CNAME", ["x.example.org"]),
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"]),
            wire_change("CREATE", "a.example.com", "AAAA", ["2001:db8::1"]),
        )
        assert [kind for name, kind in zone.names() if name == "a.example.com."] == ["A", "AAAA"]

    def test_order_within_the_batch_matters(self, zone: WireZone) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "CNAME", ["x.example.org"]))
        [message] = zone.messages(
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"]),
            wire_change("DELETE", "a.example.com", "CNAME", ["x.example.org"]),
        )
        assert "conflicting RRSet of type CNAME" in message


def test_zone_keeps_its_own_ns_and_soa(zone: WireZone) -> None:
    records = {key.type: stored for key, stored in zone.r53.records(zone.id).items()}
    messages = zone.messages(
        wire_change("DELETE", "example.com", "NS", list(records["NS"].values), ttl=172_800),
        wire_change("DELETE", "example.com", "SOA", list(records["SOA"].values), ttl=900),
    )
    assert messages == (
        "A HostedZone must contain at least one NS record for the zone itself.",
        "A HostedZone must contain exactly one SOA record.",
    )


@pytest.mark.parametrize(
    "actions", [["CREATE", "CREATE"], ["DELETE", "DELETE"], ["UPSERT", "UPSERT"], ["CREATE", "DELETE"]]
)
def test_one_set_changed_twice(zone: WireZone, actions: list[str]) -> None:
    changes = [wire_change(action, "a.example.com", "A", ["192.0.2.1"]) for action in actions]
    assert (
        "The request contains an invalid set of changes for a resource record set 'A a.example.com.'"
        in zone.messages(*changes)
    )


_TARGET = {"HostedZoneId": "Z35SXDOTRQ7X7K", "DNSName": "lb.us-east-1.elb.amazonaws.com", "EvaluateTargetHealth": False}


class TestAlias:
    def test_it_has_neither_ttl_nor_values(self, zone: WireZone) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "A", ttl=None, AliasTarget=_TARGET))
        for bad in (
            wire_change("CREATE", "b.example.com", "A", ttl=30, AliasTarget=_TARGET),
            wire_change("CREATE", "b.example.com", "A", ["192.0.2.1"], ttl=None, AliasTarget=_TARGET),
            wire_change("CREATE", "b.example.com", "A", ["192.0.2.1"], AliasTarget=_TARGET),
        ):
            code, message = zone.refusal(bad)
            assert (code, "but found more than one" in message) == ("InvalidInput", True)

    @pytest.mark.parametrize(
        "other", [{"DNSName": "x.elb.amazonaws.com"}, {"HostedZoneId": "ZOTHER"}, {"EvaluateTargetHealth": True}]
    )
    def test_delete_must_match_the_target(self, zone: WireZone, other: dict[str, object]) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "A", ttl=None, AliasTarget=_TARGET))
        [message] = zone.messages(wire_change("DELETE", "a.example.com", "A", ttl=None, AliasTarget=_TARGET | other))
        assert message.endswith(_REPLACED)
        zone.apply(wire_change("DELETE", "a.example.com", "A", ttl=None, AliasTarget=_TARGET))

    def test_target_in_the_same_zone_has_to_exist(self, zone: WireZone) -> None:
        target = {"HostedZoneId": zone.id, "DNSName": "b.example.com", "EvaluateTargetHealth": False}
        alias = wire_change("CREATE", "a.example.com", "A", ttl=None, AliasTarget=target)
        assert zone.messages(alias) == (
            f"Tried to create an alias that targets b.example.com., type A in zone {zone.id}, but that target was not found",
        )
        zone.apply(wire_change("CREATE", "b.example.com", "A", ["192.0.2.1"]), alias)


class TestForm:
    def test_set_without_values_or_ttl(self, zone: WireZone) -> None:
        for bad in (
            wire_change("DELETE", "a.example.com", "A", ttl=None),
            wire_change("DELETE", "a.example.com", "A", ttl=30),
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], ttl=None),
        ):
            code, message = zone.refusal(bad)
            assert code == "InvalidInput"
            assert "but found none in Change with [Action=" in message
            assert message.endswith("Name=a.example.com, Type=A, SetIdentifier=null]")

    @pytest.mark.parametrize(
        "bad",
        [
            wire_change("REPLACE", "a.example.com", "A", ["192.0.2.1"]),
            wire_change("CREATE", "a.example.com", "AAAAA", ["192.0.2.1"]),
            wire_change("CREATE", "a." * 600 + "example.com", "A", ["192.0.2.1"]),
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], Weight=1),
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="blue"),
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="b" * 129, Weight=1),
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="blue", Weight=256),
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="b", Weight=1, Failover="PRIMARY"),
        ],
    )
    def test_what_the_schema_does_not_allow(self, zone: WireZone, bad: dict[str, object]) -> None:
        code, _ = zone.refusal(bad)
        assert code == "InvalidInput"


class TestWeighted:
    def test_sets_of_several_identifiers_live_together(self, zone: WireZone) -> None:
        for identifier in ("blue", "green"):
            zone.apply(
                wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier=identifier, Weight=1),
                wire_change("CREATE", "c.example.com", "CNAME", ["x.example.org"], SetIdentifier=identifier, Weight=1),
            )
        assert len(zone.names()) == 6
        [message] = zone.messages(
            wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="blue", Weight=2)
        )
        assert message.endswith("[name='a.example.com.', type='A', set-identifier='blue'] but it already exists")

    def test_simple_and_weighted_exclude_each_other(self, zone: WireZone) -> None:
        simple = wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"])
        weighted = wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="blue", Weight=1)
        zone.apply(simple)
        [message] = zone.messages(weighted)
        assert message.endswith("cannot be created as a non-weighted set exists with the same name and type.")
        zone.apply(simple | {"Action": "DELETE"}, weighted)
        [message] = zone.messages(simple)
        assert message.endswith("cannot be created as other RRSets exist with the same name and type.")

    def test_weights_from_0_to_255_and_identifiers_of_128_characters_are_taken(self, zone: WireZone) -> None:
        for identifier, weight in (("b" * 128, 0), ("blue", 255)):
            zone.apply(
                wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier=identifier, Weight=weight)
            )
        assert len(zone.names()) == 4

    def test_cname_stands_beside_no_other_type_whatever_the_identifiers(self, zone: WireZone) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="blue", Weight=1))
        cname = wire_change("CREATE", "a.example.com", "CNAME", ["x.example.org"], SetIdentifier="green", Weight=1)
        [message] = zone.messages(cname)
        assert "RRSet of type CNAME with DNS name a.example.com. is not permitted as it conflicts" in message

    def test_delete_must_match_the_weight(self, zone: WireZone) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="blue", Weight=1))
        [message] = zone.messages(
            wire_change("DELETE", "a.example.com", "A", ["192.0.2.1"], SetIdentifier="blue", Weight=2)
        )
        assert message.endswith(_REPLACED)
        [message] = zone.messages(wire_change("DELETE", "a.example.com", "A", ["192.0.2.1"]))
        assert message.endswith("but it was not found")


def test_batch_to_no_zone(r53: StrictRoute53, boto: Route53Client) -> None:
    with pytest.raises(ClientError) as refused:
        WireZone(r53, boto, "ZNOWHERE").apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"]))
    assert refused.value.response["Error"]["Code"] == "NoSuchHostedZone"
    assert refused.value.response["Error"]["Message"] == "No hosted zone found with ID: ZNOWHERE"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
