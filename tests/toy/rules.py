"""What toys and boxes lead to: a toy has addresses at its host and nodes behind its port; its box says the TTL."""

from collections.abc import Collection, Iterable, Sequence, Set as AbstractSet
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from kubesync.domain.dns.addresses import parse_address
from kubesync.domain.dns.desired import Desired, DnsRules, Keeping
from kubesync.domain.dns.names import zones_of
from kubesync.domain.dns.permissions import permitted
from kubesync.domain.dns.publishing import RecordPlan, Targets
from kubesync.domain.dns.records import Node, Problem, RecordKey, RecordSet
from kubesync.domain.objects import Resource
from kubesync.domain.sources import registry
from kubesync.domain.sources.port import Kind, Shared, Source, shared_kind
from kubesync.domain.state import KeyState
from kubesync.domain.upstreams.nodes import upstream_key

TOYS: Final = Resource("toys")
BOXES: Final = Resource("boxes")


@dataclass(frozen=True, slots=True)
class Toy:
    """``port`` 0: it has no upstream. ``box`` empty: the cluster's default TTL counts. ``other``: pairs of a type and a value at its host."""

    host: str
    addresses: tuple[str, ...] = ()
    port: int = 0
    box: str = ""
    created_at: str = ""
    other: tuple[tuple[str, str], ...] = ()

    def texts(self) -> Iterable[str]:
        """For its size."""
        return (self.host, *self.addresses, self.box)


@dataclass(frozen=True, slots=True)
class Box:
    ttl: int


def _toy(state: KeyState) -> Toy | None:
    part = registry.main_part(state)
    return part.value if part is not None and isinstance(part.value, Toy) else None


def _desired(state: KeyState, _complete: AbstractSet[Resource], rules: DnsRules, shared: Shared) -> Desired:
    toy = _toy(state)
    if toy is None:
        return Desired({}, {}, ())
    box = shared.get("Box", "", toy.box) if toy.box else Box(rules.default_ttl)
    if not isinstance(box, Box):
        return Desired({}, {}, (Problem("Unreadable", toy.box, "there is no such box"),))
    plan = RecordPlan(rules.zones, box.ttl)
    allowed = permitted((toy.host,), state.key, rules.names, state.held.names)
    plan.problems.update(allowed.problems)
    addresses = [address for text in toy.addresses if (address := parse_address(text)) is not None]
    if toy.host not in allowed.refused:
        plan.want(toy.host, Targets("spec.addresses", frozenset(addresses)), "spec.host")
    plan.publish()
    nodes = tuple(Node(address.text, toy.port, True) for address in sorted(addresses))
    upstreams = {upstream_key(state.key, toy.port, "TCP"): nodes} if toy.port else {}
    records = dict(plan.finish())
    for kind, value in toy.other if toy.host not in allowed.refused else ():
        records |= {
            RecordKey(z.id, toy.host, kind): RecordSet(box.ttl, (value,)) for z in zones_of(toy.host, rules.zones)
        }
    origins = {name: tuple(sorted(found)) for name, found in plan.origins.items()}
    return Desired(records, upstreams, tuple(sorted(plan.problems)), origins, allowed.counted)


def _keeps(state: KeyState, _rules: DnsRules, _held: Collection[str] | None) -> Keeping:
    toy = _toy(state)
    return Keeping() if toy is None else Keeping(frozenset({toy.host}))


def _encode_toy(toy: Toy) -> list[object]:
    other = [[list(each) for each in toy.other]] if toy.other else []
    return [toy.host, list(toy.addresses), toy.port, toy.box, toy.created_at, *other]


def _decode_toy(row: Sequence[Any]) -> Toy:
    host, addresses, port, box, created_at, *other = row
    return Toy(
        host,
        tuple(addresses),
        port,
        box,
        created_at,
        tuple((kind, value) for kind, value in (other[0] if other else ())),
    )


registry.register(
    Kind(
        name="Toy",
        option="toy",
        api_version="toys.example.com/v1",
        schema=7,
        main=TOYS,
        others=(),
        created_at=attrgetter("created_at"),
        desired=_desired,
        keeps=_keeps,
        of_records=lambda _state: frozenset({TOYS, BOXES}),
        reads=("Box",),
    ),
    [Source(TOYS, _encode_toy, _decode_toy)],
)
registry.register(
    shared_kind("Box", "toys.example.com/v1", BOXES),
    [Source(BOXES, lambda box: [box.ttl], lambda row: Box(*row), namespaced=False)],
)
