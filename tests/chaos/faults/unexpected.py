"""Section 16: a step of an actor raises what nobody expected, before or after the effect of a call (I1, I3, I4).

Such an error is a fault of ours. It stops what met it, and only that. Whoever failed once is right again in the same session: a zone settles, a
cluster resumes from what is stored or takes its message again, and the named upstreams compose again. A cluster that fails again listens no
more, and the next session completes what it left. The session itself goes on as ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chaos.faults.crash import Undisturbed, place, places, to_rest, undisturbed
from chaos.sections import Effort, Section, sample
from chaos.stories.every_story import STORIES
from chaos.stories.play import Play
from chaos.stories.verdict import judge, shortened
from simulation.gate import Gate, Outward

ZONE, UPSTREAMS, CLUSTER = "a zone", "named upstreams", "a cluster"
_THREADS: Final = ((ZONE, "/zone "), (UPSTREAMS, "/composer"), (CLUSTER, "/cluster"))
_SHORT_OF_EACH: Final = 3
# A zone, or a cluster with a message, tries again after 5 s.
_TRIES_AGAIN_SECONDS: Final = 6.0
_RIGHT_AGAIN_SECONDS: Final = 2 * _TRIES_AGAIN_SECONDS


class OurFaultError(Exception):
    """Nothing catches it by name."""


@dataclass(frozen=True, slots=True)
class Unexpected:
    """The call of the undisturbed run, by its number, at which an actor fails. ``times``: its next calls fail as well."""

    seed: int
    call: int
    before: bool
    times: int
    story: str


def cases(effort: Effort) -> Sequence[Unexpected]:
    made = [
        Unexpected(effort.seed, number, before, times, name)
        for name in STORIES
        for number in places(effort.seed, name)
        if actor_of(undisturbed(effort.seed, name).calls[number - 1])
        for before, times in ((True, 1), (False, 1), (number % 2 == 0, 3))
    ]
    if not effort.short:
        return made[effort.seed % 4 :: 4]  # every fourth: another seed plays others
    by_fault: dict[str, list[Unexpected]] = {}
    for case in made:
        by_fault.setdefault(fault(case), []).append(case)
    return [case for some in by_fault.values() for case in sample(some, _SHORT_OF_EACH, effort.seed)]


def actor_of(call: Outward) -> str:
    """Which kind of actor makes a call; empty: none."""
    return next((actor for actor, thread in _THREADS if thread in call.thread), "")


def _call(case: Unexpected) -> Outward:
    return undisturbed(case.seed, case.story).calls[case.call - 1]


def fault(case: object) -> str:
    assert isinstance(case, Unexpected)
    return (
        f"{actor_of(_call(case))}: {'before' if case.before else 'after'} a call{', thrice' if case.times > 1 else ''}"
    )


class _Strike:
    def __init__(self, number: int, thread: str, case: Unexpected) -> None:
        self._number, self._thread, self._left = number, thread, case.times
        self._case = case
        self.struck: Outward | None = None

    def arm(self, gate: Gate) -> None:
        if self._case.before:
            gate.on_before = self._fail
        else:
            gate.on_after = self._fail

    def _fail(self, call: Outward) -> None:
        if self._left and call.number >= self._number and call.thread == self._thread:
            self._left -= 1
            self.struck = call
            raise OurFaultError(f"a fault at {call}")


def play(case: object) -> list[str]:
    assert isinstance(case, Unexpected)
    wanted = undisturbed(case.seed, case.story)
    offset, begin = next((at, p) for at, p in reversed(wanted.begins) if at < case.call)
    tried, call = begin.copy(), _call(case)
    strike = _Strike(case.call - offset, call.thread, case)
    once = case.times == 1 and begin.recovery is None
    tried.patience = _RIGHT_AGAIN_SECONDS if once else 0.0
    gate = tried.one_session(strike.arm)
    tried.patience = 0.0
    if strike.struck is None:
        return ["no call was struck: its calls are not those of the undisturbed run"]
    ended, normally = tried.reports[-1], wanted.end.reports[len(begin.reports)]
    if (ended and ended.ended) != (normally and normally.ended):
        return [f"at {call}: the session ended: {ended}"]
    if actor_of(call) != CLUSTER and not _went_on(strike.struck, gate):
        return [f"at {call}: it did not go on"]
    if once and ended is not None and (wrong := _wrong(tried, wanted)):
        return [f"at {call}: not right again in the same session: {line}" for line in shortened(wrong)]
    reached = to_rest(tried, wanted)
    lines = judge(tried, reached.world.normal())
    lines += tried.world.machine.failures
    return [f"at {call}: {line}" for line in shortened(lines)]


def _wrong(tried: Play, wanted: Undisturbed) -> list[str]:
    """What is neither as in the undisturbed run, nor what the clusters ask for: a name may go to another one who wants it."""
    if tried.over:
        return []  # judged in any case
    tried.prepare()
    normal = tried.world.normal()
    expected = wanted.normals.get(place(tried))
    return [] if normal == expected else tried.judge()


def _went_on(struck: Outward, gate: Gate) -> bool:
    """Whether an actor did something after one of its writes was struck, in the same session, if that lasted so long.

    After a read it may have nothing more to do: a zone that has closed everything reads what an earlier session said of it.
    """
    left = gate.calls[-1].at - struck.at
    return (
        not struck.writes
        or left < _TRIES_AGAIN_SECONDS
        or any(c.thread == struck.thread for c in gate.calls[struck.number :])
    )


SECTION = Section(16, "a step raises what nobody expected", "I1 I3 I4", cases, play, fault=fault)
