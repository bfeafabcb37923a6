"""What a random case consists of, as values: the changes of ``sequences.steps``, and faults of whole deployments."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from chaos.faults.struck import DONE, LATER, NOT_DONE
from harness.seen.builders import HTTP, a_service, an_endpoint, an_endpoints
from kubesync.domain.objects import Endpoint, Port, Resource
from sequences.notation import Written
from sequences.steps import Compact, Compose, Configure, Cut, Delete, End, Kill, Put, Resync, Step

CLOCKS: Final = ("right", "stopped", "ahead")


@dataclass(frozen=True, slots=True, repr=False)
class Pause(Written):
    """A whole process stops at the so-manieth call from now, for so many seconds; then its clock is right, ``stopped`` or ``ahead``."""

    calls: int
    seconds: float
    clock: str


@dataclass(frozen=True, slots=True, repr=False)
class Another(Written):
    """One more session is started, though one runs."""


@dataclass(frozen=True, slots=True, repr=False)
class Storm(Written):
    """A service refuses calls, with a probability, for so many seconds."""

    service: str
    seconds: float
    probability: float


@dataclass(frozen=True, slots=True, repr=False)
class Lose(Written):
    """The first write after so many calls gets no answer; ``outcome``: what becomes of it."""

    calls: int
    outcome: str


@dataclass(frozen=True, slots=True, repr=False)
class Land(Written):
    """Whatever is on its way arrives."""


@dataclass(frozen=True, slots=True, repr=False)
class Slow(Written):
    """From now on a call takes up to so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class Skew(Written):
    """The clock of the session that is started next is wrong by so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class ByHand(Written):
    """A person deletes the so-manieth record set of ours, or changes it; a resync mends it."""

    nth: int
    deletes: bool


type Happening = Step | Pause | Another | Storm | Lose | Land | Slow | Skew | ByHand
type Course = tuple[tuple[float, Happening], ...]
"""What happens, each after so many seconds."""

_NAMES: Final = ("web", "db", "api", "lb")
_CLUSTERS: Final = ("prod", "edge")
_HOSTS: Final = ("a.example.com", "b.example.com", "c.inner.example.com", "taken.example.com")
_DNS: Final = Port("dns", "UDP", 53)


def drawn(chance: random.Random, length: int) -> Course:
    """A course of so many happenings, the first of which are changes."""
    course: list[tuple[float, Happening]] = []
    for at in range(length):
        gap = round(chance.choice(_GAPS) * chance.random(), 3)
        course.append((gap, a_change(chance) if at < length // 4 else chance.choices(_ALL, _ALL_WEIGHTS)[0](chance)))
    return tuple(course)


def a_change(chance: random.Random) -> Step:
    """One that people or controllers make in a cluster."""
    return chance.choices((_service, _endpoints, _gone), (24, 16, 8))[0](chance)


_GAPS: Final = (0.0, 0.05, 0.5, 1.5, 1.5, 4.0)


def _service(chance: random.Random) -> Put:
    cluster, name = chance.choice(_CLUSTERS), chance.choice(_NAMES)
    annotations = {}
    if chance.random() < 0.5:
        annotations["hostname"] = ", ".join(sorted(chance.sample(_HOSTS, chance.randint(1, 2))))
    if chance.random() < 0.3:
        annotations["ttl"] = str(chance.choice((30, 60, 120)))
    ports = (HTTP, _DNS) if chance.random() < 0.3 else (HTTP,)
    address = f"10.0.{_NAMES.index(name)}.{chance.randint(1, 9)}"
    kind = chance.random()
    if kind < 0.15:
        value = a_service(headless=True, ports=ports)
    elif kind < 0.3:
        value = a_service("ExternalName", external_name=f"{name}{chance.randint(1, 3)}.example.org")
    elif kind < 0.45:
        value = a_service("LoadBalancer", cluster_ips=(address,), ingress_ips=(f"203.0.113.{chance.randint(1, 9)}",))
    else:
        value = a_service(cluster_ips=(address,), ports=ports, annotations=annotations)
    return Put(cluster, "shop", name, value)


def _endpoints(chance: random.Random) -> Put:
    cluster, name = chance.choice(_CLUSTERS), chance.choice(_NAMES)
    pods: list[Endpoint] = [
        an_endpoint(f"10.1.0.{number}", hostname=f"{name}-{number}", pod=f"{name}-{number}")
        for number in sorted(chance.sample(range(1, 9), chance.randint(1, 4)))
    ]
    slice_name = f"{name}-{chance.choice('ab')}" if cluster == "prod" else ""
    return Put(cluster, "shop", name, an_endpoints(*pods, service=name), slice_name)


def _gone(chance: random.Random) -> Delete:
    cluster, name = chance.choice(_CLUSTERS), chance.choice(_NAMES)
    if chance.random() < 0.6:
        return Delete(cluster, Resource.SERVICES, "shop", name)
    if cluster == "prod":
        return Delete(cluster, Resource.ENDPOINTSLICES, "shop", f"{name}-{chance.choice('ab')}")
    return Delete(cluster, Resource.ENDPOINTS, "shop", name)


def _configure(chance: random.Random) -> Configure:
    setting = chance.choice((("ttl", chance.choice((30, 60, 90))), ("srv", chance.random() < 0.5)))
    return Configure(chance.choice(_CLUSTERS), (setting,))


def _compose(chance: random.Random) -> Compose:
    members = chance.sample(("prod/shop/web/80", "edge/shop/web/80", "prod/shop/db/80", "192.0.2.80:80"), 2)
    return Compose(
        chance.choice(("inner", "outer")), tuple((member, chance.randint(1, 3), False) for member in members)
    )


def _pause(chance: random.Random) -> Pause:
    return Pause(chance.randint(1, 60), chance.choice((1.0, 8.0, 20.0, 40.0, 400.0)), chance.choice(CLOCKS))


def _storm(chance: random.Random) -> Storm:
    return Storm(
        chance.choice(("dynamodb", "route53")), chance.choice((2.0, 10.0, 30.0)), chance.choice((0.2, 0.6, 1.0))
    )


_MAKERS: Final[tuple[tuple[int, Callable[[random.Random], Happening]], ...]] = (
    (24, _service),
    (16, _endpoints),
    (8, _gone),
    (2, _configure),
    (2, _compose),
    (2, lambda chance: Cut(chance.choice(_CLUSTERS))),
    (2, lambda chance: Compact(chance.choice(_CLUSTERS))),
    (2, lambda chance: Resync(dry_run=chance.random() < 0.3)),
    (3, lambda _chance: End()),
    (6, lambda chance: Kill(chance.randint(0, 60), chance.random() < 0.5)),
    (6, _pause),
    (4, lambda _chance: Another()),
    (3, _storm),
    (6, lambda chance: Lose(chance.randint(1, 40), chance.choice((DONE, NOT_DONE, LATER, LATER)))),
    (3, lambda _chance: Land()),
    (2, lambda chance: Slow(chance.choice((0.02, 0.3, 2.0)))),
    (2, lambda chance: Skew(chance.choice((-40.0, -8.0, 8.0, 40.0)))),
    (1, lambda chance: ByHand(chance.randint(0, 30), chance.random() < 0.5)),
)
_ALL: Final = tuple(make for _, make in _MAKERS)
_ALL_WEIGHTS: Final = tuple(weight for weight, _ in _MAKERS)
