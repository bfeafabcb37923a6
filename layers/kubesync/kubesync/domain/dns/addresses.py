"""IP addresses and networks as values. Addresses sort by family, then by number, and each has one text."""

from __future__ import annotations

import ipaddress
from typing import Final, Literal, NamedTuple


class Address(NamedTuple):
    """An IPv4 or IPv6 address. Its natural order is the canonical one: IPv4 first, then by number.

    ``family`` is 4 or 6; ``text`` is dotted decimal, or the form that RFC 5952 defines.
    """

    family: int
    number: int
    text: str

    @property
    def record_type(self) -> Literal["A", "AAAA"]:
        """The type of the record set that holds this address."""
        return "A" if self.family == 4 else "AAAA"


def parse_address(text: str) -> Address | None:
    """Read an address. Returns None if the text is not an address; the caller reports it.

    Leading zeros in IPv4 and IPv6 zone identifiers (``%eth0``) are refused. An IPv4-mapped IPv6 address becomes the IPv4 address,
    as in Go's ``net.IP`` and therefore in Kubernetes. This also keeps the text the same on Python 3.12 and 3.13.
    """
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.scope_id is not None:
            return None
        if parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
    return Address(parsed.version, int(parsed), str(parsed))


class Network(NamedTuple):
    """A range of addresses of one family, both ends included."""

    family: int
    first: int
    last: int

    def holds(self, address: Address) -> bool:
        """Whether the address lies in it."""
        return self.family == address.family and self.first <= address.number <= self.last


def parse_network(text: str) -> Network | None:
    """Read a network in CIDR notation, such as ``10.0.0.0/8``; an address alone is a network of one.

    Returns None if the text is none, if address bits are set behind the prefix, or if it lies in ``::ffff:0:0/96``: addresses there
    are read as IPv4. The caller reports it.
    """
    try:
        parsed = ipaddress.ip_network(text)
    except ValueError:
        return None
    first, last = parsed.network_address, parsed.broadcast_address
    if isinstance(first, ipaddress.IPv6Address) and (first.scope_id is not None or first.ipv4_mapped is not None):
        return None
    return Network(parsed.version, int(first), int(last))


# RFC 6890 and 4291; fd00:ec2::/32: Amazon VPC user guide, "Route tables", reserved for services of AWS (instance metadata,
# credentials of pods, DNS, time).
_FORBIDDEN: Final = {
    "0.0.0.0/8": "unspecified",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "224.0.0.0/4": "multicast",
    "255.255.255.255/32": "broadcast",
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::/96": "an IPv4 address in an old form of IPv6",
    "fd00:ec2::/32": "of services of AWS, such as instance metadata",
    "fe80::/10": "link-local",
    "ff00::/8": "multicast",
}
_FORBIDDEN_NETWORKS: Final = tuple((parse_network(text), why) for text, why in _FORBIDDEN.items())
_NAT64: Final = Network(6, 0x64_FF9B << 96, (0x64_FF9B << 96) + 0xFFFF_FFFF)


def why_forbidden(address: Address) -> str:
    """Why nobody may newly be pointed at an address, in a word or two such as ``loopback``; empty if one may.

    A host takes these to be itself, its own link, or the cloud's services for this host. An address of ``64:ff9b::/96`` stands for
    an IPv4 address (RFC 6052), which decides.
    """
    if _NAT64.holds(address):
        return why_forbidden(Address(4, address.number - _NAT64.first, ""))
    return next((why for network, why in _FORBIDDEN_NETWORKS if network is not None and network.holds(address)), "")
