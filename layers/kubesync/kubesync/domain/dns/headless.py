"""Records of headless services apart from their addresses: host names of endpoints, and SRV (Kubernetes DNS 1.1, 2.4).

``name`` is always the Service's own name. ``plan`` takes what is published, and the problems.
"""

from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Final

from kubesync.domain.dns.addresses import Address
from kubesync.domain.dns.endpoints import AddressedGroup
from kubesync.domain.dns.names import canonical_name, why_illegal
from kubesync.domain.dns.publishing import MAX_VALUES, RecordPlan
from kubesync.domain.dns.records import Problem
from kubesync.domain.objects import Service, equal_share

MAX_HOST_NAMES: Final = 10_000
"""Of a Service (I9). A hosted zone holds no more record sets by default, and each name takes 3 KB of memory while it is planned."""
MAX_SRV_VALUES: Final = 40_000
"""Of all SRV sets of a Service (I9): 100 full ones. Beyond it, none holds more than an equal share."""


def published_groups(service: Service, groups: Sequence[AddressedGroup]) -> tuple[AddressedGroup, ...]:
    """The endpoints that DNS shows: ready ones, or all if the Service publishes addresses that are not ready."""
    if service.publish_not_ready:
        return tuple(groups)
    return tuple(group._replace(members=tuple(m for m in group.members if m[0].ready)) for group in groups)


def endpoints_source(service: Service) -> str:
    """Where the values of a headless Service come from, for people (``Origin.source``)."""
    return "endpoints, ready or not" if service.publish_not_ready else "ready endpoints"


def addresses_of(groups: Sequence[AddressedGroup]) -> frozenset[Address]:
    """The addresses of these groups, whatever their ports."""
    return frozenset(address for group in groups for _, address in group.members)


def endpoint_host_names(
    name: str, groups: Sequence[AddressedGroup], plan: RecordPlan
) -> tuple[dict[str, set[Address]], dict[str, str]]:
    """The names ``<hostname>.<name>`` of endpoints that have a host name, and their addresses.

    Returns:
        the addresses by full name, and the full name by the endpoint's ``hostname`` as written. Both lack a host name, and it is reported, if
        it is not one label, if its full name is in no zone, or if there are more than ``MAX_HOST_NAMES``. Of too many, names that the key
        holds already stay first, then the first in alphabetical order.
    """
    by_host: dict[str, set[Address]] = {}  # by the host name as written
    for group in groups:
        for endpoint, address in group.members:
            if endpoint.hostname:
                by_host.setdefault(endpoint.hostname, set()).add(address)
    names = {host: full for host in by_host if (full := _full_name(host, name, plan))}
    addresses: dict[str, set[Address]] = {}  # by full name
    for host, full in names.items():  # several, such as ``web-0`` and ``WEB-0``, may have one name
        addresses.setdefault(full, by_host[host]).update(by_host[host])
    if len(addresses) > MAX_HOST_NAMES:
        message = f"{len(addresses) - MAX_HOST_NAMES} of {len(addresses)} host names of endpoints have no names: "
        plan.problems.add(Problem("TooManyValues", name, f"{message}a Service has at most {MAX_HOST_NAMES}"))
        first = sorted(addresses, key=lambda full: (full not in plan.held.names, full))[:MAX_HOST_NAMES]
        addresses = {full: addresses[full] for full in first}
    return addresses, {host: full for host, full in names.items() if full in addresses}


def publish_headless_srv(
    name: str, service: Service, groups: Sequence[AddressedGroup], names: dict[str, str], plan: RecordPlan
) -> None:
    """Plan SRV for each named port: one value for each distinct pair of host name (see ``endpoint_host_names``) and endpoint port.

    All of them together have ``MAX_SRV_VALUES`` at most.

    Args:
        names: the full name of each host name that has addresses. Others get no SRV values.
    """
    # By name and protocol of a port: the numbers that groups offer it under (with a space, as SRV values have it), and these groups' indexes.
    offered: dict[tuple[str, str], dict[str, set[int]]] = {}
    for at, group in enumerate(groups):
        for port in group.ports:
            offered.setdefault((port.name, port.protocol), {}).setdefault(f"{port.port} ", set()).add(at)

    @cache  # ports of the same groups have the same host names
    def hosts(of_groups: frozenset[int]) -> Sequence[str]:
        members = (endpoint for at in of_groups for endpoint, _ in groups[at].members)
        return sorted({f"{names[endpoint.hostname]}." for endpoint in members if endpoint.hostname in names})

    # Of each SRV set: its name, how many values it has, and these as pairs of a port's number and the host names behind it. Values are
    # made as texts only when their set is published: before that it is known how many fit.
    sets: list[tuple[str, int, list[tuple[str, Sequence[str]]]]] = []
    for service_port in service.ports:
        of_port = sorted(offered.get((service_port.name, service_port.protocol), {}).items())
        pairs = [(number, hosts(frozenset(at))) for number, at in of_port]
        if service_port.name and (count := sum(len(of_number) for _, of_number in pairs)):
            sets.append((srv_owner(service_port.name, service_port.protocol, name), count, pairs))
    most = min(MAX_VALUES, equal_share((min(count, MAX_VALUES) for _, count, _ in sets), MAX_SRV_VALUES))
    if most < MAX_VALUES:
        message = f"its SRV sets hold at most {most} values each: a Service has at most {MAX_SRV_VALUES}"
        plan.problems.add(Problem("TooManyValues", name, message))
    for owner, count, pairs in sets:
        weight = max(1, 100 // count)
        values = (f"0 {weight} {number}{host}" for number, of_number in pairs for host in of_number)
        # With the count, the plan reports values beyond ``MAX_VALUES``. A lower limit was reported above.
        plan.publish_srv(owner, islice(values, most), endpoints_source(service), count if most == MAX_VALUES else 0)


def srv_owner(port_name: str, protocol: str, name: str) -> str:
    """``_<port name>._<protocol>.<name>`` (RFC 2782), lower case."""
    return f"_{port_name}._{protocol}.{name}".lower()


def _full_name(host: str, name: str, plan: RecordPlan) -> str:
    """``<hostname>.<name>``; empty, and reported, if it is not legal or matches no zone."""
    label = canonical_name(host)
    full = f"{label}.{name}"
    if "." in label or why_illegal(label):
        plan.problems.add(Problem("InvalidName", full, "an endpoint's host name is not one DNS label"))
        return ""
    return full if plan.zones_for(full) else ""
