"""Section 23: a namespace that has taken all that it may; the session dies, or hands over, in the middle (I1, I9).

Its Services wait for room: for names, for places in lines, for record sets. Some go, and others come. A session that dies may forget that there is
room. So nobody disturbs the last step: one more Service goes, then there is room for all, and all must hear of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from chaos.faults.turns import EVIL, asking, evil, play_story
from chaos.sections import Effort, Section
from chaos.stories.ends import End, Step, ends, fault
from harness.deployment import Deployment
from kubesync.domain.objects import Resource
from kubesync.domain.state import KeyState
from simulation.normal_form import differences

CAPS: Final = {
    "max_names_per_namespace": 9,
    "max_waits_per_namespace": 3,
    "max_record_sets_per_namespace": 19,
}
_SHORT: Final = 10
_LARGE: Final = 40  # comes first and goes last: what it takes is enough for all others
_HEIR: Final = 50  # stands in line from the beginning, and is given the name that is waited for


def _gone(deployment: Deployment, *numbers: int) -> None:
    for number in numbers:
        deployment.cluster.delete(Resource.SERVICES, f"h{number}", EVIL)


def _full(deployment: Deployment) -> None:
    evil(deployment, _LARGE, asks="a.example.com,b.example.com,c.example.com,d.example.com")
    evil(deployment, _HEIR, asks="www.example.com")


def _too_many(deployment: Deployment) -> None:
    for number in range(60, 66):
        evil(deployment, number, asks=f"n{number}.example.com")  # two record sets each
    for number in range(70, 75):
        evil(deployment, number, asks="www.example.com")  # one record set, and a place in line
    asking(deployment, "friend", "friend.example.com")


def _some_go(deployment: Deployment) -> None:
    _gone(deployment, 60, 71)
    evil(deployment, 61, asks="other.example.com")
    evil(deployment, 70)  # it does not wait any more
    asking(deployment, "later", "www.example.com", year=2027)


def _listed_again(deployment: Deployment) -> None:
    _gone(deployment, 62, 63)
    evil(deployment, 76, asks="late.example.com")
    deployment.cluster.compact()
    deployment.cluster.cut()


def _owner_goes(deployment: Deployment) -> None:
    asking(deployment, "owner")


def _large_goes(deployment: Deployment) -> None:
    _gone(deployment, _LARGE)


STORY: Final = (
    Step(10.0, _full),
    Step(15.0, _too_many),
    Step(15.0, _some_go),
    Step(30.0, _listed_again),
    Step(15.0, _owner_goes),
    Step(15.0, _large_goes),
)


@lru_cache(maxsize=1)
def undisturbed() -> tuple[Mapping[str, object], Sequence[int]]:
    return play_story(None, STORY, **CAPS)


def cases(effort: Effort) -> Sequence[End]:
    _, writes = undisturbed()
    return ends(writes[:-1], effort, _SHORT)


def play(case: object) -> list[str]:
    assert isinstance(case, End)
    (wanted, _), (found, _) = undisturbed(), play_story(case, STORY, **CAPS)
    waits = [f"{place} waits for room" for place in found if "#over" in place]
    return [*waits, *differences(dict(_stored(found)), dict(_stored(wanted)))]


def _stored(found: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Without who has a name that others wait for: these are told by the session that planned them, if it lives."""
    for place, value in found.items():
        if place.startswith("key ") and isinstance(value, tuple) and isinstance(state := value[0], KeyState):
            problems = tuple(problem for problem in state.problems if problem.code != "NameTaken")
            yield place, (replace(state, problems=problems), *value[1:])
        else:
            yield place, value


SECTION: Final = Section(23, "a namespace at its limits, killed at every write", "I1 I9", cases, play, fault=fault)
__all__ = ["CAPS", "SECTION", "STORY", "undisturbed"]
