"""Section 21: names pass from one key to another in one batch, and the session dies at a write, or hands over (I1, I4).

Wherever it ends: each half of a batch is closed or durably open, so the next sessions come to what stands in the run that nobody disturbs.
A name whose two keys are of one cluster is never away, wherever the session dies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from chaos.sections import Effort, Section, sample
from harness.deployment import ZONE_ID
from harness.dns_cases.passing import PassingDeployment
from harness.seen.builders import a_service
from kubesync.domain.sources.ingresses import Ingress
from simulation.gate import Gate, Outward

_NAMES: Final = ("www.example.com", "api.example.com", "far.example.com", "roles.example.com")
_EU: Final = {"aws-region": "eu-west-1"}
_US: Final = {"aws-region": "us-east-1"}
_SHORT: Final = 12
NO_POLICY: Final[Mapping[str, str]] = MappingProxyType({})
_LEASE_SECONDS: Final = 20.0

type Happens = Callable[[PassingDeployment], None]


@dataclass(frozen=True, slots=True)
class End:
    """The session ends at its n-th write of this step of the story: it dies ``before`` it or after it, or hands over."""

    step: int
    write: int
    how: str


def _asks(
    deployment: PassingDeployment,
    key: str,
    address: str,
    *names: str,
    year: int = 2026,
    policy: Mapping[str, str] = NO_POLICY,
) -> None:
    annotations = {"hostname": ",".join(names), **policy} if names else {}
    made = a_service(
        "LoadBalancer", cluster_ips=(), ingress_ips=(address,), ports=(), annotations=annotations, created_at=f"{year}-01-01T00:00:00Z"
    )  # fmt: skip
    deployment.put(key, made)


def _owners(deployment: PassingDeployment) -> None:
    _asks(deployment, "a", "192.0.2.1", *_NAMES, year=2021)
    deployment.pass_time(3.0)
    _asks(deployment, "b", "192.0.2.2", "www.example.com", year=2022)
    _asks(deployment, "c", "192.0.2.3", "www.example.com", year=2023)
    _asks(deployment, "dev/shop/far", "192.0.2.4", "far.example.com", year=2022)
    _roles(deployment, _EU, _US)


def _next_in_line(deployment: PassingDeployment) -> None:
    _asks(deployment, "a", "192.0.2.1", "api.example.com", "far.example.com", year=2021)


def _to_an_ingress(deployment: PassingDeployment) -> None:
    _asks(deployment, "a", "192.0.2.1", "far.example.com", year=2021)
    deployment.put(
        "Ingress:w", Ingress(hosts=("api.example.com",), ingress_ips=("192.0.2.5",), created_at="2026-01-01T00:00:00Z")
    )


def _to_another_cluster(deployment: PassingDeployment) -> None:
    deployment.put("a", None)


def _two_at_once(deployment: PassingDeployment) -> None:
    """www goes from b to c, and api from the Ingress to b."""
    deployment.put("Ingress:w", None)
    _asks(deployment, "b", "192.0.2.2", "api.example.com", year=2022)


def _roles(deployment: PassingDeployment, one: Mapping[str, str], other: Mapping[str, str]) -> None:
    _asks(deployment, "r1", "192.0.2.11", "roles.example.com", policy={"set-identifier": "r1", **one})
    deployment.pass_time(2.0)
    _asks(deployment, "r2", "192.0.2.12", "roles.example.com", policy={"set-identifier": "r2", **other})


STORY: Final[Sequence[Happens]] = (
    _owners,
    _next_in_line,
    _to_an_ingress,
    _to_another_cluster,
    _two_at_once,
    lambda deployment: _roles(deployment, _US, _EU),  # they exchange their regions
    lambda deployment: _roles(deployment, {}, {}),  # and change to weights
)
_STEP_SECONDS: Final = 10.0


class _Striking:
    """The session ends at one of its writes."""

    def __init__(self, gate: Gate) -> None:
        self.writes = 0
        self.end: End | None = None
        self._gate = gate
        gate.on_before, gate.on_after = self._before, self._after

    def _before(self, call: Outward) -> None:
        self.writes += call.writes
        self._strike(call, "before")

    def _after(self, call: Outward) -> None:
        self._strike(call, "after")

    def _strike(self, call: Outward, how: str) -> None:
        if call.writes and self.end is not None and (self.end.how, self.end.write) == (how, self.writes):
            self._gate.kill()


def _begin(deployment: PassingDeployment) -> _Striking:
    gate = deployment.world.new_gate()
    striking = _Striking(gate)
    deployment.running = deployment.world.start(gate)
    return striking


def _away(deployment: PassingDeployment) -> set[str]:
    return set(_NAMES) - {key.name for key in deployment.route53.records(ZONE_ID)}


def play_story(end: End | None) -> tuple[Mapping[str, object], Sequence[int], set[str]]:
    """What stands in the end, how many writes each step had, and names of keys of one cluster that were away after the first step."""
    deployment = PassingDeployment(ttl=30)
    away: set[str] = set()
    deployment.after_batch = lambda: away.update(_away(deployment))
    striking = _begin(deployment)
    deployment.pass_time(10.0)
    writes: list[int] = []
    for number, happens in enumerate(STORY):
        striking.writes, striking.end = 0, end if end is not None and end.step == number else None
        happens(deployment)
        if striking.end is not None and striking.end.how == "hand over":
            deployment.pass_time(1.3)
            deployment.end()
            striking = _begin(deployment)
        deployment.pass_time(_STEP_SECONDS)
        writes.append(striking.writes)
        assert deployment.running is not None
        if not deployment.running.alive:
            deployment.pass_time(_LEASE_SECONDS)  # else the next session finds another master, and ends
            striking = _begin(deployment)
            deployment.pass_time(60.0)
            assert deployment.running.alive
        if not number:
            away.clear()
    deployment.pass_time(60.0)
    found = deployment.world.normal()
    deployment.close()
    return found, writes, away - {"far.example.com"}


@lru_cache(maxsize=1)
def undisturbed() -> tuple[Mapping[str, object], Sequence[int], set[str]]:
    return play_story(None)


def cases(effort: Effort) -> Sequence[End]:
    _, writes, _ = undisturbed()
    dies = [
        End(step, n, how) for step, of in enumerate(writes) for n in range(1, of + 1) for how in ("before", "after")
    ]
    every = [*dies, *(End(step, 0, "hand over") for step in range(len(STORY)))]
    if effort.short:
        # Whatever else is sampled: who waits has older events again in the window in which the owner leaves.
        return [End(1, 1, "before"), *sample(every, _SHORT, effort.seed)]
    return every


def play(case: object) -> list[str]:
    assert isinstance(case, End)
    (wanted, _, _), (found, _, away) = undisturbed(), play_story(case)
    return [
        *(f"{name} was away" for name in sorted(away)),
        *(
            f"{name}: {found.get(name)} instead of {wanted.get(name)}"
            for name in sorted(wanted.keys() | found.keys())
            if wanted.get(name) != found.get(name)
        ),
    ]


def fault(case: object) -> str:
    assert isinstance(case, End)
    return {"before": "dies before a write", "after": "dies after a write"}.get(case.how, case.how)


SECTION: Final = Section(21, "names that pass on, killed at every write", "I1 I4", cases, play, fault=fault)
