"""Section 3: every write may get no answer, or none yet: done, not done, or landing later, also under the next master (I1, I2).

Whatever happened, the end is right, and nothing was changed twice: no record set more often than in the undisturbed run, and no
upstream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.crash import undisturbed
from chaos.gate import Gate, Outward
from chaos.play import Play
from chaos.sections import Effort, Section, sample
from chaos.verdict import judge, shortened
from chaos.world import World
from kubesync.aws.upstreams import UpstreamTable
from kubesync.domain.errors import (
    KubesyncError,
    StoreBusyError,
    StoreOutcomeUnknownError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
)
from support.memory_store import LandLater

DONE, NOT_DONE, REFUSED, LATER, ORPHANED = "done", "not done", "throttled", "lands later", "lands after a hand-over"
_SHORT_CASES, _SHORT_ORPHANS = 70, 40


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A write of the undisturbed run, by its number, that gets no answer.

    ``times``: so many writes to the same service in a row. ``lands_after``: it takes effect before the so many-th call that follows it;
    with ORPHANED its sender is killed, and the calls of the next session count.
    """

    seed: int
    call: int
    outcome: str
    times: int = 1
    lands_after: int = 0


def cases(effort: Effort) -> Sequence[Unanswered]:
    seed = effort.seed
    made: list[Unanswered] = []
    for number, call in enumerate(undisturbed(seed).calls, 1):
        if not call.writes:
            made.append(Unanswered(seed, number, REFUSED))
            continue
        made += [Unanswered(seed, number, outcome) for outcome in (DONE, NOT_DONE, REFUSED)]
        made += [Unanswered(seed, number, outcome, times=3) for outcome in (DONE, NOT_DONE)]
        made += [Unanswered(seed, number, LATER, lands_after=after) for after in (1, 2, 5)]
        made += [Unanswered(seed, number, LATER, times=3, lands_after=4)]
        made += [Unanswered(seed, number, ORPHANED, lands_after=after) for after in (1, 4, 10, 16, 22, 35)]
    if not effort.short:
        return made
    # Batches that land under the next master are what journals are for: they must not be missed by chance.
    batches = {n for n, call in enumerate(undisturbed(seed).calls, 1) if call.writes and call.service == "route53"}
    orphans = [case for case in made if case.outcome == ORPHANED and case.call in batches]
    return [*sample(orphans, _SHORT_ORPHANS, seed), *sample(made, _SHORT_CASES, seed)]


class _Strike:
    """Strikes a session's calls, and lets what is on its way land when it is due."""

    def __init__(self, world: World, case: Unanswered, number: int) -> None:
        self._world = world
        self._case = case
        self._number = number
        self._service = ""
        self._left = case.times
        self._due: list[int] = []
        self._clock = 0

    def sender(self, gate: Gate) -> None:
        gate.on_before = lambda call: self._before(gate, call)
        gate.on_after = self._after

    def follower(self, gate: Gate) -> None:
        gate.on_before = lambda _call: self._tick()

    def _tick(self) -> None:
        self._clock += 1
        while self._due and self._due[0] <= self._clock:
            self._due.pop(0)
            self.land()

    def land(self) -> None:
        """Whatever is on its way arrives: refused, where it comes too late."""
        if self._world.route53.delayed:
            self._world.route53.land()
        elif self._world.store.in_flight:
            self._world.store.land()

    def _hit(self, call: Outward) -> bool:
        if self._left == 0 or call.number < self._number:
            return False
        if call.number > self._number and (not call.writes or call.service != self._service):
            return False
        self._service = call.service
        self._left -= 1
        return True

    def _before(self, gate: Gate, call: Outward) -> None:
        outcome = self._case.outcome
        if outcome == ORPHANED and self._left == 0:
            gate.kill()
        self._tick()
        if outcome == DONE or not self._hit(call):
            return
        if outcome == NOT_DONE:
            raise _unknown(call)
        if outcome == REFUSED:
            raise _throttled(call)
        if outcome == ORPHANED:
            self._due.append(self._case.lands_after)
            self._clock = 0
        else:
            self._due.append(self._clock + self._case.lands_after)
        raise LandLater

    def _after(self, call: Outward) -> None:
        if self._case.outcome == DONE and self._hit(call):
            raise _unknown(call)


def _unknown(call: Outward) -> KubesyncError:
    text = "no answer to a write: it may have happened"
    return StoreOutcomeUnknownError(text) if call.service == "dynamodb" else ZoneOutcomeUnknownError(text)


def _throttled(call: Outward) -> Exception:
    return StoreBusyError("throttled") if call.service == "dynamodb" else ZoneThrottledError("throttled")


def play(case: object) -> list[str]:
    assert isinstance(case, Unanswered)
    wanted = undisturbed(case.seed)
    offset, begin = next((at, p) for at, p in reversed(wanted.begins) if at < case.call)
    tried = begin.copy()
    strike = _Strike(tried.world, case, case.call - offset)
    if wanted.calls[case.call - 1].service == "kubernetes":
        return []
    gate = tried.one_session(strike.sender)
    tried.to_the_end(strike.follower)
    while tried.world.store.in_flight or tried.world.route53.delayed:
        strike.land()
    lines = judge(tried, wanted.normal)
    if "lease#" not in wanted.calls[case.call - 1].what:
        # A renewal without answer delays the news of a changed configuration: what came after it may be published under
        # the old one first, which is one change more, and no change twice.
        lines += _twice(tried, wanted.end)
    return [f"at {gate.calls[case.call - offset - 1]}: {line}" for line in shortened(lines)]


def _twice(found: Play, wanted: Play) -> list[str]:
    lines: list[str] = []
    changes, expected = _changes(found.world), _changes(wanted.world)
    for place, count in sorted(changes.items()):
        if count > expected[place]:
            lines.append(f"{place} was changed {count} times, and not {expected[place]} times")
    versions = {stored.upstream: stored.version for stored in UpstreamTable(wanted.world.store).read_all()}
    lines += [
        f"upstream {stored.upstream} has version {stored.version}, above {versions.get(stored.upstream)}"
        for stored in UpstreamTable(found.world.store).read_all()
        if stored.version > versions.get(stored.upstream, 0)
    ]
    for batch in found.world.route53.accepted:
        for change in batch.changes:
            again = change.action == "DELETE" and any(
                other.action == "CREATE" and (other.key, other.record_set) == (change.key, change.record_set)
                for other in batch.changes
            )
            if again:
                lines.append(f"a batch changed {change.key.name} {change.key.type} into what it was")
    return lines


def _changes(world: World) -> Counter[str]:
    return Counter(
        f"{change.action} {change.key.name} {change.key.type} in {change.key.zone_id}"
        for batch in world.route53.accepted
        for change in batch.changes
        if not change.key.name.startswith("_kubesync-")
    )


SECTION = Section(3, "a write gets no answer: done, not done, or landing later", "I1 I2 I3", cases, play)
