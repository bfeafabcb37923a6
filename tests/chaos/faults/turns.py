"""Section 20: a long window whose namespaces take turns, and that takes in later ones; the session dies, or hands over, in the middle (I1).

Wherever it ends: the next one comes to what stands in the run that nobody disturbs. Names change hands across turns, objects change again
or go while they wait for their turn, and a list holds objects again that went while it was being recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from chaos.sections import Effort, Section, sample
from harness.deployment import Deployment
from harness.seen.builders import a_service, an_endpoints
from kubesync.domain.objects import Resource
from simulation.gate import Gate, Outward
from simulation.normal_form import differences

EVIL: Final = "evil"
_COUNT: Final = 130
_WRITE_SECONDS: Final = 0.2
_SHORT: Final = 10
_LEASE_SECONDS: Final = 20.0

type Happens = Callable[[Deployment], None]


@dataclass(frozen=True, slots=True)
class End:
    """The session ends at its n-th write of this step of the story: it dies ``before`` it or after it, or hands over."""

    step: int
    write: int
    how: str


def evil(deployment: Deployment, number: int, *, asks: str = "", address: str = "10.9.0.1") -> None:
    hostname = {"hostname": asks} if asks else {}
    service = a_service(cluster_ips=(address,), annotations=hostname, created_at="2026-01-02T00:00:00Z")
    deployment.apply(f"h{number}", service, namespace=EVIL)


def asking(deployment: Deployment, name: str, asks: str = "", *, year: int = 2026) -> None:
    hostname = {"hostname": asks} if asks else {}
    service = a_service(cluster_ips=("10.0.0.7",), annotations=hostname, created_at=f"{year}-01-01T00:00:00Z")
    deployment.apply(name, service)


def _many(deployment: Deployment) -> None:
    names = {9: "older.example.com", 90: "younger.example.com", 70: "www.example.com"}
    for number in range(_COUNT):
        evil(deployment, number, asks=names.get(number, ""))
    deployment.apply("h3", an_endpoints("10.9.1.1", service="h3"), namespace=EVIL, slice_name="moves")
    asking(deployment, "friend", "older.example.com", year=2027)  # h9 is older: it wins
    asking(deployment, "first", "younger.example.com", year=2025)  # it is older than h90


def _meanwhile(deployment: Deployment) -> None:
    asking(deployment, "later")
    asking(deployment, "owner")  # it lets www go; h70 waits for it, or is about to
    evil(deployment, 120, asks="new.example.com")
    deployment.apply("h125", an_endpoints("10.9.1.1", service="h125"), namespace=EVIL, slice_name="moves")


def _again(deployment: Deployment) -> None:
    for number in (126, 127):
        deployment.cluster.delete(Resource.SERVICES, f"h{number}", EVIL)
    evil(deployment, 127, address="10.9.0.9")
    deployment.cluster.delete(Resource.ENDPOINTSLICES, "moves", EVIL)
    asking(deployment, "later", "new2.example.com")


def _listed_again(deployment: Deployment) -> None:
    """Both listeners list again, while nobody can watch."""
    for number in (100, 101):
        deployment.cluster.delete(Resource.SERVICES, f"h{number}", EVIL)
    for number in range(10, 60):
        evil(deployment, number, address="10.9.0.3")
    deployment.cluster.compact()
    deployment.cluster.cut()


def _back(deployment: Deployment) -> None:
    evil(deployment, 100, address="10.9.0.4")
    asking(deployment, "latest")


STORY: Final[Sequence[tuple[float, Happens]]] = (
    (1.2, _many),
    (1.2, _meanwhile),
    (30.0, _again),
    (1.2, _listed_again),
    (30.0, _back),
)
"""What happens, and for how long (seconds) nothing else happens then."""


class _Striking:
    """Writes take time; the session ends at one of them."""

    def __init__(self, deployment: Deployment, gate: Gate) -> None:
        self.writes = 0
        self.end: End | None = None
        self._deployment = deployment
        self._gate = gate
        gate.on_before, gate.on_after = self._before, self._after

    def _before(self, call: Outward) -> None:
        self.writes += call.writes
        if call.writes and self.end is not None and self.end.how == "before" and self.writes == self.end.write:
            self._gate.kill()

    def _after(self, call: Outward) -> None:
        if call.writes and self.end is not None and self.end.how == "after" and self.writes == self.end.write:
            self._gate.kill()
        if call.writes and call.service != "route53":
            self._deployment.hold(_WRITE_SECONDS)


def _begin(deployment: Deployment) -> _Striking:
    gate = deployment.world.new_gate()
    striking = _Striking(deployment, gate)
    deployment.running = deployment.world.start(gate)
    return striking


def play_story(
    end: End | None, story: Sequence[tuple[float, Happens]] = STORY, **config: Any
) -> tuple[Mapping[str, object], Sequence[int]]:
    """What stands in the end, and how many writes each step had. ``config``: of the cluster."""
    deployment = Deployment(domain_filter=("example.com",), **config)
    asking(deployment, "owner", "www.example.com", year=2025)
    striking = _begin(deployment)
    deployment.pass_time(10.0)
    writes: list[int] = []
    for number, (seconds, happens) in enumerate(story):
        striking.writes, striking.end = 0, end if end is not None and end.step == number else None
        happens(deployment)
        if striking.end is not None and striking.end.how == "hand over":
            deployment.pass_time(seconds / 2)
            deployment.end()
            striking = _begin(deployment)
            deployment.pass_time(seconds / 2)
        else:
            deployment.pass_time(seconds)
        writes.append(striking.writes)
        assert deployment.running is not None
        if not deployment.running.alive:
            deployment.pass_time(_LEASE_SECONDS)  # else the next session finds another master, and ends
            striking = _begin(deployment)
            deployment.pass_time(60.0)
            assert deployment.running.alive
    deployment.pass_time(60.0)
    found = deployment.world.normal()
    deployment.close()
    return found, writes


@lru_cache(maxsize=1)
def undisturbed() -> tuple[Mapping[str, object], Sequence[int]]:
    return play_story(None)


def cases(effort: Effort) -> Sequence[End]:
    _, writes = undisturbed()
    return ends(writes, effort)


def ends(writes: Sequence[int], effort: Effort) -> Sequence[End]:
    """Every end of a session in steps that have so many writes."""
    dies = [
        End(step, n, how) for step, of in enumerate(writes) for n in range(1, of + 1) for how in ("before", "after")
    ]
    every = [*dies, *(End(step, 0, "hand over") for step in range(len(writes)))]
    return sample(every, _SHORT, effort.seed) if effort.short else every


def play(case: object) -> list[str]:
    assert isinstance(case, End)
    (wanted, _), (found, _) = undisturbed(), play_story(case)
    return differences(found, wanted)


def fault(case: object) -> str:
    assert isinstance(case, End)
    return {"before": "dies before a write", "after": "dies after a write"}.get(case.how, case.how)


SECTION: Final = Section(20, "namespaces in turns, killed at every write", "I1 I9", cases, play, fault=fault)
__all__ = ["EVIL", "SECTION", "asking", "ends", "evil", "fault", "play_story", "undisturbed"]
