"""Section 2: a master is paused at a call, another takes over; then the first wakes up and runs on (I2).

It must change nothing, in no table and no zone, must notice, and end with code 4. Its clock has stopped with it (it believes that its
lease is good, so that only fences and journals keep it out), has gone on, or is ahead of the others' by then.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from chaos.crash import Undisturbed, places, undisturbed
from simulation.gate import Gate, Outward
from chaos.play import Play
from chaos.sections import Effort, Section, sample
from chaos.stories import CHANGES, REQUESTS
from chaos.sync_session import SyncSession
from chaos.verdict import shortened
from simulation.world import SETTINGS, World, differences
from simulation.writes import SENT
from kubesync.aws.lease import LeaseTable
from kubesync.aws.store import AUDIT, Key
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Observation, Resource, Service
from kubesync.session.report import SessionReport
from support.manual_clock import ManualClock

WORKS = ("goes on with the story", "changes and changes back", "finds what was under way undone", "does nothing")
WAKES = ("while the new one is the master", "after it has ended", "while a third is the master", "while it takes over")
CLOCKS = ("stopped", "right", "ahead")
_AHEAD_SECONDS = 20.0
_SHORT_CASES, _SHORT_SENDERS, _SHORT_REQUESTS = 55, 25, 25
_BOUND_SECONDS = 60.0
_EPOCH = Key("control", "lease", "epoch")


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
    """A session in a thread of its own that stops at one call until it is woken. Never two run at a time."""

    def __init__(self, play: Play, call: int, *, before: bool) -> None:
        self.gate = Gate("the old master")
        self.report: SessionReport | None = None
        self.clock = ManualClock(monotonic=play.world.clock.monotonic(), epoch=play.world.clock.epoch())
        self.position = play.position
        self._play = play
        self._recovery = play.recovery
        self._lingering = play.linger
        self._pause_at = call
        self._stands = threading.Event()
        self._go_on = threading.Event()
        self._rounds_left = 3
        self._failure: BaseException | None = None
        if before:
            self.gate.on_before = self._strike
        else:
            self.gate.on_after = self._strike
            self.gate.on_before = lambda c: self._strike(c) if c.number == call + 1 else None
        self._session = play.world.new_session(self.gate, self._drive, self.clock)
        self._thread = threading.Thread(target=self._run, name="the old master", daemon=True)

    @property
    def paused(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Run until the pause, or to its end where it never makes that call."""
        self._thread.start()
        assert self._stands.wait(_BOUND_SECONDS)

    def wake(self) -> SessionReport:
        """Let it run on to its end."""
        self._play.world.enter(self.gate)
        self._go_on.set()
        self._thread.join(_BOUND_SECONDS)
        assert not self._thread.is_alive(), "the old master does not end"
        self._play.world.outside()
        if self._failure is not None:
            raise self._failure
        assert self.report is not None
        return self.report

    def _run(self) -> None:
        try:
            self.report = self._play.world.run(self._session, self.gate, self._recovery)
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            self._failure = error
        self._stands.set()

    def _strike(self, call: Outward) -> None:
        if not self._go_on.is_set() and call.number >= self._pause_at:
            self._stands.set()
            assert self._go_on.wait(_BOUND_SECONDS)

    def _drive(self, _session: SyncSession) -> bool:
        if self._go_on.is_set():  # what it would still do: a few rounds, each sees what happened meanwhile
            self._rounds_left -= 1
            return self._rounds_left > 0
        if self._lingering:
            self._lingering = False
            return True
        before = self._play.world.clock.monotonic()
        moving_on = self._play.advance(self.gate)
        self.clock.advance(self._play.world.clock.monotonic() - before)
        return moving_on


def play(case: object) -> list[str]:
    assert isinstance(case, Overlap)
    known: Undisturbed = undisturbed(case.seed, case.story)
    offset, begin = next((at, p) for at, p in reversed(known.begins) if at < case.call)
    tried = begin.copy()
    world = tried.world
    live_before = {name: dict(cluster.live) for name, cluster in world.clusters.items()}
    old = PausedSession(tried, case.call - offset, before=case.before)
    old.start()
    world.outside()
    if not old.paused:
        return ["the session was not paused: its calls are not those of the undisturbed run"]
    where = str(old.gate.calls[-1])
    held = LeaseTable(world.store, SETTINGS.shard).read()
    master = held.holder == old._session.report.session and not held.released
    world.clock.advance(max(0.0, old.clock.monotonic() - world.clock.monotonic()) + 40.0)
    if WORKS[case.work] == WORKS[2]:
        _undo(world, live_before)
        tried.position = begin.position
    woken: list[str] = []
    ends: list[SessionReport] = []

    def wake() -> None:
        if CLOCKS[case.clock] != "stopped":
            behind = max(0.0, world.clock.monotonic() - old.clock.monotonic())
            old.clock.advance(behind + (_AHEAD_SECONDS if CLOCKS[case.clock] == "ahead" else 0.0))
        before, accepted = world.store.dump(), len(world.route53.accepted)
        report = old.wake()
        ends.append(report)
        if master or report.epoch == 0:
            # A batch may land until the one who takes over has swapped the zone's journal: it is settled then.
            late = len(world.route53.accepted) if WAKES[case.wake] == WAKES[3] else accepted
            woken.extend(_changed(before, world, late, was_master=master))
            if report.code != ErrorCode.NOT_MASTER or report.clean:
                woken.append(f"the old master ended with {report.ended}, clean={report.clean}")

    new = _take_over(tried, case, wake)
    if not ends:
        woken.append("the old master was never woken: the new one made no such call")
    # One that had not been master yet, with a clock that is ahead, may find the lease expired, and take it rightly.
    usurped = any(not master and end.epoch > new.epoch for end in ends)
    if new.code != ErrorCode.MAX_RUNTIME and not (usurped and new.code == ErrorCode.NOT_MASTER):
        woken.append(f"the new master ended with {new.ended}: {new.message}")
    tried.to_the_end()
    lines = [*woken, *tried.judge()]
    return [f"paused at {where}: {line}" for line in shortened(lines)]


def _take_over(play: Play, case: Overlap, wake: Callable[[], None]) -> SessionReport:
    when, work = WAKES[case.wake], WORKS[case.work]
    gate = Gate("the new master")
    rounds = 0

    def drive(_session: SyncSession) -> bool:
        nonlocal rounds
        rounds += 1
        play.world.outside()
        try:
            return _works(play, work, rounds, gate) or _awake(rounds)
        finally:
            play.world.enter(gate)

    def _awake(_rounds: int) -> bool:
        if when == WAKES[0]:
            wake()
        return False

    if when == WAKES[3]:
        # In the middle of the take-over: once the fences are raised.
        struck = False

        def strike(call: Outward) -> None:
            nonlocal struck
            if not struck and not call.writes and any(c.kind == "fence raised" for c in gate.calls):
                struck = True
                play.world.outside()
                wake()
                play.world.enter(gate)

        gate.on_before = strike
    report = play.world.run(play.world.new_session(gate, drive), gate)
    play.reports.append(report)
    assert report is not None
    if when == WAKES[1]:
        wake()
    elif when == WAKES[2]:
        third = Gate("the third master")
        seen = 0

        def look_on(_session: SyncSession) -> bool:
            nonlocal seen
            seen += 1
            if seen == 2:
                play.world.outside()
                wake()
                play.world.enter(third)
            return seen < 3

        play.reports.append(play.world.run(play.world.new_session(third, look_on), third))
    return report


def _works(play: Play, work: str, rounds: int, gate: Gate) -> bool:
    """What the new master meets in its rounds. False: that was all."""
    if work == WORKS[0]:
        step = play.step
        if rounds > 3 or step is None or not step.in_session:
            return rounds <= 1
        play.position += 1
        step.happen(play.world)
        return True
    if work == WORKS[1]:
        if rounds in (1, 2):
            _shake(play.world)
        return rounds <= 3
    return rounds <= 1


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


def _changed(before: Mapping[Key, object], world: World, accepted: int, *, was_master: bool) -> list[str]:
    """What the old master wrote: nothing, but for the audit item of a session that never held the lease."""
    found = {str(key): item for key, item in world.store.dump().items() if was_master or not _harmless(key)}
    wanted = {str(key): item for key, item in before.items() if was_master or not _harmless(key)}
    lines = differences(found, wanted)
    lines += [f"batch accepted from it: {batch}" for batch in world.route53.accepted[accepted:]]
    return [f"the old master wrote: {line}" for line in lines]


def _harmless(key: Key) -> bool:
    return key == _EPOCH or (key.table == AUDIT and key.partition == "sessions")


SECTION = Section(2, "a paused master wakes up after another took over", "I2", cases, play, fault=fault)
