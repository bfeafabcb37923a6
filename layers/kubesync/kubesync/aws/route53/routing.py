"""Routing policies as fields of a ResourceRecordSet, and back.

Source: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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

_OF_EVERY_SET: Final = frozenset({"Name", "Type", "TTL", "ResourceRecords", "AliasTarget"})
_PLACES: Final = {"continent": "ContinentCode", "country": "CountryCode", "subdivision": "SubdivisionCode"}


def to_fields(routing: Routing, identifier: str) -> dict[str, Any]:
    """The fields of a policy. Raises ValueError if it is a simple one with an identifier, or another one without."""
    if bool(identifier) is isinstance(routing, Simple):
        raise ValueError("a set identifier goes with every routing policy but the simple one")
    fields: dict[str, Any] = {"SetIdentifier": identifier} if identifier else {}
    match routing:
        case Simple():
            pass
        case NotPossible():
            raise ValueError("nothing is sent that is not possible")
        case Weighted():
            fields["Weight"] = routing.weight
        case Latency():
            fields["Region"] = routing.region
        case Failover():
            fields["Failover"] = routing.role
        case Multivalue():
            fields["MultiValueAnswer"] = True
        case Geolocation():
            fields["GeoLocation"] = {_PLACES[name]: place for name, place in routing.details.items()}
        case Geoproximity():
            fields["GeoProximityLocation"] = _location(routing)
    return fields | ({"HealthCheckId": routing.health_check} if routing.health_check else {})


def _location(routing: Geoproximity) -> dict[str, Any]:
    where: dict[str, Any] = {"LocalZoneGroup": routing.local_zone_group}
    if routing.region:
        where = {"AWSRegion": routing.region}
    elif routing.coordinates:
        latitude, _, longitude = routing.coordinates.partition(",")
        where = {"Coordinates": {"Latitude": latitude, "Longitude": longitude}}
    return where | {"Bias": routing.bias}


def from_fields(item: Mapping[str, Any]) -> tuple[Routing, str]:
    """The policy of a set as Route 53 lists it, and what of it kubesync never makes, also what a later Route 53 may add (I3)."""
    health_check = item.get("HealthCheckId", "")
    routing: Routing = SIMPLE
    match item:
        case {"Weight": weight}:
            routing, field = Weighted(weight, health_check=health_check), "Weight"
        case {"Region": region}:
            routing, field = Latency(region, health_check=health_check), "Region"
        case {"Failover": role}:
            routing, field = Failover(role, health_check=health_check), "Failover"
        case {"MultiValueAnswer": True}:
            routing, field = Multivalue(health_check=health_check), "MultiValueAnswer"
        case {"GeoLocation": places}:
            found = {name: places.get(place, "") for name, place in _PLACES.items()}
            routing, field = Geolocation(**found, health_check=health_check), "GeoLocation"
        case {"GeoProximityLocation": where}:
            point = where.get("Coordinates")
            at = "" if point is None else point_of(f"{point['Latitude']},{point['Longitude']}")
            place = (where.get("AWSRegion", ""), where.get("LocalZoneGroup", ""), at)
            routing, field = (
                Geoproximity(*place, where.get("Bias", 0), health_check=health_check),
                "GeoProximityLocation",
            )
        case _:
            return SIMPLE, _foreign(item, _OF_EVERY_SET)
    return routing, _foreign(item, _OF_EVERY_SET | {"SetIdentifier", "HealthCheckId", field})


def _foreign(item: Mapping[str, Any], ours: frozenset[str]) -> str:
    return ",".join(f"{field}={value}" for field, value in sorted(item.items()) if field not in ours)
