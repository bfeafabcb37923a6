"""Record sets as values in one canonical form: two values are equal if and only if Route 53 holds the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kubesync.domain.dns.routing.policies import SIMPLE, Routing, may_coexist


@dataclass(frozen=True, slots=True, order=True)
class Zone:
    """A hosted zone: ``id`` without the ``/hostedzone/`` prefix, ``name`` in lower case without trailing dot."""

    id: str
    name: str
    private: bool = False


@dataclass(frozen=True, slots=True, order=True)
class RecordKey:
    """Identifies one record set: zone id, name (lower case, unescaped, without trailing dot), type, and set identifier.

    ``identifier`` is empty for a simple set. It distinguishes sets of one name and type that share it by a routing policy.
    """

    zone_id: str
    name: str
    type: str
    identifier: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Its zone id and name."""
        return self.zone_id, self.name

    @property
    def label(self) -> str:
        """For people: name and type, and the identifier in brackets if there is one."""
        return f"{self.name} {self.type} [{self.identifier}]" if self.identifier else f"{self.name} {self.type}"


def exclude_each_other(one: RecordKey, other: RecordKey) -> bool:
    """Whether two different sets of one name exclude each other.

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


def clash(one: RecordKey, other: RecordKey) -> bool:
    """Whether only one key can have these sets of one name."""
    return one == other or exclude_each_other(one, other)


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
    canonically, without duplicates. For an alias, ``ttl`` is None and ``values`` empty. ``foreign_form`` names settings that
    kubesync never makes, such as CIDR routing: a set with one never equals ours. ``routing`` goes with the key's
    set identifier.
    """

    ttl: int | None
    values: tuple[str, ...]
    alias: AliasTarget | None = None
    foreign_form: str = ""
    routing: Routing = SIMPLE

    @property
    def elements(self) -> int:
        """Number of ResourceRecord elements that it counts for in a change batch. An alias counts as one."""
        return max(1, len(self.values))

    @property
    def characters(self) -> int:
        """Number of characters of Value that it counts for in a change batch."""
        return sum(map(len, self.values))


def in_the_way(current_key: RecordKey, current: RecordSet, wanted_key: RecordKey, wanted: RecordSet) -> bool:
    """Whether a set keeps out another one that we want: it has the same key or the same seat (``routing.policies``), or excludes it.

    Both are at one name of one zone. A set of a policy that kubesync never makes reads as a simple one, so nothing of ours stands beside it.
    """
    if clash(current_key, wanted_key):
        return True
    if current_key.type != wanted_key.type:
        return False
    seat = wanted.routing.seat(wanted_key.identifier)
    seat_is_taken = bool(seat) and current.routing.seat(current_key.identifier) == seat
    return seat_is_taken or not may_coexist(current.routing, wanted.routing)


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A change from ``before`` to ``after`` at one key. None: no set. Equal values, or twice None, are not a change."""

    key: RecordKey
    before: RecordSet | None
    after: RecordSet | None


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """One node of an upstream. Its order has no meaning; ``domain.upstreams`` sorts nodes canonically.

    Only nodes of named upstreams use ``weight`` and ``backup``: see ``domain.upstreams.named``.
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
    """A problem reported on a service key. ``code`` is a stable CamelCase word; ``subject`` is a name, zone or port."""

    code: str
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Held:
    """What a key has already: limits of names and forbidden addresses take nothing of it away.

    Args:
        names: those that it owns, in any zone.
        values: by zone id and name, the values that its record sets there have, or are to have.
        digests: by upstream key, the digest of the nodes that were written last.
    """

    names: frozenset[str] = frozenset()
    values: Mapping[tuple[str, str], set[str]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)


NOTHING_HELD: Final = Held()
