"""The operations: a parsed HTTP request in, an answer or a refusal out.

Paths and methods: https://docs.aws.amazon.com/Route53/latest/APIReference/API_Operations_Amazon_Route_53.html
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kubesync_local.standins.route53.http_api import wire
from kubesync_local.standins.route53.http_api.faults import CHANGE, Call
from kubesync_local.standins.route53.zone.model import Element, SetKey
from kubesync_local.standins.route53.zone.names import NameRefusedError, listing_form, sort_key
from kubesync_local.standins.route53.zone.values import RECORD_TYPES
from kubesync_local.standins.route53.zone.zone import Account, HostedZone, RefusedError, Vpc, zone_name

# https://docs.aws.amazon.com/Route53/latest/APIReference/API_ListResourceRecordSets.html, MaxItems: more counts as 300.
_MAX_SETS_A_PAGE = 300
_MAX_ZONES_A_PAGE = 100


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed HTTP request. ``query`` has decoded values; ``resource`` is the id in the path, if any.

    ``access_key`` is the id of its signing key.
    """

    operation: str
    resource: str
    query: Mapping[str, str]
    body: bytes
    access_key: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]


_ROUTES: Final = (
    ("POST", re.compile(r"/2013-04-01/hostedzone"), "CreateHostedZone"),
    ("GET", re.compile(r"/2013-04-01/hostedzone"), "ListHostedZones"),
    ("GET", re.compile(r"/2013-04-01/hostedzonesbyname"), "ListHostedZonesByName"),
    ("GET", re.compile(r"/2013-04-01/hostedzone/([^/]+)"), "GetHostedZone"),
    ("DELETE", re.compile(r"/2013-04-01/hostedzone/([^/]+)"), "DeleteHostedZone"),
    ("POST", re.compile(r"/2013-04-01/hostedzone/([^/]+)/rrset"), CHANGE),
    ("GET", re.compile(r"/2013-04-01/hostedzone/([^/]+)/rrset"), "ListResourceRecordSets"),
    ("GET", re.compile(r"/2013-04-01/change/([^/]+)"), "GetChange"),
    ("GET", re.compile(r"/2013-04-01/tags/([^/]+/[^/]+)"), "ListTagsForResource"),
)


def route(method: str, path: str) -> tuple[str, str]:
    """Operation and resource id of a request line; ``""`` for an unknown operation."""
    for wanted_method, pattern, operation in _ROUTES:
        match = pattern.fullmatch(path.rstrip("/"))
        if match and method == wanted_method:
            return operation, match[1] if match.groups() else ""
    return "", path


class Operations:
    """All operations, on one account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._by_name: Mapping[str, Callable[[Request, Call], Answer]] = {
            "CreateHostedZone": self._create_zone,
            "ListHostedZones": self._list_zones,
            "ListHostedZonesByName": self._list_zones_by_name,
            "GetHostedZone": self._get_zone,
            "DeleteHostedZone": self._delete_zone,
            CHANGE: self._change,
            "ListResourceRecordSets": self._list_sets,
            "GetChange": self._get_change,
            "ListTagsForResource": self._list_tags,
        }

    def call(self, request: Request) -> Call:
        """The request as tests see it in ``calls``. Raises RefusedError if a batch cannot be parsed."""
        call = Call(request.operation, request.resource)
        if request.operation == CHANGE:
            call.changes, call.comment = wire.parse_batch(request.body)
        call.access_key = request.access_key
        return call

    def perform(self, request: Request, call: Call) -> Answer:
        """Perform the request. Raises RefusedError."""
        operation = self._by_name.get(request.operation)
        if operation is None:
            message = f"the Route 53 stand-in does not know this operation: {request.resource}"
            raise RefusedError(501, "UnknownOperationException", message)
        return operation(request, call)

    def _create_zone(self, request: Request, _: Call) -> Answer:
        document = wire.parse(request.body, "CreateHostedZoneRequest")
        try:
            name = zone_name(wire.text(document, "Name"))
        except NameRefusedError as error:
            raise RefusedError(400, "InvalidDomainName", str(error)) from None
        config, vpc = wire.child(document, "HostedZoneConfig"), wire.child(document, "VPC")
        if vpc is None and wire.text(config, "PrivateZone") == "true":
            # https://docs.aws.amazon.com/Route53/latest/APIReference/API_CreateHostedZone.html, VPC
            raise RefusedError(400, "InvalidInput", "When you create a private hosted zone you must specify a VPC.")
        zone = self._account.create(
            name,
            wire.text(document, "CallerReference"),
            None if vpc is None else Vpc(wire.text(vpc, "VPCRegion"), wire.text(vpc, "VPCId")),
            wire.text(config, "Comment"),
        )
        body = wire.created_zone(zone, wire.change_info(self._account.new_change(), "PENDING"))
        return Answer(201, body, {"Location": f"https://route53.amazonaws.com/2013-04-01/hostedzone/{zone.id}"})

    def _get_zone(self, request: Request, _: Call) -> Answer:
        return _ok(wire.described_zone(self._account.zone(request.resource)))

    def _delete_zone(self, request: Request, _: Call) -> Answer:
        change_id = self._account.delete(request.resource)
        return _ok(wire.document("DeleteHostedZoneResponse", wire.change_info(change_id, "PENDING")))

    def _list_zones(self, request: Request, _: Call) -> Answer:
        """By id, from the marker."""
        size = _max_items(request.query, _MAX_ZONES_A_PAGE)
        zones = [zone for zone in self._account.zones() if zone.id >= request.query.get("marker", "")]
        parts = [_zones(zones[:size]), Element("IsTruncated", _boolean(len(zones) > size))]
        if "marker" in request.query:
            parts.append(Element("Marker", request.query["marker"]))
        if len(zones) > size:
            parts.append(Element("NextMarker", zones[size].id))
        return _ok(wire.document("ListHostedZonesResponse", *parts, Element("MaxItems", str(size))))

    def _list_zones_by_name(self, request: Request, _: Call) -> Answer:
        # By reversed name, then id: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ListHostedZonesByName.html
        size = _max_items(request.query, _MAX_ZONES_A_PAGE)
        written = request.query.get("dnsname", "")
        start = (sort_key(_name(written)) if written else b"", request.query.get("hostedzoneid", ""))
        ordered = sorted(self._account.zones(), key=lambda zone: (sort_key(zone.name), zone.id))
        zones = [zone for zone in ordered if (sort_key(zone.name), zone.id) >= start]
        parts = [_zones(zones[:size])]
        if written:
            parts.append(Element("DNSName", _name(written)))
        parts.append(Element("IsTruncated", _boolean(len(zones) > size)))
        if len(zones) > size:
            parts += [Element("NextDNSName", zones[size].name), Element("NextHostedZoneId", zones[size].id)]
        return _ok(wire.document("ListHostedZonesByNameResponse", *parts, Element("MaxItems", str(size))))

    def _change(self, request: Request, call: Call) -> Answer:
        change_id = self._account.change(request.resource, call.changes)
        return _ok(
            wire.document("ChangeResourceRecordSetsResponse", wire.change_info(change_id, "PENDING", call.comment))
        )

    def _list_sets(self, request: Request, _: Call) -> Answer:
        """https://docs.aws.amazon.com/Route53/latest/APIReference/API_ListResourceRecordSets.html"""
        query = request.query
        size = _max_items(query, _MAX_SETS_A_PAGE)
        if "type" in query and "name" not in query:
            raise RefusedError(400, "InvalidInput", "The input is not valid: type is specified without name.")
        if "identifier" in query and "type" not in query:
            raise RefusedError(400, "InvalidInput", "The input is not valid: identifier is specified without type.")
        if query.get("type", "A") not in RECORD_TYPES:
            raise RefusedError(400, "InvalidInput", f"Invalid record type: {query['type']}")
        start = (
            SetKey(_name(query["name"]), query.get("type", ""), query.get("identifier", ""))
            if "name" in query
            else None
        )
        return _ok(wire.record_sets(self._account.page(request.resource, start, size), size))

    def _get_change(self, request: Request, _: Call) -> Answer:
        if not self._account.has_change(request.resource):
            message = f"Could not find resource with ID: {request.resource}"
            raise RefusedError(404, "NoSuchChange", message)
        # The stand-in has no name servers: a change is in sync at once.
        return _ok(wire.document("GetChangeResponse", wire.change_info(request.resource, "INSYNC")))

    def _list_tags(self, request: Request, _: Call) -> Answer:
        kind, resource = request.resource.split("/")
        if kind != "hostedzone":
            raise RefusedError(404, "NoSuchHealthCheck", f"A health check with id {resource} does not exist.")
        self._account.zone(resource)
        tags = (Element("ResourceType", kind), Element("ResourceId", resource), Element("Tags"))
        return _ok(wire.document("ListTagsForResourceResponse", Element("ResourceTagSet", "", tags)))


def _ok(body: bytes) -> Answer:
    return Answer(200, body, {})


def _zones(zones: list[HostedZone]) -> Element:
    return Element("HostedZones", "", tuple(wire.hosted_zone(zone) for zone in zones))


def _max_items(query: Mapping[str, str], most: int) -> int:
    written = query.get("maxitems", str(most))
    if not re.fullmatch(r"[0-9]{1,9}", written) or int(written) < 1:
        raise RefusedError(400, "InvalidInput", f"Value '{written}' at 'maxItems' failed to satisfy constraint")
    return min(int(written), most)


def _name(written: str) -> str:
    try:
        return listing_form(written)
    except NameRefusedError as error:
        raise RefusedError(400, "InvalidInput", str(error)) from None


def _boolean(value: bool) -> str:
    return "true" if value else "false"
