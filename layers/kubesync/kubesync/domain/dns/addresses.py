"""IP addresses as values that sort by family, then by number, and have one text each."""

from __future__ import annotations

import ipaddress
from typing import Literal, NamedTuple


class Address(NamedTuple):
    """An IPv4 or IPv6 address. The natural order is the canonical one: IPv4 first, then numeric.

    ``family`` is 4 or 6; ``text`` is dotted decimal, or the form of RFC 5952.
    """

    family: int
    number: int
    text: str

    @property
    def record_type(self) -> Literal["A", "AAAA"]:
        """The type of the record set that holds it."""
        return "A" if self.family == 4 else "AAAA"


def parse_address(text: str) -> Address | None:
    """Read an address; None where it is not one (the caller reports it).

    Leading zeros in IPv4 and IPv6 zone identifiers (``%eth0``) are refused. An IPv4-mapped IPv6 address is the IPv4 address, as
    Go's ``net.IP`` and therefore Kubernetes see it; this also keeps the text the same on Python 3.12 and 3.13.
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
