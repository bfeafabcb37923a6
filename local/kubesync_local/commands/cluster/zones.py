"""The hosted zones of ``cluster add``: parsed, looked up in Route 53, and compared with the domain."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kubesync.aws.route53.accounts import ZoneAccounts
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.domain.dns.records import Zone
from kubesync.domain.errors import UsageError, ZoneUnavailableError
from kubesync_local.registration.mistakes import Mistakes
from kubesync_local.registration.roles import parse_zone_access, split_zone
from kubesync_local.terminal.output import remark

_ZONE_ID: Final = re.compile(r"Z[A-Z0-9]{1,31}")


def zones_given(given: Sequence[str], wrong: Mistakes) -> dict[str, ZoneAccess | None]:
    """Zone ids and their roles, from ``ID``, ``ID,ID`` and ``ID@ROLE-ARN[#EXTERNAL-ID]``.

    Wrong are: there is none, one has another form, or a zone is given twice.
    """
    parts = [part for text in given for part in split_zone(text)]
    if not parts:
        wrong.add("--zone is empty: give the id of a hosted zone, such as Z0123456789ABCDEFGHIJ")
    found: dict[str, ZoneAccess | None] = {}
    for part in parts:
        with wrong.noted():
            _add_zone(part, found)
    return found


def _add_zone(part: str, found: dict[str, ZoneAccess | None]) -> None:
    written, at_sign, role = part.partition("@")
    zone_id = written.removeprefix("/hostedzone/")
    if _ZONE_ID.fullmatch(zone_id) is None:
        raise UsageError(f"--zone {zone_id!r} is not the id of a hosted zone, such as Z0123456789ABCDEFGHIJ")
    access = parse_zone_access(role) if at_sign else None
    if zone_id in found and found[zone_id] != access:
        raise UsageError(f"--zone {zone_id} is given twice, with different roles")
    if zone_id in found:
        raise UsageError(f"--zone {zone_id} is given twice: give each hosted zone once")
    found[zone_id] = access


def look_up_zones(
    accounts: ZoneAccounts, access: Mapping[str, ZoneAccess | None], wrong: Mistakes
) -> list[ZoneReference]:
    """Look up the zones in Route 53, each with its role. A zone with a role is also listed. Wrong is a zone that does not exist.

    Raises:
        ZoneError: a role cannot be assumed, a zone cannot be read, or Route 53 cannot be reached.
    """
    found: list[ZoneReference] = []
    for zone_id, role in access.items():
        with wrong.noted():
            zone = _look_up(accounts.client(role), zone_id, role)
            found.append(ZoneReference(id=zone.id, name=zone.name, private=zone.private))
    return found


def _look_up(client: ZoneClient, zone_id: str, access: ZoneAccess | None) -> Zone:
    try:
        zone = client.zone(zone_id)
        if access is not None:
            client.read(zone_id, zone.name)  # another permission, which a role for other programs may lack
    except ZoneUnavailableError as error:
        if str(error).startswith("NoSuchHostedZone"):
            where = "this AWS account" if access is None else f"AWS account {access.account}"
            raise UsageError(f"there is no hosted zone {zone_id} in {where}: check --zone") from error
        raise
    return zone


def remark_on_zones(zones: Sequence[ZoneReference], domain: str) -> None:
    for zone in zones:
        if not domain.endswith(f".{zone.name}") and domain != zone.name and not zone.name.endswith(f".{domain}"):
            remark(f"note: {zone.id} ({zone.name}) gets no names of {domain}, only host names from annotations")
