"""Routing policies of record sets, as values: what each is, and what may stand beside what at one name and type.

    set           beside it, with another set identifier
    ---           --------------------------------------
    Simple        nothing: it has no set identifier
    Weighted      Weighted

Source: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html, SetIdentifier: all sets of one name and
type have the same policy. A further policy is a class here, its line in the table, and its field of the API (``aws.route53.client``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

DEFAULT_WEIGHT: Final = 1
MAX_WEIGHT: Final = 255


@dataclass(frozen=True, slots=True)
class Simple:
    """The only set of its name and type."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """What rows and documents say of it."""
        return {}


@dataclass(frozen=True, slots=True)
class Weighted:
    """Answers in proportion to ``weight``, 0 to ``MAX_WEIGHT``."""

    weight: int

    @property
    def fields(self) -> Mapping[str, Any]:
        """What rows and documents say of it."""
        return {"weight": self.weight}


type Routing = Simple | Weighted
"""A set identifier goes with every policy but ``Simple``."""

SIMPLE: Final = Simple()
_BESIDE: Final[Mapping[type[Routing], frozenset[type[Routing]]]] = {
    Simple: frozenset(),
    Weighted: frozenset({Weighted}),
}


def may_stand_beside(one: Routing, other: Routing) -> bool:
    """Whether two sets of one name and type with these policies, and different set identifiers, may exist together."""
    return type(other) in _BESIDE[type(one)]
