"""Route 53's XML, both ways. https://docs.aws.amazon.com/Route53/latest/APIReference/Welcome.html"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from kubesync_local.standins.route53.zone.model import ROUTING_ELEMENTS, Alias, Change, Element, SetKey, StoredSet
from kubesync_local.standins.route53.zone.names import NameRefusedError, listing_form
from kubesync_local.standins.route53.zone.zone import HostedZone, Page, RefusedError, Vpc

NAMESPACE = "https://route53.amazonaws.com/doc/2013-04-01/"
_PREFIX = f"{{{NAMESPACE}}}"
_KNOWN = {"Name", "Type", "SetIdentifier", "TTL", "ResourceRecords", "AliasTarget", "HealthCheckId", *ROUTING_ELEMENTS}


def parse(body: bytes, root: str) -> ET.Element:
    """The document element; it must be ``root`` in Route 53's namespace. Raises RefusedError."""
    try:
        document = ET.fromstring(body)  # noqa: S314 - fed by the tests of this project only
    except ET.ParseError as error:
        raise RefusedError(400, "InvalidInput", f"Invalid XML ; {error}") from None
    if document.tag != _PREFIX + root:
        raise RefusedError(400, "MalformedInput", f"{document.tag.removeprefix(_PREFIX)} is not valid, expected {root}")
    return document


def text(parent: ET.Element | None, tag: str) -> str:
    """The text of a child, empty if there is none."""
    return "" if parent is None else parent.findtext(_PREFIX + tag, "")


def child(parent: ET.Element, tag: str) -> ET.Element | None:
    """A child element."""
    return parent.find(_PREFIX + tag)


def parse_batch(body: bytes) -> tuple[tuple[Change, ...], str]:
    """Changes and comment of a ChangeResourceRecordSets request. Raises RefusedError if it has another form."""
    batch = child(parse(body, "ChangeResourceRecordSetsRequest"), "ChangeBatch")
    if batch is None:
        raise RefusedError(400, "InvalidInput", "Invalid XML ; One of 'ChangeBatch' is expected.")
    changes = child(batch, "Changes")
    return tuple(_change(element) for element in ([] if changes is None else changes)), text(batch, "Comment")


def _change(element: ET.Element) -> Change:
    wanted = child(element, "ResourceRecordSet")
    if wanted is None:
        raise RefusedError(400, "InvalidInput", "Invalid XML ; One of 'ResourceRecordSet' is expected.")
    unknown = {part.tag.removeprefix(_PREFIX) for part in wanted} - _KNOWN
    if unknown:
        raise RefusedError(
            400, "InvalidInput", f"Invalid XML ; Invalid content was found starting with {min(unknown)!r}."
        )
    typed = text(wanted, "Name")
    records = child(wanted, "ResourceRecords")
    record_set = StoredSet(
        key=SetKey(_listing_form(typed), text(wanted, "Type"), text(wanted, "SetIdentifier")),
        ttl=_ttl(wanted),
        values=tuple(text(record, "Value") for record in ([] if records is None else records)),
        alias=_alias(child(wanted, "AliasTarget")),
        routing=tuple(_element(part) for part in wanted if part.tag.removeprefix(_PREFIX) in ROUTING_ELEMENTS),
        health_check_id=text(wanted, "HealthCheckId"),
    )
    return Change(text(element, "Action"), record_set, typed)


def _listing_form(name: str) -> str:
    try:
        return listing_form(name)
    except NameRefusedError:
        return name  # The rules refuse it, together with all other bad changes of the batch.


def _ttl(wanted: ET.Element) -> int | None:
    written = text(wanted, "TTL")
    if not written:
        return None
    try:
        return int(written)
    except ValueError:
        raise RefusedError(
            400, "InvalidInput", f"Invalid XML ; '{written}' is not a valid value for 'integer'."
        ) from None


def _alias(target: ET.Element | None) -> Alias | None:
    if target is None:
        return None
    return Alias(
        text(target, "HostedZoneId"),
        _listing_form(text(target, "DNSName")),
        text(target, "EvaluateTargetHealth") == "true",
    )


def _element(part: ET.Element) -> Element:
    return Element(part.tag.removeprefix(_PREFIX), part.text or "", tuple(_element(inner) for inner in part))


# Answers. Our own Element tree: answers do not depend on how ElementTree writes namespaces.


def document(root: str, *children: Element) -> bytes:
    """An answer's body."""
    return f'<?xml version="1.0"?>\n{_xml(Element(root, "", children), f' xmlns="{NAMESPACE}"')}'.encode()


def _xml(element: Element, attributes: str = "") -> str:
    inside = _escaped(element.text) + "".join(_xml(inner) for inner in element.children)
    return f"<{element.tag}{attributes}>{inside}</{element.tag}>"


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def error_document(error: RefusedError, request_id: str, *, legacy_root: bool) -> bytes:
    """An error's body.

    ``legacy_root``: InvalidChangeBatch in the form of the API reference's own example, a root of that name around a
    list of messages. What Route 53 sends now is an ErrorResponse whose Message is the list in brackets.
    """
    request = Element("RequestId", request_id)
    if legacy_root and error.code == "InvalidChangeBatch":
        messages = tuple(Element("Message", message) for message in error.messages)
        return document("InvalidChangeBatch", Element("Messages", "", messages), request)
    kind = Element("Type", "Sender" if error.status < 500 else "Receiver")
    inner = Element("Error", "", (kind, Element("Code", error.code), Element("Message", error.message)))
    return document("ErrorResponse", inner, request)


def change_info(change_id: str, status: str, comment: str = "") -> Element:
    """ChangeInfo of an accepted change."""
    parts = [
        Element("Id", f"/change/{change_id}"),
        Element("Status", status),
        Element("SubmittedAt", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"),
    ]
    if comment:
        parts.append(Element("Comment", comment))
    return Element("ChangeInfo", "", tuple(parts))


def hosted_zone(zone: HostedZone) -> Element:
    """HostedZone."""
    config = [Element("Comment", zone.comment)] if zone.comment else []
    config.append(Element("PrivateZone", _boolean(zone.private)))
    parts = (
        Element("Id", f"/hostedzone/{zone.id}"),
        Element("Name", zone.name),
        Element("CallerReference", zone.caller_reference),
        Element("Config", "", tuple(config)),
        Element("ResourceRecordSetCount", str(zone.size)),
    )
    return Element("HostedZone", "", parts)


def created_zone(zone: HostedZone, change: Element) -> bytes:
    """The answer to CreateHostedZone."""
    besides = _delegation_set(zone) if zone.vpc is None else _vpc(zone.vpc)
    return document("CreateHostedZoneResponse", hosted_zone(zone), change, besides)


def described_zone(zone: HostedZone) -> bytes:
    """The answer to GetHostedZone."""
    besides = _delegation_set(zone) if zone.vpc is None else Element("VPCs", "", (_vpc(zone.vpc),))
    return document("GetHostedZoneResponse", hosted_zone(zone), besides)


def _delegation_set(zone: HostedZone) -> Element:
    servers = tuple(Element("NameServer", server) for server in zone.name_servers)
    return Element("DelegationSet", "", (Element("NameServers", "", servers),))


def _vpc(value: Vpc) -> Element:
    return Element("VPC", "", (Element("VPCRegion", value.region), Element("VPCId", value.id)))


def record_sets(page: Page, size: int) -> bytes:
    """The answer to ListResourceRecordSets."""
    parts = [
        Element("ResourceRecordSets", "", tuple(_record_set(stored) for stored in page.sets)),
        Element("IsTruncated", _boolean(page.following is not None)),
    ]
    if page.following is not None:
        parts += [Element("NextRecordName", page.following.name), Element("NextRecordType", page.following.type)]
        if page.following.identifier:
            parts.append(Element("NextRecordIdentifier", page.following.identifier))
    return document("ListResourceRecordSetsResponse", *parts, Element("MaxItems", str(size)))


def _record_set(stored: StoredSet) -> Element:
    parts = [Element("Name", stored.key.name), Element("Type", stored.key.type)]
    if stored.key.identifier:
        parts.append(Element("SetIdentifier", stored.key.identifier))
    parts += _in_schema_order(stored.routing)
    if stored.ttl is not None:
        parts.append(Element("TTL", str(stored.ttl)))
    if stored.values:
        records = tuple(Element("ResourceRecord", "", (Element("Value", value),)) for value in stored.values)
        parts.append(Element("ResourceRecords", "", records))
    if stored.alias is not None:
        target = (
            Element("HostedZoneId", stored.alias.zone_id),
            Element("DNSName", stored.alias.name),
            Element("EvaluateTargetHealth", _boolean(stored.alias.evaluate_health)),
        )
        parts.append(Element("AliasTarget", "", target))
    if stored.health_check_id:
        parts.append(Element("HealthCheckId", stored.health_check_id))
    return Element("ResourceRecordSet", "", tuple(parts))


def _in_schema_order(routing: Iterable[Element]) -> Sequence[Element]:
    return sorted(routing, key=lambda element: ROUTING_ELEMENTS.index(element.tag))


def _boolean(value: bool) -> str:
    return "true" if value else "false"
