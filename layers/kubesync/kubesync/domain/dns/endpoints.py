"""Endpoints with parsed addresses. They are parsed once, for records and upstreams alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubesync.domain.dns.addresses import Address, parse_address
from kubesync.domain.dns.records import Problem
from kubesync.domain.objects import Endpoint, EndpointPort, EndpointsObject


class AddressedGroup(NamedTuple):
    """An EndpointGroup whose addresses are values."""

    members: tuple[tuple[Endpoint, Address], ...]
    ports: tuple[EndpointPort, ...]


def addressed_groups(objects: Sequence[EndpointsObject], problems: set[Problem]) -> tuple[AddressedGroup, ...]:
    """Parse the addresses of all groups. Reports truncated objects and host names; leaves out and reports wrong addresses (I4)."""
    groups = []
    for group in (group for found in objects for group in found.groups):
        members = []
        for endpoint in group.endpoints:
            address = parse_address(endpoint.ip)
            if address is None:
                problems.add(Problem("InvalidAddress", endpoint.ip, "an endpoint's address is not an IP address"))
            else:
                members.append((endpoint, address))
        groups.append(AddressedGroup(tuple(members), group.ports))
    if any(found.truncated for found in objects):
        problems.add(
            Problem(
                "EndpointsTruncated",
                "endpoints",
                "the Endpoints object is truncated, addresses are missing; watch EndpointSlices instead",
            )
        )
    if any(found.fqdn for found in objects):
        problems.add(
            Problem(
                "EndpointsFqdn",
                "endpointslices",
                "an EndpointSlice holds host names instead of addresses; they are not nodes",
            )
        )
    return tuple(groups)
