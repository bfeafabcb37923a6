"""What ``records``, ``upstreams`` and ``audit`` leave out: patterns of names, zones, Services."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.dns.names import canonical_name, why_illegal
from kubesync.domain.errors import UsageError
from kubesync_local.commands.show.service_keys import parse_service_key

_PATTERN: Final = re.compile(r"[a-z0-9._/*?\[\]!-]+")


def name_pattern(text: str) -> str:
    """What names of record sets and upstreams are compared with. Raises UsageError."""
    name = canonical_name(text).lower()
    reason = "" if _PATTERN.fullmatch(name) else "it may hold letters, digits, and . - _ / * ? [ ]"
    # A name with / is an upstream's; one with a pattern has labels that nobody knows yet.
    if not reason and not set(name) & set("/*?["):
        reason = why_illegal(name)
    if reason:
        raise UsageError(f"--name {text!r} can be no name: {reason}")
    return name


def name_filter(text: str) -> Callable[[str], bool]:
    """Whether a name fits the pattern; an empty pattern fits all. Raises UsageError."""
    if not text:
        return lambda _name: True
    pattern = name_pattern(text)
    return lambda name: fnmatchcase(name.lower(), pattern)


def zones_meant(text: str, configs: Sequence[ClusterConfig]) -> frozenset[str] | None:
    """Ids of the hosted zones with this id or name: a public and a private zone may share one. None: all zones.

    Raises:
        UsageError: no cluster shown has such a zone.
    """
    if not text:
        return None
    known = {zone.id: zone.name for config in configs for zone in config.zones}
    name = canonical_name(text).lower()
    meant = frozenset(zone_id for zone_id, found in known.items() if zone_id == text or found == name)
    if not meant:
        zones = ", ".join(f"{found} ({zone_id})" for zone_id, found in sorted(known.items())) or "none yet"
        raise UsageError(f"--zone {text!r} is no hosted zone of these clusters; there are: {zones}")
    return meant


def service_filter(text: str) -> Callable[[str], bool]:
    """Whether an upstream's name belongs to a key, or to a key less its cluster (``namespace/name``); empty: all. Raises UsageError."""
    if not text:
        return lambda _upstream: True
    parts = text.strip("/").split("/")
    try:
        key = parse_service_key("/".join(parts if len(parts) != 2 else ("any", *parts)))
    except UsageError as error:
        if ":" in parts[-1]:  # the message says what is wrong with its kind
            raise
        raise UsageError(f"--service {text!r} is no Service: write namespace/name or cluster/namespace/name") from error
    meant = (str(key) if len(parts) == 3 else key.path).split("/")
    return lambda upstream: upstream.split("/")[3 - len(meant) : 3] == meant and upstream.count("/") == 4
