"""What the stand-in takes as a value, a name, a TTL, and how much of it, asked over the wire with boto3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.fakes.route53 import WireZone, a_client, wire_change
from kubesync_local.standins.route53 import Limits, StrictRoute53

if TYPE_CHECKING:
    pass


class TestLimits:
    @pytest.mark.parametrize(("action", "sets"), [("CREATE", 1_000), ("UPSERT", 500)])
    def test_most_elements_fit_and_one_more_does_not(self, zone: WireZone, action: str, sets: int) -> None:
        changes = [wire_change(action, f"n{n}.example.com", "A", ["192.0.2.1"]) for n in range(sets + 1)]
        assert zone.messages(*changes) == ("Number of records limit of 1000 exceeded.",)
        zone.apply(*changes[:-1])
        assert len(zone.names()) == sets + 2

    @pytest.mark.parametrize(("action", "sets"), [("CREATE", 160), ("UPSERT", 80)])
    def test_most_characters_fit_and_one_more_does_not(self, zone: WireZone, action: str, sets: int) -> None:
        full = '"' + "x" * 198 + '"'
        changes = [wire_change(action, f"n{n}.example.com", "TXT", [full]) for n in range(sets)]
        one_more = [*changes[:-1], wire_change(action, "n0.example.net", "TXT", [full[:-1] + 'x"'])]
        assert zone.messages(*one_more) == ("RDATA character limit of 32000 exceeded.",)
        zone.apply(*changes)

    def test_values_of_a_set(self, zone: WireZone) -> None:
        values = [f"192.0.{n // 256}.{n % 256}" for n in range(401)]
        assert zone.messages(wire_change("CREATE", "a.example.com", "A", values)) == (
            "Cannot have more than 400 records in a RRSet.",
        )
        zone.apply(wire_change("CREATE", "a.example.com", "A", values[:400]))

    def test_sets_of_a_zone(self) -> None:
        with StrictRoute53(limits=Limits(sets_of_zone=3)) as r53:
            client = a_client(r53.url)
            zone = WireZone(r53, client, r53.create_zone("example.com", zone_id="ZFULL"))
            a, b = (wire_change("CREATE", f"{name}.example.com", "A", ["192.0.2.1"]) for name in "ab")
            assert zone.messages(a, b) == ("Exceeded limit MAX_RRSETS_BY_ZONE for zone: ZFULL",)
            zone.apply(a)
            zone.messages(b)
            # In a full zone sets can still be replaced, and go.
            zone.apply(wire_change("DELETE", "a.example.com", "A", ["192.0.2.1"]), b)
            zone.apply(b | {"Action": "DELETE"})
            client.close()

    def test_characters_of_a_value(self, zone: WireZone) -> None:
        code, message = zone.refusal(wire_change("CREATE", "a.example.com", "TXT", ['"x" ' * 1_001]))
        assert code == "InvalidInput"
        assert "maxLength '4000'" in message

    @pytest.mark.parametrize("ttl", [0, 2_147_483_647])
    def test_ttl_in_range(self, zone: WireZone, ttl: int) -> None:
        zone.apply(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], ttl=ttl))

    def test_ttl_beyond_range(self, zone: WireZone) -> None:
        code, message = zone.refusal(wire_change("CREATE", "a.example.com", "A", ["192.0.2.1"], ttl=2_147_483_648))
        assert (code, "maxInclusive '2147483647'" in message) == ("InvalidInput", True)


@pytest.mark.parametrize(
    ("record_type", "value"),
    [
        ("A", "192.0.2.1"),
        ("AAAA", "2001:0db8:85a3:0:0:abcd:1:2345"),
        ("CAA", '0 issue "ca.example.net"'),
        ("CNAME", "Target.example.org"),
        ("MX", "10 mail.example.org"),
        ("NAPTR", '100 50 "u" "E2U+sip" "" .'),
        ("NS", "ns-1.example.org."),
        ("PTR", "host.example.org"),
        ("SRV", "0 100 80 web.example.org"),
        ("SRV", "0 0 0 ."),
        ("TXT", '"one" "two"'),
        ("TXT", '"with \\"quotes\\" and \\344"'),
        ("TXT", '""'),
        ("TXT", '"' + "x" * 255 + '"'),
    ],
)
def test_value_is_accepted_and_kept_as_written(zone: WireZone, record_type: str, value: str) -> None:
    zone.apply(wire_change("CREATE", "a.example.com", record_type, [value]))
    [stored] = [stored for key, stored in zone.r53.records(zone.id).items() if key.name == "a.example.com."]
    assert stored.values == (value,)


@pytest.mark.parametrize(
    ("record_type", "value", "problem"),
    [
        (
            "A",
            "256.0.0.1",
            "ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address) encountered with '256.0.0.1'",
        ),
        ("A", "192.0.2.01", "ARRDATAIllegalIPv4Address"),
        ("A", "2001:db8::1", "ARRDATAIllegalIPv4Address"),
        ("AAAA", "192.0.2.1", "AAAARRDATAIllegalIPv6Address (Value is not a valid IPv6 address)"),
        ("AAAA", "fe80::1%eth0", "AAAARRDATAIllegalIPv6Address"),
        ("CNAME", "a..b", "DomainLabelEmpty (Domain label is empty) encountered with 'a..b'"),
        ("CNAME", "a b.example.org", "UnsupportedCharacter"),
        ("CNAME", "x" * 64 + ".example.org", "DomainLabelTooLong"),
        ("SRV", "0 100 web.example.org", "Value needs 4 fields: priority weight port target"),
        ("SRV", "0 100 65536 web.example.org", "InvalidPort"),
        ("SRV", "-1 100 80 web.example.org", "InvalidPriority"),
        ("SRV", "0 100 80 web..example.org", "DomainLabelEmpty"),
        ("MX", "mail.example.org", "Value needs 2 fields"),
        ("CAA", "0 issue ca.example.net", "InvalidCAARDATA"),
        ("CAA", '256 issue "ca.example.net"', "InvalidCAARDATA"),
        ("NS", "ns_.", None),
        ("PTR", "", "DomainLabelEmpty"),
        ("TXT", "bare", "InvalidCharacterString (Value should be enclosed in quotation marks) encountered with 'bare'"),
        ("TXT", '"open', "InvalidCharacterString"),
        ("TXT", '"a""b"', "InvalidCharacterString"),
        ("TXT", '"' + "x" * 256 + '"', "CharacterStringTooLong (Value is too long)"),
        ("TXT", '"ä"', "UnsupportedCharacter"),
    ],
)
def test_value_syntax(zone: WireZone, record_type: str, value: str, problem: str | None) -> None:
    change = wire_change("CREATE", "a.example.com", record_type, [value])
    if problem is None:
        zone.apply(change)
        return
    [message] = zone.messages(change)
    assert message.startswith("Invalid Resource Record: 'FATAL problem: ")
    assert problem in message


def test_soa_of_the_zone_can_be_replaced_but_not_made_elsewhere(zone: WireZone) -> None:
    soa = "ns.example.org. admin.example.org. 1 7200 900 1209600 60"
    zone.apply(wire_change("UPSERT", "example.com", "SOA", [soa], ttl=900))
    assert zone.messages(wire_change("CREATE", "a.example.com", "SOA", [soa])) == (
        "RRSet of type SOA with DNS name a.example.com. is not permitted in zone example.com.",
    )
    [message] = zone.messages(wire_change("UPSERT", "example.com", "SOA", [soa.removesuffix(" 60")]))
    assert "Value needs 7 fields" in message


@pytest.mark.parametrize(
    ("record_type", "values"),
    [
        ("A", ["192.0.2.1", "192.0.2.1"]),
        ("AAAA", ["2001:db8::1", "2001:DB8:0::1"]),
        ("SRV", ["0 1 80 a.example.org", "0 1 80 A.example.org."]),
    ],
)
def test_duplicate_values_in_a_set(zone: WireZone, record_type: str, values: list[str]) -> None:
    assert zone.messages(wire_change("CREATE", "a.example.com", record_type, values)) == (
        f"Duplicate Resource Record: '{values[1]}'",
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("evilexample.com", "RRSet with DNS name evilexample.com. is not permitted in zone example.com."),
        ("example.org", "RRSet with DNS name example.org. is not permitted in zone example.com."),
        ("com", "RRSet with DNS name com. is not permitted in zone example.com."),
        ("a..example.com", "FATAL problem: DomainLabelEmpty (Domain label is empty) encountered with 'a..example.com'"),
        ("a b.example.com", "FATAL problem: UnsupportedCharacter"),
        ("ä.example.com", "FATAL problem: UnsupportedCharacter"),
        ("x" * 64 + ".example.com", "FATAL problem: DomainLabelTooLong"),
        (("x" * 60 + ".") * 4 + "example.com", "FATAL problem: DomainNameTooLong"),
    ],
)
def test_name_that_is_not_permitted(zone: WireZone, name: str, message: str) -> None:
    [found] = zone.messages(wire_change("CREATE", name, "A", ["192.0.2.1"]))
    assert found.startswith(message)


def test_names_are_stored_in_lower_case_and_escaped(zone: WireZone) -> None:
    for name in ("WEB.Example.com", "*.example.com", "\\141\\100b.example.com"):
        zone.apply(wire_change("CREATE", name, "A", ["192.0.2.1"]))
    assert {name for name, kind in zone.names() if kind == "A"} == {
        "web.example.com.",
        "\\052.example.com.",
        "a\\100b.example.com.",
    }
    [message] = zone.messages(wire_change("CREATE", "\\167eb.example.com", "A", ["192.0.2.1"]))
    assert message.endswith("[name='web.example.com.', type='A'] but it already exists")
