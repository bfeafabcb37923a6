"""Addresses that nobody may newly be pointed at, and networks in CIDR notation."""

import ipaddress

import pytest
from hypothesis import given, strategies as st

from kubesync.domain.dns.addresses import Address, Network, parse_address, parse_network, why_forbidden

FORBIDDEN = {
    "0.0.0.0": "unspecified",
    "0.255.255.255": "unspecified",
    "127.0.0.1": "loopback",
    "127.255.255.255": "loopback",
    "169.254.0.0": "link-local",
    "169.254.169.254": "link-local",
    "169.254.170.23": "link-local",
    "169.254.255.255": "link-local",
    "224.0.0.0": "multicast",
    "239.255.255.255": "multicast",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::127.0.0.1": "unspecified",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:a9fe:a9fe": "link-local",
    "64:ff9b::127.0.0.1": "loopback",
    "64:ff9b::a9fe:a9fe": "link-local",
    "fd00:ec2::254": "reserved for services of AWS",
    "fd00:ec2::23": "reserved for services of AWS",
    "fd00:0ec2:ffff::1": "reserved for services of AWS",
    "fe80::1": "link-local",
    "febf::1": "link-local",
    "ff00::": "multicast",
    "ff02::1": "multicast",
}
ALLOWED = (
    "1.0.0.0", "10.0.0.1", "126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.0", "172.16.0.1", "192.168.0.1",
    "192.0.2.1", "100.64.0.1", "198.18.0.1", "223.255.255.255", "240.0.0.1", "255.255.255.254", "::1:0:0:1", "2001:db8::1",
    "fd00::1", "fd00:ec1:ffff::", "fd00:ec3::", "fd12:3456::254", "fe7f::1", "fec0::1", "fe00::", "64:ff9b::10.0.0.1",
    "64:ff9b::1:0:0",
)  # fmt: skip


def address(text: str) -> Address:
    found = parse_address(text)
    assert found is not None, text
    return found


@pytest.mark.parametrize(("text", "why"), FORBIDDEN.items())
def test_address_of_a_host_itself_or_of_its_link_is_forbidden(text: str, why: str) -> None:
    assert why_forbidden(address(text)) == why


@pytest.mark.parametrize("text", ALLOWED)
def test_other_addresses_are_allowed(text: str) -> None:
    assert why_forbidden(address(text)) == ""


@given(st.ip_addresses())
def test_whatever_python_calls_loopback_link_local_multicast_or_unspecified_is_forbidden(
    drawn: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if drawn.is_loopback or drawn.is_link_local or drawn.is_multicast or drawn.is_unspecified:
        assert why_forbidden(address(str(drawn)))


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", Network(4, 0x0A000000, 0x0AFFFFFF)),
        ("192.0.2.7", Network(4, 0xC0000207, 0xC0000207)),
        ("0.0.0.0/0", Network(4, 0, 0xFFFFFFFF)),
        ("2001:db8::/32", Network(6, 0x20010DB8 << 96, (0x20010DB9 << 96) - 1)),
        ("::/0", Network(6, 0, (1 << 128) - 1)),
        ("10.0.0.1/8", None),
        ("10.0.0.0/33", None),
        ("10.0.0.0/", None),
        ("10.0.0/8", None),
        ("010.0.0.0/8", None),
        ("fe80::%eth0/64", None),
        ("::ffff:10.0.0.0/104", None),
        ("example.com", None),
        ("", None),
    ],
)
def test_network_is_read_in_cidr_notation(text: str, network: Network | None) -> None:
    assert parse_network(text) == network


def test_network_holds_addresses_of_its_family_between_its_ends() -> None:
    network = parse_network("10.1.0.0/16")
    assert network is not None
    texts = ("10.0.255.255", "10.1.0.0", "10.1.255.255", "10.2.0.0", "::a01:0", "::ffff:10.1.0.9")
    assert [text for text in texts if network.holds(address(text))] == ["10.1.0.0", "10.1.255.255", "::ffff:10.1.0.9"]
