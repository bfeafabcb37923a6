"""Section 2: a master is paused at a call, another takes over; then the first wakes up and runs on (I2).

It must change nothing, in no table and no zone, must notice, and end with code 4. Its clock is either stopped with it (it believes
that its lease is good, so that only fences and journals keep it out) or has gone on.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from chaos.crash import Undisturbed, undisturbed
from chaos.gate import Gate, Outward
from chaos.oracle import judge_quiet
from chaos.play import Play
from chaos.sections import Effort, Section, sample
from chaos.story import FOREIGN
from chaos.sync_session import SyncSession
from chaos.verdict import shortened
from chaos.world import SETTINGS, World, differences
from kubesync.aws.lease import LeaseTable
from kubesync.aws.store import AUDIT, Key
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Observation, Resource, Service
from kubesync.session.report import SessionReport
from support.manual_clock import ManualClock

WORKS = ("goes on with the story", "changes and changes back", "finds what was under way undone", "does nothing")
WAKES = ("while the new one is the master", "after it has ended", "while a third is the master", "while it takes over")
_SHORT_CASES, _SHORT_SENDERS = 65, 30
_BOUND_SECONDS = 60.0
_EPOCH = Key("control", "lease", "epoch")


@dataclass(frozen=True, slots=True)
class Overlap:
    """Pause at a call of the undisturbed run. ``work`` and ``wake`` index the tables above; ``blind``: its clock stops too."""

    seed: int
    call: int
    before: bool
    work: int
    wake: int
    blind: bool


def cases(effort: Effort) -> Sequence[Overlap]:
    chance = random.Random(effort.seed)
    made = [
        Overlap(effort.seed, n, before, work, chance.randrange(len(WAKES)), chance.random() < 0.75)
        for n in range(1, len(undisturbed(effort.seed).calls) + 1)
        for before in (True, False)
        for work in chance.sample(range(len(WORKS)), 2)
    ]
    if not effort.short:
        return made
    # Paused right before a batch is sent: only the journal keeps such a one out.
    batches = {
        n for n, call in enumerate(undisturbed(effort.seed).calls, 1) if call.writes and call.service == "route53"
    }
    senders = [case for case in made if case.before and case.call in batches and case.blind]
    return [*sample(senders, _SHORT_SENDERS, effort.seed), *sample(made, _SHORT_CASES, effort.seed)]


class PausedSession:
    """A session in a thread of its own that stops at one call until it is woken. Never two run at a time."""

    def __init__(self, play: Play, call: int, *, before: bool) -> None:
        self.gate = Gate("the old master")
        self.report: SessionReport | None = None
        self.clock = ManualClock(monotonic=play.world.clock.monotonic(), epoch=play.world.clock.epoch())
        self.position = play.position
        self._play = play
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
            self.report = self._play.world.run(self._session, self.gate)
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
        before = self._play.world.clock.monotonic()
        moving_on = self._play.advance(self.gate)
        self.clock.advance(self._play.world.clock.monotonic() - before)
        return moving_on


def play(case: object) -> list[str]:
    assert isinstance(case, Overlap)
    known: Undisturbed = undisturbed(case.seed)
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

    def wake() -> None:
        if not case.blind:
            old.clock.advance(60.0)
        before, accepted = world.store.dump(), len(world.route53.accepted)
        report = old.wake()
        if master or report.epoch == 0:
            # A batch may land until the one who takes over has swapped the zone's journal: it is settled then.
            late = len(world.route53.accepted) if WAKES[case.wake] == WAKES[3] else accepted
            woken.extend(_changed(before, world, late, was_master=master))
            if report.code != ErrorCode.NOT_MASTER or report.clean:
                woken.append(f"the old master ended with {report.ended}, clean={report.clean}")

    _take_over(tried, case, wake)
    tried.to_the_end()
    lines = [*woken, *judge_quiet(world, FOREIGN)]
    return [f"paused at {where}: {line}" for line in shortened(lines)]


def _take_over(play: Play, case: Overlap, wake: Callable[[], None]) -> None:
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
            if (
                not struck
                and "swap" not in call.what
                and call.what.startswith("query")
                and "checkpoint" not in call.what
            ):
                fenced = sum("fence" in c.what and c.writes for c in gate.calls)
                if fenced >= len(play.world.clusters):
                    struck = True
                    play.world.outside()
                    wake()
                    play.world.enter(gate)

        gate.on_before = strike
    report = play.world.run(play.world.new_session(gate, drive), gate)
    play.reports.append(report)
    assert report is not None
    assert report.code == ErrorCode.MAX_RUNTIME, report
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


def _works(play: Play, work: str, rounds: int, gate: Gate) -> bool:
    """What the new master meets in its rounds. False: that was all."""
    if work == WORKS[0]:
        if rounds > 3 or play.position >= len(play.story):
            return rounds <= 1
        step = play.story[play.position]
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


SECTION = Section(2, "a paused master wakes up after another took over", "I2", cases, play)
