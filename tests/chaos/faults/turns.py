"""Section 20: a long window whose namespaces take turns, and that takes in later ones; the session dies, or hands over, in the middle (I1).

Wherever it ends: the next one comes to what stands in the run that nobody disturbs. Names change hands across turns, objects change again
or go while they wait for their turn, and a list holds objects again that went while it was being recorded.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from chaos.sections import Effort, Section
from chaos.stories.ends import End, Step, ends, fault, play_steps
from harness.deployment import Deployment
from harness.seen.builders import a_service, an_endpoints
from kubesync.domain.objects import Resource
from simulation.normal_form import differences

EVIL: Final = "evil"
_COUNT: Final = 130
_WRITE_SECONDS: Final = 0.2
_SHORT: Final = 10


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


STORY: Final = (
    Step(1.2, _many),
    Step(1.2, _meanwhile),
    Step(30.0, _again),
    Step(1.2, _listed_again),
    Step(30.0, _back),
)


def play_story(
    end: End | None, story: Sequence[Step[Deployment]] = STORY, **config: Any
) -> tuple[Mapping[str, object], Sequence[int]]:
    """What stands in the end, and how many writes each step had. ``config``: of the cluster."""
    deployment = Deployment(domain_filter=("example.com",), **config)
    asking(deployment, "owner", "www.example.com", year=2025)
    writes = list(play_steps(deployment, story, end, _WRITE_SECONDS))
    found = deployment.world.normal()
    deployment.close()
    return found, writes


@lru_cache(maxsize=1)
def undisturbed() -> tuple[Mapping[str, object], Sequence[int]]:
    return play_story(None)


def cases(effort: Effort) -> Sequence[End]:
    _, writes = undisturbed()
    return ends(writes, effort, _SHORT)


def play(case: object) -> list[str]:
    assert isinstance(case, End)
    (wanted, _), (found, _) = undisturbed(), play_story(case)
    return differences(found, wanted)


SECTION: Final = Section(20, "namespaces in turns, killed at every write", "I1 I9", cases, play, fault=fault)
__all__ = ["EVIL", "SECTION", "asking", "evil", "play_story", "undisturbed"]
