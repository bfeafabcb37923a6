"""Section 1: the session is killed before, or after, each of its outward calls; the next ones run to quiet (I1, I3)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chaos.sections import Effort, Section, sample
from chaos.stories.every_story import CHANGES, REQUESTS, STORIES
from chaos.stories.parts_watch import PartsWatch
from chaos.stories.play import Arm, Play
from chaos.stories.verdict import judge, shortened
from simulation.gate import Gate, Outward, kill_at
from simulation.writes import RECORD

# At the end of a story: the one that ends it, a short while later, and one after a long pause.
_QUIET_SESSIONS = 3
_SHORT_CASES = {CHANGES: 100, REQUESTS: 50}


@dataclass(frozen=True, slots=True)
class Crash:
    """Kill at a call, counted over all sessions of the undisturbed run.

    ``again``: kill the next session too, at this call of its own (0: leave it alone). ``linger``: the next session deals with what
    was left behind before the world moves on; else both come at once. ``drip``: the next sessions read one event at a time, each in a
    window of its own, so that events of what was recorded before the kill come again one by one.
    """

    seed: int
    call: int
    before: bool
    linger: bool
    again: int = 0
    story: str = CHANGES
    drip: bool = False


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """The run without faults: its end, the plays as they stood at each session's begin, and the calls made before each.

    ``normals``: by place in the story, what stood there when no session ran.
    """

    end: Play
    normal: dict[str, object]
    begins: tuple[tuple[int, Play], ...]
    calls: tuple[Outward, ...]
    normals: dict[object, dict[str, object]]


@lru_cache(maxsize=8)
def undisturbed(seed: int, name: str = CHANGES) -> Undisturbed:
    story = STORIES[name]
    play = Play(story.begin(), story)
    begins: list[tuple[int, Play]] = []
    calls: list[Outward] = []
    normals: dict[object, dict[str, object]] = {}
    while not play.over:
        play.prepare()
        begins.append((len(calls), play.copy()))
        normals[place(play)] = play.world.normal()
        calls += play.one_session().calls
        report = play.reports[-1]
        told_to_die = play.position > 0 and play.story.steps[play.position - 1].killed
        assert (report is not None and report.clean) or told_to_die, report
    normal = play.world.normal()
    wrong = play.judge()
    assert not wrong, wrong
    return Undisturbed(play, normal, tuple(begins), tuple(calls), normals)


def place(play: Play) -> object:
    """Where in its story a play stands between two sessions."""
    return play.position, play.quiet, play.waits


def to_rest(tried: Play, wanted: Undisturbed, arm: Arm | None = None) -> Play:
    """Sessions until all is quiet, or as it was at that place of the undisturbed run: what follows is then the same.

    Returns:
        The undisturbed run at that place.
    """
    while not tried.over:
        tried.prepare()
        here = place(tried)
        on_its_way = tried.world.store.in_flight or tried.world.route53.delayed
        if here in wanted.normals and not on_its_way and tried.world.normal() == wanted.normals[here]:
            return next(play for _, play in wanted.begins if place(play) == here)
        tried.one_session(arm)
    return wanted.end


def cases(effort: Effort) -> Sequence[Crash]:
    struck = [case for name, most in _SHORT_CASES.items() for case in _of_story(effort, name, most)]
    return [*struck, *_drips(effort)]


def _drips(effort: Effort) -> list[Crash]:
    """Killed after a transaction that records; in a short run only where the window has more, its checkpoint among them."""
    calls = undisturbed(effort.seed).calls
    after = [n for n, call in enumerate(calls, 1) if call.kind == RECORD]
    if effort.short:
        after = [n for n in after if calls[n].kind == RECORD]
    return [Crash(effort.seed, n, before=False, linger=n % 2 == 0, drip=True) for n in after]


def _of_story(effort: Effort, name: str, most: int) -> list[Crash]:
    seed = effort.seed
    calls = places(seed, name)
    if effort.short:
        every = [Crash(seed, n, before, (n + before) % 2 == 0, story=name) for n in calls for before in (True, False)]
        return sample(every, most, seed)
    # Resyncs are long: of them every place once, with a successor that first deals with what is left at every second one.
    whole = name == CHANGES
    once = [
        Crash(seed, n, before, linger, story=name)
        for n in calls
        for before in (True, False)
        for linger in (True, False)
        if whole or linger == ((n + before) % 2 == 0)
    ]
    chance = random.Random(seed)
    twice = [
        Crash(seed, n, before, chance.random() < 0.5, again=chance.randint(1, 90), story=name)
        for n in calls
        for before in (True, False)
        if before == (n % 2 == 0)
    ]
    return [*once, *twice]


def places(seed: int, name: str) -> list[int]:
    """The calls at which a session is struck.

    All of them in the story of changes, but for renewals that follow a renewal, and for the last sessions, in which nothing is left to do but
    to settle after a long pause, once more. A resync reads much: between two writes it makes no
    difference to anybody at which of the reads a session dies, so that of those the first ones are enough.
    """
    known = undisturbed(seed, name)
    calls = known.calls[: next(at for at, play in known.begins if play.quiet == _QUIET_SESSIONS)]
    if name == CHANGES:
        return [n for n, call in enumerate(calls, 1) if not (call.kind == calls[n - 2].kind == "lease")]
    starts = {1, *(at + 1 for at, _ in known.begins)}
    return [n for n, call in enumerate(calls, 1) if call.writes or n in starts or calls[n - 2].writes]


def fault(case: object) -> str:
    assert isinstance(case, Crash)
    when = "before" if case.before else "after"
    what = ", then event by event" if case.drip else ""
    return f"story of {case.story}: {when} a call" + (", and again" if case.again else what)


def play(case: object) -> list[str]:
    assert isinstance(case, Crash)
    wanted = undisturbed(case.seed, case.story)
    offset, begin = next((at, p) for at, p in reversed(wanted.begins) if at < case.call)
    tried = begin.copy()

    def arm(gate: Gate) -> None:
        kill_at(gate, case.call - offset, before=case.before)

    gate = tried.one_session(arm)
    if not gate.killed:
        return ["the session was not killed: its calls are not those of the undisturbed run"]
    tried.linger = case.linger
    if case.again:
        tried.one_session(lambda gate: kill_at(gate, case.again, before=case.call % 2 == 0))
    if case.drip:
        tried.world.drip = True
        watch = PartsWatch(tried.world)
        tried.to_the_end(watch.arm)
        # Event by event, a part may hold a later version of the same value than where a window took several together.
        lines = shortened([*watch.lines, *tried.judge()])
    else:
        lines = judge(tried, to_rest(tried, wanted).world.normal())
    lines += tried.world.machine.failures
    return [f"at {gate.calls[-1]}: {line}" for line in lines]


SECTION = Section(1, "killed before and after every call", "I1 I3", cases, play, fault=fault)
