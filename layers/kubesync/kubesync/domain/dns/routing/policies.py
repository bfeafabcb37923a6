"""Routing policies of record sets, as values.

All sets of one name and type have the same policy. Each has a set identifier. A *seat* is what only one of these sets may have:

    policy          values                                         its seat
    ------          ------                                         --------
    Simple          none: it is the only set                       none
    Weighted        0 to 255                                       none
    Latency         a region                                       the region
    Failover        PRIMARY or SECONDARY                           the role
    Geolocation     a continent, a country, or a state of it       the place
    Geoproximity    a region, local zone group or point; a bias    its identifier
    Multivalue      none                                           its identifier

Source: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html.

A further policy is a class here with a ``since`` of its own, and its place in ``Routing`` and ``POLICIES``; how annotations ask for it
(``reading``: ``_POLICIES`` and ``_policy``); what Route 53 refuses (``dns.publishing``); and its field of the API (``aws.route53.wire``).
The stand-in of Route 53 needs its rules too (``standins/route53/zone``).
"""

import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import Any, ClassVar, Final

DEFAULT_WEIGHT: Final = 1
MAX_WEIGHT: Final = 255
PRIMARY: Final = "PRIMARY"
SECONDARY: Final = "SECONDARY"
# Values that are shown with their names. ``NA`` alone may be a continent, North America, or a country, Namibia.
_NAMED: Final = ("continent", "country", "subdivision", "bias")
# API reference, Coordinates: at most two decimals.
_POINT: Final = re.compile(r"([-+]?\d{1,2}(?:\.\d{0,2})?),([-+]?\d{1,3}(?:\.\d{0,2})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Policy:
    """``health_check``: the id of a health check of Route 53; empty: none.

    Of each policy:
        kind: its name.
        unique: its values are a seat: only one set of the name may have them.
        most: so many sets of one name and type may have it; 0: any number.
        since: the schema version of items with it. Releases that do not know it leave them alone (ADR 0013). The first policies came
            together, and have the one below. Each further one must say a version of its own, as each new kind: see ``Kind.schema``.
            A test holds it.
    """

    kind: ClassVar[str]
    unique: ClassVar[bool] = False
    most: ClassVar[int] = 0
    since: ClassVar[int] = 4
    health_check: str = field(default="", kw_only=True)

    @property
    def details(self) -> Mapping[str, Any]:
        """The values that only this policy has."""
        own = (each.name for each in fields(self) if each.name != "health_check")
        return {name: value for name in own if (value := getattr(self, name)) != ""}

    @property
    def report_fields(self) -> Mapping[str, Any]:
        """The fields of reports and documents that describe it. ``routing`` says it in words.

        Simple sets, and weighted ones without a health check (``is_old_form``), have only the fields that they had in the first releases.
        """
        if is_old_form(self):
            return self.details
        checked = {"health_check": self.health_check} if self.health_check else {}
        return {"routing": self.words, **self.details, **checked}

    @property
    def words(self) -> str:
        """For people, such as ``latency eu-west-1, health check abcd``."""
        return self._said + (f", health check {self.health_check}" if self.health_check else "")

    @property
    def _said(self) -> str:
        """The policy and its values in words, without the health check: ``latency eu-west-1``, ``geolocation country US``."""
        said = (f"{name} {value}" if name in _NAMED else str(value) for name, value in self.details.items())
        return " ".join([self.kind, *said])

    @property
    def schema(self) -> int:
        """The schema version of an item with this value."""
        return 1 if is_old_form(self) else self.since

    def seat(self, identifier: str) -> str:
        """The seat (see the top) of a set with this policy, in words that begin with the policy; empty: it has none.

        ``identifier``: the set's own.
        """
        if isinstance(self, Simple | Weighted | NotPossible):
            return ""
        return self._said if self.unique else f"{self.kind} {identifier}"


@dataclass(frozen=True, slots=True)
class Simple(_Policy):
    """The only set of its name and type. It never has a health check."""

    kind = "simple"


@dataclass(frozen=True, slots=True)
class Weighted(_Policy):
    """Answers in proportion to ``weight``, 0 to ``MAX_WEIGHT``."""

    kind = "weighted"
    most = 100  # developer guide, DNSLimitations
    weight: int


@dataclass(frozen=True, slots=True)
class Latency(_Policy):
    """Answers who is nearest to a region of AWS."""

    kind = "latency"
    unique = True
    region: str


@dataclass(frozen=True, slots=True)
class Failover(_Policy):
    """Answers while it is healthy (``PRIMARY``), or while the other is not (``SECONDARY``)."""

    kind = "failover"
    unique = True
    role: str


@dataclass(frozen=True, slots=True)
class Geolocation(_Policy):
    """Answers queries from a continent, or from a country (``*``: from wherever no other set answers) or a state of it."""

    kind = "geolocation"
    unique = True
    continent: str = ""
    country: str = ""
    subdivision: str = ""


@dataclass(frozen=True, slots=True)
class Geoproximity(_Policy):
    """Answers who is nearest to a region, a local zone group, or a point (``latitude,longitude`` with two decimals).

    ``bias``, -99 to 99, makes the area larger or smaller.
    """

    kind = "geoproximity"
    most = 30  # developer guide, DNSLimitations
    region: str = ""
    local_zone_group: str = ""
    coordinates: str = ""
    bias: int = 0


@dataclass(frozen=True, slots=True)
class Multivalue(_Policy):
    """Answers with up to eight healthy sets."""

    kind = "multivalue"


@dataclass(frozen=True, slots=True)
class NotPossible(_Policy):
    """What is asked for is not possible. What the object holds stays as it is (``keep_to_held_names``): nothing of this policy is stored or sent."""

    kind = "not possible"


type Routing = Simple | Weighted | Latency | Failover | Geolocation | Geoproximity | Multivalue | NotPossible
"""A set identifier goes with every policy but ``Simple``."""

SIMPLE: Final = Simple()
NOT_POSSIBLE: Final = NotPossible()
POLICIES: Final[Mapping[str, type[Routing]]] = {
    policy.kind: policy for policy in (Simple, Weighted, Latency, Failover, Geolocation, Geoproximity, Multivalue)
}
"""By their names."""


def point_of(text: str) -> str:
    """A point in one form, ``latitude,longitude`` with two decimals each; empty if the text is no place on the Earth, or has more decimals."""
    match = _POINT.fullmatch(text)
    latitude, longitude = (0.0, 0.0) if match is None else (float(match[1]), float(match[2]))
    if match is None or abs(latitude) > 90 or abs(longitude) > 180:
        return ""
    return f"{latitude + 0:.2f},{longitude + 0:.2f}"  # + 0: no minus before a zero


def may_coexist(one: Routing, other: Routing) -> bool:
    """Whether two sets of one name and type with these policies, and different set identifiers, may exist together.

    They may if the policy is the same, and is not simple. Seats are not compared here.
    """
    return type(one) is type(other) is not Simple


def encode_routing(routing: Routing) -> int | list[object] | None:
    """The stored form. Releases hand over to each other: it is a contract.

    simple                             null
    weighted, without health check     its weight: older releases read this form too
    other                              the policy, the health check, and the values in the order of the class
    """
    if is_old_form(routing):
        return routing.weight if isinstance(routing, Weighted) else None
    return [routing.kind, *astuple(routing)]


def decode_routing(stored: int | list[Any] | None) -> Routing:
    """Read a stored form: the inverse of ``encode_routing``."""
    if not isinstance(stored, list):
        return SIMPLE if stored is None else Weighted(stored)
    kind, health_check, *values = stored
    return POLICIES[kind](*values, health_check=health_check)


def is_old_form(routing: _Policy) -> bool:
    """Whether a release that knows only simple and weighted sets reads it, too: see ``encode_routing``."""
    return isinstance(routing, Simple) or (isinstance(routing, Weighted) and not routing.health_check)
