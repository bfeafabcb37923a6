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
    """Names one record set: zone id, name (lower case, unescaped, without trailing dot) and type."""

    zone_id: str
    name: str
    type: str


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
    kubesync never makes (routing policy, set identifier, health check): a set with one can never equal ours.
    """

    ttl: int | None
    values: tuple[str, ...]
    alias: AliasTarget | None = None
    foreign_form: str = ""

    @property
    def elements(self) -> int:
        """ResourceRecord elements that it counts for in a change batch (an alias counts as one)."""
        return max(1, len(self.values))

    @property
    def characters(self) -> int:
        """Characters of Value that it counts for in a change batch."""
        return sum(map(len, self.values))


@dataclass(frozen=True, slots=True)
class RecordChange:
    """From ``before`` to ``after`` at one key; None: no set. Both None or both equal is not a change."""

    key: RecordKey
    before: RecordSet | None
    after: RecordSet | None


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """One node of an upstream; order is not meaningful, see ``domain.desired`` for the canonical sort."""

    ip: str
    port: int
    ready: bool
    serving: bool | None = None
    terminating: bool | None = None
    node: str = ""
    zone: str = ""
    hostname: str = ""
    pod: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something reported on a service key. ``code`` is a stable CamelCase word, ``subject`` a name, zone or port."""

    code: str
    subject: str
    message: str
