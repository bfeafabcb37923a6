"""Which nodes a proxy may be sent to, and how many of an upstream. Pure.

address of a node                                       it is
-----------------                                       -----
in no network of ``--allow-cidr``, if there are some    left out
not for pods, such as link-local (``why_forbidden``)    left out; a server that the file has already stays
the same, and a network allows just this kind           taken
any other                                               taken

``0.0.0.0/0`` allows pods everywhere. It does not allow loopback: ``127.0.0.0/8`` or a part of it does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kubesync.domain.dns.addresses import Address, Network, why_forbidden

type Place = tuple[Address, int]
"""Address and port of a server."""


class Why(StrEnum):
    """Why a node is left out. The values are part of the status file (docs/proxies.md)."""

    INVALID = "invalid"  # its address, port, weight or state
    NOT_ALLOWED = "not_allowed"  # in no network of --allow-cidr
    FORBIDDEN = "forbidden"  # not an address for pods
    OVER_LIMIT = "over_limit"  # more than --max-nodes


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a person allows.

    Args:
        networks: of ``--allow-cidr``; none: all.
        max_nodes: of an upstream; None: no limit.
    """

    networks: tuple[Network, ...] = ()
    max_nodes: int | None = None

    def allow(self, address: Address) -> bool:
        """Whether it is in a network of ``--allow-cidr``."""
        return not self.networks or any(network.holds(address) for network in self.networks)

    def why_forbidden(self, address: Address) -> str:
        """Why it is not an address for pods; empty: it is, or a network allows just this kind."""
        why = address.forbidden
        if why and any(network.holds(address) and _kind(network) == why for network in self.networks):
            return ""
        return why


def _kind(network: Network) -> str:
    """What all its addresses are; empty: some may be addresses for pods."""
    first, last = (why_forbidden(Address(network.family, number, "")) for number in (network.first, network.last))
    return first if first == last else ""


STANDING: Final = "standing"
"""A node is not left out only because the file had it."""


@dataclass(slots=True)
class Tally:
    """What was left out of an upstream.

    Args:
        nodes: how many it has.
        left_out: how many for which reason.
        examples: an address for each reason that depends on addresses.
        standing: addresses and ports that are not left out only because the file had them, each in words.
    """

    nodes: int = 0
    left_out: dict[Why, int] = field(default_factory=dict)
    examples: dict[Why, str] = field(default_factory=dict)
    standing: dict[Place, str] = field(default_factory=dict)

    def leave_out(self, why: Why, number: int = 1, example: str = "") -> None:
        """Count nodes that are left out."""
        if number:
            self.left_out[why] = self.left_out.get(why, 0) + number
            if example:
                self.examples.setdefault(why, example)

    @property
    def total(self) -> int:
        """How many nodes are left out."""
        return sum(self.left_out.values())

    @property
    def says_something(self) -> bool:
        """Whether there is something to report."""
        return bool(self.left_out or self.standing)

    @property
    def reasons(self) -> frozenset[str]:
        """What would be reported, without numbers."""
        return frozenset([*self.left_out, *([STANDING] if self.standing else [])])


def total_by_reason(tallies: Iterable[Tally]) -> Mapping[Why, int]:
    """How many nodes are left out of several upstreams, for each reason."""
    found = dict.fromkeys(Why, 0)
    for tally in tallies:
        for why, number in tally.left_out.items():
            found[why] += number
    return found


NO_BOUNDS: Final = Bounds()
