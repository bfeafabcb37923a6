"""Section 2: a master is paused at a call, another takes over; then the first wakes up and runs on (I2).

It must change nothing, in no table and no zone, must notice, and end with code 4. Its clock has stopped with it (it believes that its
lease is good, so that only fences and journals keep it out), has gone on, or is ahead of the others' by then.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chaos.faults.crash import Undisturbed, places, to_rest, undisturbed
from chaos.sections import Effort, Section, sample
from chaos.stories.every_story import CHANGES, REQUESTS
from chaos.stories.play import STEP_SECONDS, Play
from chaos.stories.verdict import shortened
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Observation, Resource, Service
from kubesync.domain.report import SessionReport
from simulation.gate import Gate, Outward
from simulation.world import SETTINGS, World
from simulation.writes import SENT

WORKS = ("goes on with the story", "changes and changes back", "finds what was under way undone", "does nothing")
WAKES = ("while the new one is the master", "after it has ended", "while a third is the master", "while it takes over")
CLOCKS = ("stopped", "right", "ahead")
_AHEAD_SECONDS = 20.0
_SHORT_CASES, _SHORT_SENDERS, _SHORT_REQUESTS = 55, 25, 25
_BOUND_SECONDS = 60.0
_SLOW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Overlap:
    """Pause at a call of the undisturbed run. ``work``, ``wake`` and ``clock`` index the tables above."""

    seed: int
    call: int
    before: bool
    work: int
    wake: int
    clock: int
    story: str = CHANGES


def cases(effort: Effort) -> Sequence[Overlap]:
    chance = random.Random(effort.seed)
    seed = effort.seed
    changes = _of_story(seed, CHANGES, chance)
    requests = _of_story(seed, REQUESTS, chance)
    if not effort.short:
        return [*changes, *requests]
    # Paused right before a batch is sent: only the journal keeps such a one out.
    calls = undisturbed(seed).calls
    senders = [c for c in changes if c.before and CLOCKS[c.clock] == "stopped" and calls[c.call - 1].kind == SENT]
    return [
        *sample(senders, _SHORT_SENDERS, seed),
        *sample(changes, _SHORT_CASES, seed),
        *sample(requests, _SHORT_REQUESTS, seed),
    ]


def _of_story(seed: int, name: str, chance: random.Random) -> list[Overlap]:
    known = undisturbed(seed, name)
    ends = [at for at, _ in known.begins[1:]]
    # One that the story kills makes no call after its last one.
    never = {end for end, report in zip(ends, known.end.reports, strict=False) if report is None}
    return [
        Overlap(seed, n, before, work, chance.randrange(len(WAKES)), chance.choice((0, 0, 0, 0, 1, 2)), name)
        for n in places(seed, name)
        for before in (True, False)
        if before or n not in never
        for work in chance.sample(range(len(WORKS)), 2)
    ]


def fault(case: object) -> str:
    assert isinstance(case, Overlap)
    return f"the new master {WORKS[case.work]}: clock {CLOCKS[case.clock]}"


class PausedSession:
    """A session that stops at one call, as a whole, until it is woken."""

    def __init__(self, play: Play, call: int, *, before: bool) -> None:
        self._machine = play.world.machine
        self._pause_at = call
        self._before = before
        self._woken = False
        self.running = play.begin(self._arm)
        play.drive(self.running)

    @property
    def gate(self) -> Gate:
        return self.running.gate

    @property
    def paused(self) -> bool:
        return self.running.process.paused

    def wake(self, clock: str) -> None:
        """Let it go on; what it has written by then is not looked at."""
        self._woken = True
        self.gate.effects.clear()
        ahead = _AHEAD_SECONDS if clock == "ahead" else 0.0
        self._machine.resume(self.running.process, clock="stopped" if clock == "stopped" else "right", ahead=ahead)

    def _arm(self, gate: Gate) -> None:
        if self._before:
            gate.on_before = self._strike
        else:
            gate.on_after = self._strike
            gate.on_before = lambda call: self._strike(call) if call.number == self._pause_at + 1 else None

    def _strike(self, call: Outward) -> None:
        if not self._woken and call.number >= self._pause_at:
            self.gate.pause()


def play(case: object) -> list[str]:
    assert isinstance(case, Overlap)
    known: Undisturbed = undisturbed(case.seed, case.story)
    offset, begin = next((at, p) for at, p in reversed(known.begins) if at < case.call)
    tried = begin.copy()
    world = tried.world
    live_before = {name: dict(cluster.live) for name, cluster in world.clusters.items()}
    old = PausedSession(tried, case.call - offset, before=case.before)
    if not old.paused:
        return ["the session was not paused: its calls are not those of the undisturbed run"]
    where = str(old.gate.calls[-1])
    held = LeaseTable(world.store, SETTINGS.shard).read()
    master = held.holder == old.running.session.report.session and not held.released
    world.clock.sleep(40.0)
    if WORKS[case.work] == WORKS[2]:
        _undo(world, live_before)
        tried.position = begin.position
    new = _take_over(tried, case, lambda: old.wake(CLOCKS[case.clock]))
    if old.paused:
        old.wake(CLOCKS[case.clock])  # the new one has made no such call
    lines = _of_the_old_one(old, case, master=master)
    end = old.running.report
    # One that had not been master yet, with a clock that is ahead, may find the lease expired, and take it rightly.
    usurped = end is not None and not master and end.epoch > new.epoch
    if new.code != ErrorCode.MAX_RUNTIME and not (usurped and new.code == ErrorCode.NOT_MASTER):
        lines.append(f"the new master ended with {new.ended}: {new.message}")
    to_rest(tried, known)
    # Else it is as it was in the undisturbed run at that place, where not all need be quiet.
    lines += [*(tried.judge() if tried.over else ()), *world.machine.failures]
    return [f"paused at {where}: {line}" for line in shortened(lines)]


def _of_the_old_one(old: PausedSession, case: Overlap, *, master: bool) -> list[str]:
    """It ends by itself, as one that is not the master, and has written nothing."""
    running = old.running
    try:
        report = running.wait(_BOUND_SECONDS)
    except AssertionError:  # the rightful master by now
        report = running.end()
    if report is None:
        return [] if not old.gate.effects else [f"the old master ended by an error, and wrote {old.gate.effects}"]
    if not master and report.epoch:
        return []
    # A batch may land until the one who takes over has swapped the zone's journal: it is settled then.
    late = ("batch sent", "journal swapped") if WAKES[case.wake] == WAKES[3] else ()
    written = [call for call in old.gate.effects if call.kind not in late]
    lines = [f"the old master wrote: {call}" for call in written if master or not _harmless(call)]
    if report.code != ErrorCode.NOT_MASTER or report.clean:
        lines.append(f"the old master ended with {report.ended}, clean={report.clean}")
    return lines


def _take_over(play: Play, case: Overlap, wake: Callable[[], None]) -> SessionReport:
    when, work, clock = WAKES[case.wake], WORKS[case.work], play.world.clock
    gate = play.world.new_gate()
    if when == WAKES[3]:
        _wake_during_take_over(gate, wake)
    running = play.world.start(gate)
    clock.sleep(STEP_SECONDS)
    rounds = 1
    while running.alive and _works(play, work, rounds):
        clock.sleep(STEP_SECONDS)
        rounds += 1
    if when == WAKES[0]:
        wake()
        clock.sleep(STEP_SECONDS)
    report = running.end()
    play.reports.append(report)
    assert report is not None, running.error
    if when == WAKES[1]:
        wake()
    elif when == WAKES[2]:
        third = play.world.start()
        clock.sleep(STEP_SECONDS)
        wake()
        clock.sleep(STEP_SECONDS)
        play.reports.append(third.end())
    return report


def _wake_during_take_over(gate: Gate, wake: Callable[[], None]) -> None:
    """In the middle of it: once the fences are raised, and before the first call that reads something. That call takes long."""
    struck = False

    def strike(call: Outward) -> None:
        nonlocal struck
        if not struck and not call.writes and any(c.kind == "fence raised" for c in gate.calls):
            struck = True
            wake()
            gate.process.sleep(_SLOW_SECONDS)

    gate.on_before = strike


def _works(play: Play, work: str, rounds: int) -> bool:
    """What the new master meets in its rounds. False: that was all."""
    if work == WORKS[0]:
        step = play.step
        if rounds > 3 or step is None or not step.in_session:
            return False
        play.position += 1
        step.happen(play.world)
        return True
    if work == WORKS[1]:
        if rounds in (1, 2):
            _shake(play.world)
        return rounds <= 2
    return False


def _shake(world: World) -> None:
    """Every published service changes and changes back, one round each: the second call undoes the first."""
    for cluster in world.clusters.values():
        for (resource, namespace, name), seen in sorted(cluster.live.items()):
            if resource is not Resource.SERVICES or not isinstance(seen.value, Service):
                continue
            there = dict(seen.value.annotations)
            if there.pop("external-dns.alpha.kubernetes.io/ttl", "") != "77":
                there["external-dns.alpha.kubernetes.io/ttl"] = "77"
            cluster.apply(name, _annotated(seen.value, there), namespace=namespace)


def _annotated(service: Service, annotations: dict[str, str]) -> Service:
    return replace(service, annotations=tuple(sorted(annotations.items())))


def _undo(world: World, live_before: dict[str, dict[tuple[Resource, str, str], Observation]]) -> None:
    """What the clusters held when the old master began, they hold again."""
    for name, cluster in world.clusters.items():
        for place in sorted(cluster.live.keys() - live_before[name].keys()):
            cluster.delete(place[0], place[2], place[1])
        for (resource, namespace, object_name), seen in sorted(live_before[name].items()):
            now = cluster.live.get((resource, namespace, object_name))
            value = seen.value
            assert value is not None
            if now is None or now.value != value:
                slice_name = object_name if resource is Resource.ENDPOINTSLICES else ""
                cluster.apply(object_name, value, slice_name=slice_name, namespace=namespace)


def _harmless(call: Outward) -> bool:
    """What one may write that never held the lease: it drew an epoch, and noted its end."""
    return call.kind == "epoch drawn" or call.what.startswith("put_item audit sessions/")


SECTION = Section(2, "a paused master wakes up after another took over", "I2", cases, play, fault=fault)
