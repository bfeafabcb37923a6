"""Roles and external ids as people write them."""

import re
from typing import Final

from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.domain.errors import UsageError

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html: path and name of a role.
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>[0-9]{12}):role/[\w+=,.@/-]{1,576}", re.ASCII)
# https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html, ExternalId
_EXTERNAL_ID: Final = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)


def parse_role(role: str, external_id: str, option: str) -> ZoneAccess:
    """A role and the external id that it needs (empty: none), as given by two options.

    Raises:
        UsageError: one of them is not valid; the message names ``option`` or ``--external-id``.
    """
    if _ROLE.fullmatch(role) is None:
        raise UsageError(f"{option}: {role!r} is not a role ARN, for example arn:aws:iam::123456789012:role/kubesync")
    if external_id and _EXTERNAL_ID.fullmatch(external_id) is None:
        raise UsageError(
            f"--external-id: {external_id!r} is not an external id: 2 to 1224 letters, digits and _+=,.@:/-"
        )
    return ZoneAccess(role, external_id)


def parse_zone_access(text: str) -> ZoneAccess:
    """Read ``arn:aws:iam::123456789012:role/dns`` or ``...role/dns#external-id``.

    Raises:
        UsageError: the text has another form.
    """
    role, hash_sign, external_id = text.partition("#")
    if _ROLE.fullmatch(role) is None:
        raise UsageError(f"--zone: {role!r} is not a role ARN, for example arn:aws:iam::123456789012:role/dns")
    if hash_sign and _EXTERNAL_ID.fullmatch(external_id) is None:
        raise UsageError(f"--zone: {external_id!r} is not an external id: 2 to 1224 letters, digits and _+=,.@:/-")
    return ZoneAccess(role, external_id)


def split_zone(text: str) -> list[str]:
    """The zones of one option. An entry with a role is not split: the name of a role may hold commas."""
    return [part.strip() for part in ([text] if "@" in text else text.split(",")) if part.strip()]
