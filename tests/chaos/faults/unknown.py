"""Section 3: every write may get no answer, or none yet: done, not done, or landing later, also under the next master (I1, I2).

Whatever happened, the end is right, and nothing was changed twice: no record set more often than in the undisturbed run, and no
upstream.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.faults.crash import places, to_rest, undisturbed
from chaos.faults.struck import UNREACHED, unreached
from chaos.sections import Effort, Section, sample
from chaos.stories.every_story import CHANGES, STORIES
from chaos.stories.named_watch import NamedWatch
from chaos.stories.play import Play
from chaos.stories.story import CONTESTED
from chaos.stories.verdict import judge, shortened
from harness.fakes.memory_store import LandLater
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.errors import (
    KubesyncError,
    StoreBusyError,
    StoreOutcomeUnknownError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
)
from kubesync.domain.upstreams.named import is_named
from simulation.gate import Gate, Outward
from simulation.world import World
from simulation.writes import RECORD, SENT, SWAPPED

DONE, NOT_DONE, REFUSED, LATER, ORPHANED = "done", "not done", "throttled", "lands later", "lands after a hand-over"
FORGOTTEN = "lands when its token is forgotten"
_EVERY_READ = 3  # between two writes it makes little difference which read is throttled
EFFECTS = (DONE, NOT_DONE, UNREACHED, LATER, ORPHANED)
_SHORT_OF_EACH, _SHORT_BATCHES, _SHORT_OTHERS = 2, 12, 10
_FORGOTTEN_AFTER = (5, 20, 60)
# Transactions whose every item is conditional on what its sender had read.
_WHOLE = (RECORD, "batch announced", "batch closed")


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A write of the undisturbed run, by its number, that gets no answer.

    ``times``: so many writes to the same service in a row. ``lands_after``: it takes effect before the so many-th call that follows it;
    with ORPHANED its sender is killed, and the calls of the next session count. With FORGOTTEN it is repeated and lands, and then lands
    again after DynamoDB has forgotten its token (ten minutes): only its own conditions are left to refuse it.
    """

    seed: int
    call: int
    outcome: str
    times: int = 1
    lands_after: int = 0
    story: str = CHANGES


def cases(effort: Effort) -> Sequence[Unanswered]:
    """Every second case, so that the run stays within a quarter of an hour: another seed plays others."""
    made = [case for name in STORIES for case in _of_story(effort.seed, name)]
    return _sampled(made, effort.seed) if effort.short else made[effort.seed % 2 :: 2]


def _of_story(seed: int, name: str) -> list[Unanswered]:
    made: list[Unanswered] = []
    for number in places(seed, name):
        call = undisturbed(seed, name).calls[number - 1]
        if call.service == "kubernetes":
            continue
        if call.writes or number % _EVERY_READ == 0:
            made.append(Unanswered(seed, number, REFUSED, story=name))
        if not call.writes:
            continue
        for outcome in (DONE, NOT_DONE):
            made += [Unanswered(seed, number, outcome, times, story=name) for times in (1, 3)]
        made += [Unanswered(seed, number, LATER, 1, after, name) for after in (1, 2, 5)]
        made += [Unanswered(seed, number, LATER, 3, 4, name)]
        made += [Unanswered(seed, number, UNREACHED, times, story=name) for times in (1, 3)]
        if call.kind in _WHOLE:
            made += [Unanswered(seed, number, FORGOTTEN, 1, after, name) for after in _FORGOTTEN_AFTER]
        # Where a batch of the last master lands among the calls of the next one makes all the difference.
        afters = (1, 4, 10, 16, 22, 35) if "batch" in call.kind or call.kind == SWAPPED else (1, 10, 22)
        made += [Unanswered(seed, number, ORPHANED, 1, after, name) for after in afters]
    return made


def _sampled(made: Sequence[Unanswered], seed: int) -> list[Unanswered]:
    """Every kind of write with every effect, and of those to Route 53 more: they are what journals are for."""
    by_fault: dict[tuple[str, str], list[Unanswered]] = {}
    for case in made:
        by_fault.setdefault((_kind(case), case.outcome), []).append(case)
    found: list[Unanswered] = []
    for (kind, outcome), some in by_fault.items():
        if outcome in EFFECTS and kind:
            found += sample(some, _SHORT_BATCHES if kind in (SENT, SWAPPED) else _SHORT_OF_EACH, seed)
    # Where a key's item is all that a transaction writes, its version is all that refuses it: few are such, so all are tried.
    found += [c for c in made if c.outcome == FORGOTTEN and _kind(c) == RECORD and c.lands_after == _FORGOTTEN_AFTER[1]]
    return [*found, *sample([case for case in made if case.outcome == REFUSED], _SHORT_OTHERS, seed)]


def _kind(case: Unanswered) -> str:
    return undisturbed(case.seed, case.story).calls[case.call - 1].kind


def fault(case: object) -> str:
    assert isinstance(case, Unanswered)
    return f"{_kind(case) or 'read'}: {case.outcome}"


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
        if self._case.outcome == FORGOTTEN:
            self._world.store._landed.clear()
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
        if outcome == UNREACHED:
            raise unreached(call)
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
    wanted = undisturbed(case.seed, case.story)
    offset, begin = next((at, p) for at, p in reversed(wanted.begins) if at < case.call)
    tried = begin.copy()
    strike, watch = _Strike(tried.world, case, case.call - offset), NamedWatch(tried.world)
    gate = tried.one_session(watch.beside(strike.sender))
    reached = to_rest(tried, wanted, watch.beside(strike.follower))
    while tried.world.store.in_flight or tried.world.route53.delayed:
        strike.land()
    lines = judge(tried, reached.world.normal())
    if "lease#" not in wanted.calls[case.call - 1].what:
        # A renewal without answer delays the news of a changed configuration: what came after it may be published under
        # the old one first, which is one change more, and no change twice.
        lines += [*_twice(tried, reached), *watch.lines]
    lines += tried.world.machine.failures
    return [f"at {gate.calls[case.call - offset - 1]}: {line}" for line in shortened(lines)]


def _twice(found: Play, wanted: Play) -> list[str]:
    lines: list[str] = []
    changes, expected = _changes(found.world), _changes(wanted.world)
    for place, count in sorted(changes.items()):
        if count > expected[place]:
            lines.append(f"{place} was changed {count} times, and not {expected[place]} times")
    versions = {stored.upstream: stored.version for stored in UpstreamTable(wanted.world.store).read_all()}
    # A named upstream takes what several clusters recorded within a moment as one change. A window that is late brings one more.
    apart = len(found.world.clusters) - 1
    lines += [
        f"upstream {stored.upstream} has version {stored.version}, above {versions.get(stored.upstream)}"
        for stored in UpstreamTable(found.world.store).read_all()
        if stored.version > versions.get(stored.upstream, 0) + (apart if is_named(stored.upstream) else 0)
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
        if not change.key.name.startswith("_kubesync-") and change.key.name not in CONTESTED
    )


SECTION = Section(3, "a write gets no answer: done, not done, or landing later", "I1 I2 I3", cases, play, fault=fault)
