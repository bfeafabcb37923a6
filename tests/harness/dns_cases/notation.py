"""The notation of the table of cases: Services, endpoints and record sets as short texts, and back.

port          "http 80/TCP", "80/TCP"
endpoint      "10.1.0.1", "10.1.0.2 not-ready", "10.1.0.3 host=web-0"
record set    "NAME TYPE TTL VALUE, VALUE", "NAME TYPE [IDENTIFIER WEIGHT] TTL VALUE", "NAME TYPE alias ZONE HOST";
              another policy than a weight in words, as in "[blue latency eu-west-1]" (``Routing.words``);
              before it "ZONE: " where the cluster has several zones; after an alias "(health not evaluated)"
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet, Zone
from kubesync.domain.dns.routing.policies import (
    SIMPLE,
    Failover,
    Geolocation,
    Geoproximity,
    Latency,
    Multivalue,
    Routing,
    Weighted,
)
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, ObjectKey, Port

PREFIX: Final = "external-dns.alpha.kubernetes.io/"
ZONE: Final = Zone("Z1", "example.com")
_LINE: Final = re.compile(
    r"(?:(?P<zone>\w+): )?(?P<name>\S+) (?P<type>[A-Z]+) "
    r"(?:\[(?P<identifier>.+?) (?P<routing>\d+|(?:weighted|latency|failover|geolocation|geoproximity|multivalue)\b[^]]*)\] )?"
    r"(?:alias (?P<target>\S+) (?P<host>\S+)|(?P<ttl>\d+) (?P<values>.+))"
)


def ports_of(texts: Iterable[str]) -> list[tuple[str, str, int]]:
    """Name, protocol and number of each."""
    found = []
    for text in texts:
        name, _, rest = text.rpartition(" ")
        number, _, protocol = rest.partition("/")
        found.append((name, protocol, int(number)))
    return found


def pods(*members: str, ports: Iterable[str] = ("http 8080/TCP",), truncated: bool = False) -> EndpointsObject:
    """An EndpointSlice, or an Endpoints object of one subset."""
    found = []
    for member in members:
        ip, *words = member.split(" ")
        hostname = next((word.removeprefix("host=") for word in words if word.startswith("host=")), "")
        found.append(Endpoint(ip, ready="not-ready" not in words, hostname=hostname))
    group = EndpointGroup(tuple(found), tuple(Port(*port) for port in ports_of(ports)))
    return EndpointsObject("web", (group,), truncated)


def rules_for(cluster: str, settings: Mapping[str, Any]) -> DnsRules:
    """Cluster ``prod`` has the domain ``k8s.example.com``, and so have those with options of their own; others their name below
    ``example.com``. One zone, TTL 30.
    """
    of_all, own = dict(settings), settings.get("clusters", {}).get(cluster)
    of_all.pop("clusters", None)
    domain = "k8s.example.com" if cluster == "prod" or own is not None else f"{cluster}.example.com"
    return DnsRules(**{"cluster": cluster, "domain": domain, "zones": (ZONE,), **of_all, **(own or {})})


def key_of(text: str) -> ObjectKey:
    """``web``, ``shop/web`` or ``prod/shop/web``; an Ingress is ``Ingress:web``."""
    parts = text.split("/")
    return ObjectKey.parse("/".join([*("prod", "shop")[: 3 - len(parts)], *parts]))


def line_of(key: RecordKey, found: RecordSet, *, zones: bool) -> str:
    """A record set as a line."""
    fields = found.routing.report_fields
    weighted = f" [{key.identifier} {fields.get('routing', fields.get('weight'))}]" if key.identifier else ""
    zone = f"{key.zone_id}: " if zones else ""
    held = f"{found.ttl} {', '.join(found.values)}"
    if found.alias is not None:
        held = f"alias {found.alias.zone_id} {found.alias.name}"
        held += "" if found.alias.evaluate_health else " (health not evaluated)"
    return f"{zone}{key.name} {key.type}{weighted} {held}"


def sets_of(lines: Iterable[str]) -> dict[RecordKey, RecordSet]:
    """Lines as record sets."""
    found = {}
    for line in lines:
        match = _LINE.fullmatch(line)
        assert match is not None, line
        alias = AliasTarget(match["target"], match["host"], evaluate_health=True) if match["target"] else None
        key = RecordKey(match["zone"] or ZONE.id, match["name"], match["type"], match["identifier"] or "")
        found[key] = RecordSet(
            None if alias else int(match["ttl"]),
            () if alias else tuple(match["values"].split(", ")),
            alias,
            routing=_routing(match["routing"]) if match["routing"] else SIMPLE,
        )
    return found


def _routing(text: str) -> Routing:
    """The inverse of ``Routing.words``."""
    text, _, health_check = text.partition(", health check ")
    kind, *words = text.split(" ")
    named = dict(zip(words[::2], words[1::2], strict=False))
    match kind:
        case "latency":
            return Latency(words[0], health_check=health_check)
        case "failover":
            return Failover(words[0], health_check=health_check)
        case "geolocation":
            return Geolocation(**named, health_check=health_check)
        case "geoproximity":
            return Geoproximity(words[0], bias=int(words[2]), health_check=health_check)
        case "multivalue":
            return Multivalue(health_check=health_check)
    return Weighted(int(words[0] if words else kind), health_check=health_check)
