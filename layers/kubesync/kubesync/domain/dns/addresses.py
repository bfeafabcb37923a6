"""IP addresses and networks as values. Addresses sort by family, then by number, and each has one text."""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = re.compile(r"\.".join([_OCTET] * 4))


class Address(NamedTuple):
    """An IPv4 or IPv6 address. Its natural order is the canonical one: IPv4 first, then by number.

    ``family`` is 4 or 6; ``text`` is dotted decimal, or the form that RFC 5952 defines. ``forbidden``: see ``why_forbidden``; only
    ``parse_address`` sets it.
    """

    family: int
    number: int
    text: str
    forbidden: str = ""

    @property
    def record_type(self) -> Literal["A", "AAAA"]:
        """The type of the record set that holds this address."""
        return "A" if self.family == 4 else "AAAA"


def parse_address(text: str) -> Address | None:
    """Read an address. Returns None if the text is not an address; the caller reports it.

    Leading zeros in IPv4 and IPv6 zone identifiers (``%eth0``) are refused. An IPv4-mapped IPv6 address becomes the IPv4 address,
    as in Go's ``net.IP`` and therefore in Kubernetes. This also keeps the text the same on Python 3.12 and 3.13.
    """
    if plain := _IPV4.fullmatch(text):  # most texts are such; ``ipaddress`` takes ten times as long
        first, second, third, last = map(int, plain.groups())
        number = first << 24 | second << 16 | third << 8 | last
        return Address(4, number, text, why_forbidden(Address(4, number, text)))
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.scope_id is not None:
            return None
        if parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
    address = Address(parsed.version, int(parsed), str(parsed))
    return address._replace(forbidden=why) if (why := why_forbidden(address)) else address


class Network(NamedTuple):
    """A range of addresses of one family, both ends included."""

    family: int
    first: int
    last: int

    def holds(self, address: Address) -> bool:
        """Whether the address lies in it."""
        return self.family == address.family and self.first <= address.number <= self.last


def lies_in(address: Address, networks: Sequence[Network]) -> bool:
    """Whether a network holds the address. Without networks: there is no rule, so yes."""
    return not networks or any(network.holds(address) for network in networks)


def parse_network(text: str) -> Network | None:
    """Read a network in CIDR notation, such as ``10.0.0.0/8``; an address alone is a network of one.

    Returns None if the text is none, if address bits are set behind the prefix, or if it lies in ``::ffff:0:0/96``: addresses there
    are read as IPv4. The caller reports it.
    """
    try:
        parsed = ipaddress.ip_network(text)
    except ValueError:
        return None
    if "%" in text or getattr(parsed.network_address, "ipv4_mapped", None) is not None:
        return None
    return Network(parsed.version, int(parsed.network_address), int(parsed.broadcast_address))


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks. Leaves out texts that are none."""
    return tuple(network for text in texts if (network := parse_network(text)) is not None)


# The first that holds an address counts. RFC 6890 and 4291; ::/96 was for IPv4 addresses, and holds :: itself. fd00:ec2::/32 is reserved
# for services of AWS: instance metadata, credentials of pods, DNS, time (Amazon VPC user guide, "Route tables").
_FORBIDDEN: Final = {
    "loopback": "127.0.0.0/8 ::1/128",
    "unspecified": "0.0.0.0/8 ::/96",
    "link-local": "169.254.0.0/16 fe80::/10",
    "multicast": "224.0.0.0/4 ff00::/8",
    "broadcast": "255.255.255.255/32",
    "reserved for services of AWS": "fd00:ec2::/32",
}
# Flat, and compared without a call: each endpoint of each plan is checked.
_RANGES: Final = tuple((network, why) for why, texts in _FORBIDDEN.items() for network in parse_networks(texts.split()))
# The first 96 bits of ``64:ff9b::/96``.
_NAT64: Final = 0x64_FF9B << 64


def why_forbidden(address: Address) -> str:
    """Why nobody may newly be pointed at an address, in a word or two such as ``loopback``; empty if one may.

    A host takes these to be itself, its own link, or the cloud's services for this host. An address of ``64:ff9b::/96`` stands for
    an IPv4 address (RFC 6052), which decides.
    """
    family, number = address.family, address.number
    if family == 6 and number >> 32 == _NAT64:
        family, number = 4, number & 0xFFFF_FFFF
    for network, why in _RANGES:
        if network.first <= number <= network.last and network.family == family:
            return why
    return ""
