"""Endpoints with parsed addresses. They are parsed once, for records and upstreams alike."""

from collections.abc import Sequence
from typing import NamedTuple

from kubesync.domain.dns.addresses import Address, Network, lies_in, parse_address
from kubesync.domain.dns.records import Problem
from kubesync.domain.objects import Endpoint, EndpointsObject, Port


class AddressedGroup(NamedTuple):
    """An EndpointGroup whose addresses are values: pairs of an endpoint and its address, and the ports that all of them have."""

    members: tuple[tuple[Endpoint, Address], ...]
    ports: tuple[Port, ...]


def address_not_allowed(address: str, why: str, *, stands: bool = False) -> Problem:
    """The problem of an address that a rule keeps out. ``why``: the rule. ``stands``: it is there already, and stays."""
    what = "it stays where it stands, and is published nowhere else" if stands else "left out"
    return Problem("AddressNotAllowed", address, f"{why}: {what}")


def addressed_groups(
    objects: Sequence[EndpointsObject], problems: set[Problem], networks: Sequence[Network] = ()
) -> tuple[AddressedGroup, ...]:
    """Parse the addresses of all groups. Reports truncated objects and host names; leaves out and reports wrong addresses (I4).

    Args:
        problems: takes what is reported.
        networks: addresses outside of these are left out too. Empty: none is.
    """
    groups = []
    for group in (group for found in objects for group in found.groups):
        members = []
        for endpoint in group.endpoints:
            address = parse_address(endpoint.ip)
            if address is None:
                problems.add(Problem("InvalidAddress", endpoint.ip, "an endpoint's address is not an IP address"))
            elif not lies_in(address, networks):
                problems.add(address_not_allowed(address.text, "outside --endpoint-cidrs"))
            else:
                members.append((endpoint, address))
        groups.append(AddressedGroup(tuple(members), group.ports))
    if any(found.truncated for found in objects):
        why = "the Endpoints object is truncated, addresses are missing; watch EndpointSlices instead"
        problems.add(Problem("EndpointsTruncated", "endpoints", why))
    if any(found.fqdn for found in objects):
        why = "an EndpointSlice holds host names instead of addresses; they are not nodes"
        problems.add(Problem("EndpointsFqdn", "endpointslices", why))
    return tuple(groups)
