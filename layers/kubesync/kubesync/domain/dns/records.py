"""Record sets as values, in one canonical form that makes equality mean sameness in Route 53."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Zone:
    """A hosted zone: ``id`` without the ``/hostedzone/`` prefix, ``name`` in lower case without a trailing dot."""

    id: str
    name: str
    private: bool = False


@dataclass(frozen=True, slots=True, order=True)
class RecordKey:
    """Names one record set: zone id, name (lower case, unescaped, without trailing dot), type, and set identifier.

    ``identifier`` is empty for a simple set; weighted sets of one name and type are told apart by theirs.
    """

    zone_id: str
    name: str
    type: str
    identifier: str = ""

    @property
    def label(self) -> str:
        """Name and type, and the identifier in brackets where there is one, for people."""
        return f"{self.name} {self.type} [{self.identifier}]" if self.identifier else f"{self.name} {self.type}"


def exclude_each_other(one: RecordKey, other: RecordKey) -> bool:
    """Whether two different sets cannot stand together at the name that they share.

        types                       set identifiers                excluded
        -----                       ---------------                --------
        the same                    two different ones             no
        the same                    one has none (a simple set)    yes
        different, one is CNAME     any                            yes (RFC 1034 3.6.2)
        different                   any                            no

    Source: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html, SetIdentifier.
    """
    if one.type == other.type:
        return not (one.identifier and other.identifier)
    return "CNAME" in (one.type, other.type)


@dataclass(frozen=True, slots=True)
class AliasTarget:
    """An alias: the target's own hosted zone id and its DNS name (lower case, without trailing dot)."""

    zone_id: str
    name: str
    evaluate_health: bool = False


@dataclass(frozen=True, slots=True)
class RecordSet:
    """What a record key holds.

    Values are in Route 53's own presentation form (host names in lower case with trailing dot, TXT quoted), sorted
    canonically, no duplicates. ``ttl`` is None and ``values`` empty for an alias. ``foreign_form`` names settings that
    kubesync never makes (other routing policies, a health check): a set with one can never equal ours. ``weight``, 0 to
    255, goes with a set identifier in its key, and is None without one.
    """

    ttl: int | None
    values: tuple[str, ...]
    alias: AliasTarget | None = None
    foreign_form: str = ""
    weight: int | None = None

    @property
    def elements(self) -> int:
        """ResourceRecord elements that it counts for in a change batch (an alias counts as one)."""
        return max(1, len(self.values))

    @property
    def characters(self) -> int:
        """Characters of Value that it counts for in a change batch."""
        return sum(map(len, self.values))


def in_the_way(standing: RecordKey, stands: RecordSet, wanted: RecordKey) -> bool:
    """Whether what stands at a name, not ours, keeps a wanted set of ours out: the same set, or one that excludes it.

    Routing policies of one name and type do not mix: beside weighted sets there is room for weighted ones only.
    """
    if standing == wanted or exclude_each_other(standing, wanted):
        return True
    return standing.type == wanted.type and stands.weight is None


@dataclass(frozen=True, slots=True)
class RecordChange:
    """From ``before`` to ``after`` at one key; None: no set. Both None or both equal is not a change."""

    key: RecordKey
    before: RecordSet | None
    after: RecordSet | None


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """One node of an upstream; order is not meaningful, see ``domain.desired`` for the canonical sort.

    ``weight`` and ``backup`` are for nodes of named upstreams only: see ``domain.named_upstreams``.
    """

    ip: str
    port: int
    ready: bool
    serving: bool | None = None
    terminating: bool | None = None
    node: str = ""
    zone: str = ""
    hostname: str = ""
    pod: str = ""
    weight: int = 1
    backup: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something reported on a service key. ``code`` is a stable CamelCase word, ``subject`` a name, zone or port."""

    code: str
    subject: str
    message: str
