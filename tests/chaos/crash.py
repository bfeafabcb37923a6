"""Section 1: the session is killed before, or after, each of its outward calls; the next ones run to quiet (I1, I3)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chaos.gate import Gate, Outward, kill_at
from chaos.oracle import judge_quiet
from chaos.play import Play
from chaos.sections import Effort, Section, sample
from chaos.story import FOREIGN, STORY, a_world
from chaos.verdict import judge

_SHORT_CASES = 130


@dataclass(frozen=True, slots=True)
class Crash:
    """Kill at a call, counted over all sessions of the undisturbed run.

    ``again``: kill the next session too, at this call of its own (0: leave it alone). ``linger``: the next session deals with what
    was left behind before the world moves on; else both come at once.
    """

    seed: int
    call: int
    before: bool
    linger: bool
    again: int = 0


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """The run without faults: its end, the plays as they stood at each session's begin, and the calls made before each."""

    end: Play
    normal: dict[str, object]
    begins: tuple[tuple[int, Play], ...]
    calls: tuple[Outward, ...]


@lru_cache(maxsize=4)
def undisturbed(seed: int) -> Undisturbed:
    play = Play(a_world(), STORY)
    begins: list[tuple[int, Play]] = []
    calls: list[Outward] = []
    while not play.over:
        begins.append((len(calls), play.copy()))
        calls += play.one_session().calls
        report = play.reports[-1]
        assert report is not None
        assert report.clean, report
    normal = play.world.normal()
    wrong = judge_quiet(play.world, FOREIGN)
    assert not wrong, wrong
    return Undisturbed(play, normal, tuple(begins), tuple(calls))


def cases(effort: Effort) -> Sequence[Crash]:
    calls = range(1, len(undisturbed(effort.seed).calls) + 1)
    if effort.short:
        every = [Crash(effort.seed, n, before, (n + before) % 2 == 0) for n in calls for before in (True, False)]
        return sample(every, _SHORT_CASES, effort.seed)
    once = [
        Crash(effort.seed, n, before, linger) for n in calls for before in (True, False) for linger in (True, False)
    ]
    chance = random.Random(effort.seed)
    twice = [
        Crash(effort.seed, n, before, chance.random() < 0.5, again=chance.randint(1, 90))
        for n in calls
        for before in (True, False)
    ]
    return [*once, *twice]


def play(case: object) -> list[str]:
    assert isinstance(case, Crash)
    wanted = undisturbed(case.seed)
    offset, begin = next((at, p) for at, p in reversed(wanted.begins) if at < case.call)
    tried = begin.copy()

    def arm(gate: Gate) -> None:
        kill_at(gate, case.call - offset, before=case.before)

    gate = tried.one_session(arm)
    if not gate.dead:
        return ["the session was not killed: its calls are not those of the undisturbed run"]
    tried.linger = case.linger
    if case.again:
        tried.one_session(lambda gate: kill_at(gate, case.again, before=case.call % 2 == 0))
    tried.to_the_end()
    lines = judge(tried, wanted.normal)
    return [f"at {gate.calls[-1]}: {line}" for line in lines]


SECTION = Section(1, "killed before and after every call", "I1 I3", cases, play)
