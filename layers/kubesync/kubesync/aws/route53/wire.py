r"""Record sets in Route 53's form and in kubesync's: names, values, and routing policies as fields of a ResourceRecordSet.

https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DomainNameFormat.html: Route 53 lists names in lower case with
a trailing dot. It writes every character except a-z, 0-9, ``-`` and ``_`` as ``\ooo`` (octal).

    kubesync's name           Route 53's
    ---------------           ----------
    web.example.com           web.example.com.
    *.example.com             \052.example.com.
    a\056b.example.com        a\056b.example.com.     a dot in a label stays escaped, like unprintable characters

Fields: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kubesync.aws.route53.zones import BatchChange
from kubesync.domain.dns.records import AliasTarget, RecordSet
from kubesync.domain.dns.routing.policies import (
    SIMPLE,
    Failover,
    Geolocation,
    Geoproximity,
    Latency,
    Multivalue,
    NotPossible,
    Routing,
    Simple,
    Weighted,
    point_of,
)

if TYPE_CHECKING:
    from mypy_boto3_route53.type_defs import ChangeTypeDef, ResourceRecordSetOutputTypeDef, ResourceRecordSetTypeDef

_OCTAL = re.compile(r"\\([0-3][0-7]{2})")
_NOT_PLAIN = re.compile(r"(\\[0-3][0-7]{2})|[^a-z0-9_.-]")
# Without their escapes these would change the meaning of the name.
_STAYS_ESCAPED = frozenset(".\\")
# The fields that a set may have, whatever its routing policy is.
_OF_EVERY_SET: Final = frozenset({"Name", "Type", "TTL", "ResourceRecords", "AliasTarget"})
_PLACES: Final = {"continent": "ContinentCode", "country": "CountryCode", "subdivision": "SubdivisionCode"}


@lru_cache(maxsize=65_536)
def from_route53(name: str) -> str:
    """Convert a name from Route 53's form to kubesync's."""
    return _OCTAL.sub(_readable, name).lower().removesuffix(".")


def _readable(escape: re.Match[str]) -> str:
    """The character of an octal escape. The escape itself, if the character is not visible, or a dot or backslash."""
    character = chr(int(escape[1], 8))
    return character if "!" <= character <= "~" and character not in _STAYS_ESCAPED else escape[0]


@lru_cache(maxsize=65_536)
def to_route53(name: str) -> str:
    """Convert a name from kubesync's form to the one that Route 53 lists."""
    return _NOT_PLAIN.sub(_escaped, name.lower()).removesuffix(".") + "."


def _escaped(found: re.Match[str]) -> str:
    """An escape that the name has already, as it is. For any other character, an octal escape of each of its bytes."""
    return found[1] or "".join(f"\\{byte:03o}" for byte in found[0].encode())


def _address(value: str) -> str:
    return str(ipaddress.ip_address(value))


def _host(value: str) -> str:
    return value.lower().removesuffix(".") + "."


def _host_after_numbers(value: str) -> str:
    """The value of an SRV or MX set: ``0 100 080 Web.Example.COM`` becomes ``0 100 80 web.example.com.``."""
    *numbers, host = value.split()
    return " ".join([*(str(int(number)) for number in numbers), _host(host)])


_CANONICAL: Final[Mapping[str, Callable[[str], str]]] = {
    "A": _address,
    "AAAA": _address,
    "CNAME": _host,
    "MX": _host_after_numbers,
    "NS": _host,
    "PTR": _host,
    "SRV": _host_after_numbers,
}


def canonical_values(record_type: str, values: Iterable[str]) -> tuple[str, ...]:
    """Values in the canonical form, in which equal values mean the same: see ``domain.dns.records.RecordSet``.

    Route 53 returns values as somebody wrote them: addresses in any notation, host names in any case and without the
    trailing dot. Addresses are sorted by number, everything else as text.
    """
    canonical = {_canonical(record_type, value) for value in values}
    if record_type in ("A", "AAAA"):
        return tuple(sorted(canonical, key=_sort_key))
    return tuple(sorted(canonical))


def _canonical(record_type: str, value: str) -> str:
    """One value in the canonical form.

    A value that cannot be read as one of its type stays as it is. Somebody else wrote it. kubesync writes no such value, so the set never
    counts as equal to one of ours.
    """
    try:
        return _CANONICAL.get(record_type, str)(value)
    except ValueError:
        return value


def _sort_key(value: str) -> tuple[int, int, str]:
    """The sort key of a value of an A or AAAA set: IPv4 before IPv6, then by number. Texts that are no address come first, in order."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return 0, 0, value
    return address.version, int(address), value


def _location(routing: Geoproximity) -> dict[str, Any]:
    """The field GeoProximityLocation. It names the place in one of three ways: a region, a local zone group, or coordinates."""
    where: dict[str, Any] = {"LocalZoneGroup": routing.local_zone_group}
    if routing.region:
        where = {"AWSRegion": routing.region}
    elif routing.coordinates:
        latitude, _, longitude = routing.coordinates.partition(",")
        where = {"Coordinates": {"Latitude": latitude, "Longitude": longitude}}
    return where | {"Bias": routing.bias}


def _values_of_location(where: Mapping[str, Any]) -> tuple[Any, ...]:
    """The inverse of ``_location``: the fields of a ``Geoproximity``, in their order."""
    point = where.get("Coordinates")
    at = "" if point is None else point_of(f"{point['Latitude']},{point['Longitude']}")
    return where.get("AWSRegion", ""), where.get("LocalZoneGroup", ""), at, where.get("Bias", 0)


@dataclass(frozen=True, slots=True)
class _Field:
    """The field of Route 53 that only sets of one routing policy have.

    ``content`` makes the field's content of a policy. ``values`` is its inverse: the arguments of the policy's class, in their order.
    """

    name: str
    content: Callable[[Any], Any]
    values: Callable[[Any], tuple[Any, ...]]


_FIELDS: Final[Mapping[type[Routing], _Field]] = {
    Weighted: _Field("Weight", lambda policy: policy.weight, lambda weight: (weight,)),
    Latency: _Field("Region", lambda policy: policy.region, lambda region: (region,)),
    Failover: _Field("Failover", lambda policy: policy.role, lambda role: (role,)),
    Multivalue: _Field("MultiValueAnswer", lambda _policy: True, lambda _true: ()),
    Geolocation: _Field(
        "GeoLocation",
        lambda policy: {_PLACES[name]: place for name, place in policy.details.items()},
        lambda found: tuple(found.get(place, "") for place in _PLACES.values()),
    ),
    Geoproximity: _Field("GeoProximityLocation", _location, _values_of_location),
}


def to_fields(routing: Routing, identifier: str) -> dict[str, Any]:
    """The fields of a set that say its policy: none for a simple set. Raises ValueError if policy and set identifier do not go together."""
    needs_identifier = not isinstance(routing, Simple)
    if bool(identifier) != needs_identifier:
        raise ValueError("a set identifier goes with every routing policy but the simple one")
    if isinstance(routing, NotPossible):
        raise ValueError("nothing is sent that is not possible")
    if isinstance(routing, Simple):
        return {}
    field = _FIELDS[type(routing)]
    fields = {"SetIdentifier": identifier, field.name: field.content(routing)}
    return fields | ({"HealthCheckId": routing.health_check} if routing.health_check else {})


def from_fields(item: Mapping[str, Any]) -> tuple[Routing, str]:
    """Read the fields of a set as Route 53 lists it. Returns its routing policy, and its ``foreign_form``.

    The foreign form names the fields that kubesync never writes with this policy, also fields that Route 53 may add in the future. Empty: there
    are none. A set that has one never equals a set of ours, so kubesync neither changes nor deletes it (I3).
    """
    for policy, field in _FIELDS.items():
        content = item.get(field.name, False)
        if content is not False:  # False: the field is missing, or it is MultiValueAnswer, which may be false
            routing = policy(*field.values(content), health_check=item.get("HealthCheckId", ""))
            return routing, _foreign(item, _OF_EVERY_SET | {"SetIdentifier", "HealthCheckId", field.name})
    return SIMPLE, _foreign(item, _OF_EVERY_SET)


def _foreign(item: Mapping[str, Any], ours: frozenset[str]) -> str:
    """The fields that are not among ``ours``, as one text; empty: there are none."""
    return ",".join(f"{field}={value}" for field, value in sorted(item.items()) if field not in ours)


def to_change(change: BatchChange) -> ChangeTypeDef:
    """Convert an element of a change batch. Raises ValueError if kubesync must never write this set: a fault of the caller."""
    wanted = change.record_set
    if wanted.foreign_form:
        raise ValueError(f"kubesync never writes a set of this form: {wanted.foreign_form}")
    record_set: ResourceRecordSetTypeDef = {
        "Name": to_route53(change.key.name),
        "Type": change.key.type,  # type: ignore[typeddict-item]  # Route 53 itself refuses unknown types
    }
    record_set.update(to_fields(wanted.routing, change.key.identifier))  # type: ignore[typeddict-item]  # plain mappings
    if wanted.alias is not None:
        record_set["AliasTarget"] = {
            "HostedZoneId": wanted.alias.zone_id,
            "DNSName": to_route53(wanted.alias.name),
            "EvaluateTargetHealth": wanted.alias.evaluate_health,
        }
    else:
        if wanted.ttl is None:
            raise ValueError("a set that is not an alias needs a TTL")
        record_set["TTL"] = wanted.ttl
        record_set["ResourceRecords"] = [{"Value": value} for value in wanted.values]
    return {"Action": change.action, "ResourceRecordSet": record_set}


def from_listed(item: ResourceRecordSetOutputTypeDef) -> RecordSet:
    """A record set as Route 53 lists it."""
    alias = item.get("AliasTarget")
    routing, foreign_form = from_fields(item)
    return RecordSet(
        ttl=item.get("TTL"),
        values=canonical_values(item["Type"], (record["Value"] for record in item.get("ResourceRecords", ()))),
        alias=None
        if alias is None
        else AliasTarget(alias["HostedZoneId"], from_route53(alias["DNSName"]), alias["EvaluateTargetHealth"]),
        foreign_form=foreign_form,
        routing=routing,
    )
