"""Record sets and changes as the stand-in keeps them: values only, names in Route 53's own listing form."""

from __future__ import annotations

from dataclasses import dataclass, field

# The elements of ResourceRecordSet that make a set other than simple, in the order of the API's schema.
# https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html
ROUTING_ELEMENTS = (
    "Weight",
    "Region",
    "GeoLocation",
    "Failover",
    "MultiValueAnswer",
    "TrafficPolicyInstanceId",
    "CidrRoutingConfig",
    "GeoProximityLocation",
)


@dataclass(frozen=True, slots=True)
class Element:
    """An XML element that the stand-in stores and returns without reading it."""

    tag: str
    text: str = ""
    children: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Alias:
    """``zone_id`` without prefix; ``name`` in listing form (lower case, escaped, trailing dot)."""

    zone_id: str
    name: str
    evaluate_health: bool


@dataclass(frozen=True, slots=True, order=True)
class SetKey:
    """What is unique in a zone: ``name`` in listing form, type, and the set identifier (empty: a simple set)."""

    name: str
    type: str
    identifier: str = ""


@dataclass(frozen=True, slots=True)
class StoredSet:
    """A resource record set. ``values`` are kept as sent, in the order sent, as Route 53 does."""

    key: SetKey
    ttl: int | None = None
    values: tuple[str, ...] = ()
    alias: Alias | None = None
    routing: tuple[Element, ...] = ()
    health_check_id: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a batch. ``typed_name`` is the name as the client wrote it, for messages about its form."""

    action: str
    record_set: StoredSet
    typed_name: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of Route 53; tests can lower each of them.

    Sources: https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html (elements, characters, values
    of a set, sets of a zone) and the ResourceRecord page of the API reference (characters of one value).
    """

    elements: int = 1_000
    characters: int = 32_000
    values_of_set: int = 400
    value_characters: int = 4_000
    sets_of_zone: int = 10_000
    # Route 53 does not always name every bad change (seen in public reports); None: it does.
    messages: int | None = None
    # Documented, and not known to be enforced: one value in weighted and latency sets, one TTL for all sets of a name and type.
    one_value: bool = False
    one_ttl: bool = False
    # The health checks that exist; None: any.
    health_checks: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a batch was refused. ``code`` is InvalidChangeBatch, InvalidInput or NoSuchHealthCheck."""

    code: str
    messages: tuple[str, ...] = field(default_factory=tuple)
