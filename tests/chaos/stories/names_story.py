"""Stories of names that change hands: the session ends at one of its writes, in any step, and what stands in the end is what must stand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from chaos.sections import Effort
from chaos.stories.ends import End, Step, ends, play_steps
from harness.deployment import ZONE_ID
from harness.dns_cases.passing import PassingDeployment
from harness.seen.builders import a_service
from simulation.normal_form import differences

_STEP_SECONDS: Final = 10.0
_SHARE: Final = 0.13  # just after the window in which something happens
_SHORT: Final = 12

type Happens = Callable[[PassingDeployment], None]


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in the end, how many writes each step had, which of the names were away after the first step, and what Route 53 refused."""

    stands: Mapping[str, object]
    writes: Sequence[int]
    away: frozenset[str]
    refused: Sequence[str]


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
        steps = [Step(_STEP_SECONDS, happens, _SHARE) for happens in self.steps]
        away: set[str] = set()
        deployment.after_batch = lambda: away.update(
            self.names - {key.name for key in deployment.route53.records(ZONE_ID)}
        )
        writes: list[int] = []
        for number, of_step in enumerate(play_steps(deployment, steps, end)):
            writes.append(of_step)
            if not number:
                away.clear()
        stands = deployment.world.normal()
        deployment.close()
        return Found(stands, writes, frozenset(away), tuple(deployment.refusals))

    def cases(self, effort: Effort) -> Sequence[End]:
        every = ends(self.undisturbed().writes, effort, _SHORT)
        return [*self.always, *every] if effort.short else every

    def play(self, case: object) -> list[str]:
        assert isinstance(case, End)
        found = self.found(case)
        return [
            *(f"{name} was away" for name in sorted(found.away)),
            *(f"Route 53 refused: {said}" for said in found.refused),
            *differences(found.stands, self.undisturbed().stands),
        ]


def asks(
    deployment: PassingDeployment,
    key: str,
    address: str,
    *names: str,
    year: int = 2026,
    policy: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """A Service asks for names. ``address``: also the host name of a load balancer."""
    annotations = {"hostname": ",".join(names), **policy} if names else {}
    ips, hosts = ((address,), ()) if address[0].isdigit() else ((), (address,))
    made = a_service(
        "LoadBalancer", cluster_ips=(), ingress_ips=ips, ingress_hostnames=hosts, ports=(), annotations=annotations,
        created_at=f"{year}-01-01T00:00:00Z",
    )  # fmt: skip
    deployment.put(key, made)
