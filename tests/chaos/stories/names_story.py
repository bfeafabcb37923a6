"""Stories of names that change hands: the session ends at one of its writes, in any step, and what stands in the end is what must stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from chaos.sections import Effort, sample
from harness.deployment import ZONE_ID
from harness.dns_cases.passing import PassingDeployment
from harness.seen.builders import a_service
from simulation.gate import Gate, Outward

_LEASE_SECONDS: Final = 20.0
_STEP_SECONDS: Final = 10.0
_SHORT: Final = 12

type Happens = Callable[[PassingDeployment], None]


@dataclass(frozen=True, slots=True)
class End:
    """The session ends at its n-th write of this step of the story: it dies ``before`` it or after it, or hands over."""

    step: int
    write: int
    how: str


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in the end, how many writes each step had, and which of the names were away after the first step."""

    stands: Mapping[str, object]
    writes: Sequence[int]
    away: frozenset[str]


@dataclass
class StoryOfNames:
    """Args:
    steps: what happens; the first one publishes the names.
    names: those that are never away.
    more: clusters besides ``prod`` and ``dev``.
    always: cases of the short run, whatever else is sampled.
    """

    steps: Sequence[Happens]
    names: frozenset[str]
    more: Sequence[str] = ()
    always: Sequence[End] = ()
    _undisturbed: list[Found] = field(default_factory=list)

    def undisturbed(self) -> Found:
        if not self._undisturbed:
            self._undisturbed.append(self.found(None))
        return self._undisturbed[0]

    def found(self, end: End | None) -> Found:
        deployment = PassingDeployment(ttl=30)
        for name in self.more:
            deployment.add_cluster(name)
        away: set[str] = set()
        deployment.after_batch = lambda: away.update(
            self.names - {key.name for key in deployment.route53.records(ZONE_ID)}
        )
        striking = _begin(deployment)
        deployment.pass_time(10.0)
        writes: list[int] = []
        for number, happens in enumerate(self.steps):
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
        stands = deployment.world.normal()
        deployment.close()
        return Found(stands, writes, frozenset(away))

    def cases(self, effort: Effort) -> Sequence[End]:
        ends = [
            End(step, n, how)
            for step, of in enumerate(self.undisturbed().writes)
            for n in range(1, of + 1)
            for how in ("before", "after")
        ]
        every = [*ends, *(End(step, 0, "hand over") for step in range(len(self.steps)))]
        return [*self.always, *sample(every, _SHORT, effort.seed)] if effort.short else every

    def play(self, case: object) -> list[str]:
        assert isinstance(case, End)
        wanted, found = self.undisturbed().stands, self.found(case)
        return [
            *(f"{name} was away" for name in sorted(found.away)),
            *(
                f"{name}: {found.stands.get(name)} instead of {wanted.get(name)}"
                for name in sorted(wanted.keys() | found.stands.keys())
                if wanted.get(name) != found.stands.get(name)
            ),
        ]


def fault(case: object) -> str:
    assert isinstance(case, End)
    return {"before": "dies before a write", "after": "dies after a write"}.get(case.how, case.how)


def asks(
    deployment: PassingDeployment,
    key: str,
    address: str,
    *names: str,
    year: int = 2026,
    policy: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """A Service asks for names."""
    annotations = {"hostname": ",".join(names), **policy} if names else {}
    made = a_service(
        "LoadBalancer", cluster_ips=(), ingress_ips=(address,), ports=(), annotations=annotations, created_at=f"{year}-01-01T00:00:00Z"
    )  # fmt: skip
    deployment.put(key, made)


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
