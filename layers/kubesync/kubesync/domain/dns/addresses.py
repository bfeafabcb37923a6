"""IP addresses as values. They sort by family, then by number, and each has one text."""

from __future__ import annotations

import ipaddress
from typing import Literal, NamedTuple


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
