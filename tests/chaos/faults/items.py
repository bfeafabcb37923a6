"""Section 18: an operator deletes one item of the tables, or restores it to an older version of itself (I1, I3, I4, I10).

It happens between two sessions, or during one, after any of its writes. Churn follows, and sessions run to quiet. Then a full resync runs,
and a person does what kubesync asks for, until records, upstreams and registrations are as an undisturbed run leaves them. ``ENDS`` says
for each kind of item who has to act at most. Then names change hands, and everything changes once more: what is wrong in the tables alone
shows. What only lies about, and what nobody reads, may stay: claims and places in line of names that nobody wants, notes of tombstones, and
what comes back of a cluster that is removed. Of the latter the case shows that it goes once the cluster is registered again and removed.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from chaos.faults.items_ends import ENDS, REMOVED, Ends
from chaos.sections import Effort, Section
from chaos.stories.items_story import LARGE, LATER, LEAVING, STORY as ITEMS
from chaos.stories.oracle import judge_quiet
from chaos.stories.play import Play
from chaos.stories.requests_story import ask
from chaos.stories.verdict import shortened
from harness.golden.item_kinds import KINDS, kind_of_item
from harness.seen import named
from kubesync.aws.dynamodb.store import AUDIT, STATE, Item, Key
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import StoredUpstream, UpstreamTable
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import SessionReport
from kubesync.domain.upstreams.named import NamedUpstream
from kubesync_local.documents.last_resync import last_resyncs
from kubesync_local.recovery.recovery import RecoveryRequest
from kubesync_local.registration.named_upstreams import NamedRegistry
from kubesync_local.workplace.readings import ZoneReadings
from simulation.gate import Gate, Outward
from simulation.world import SETTINGS, World

_EACH_SHORT: Final = 1
_EACH: Final = 20
_STORIES: Final = {story.name: story for story in (ITEMS, LARGE)}
# The one that it happens to, one that a step of the story kills, and the next one.
_MOST_SHUT_OUT: Final = 3
_ROUND_SECONDS: Final = 12.0
_AFTER_DEATH_SECONDS: Final = 30.0
# A conflict is checked at least every hour.
_LEFT: Final = f"cluster {LEAVING} is not registered"
_GAPS: Final = (0.0, 60.0, 1200.0, 3700.0)


@dataclass(frozen=True, slots=True)
class Struck:
    """An item of the tables, and what becomes of it.

    Args:
        session: of the undisturbed run, from 0.
        call: after this call of the session; 0: before it begins.
        older: the version that comes back, counted from the first; None: the item is deleted.
    """

    seed: int
    session: int
    call: int
    key: Key
    older: int | None
    story: str = ITEMS.name


@dataclass(frozen=True, slots=True)
class Registered:
    """What a person knows to have registered."""

    clusters: tuple[ClusterConfig, ...]
    named: Mapping[str, NamedUpstream]


@dataclass(slots=True)
class History:
    """The undisturbed run: the play at each session's begin, and when (session, call) each item became what."""

    begins: list[Play] = field(default_factory=list)
    versions: dict[Key, list[tuple[tuple[int, int], Item | None]]] = field(default_factory=dict)
    moments: list[tuple[int, int]] = field(default_factory=list)

    def note(self, at: tuple[int, int], world: World) -> None:
        """Note what stands now."""
        now = world.store.dump()
        self.moments.append(at)
        for key in now.keys() | self.versions.keys():
            found, item = self.versions.setdefault(key, []), now.get(key)
            if (found[-1][1] if found else None) != item:
                found.append((at, item))

    def standing(self, key: Key, at: tuple[int, int]) -> tuple[Item | None, list[int]]:
        """What stands at a moment, and which other versions of it there were before."""
        before = [(number, item) for number, (when, item) in enumerate(self.versions[key]) if when <= at]
        now = before[-1][1] if before else None
        return now, [number for number, item in before if item is not None and item != now]


@lru_cache(maxsize=2)
def undisturbed(name: str) -> History:
    """Play a story once, and write down what becomes of each item."""
    story = _STORIES[name]
    history, play = History(), Play(story.begin(), story)
    while not play.over:
        play.prepare()
        number = len(history.begins)
        history.begins.append(play.copy())
        history.note((number, 0), play.world)

        def arm(gate: Gate, number: int = number, world: World = play.world) -> None:
            def noted(call: Outward) -> None:
                if call.writes:
                    with world.unseen():
                        history.note((number, call.number), world)

            gate.on_after = noted

        play.one_session(arm)
    wrong = play.judge()
    assert not wrong, wrong
    return history


def cases(effort: Effort) -> Sequence[Struck]:
    each = _EACH_SHORT if effort.short else _EACH
    large = {"key", "key, slice", "upstream", "upstream, slice"}
    drawn = [*_drawn(effort.seed, ITEMS.name, ENDS.keys() - large, each), *_of_keys(effort.seed, each, large)]
    return [*drawn, *_of_the_removed(effort.seed, each)]


def _of_keys(seed: int, each: int, large: AbstractSet[str]) -> Iterator[Struck]:
    """Keys and upstreams, those of one item and those of several; a large Service takes a second a session."""
    yield from _drawn(seed, ITEMS.name, {"key", "upstream"}, each)
    yield from _drawn(seed, LARGE.name, large, max(1, each // 5), "large")


def _of_the_removed(seed: int, each: int) -> Iterator[Struck]:
    """Items of the removed cluster: those that stand are deleted, and all come back, between sessions."""
    history = undisturbed(ITEMS.name)
    found: dict[str, list[Struck]] = defaultdict(list)
    for session in range(len(history.begins)):
        for key in sorted(history.versions, key=str):
            now, older = history.standing(key, (session, 0))
            struck = [Struck(seed, session, 0, key, None)] if now is not None else []
            for case in (*struck, *(Struck(seed, session, 0, key, number) for number in older)):
                if REMOVED in (kind := kind_of(case)):
                    found[kind].append(case)
    chance = random.Random(f"items of a removed cluster {seed}")
    for _, of_kind in sorted(found.items()):
        yield from chance.sample(of_kind, min(each, len(of_kind)))


def kind_of(case: Struck) -> str:
    """The kind of item, as ``ENDS`` names it."""
    kind = kind_of_item(case.key)
    if kind + REMOVED not in ENDS or not case.key.partition.startswith((f"{LEAVING}#", f"{LEAVING}/")):
        return kind
    begin = undisturbed(case.story).begins[case.session].world
    return kind if case.call or LEAVING in {config.name for config in begin.configured()} else kind + REMOVED


def _drawn(seed: int, story: str, kinds: AbstractSet[str], each: int, of: str = "") -> list[Struck]:
    """So many of each kind: deleted and restored, between sessions and in them. ``of``: what their keys hold."""
    history = undisturbed(story)
    told = next(number for number, play in enumerate(history.begins) if play.step is None)
    found: dict[tuple[str, bool, bool], list[Struck]] = defaultdict(list)
    kind_of = {
        key: kind_of_item(key) for key in sorted(history.versions, key=str) if of in f"{key.partition} {key.sort}"
    }
    for at in history.moments:
        if at[0] > told:
            continue
        for key, kind in kind_of.items():
            if kind in kinds:
                now, older = history.standing(key, at)
                if now is not None:
                    found[kind, True, at[1] == 0].append(Struck(seed, *at, key, None, story))
                found[kind, False, at[1] == 0] += [Struck(seed, *at, key, number, story) for number in older]
    chance = random.Random(f"items {seed}")
    places = [(kind, deleted, between) for kind in KINDS for deleted in (True, False) for between in (True, False)]
    return [case for place in places for case in chance.sample(found[place], min(each, len(found[place])))]


def fault(case: object) -> str:
    assert isinstance(case, Struck)
    return f"{kind_of(case)}: {'deleted' if case.older is None else 'restored'}"


def play(case: object) -> list[str]:
    assert isinstance(case, Struck)
    history = undisturbed(case.story)
    tried = history.begins[case.session].copy()
    world = tried.world
    there = Registered(tuple(world.configured()), NamedRegistry(world.store).read().named)
    item = None if case.older is None else history.versions[case.key][case.older][1]

    def strike() -> None:
        with world.unseen():
            world.store.replace(case.key, item)

    def arm(gate: Gate) -> None:
        def after(call: Outward) -> None:
            if call.number == case.call:
                strike()

        gate.on_after = after

    if case.call == 0:
        strike()
    tried.one_session(arm)
    in_conflict = _to_the_end(tried, of_removed=case.key.partition.startswith(f"{LEAVING}#"))
    lines = [*_shut_out(tried.reports), *_healed(case, tried, there, told=in_conflict)]
    if not lines and REMOVED in kind_of(case):
        lines = _comes_back(tried, history)
    lines += world.machine.failures
    world.close()
    return shortened(lines)


def _shut_out(reports: Sequence[SessionReport | None]) -> list[str]:
    """Whether one session after the other dies, or does not become the master."""
    row = 0
    for report in reports:
        row = row + 1 if report is None or report.code == ErrorCode.NOT_MASTER else 0
        if row > _MOST_SHUT_OUT:
            return [f"{row} sessions in a row are shut out: {report and report.message}"]
    return []


def _to_the_end(tried: Play, *, of_removed: bool) -> bool:
    """Play the rest. Whether a set of the cluster that is removed was in conflict while it was there: then a person was told of it."""
    table, found = StateTable(tried.world.store), False

    def arm(gate: Gate) -> None:
        def after(call: Outward) -> None:
            nonlocal found
            if call.writes and not found:
                with tried.world.unseen():
                    found = any(p.code == "Conflict" for state in table.load_all(LEAVING) for p in state.problems)

        gate.on_after = after

    tried.to_the_end(arm if of_removed else None)
    return found


def _healed(case: Struck, tried: Play, there: Registered, *, told: bool) -> list[str]:
    """What is not as ``ENDS`` says: let one after the other act until all is well; then life goes on, and the same again.

    ``told``: a person was told of something that is wrong.
    """
    most = ENDS[kind_of(case)][case.older is not None]
    for when in ("then", "later"):
        lines: list[str] = []
        for ends in Ends:
            if ends > most:
                return [f"{when}, nobody but {ends.name} may help: {line}" for line in lines]
            if ends > Ends.RESYNC and case.key.table != AUDIT and not (told or _told(tried, there)):
                return [f"{when}, nobody says what is wrong: {line}" for line in lines]
            if ends is Ends.BY_HAND and REMOVED in kind_of(case):
                tried.world.store.replace(case.key, None)
            _ACTS[ends](tried, there)
            if not (lines := _wrong(tried, there)):
                break
        if lines:
            return [f"{when}, for good: {line}" for line in lines]
        _life_goes_on(tried)
    return []


def _wrong(tried: Play, there: Registered) -> list[str]:
    """What is not as it should be. Claims that nobody wants may lie about; what is wrong with others shows in the zones."""
    world = tried.world
    lines = [*judge_quiet(world, tried.story.foreign), *_missing(world, there)]
    lines = [line for line in lines if not (line.startswith("claim ") or line.endswith("#gone"))]
    if LEAVING not in {config.name for config in world.configured()}:  # nobody reads them
        lines = [line for line in lines if not line.startswith(f"mark left over: {LEAVING}#")]
    lines += [f"zone {p.zone_id}: {p.problem}" for p in ZoneReadings(world.store, SETTINGS.shard, "").current()]
    last = tried.reports[-1]
    if last is None or not last.clean:
        lines.append(f"the last session did not end cleanly: {last and last.message}")
    return lines


def _missing(world: World, there: Registered) -> Iterator[str]:
    """What was registered, and is not any more, though nobody removed it."""
    known = {config.name for config in world.configured()}
    yield from (
        f"cluster {config.name} is not registered" for config in there.clusters if _wanted(world, config, known)
    )
    yield from (f"{name} is not registered" for name in there.named.keys() - NamedRegistry(world.store).read().named)


def _wanted(world: World, config: ClusterConfig, known: AbstractSet[str]) -> bool:
    """A cluster that the story removes is only wanted as long as something of it stands."""
    left = any(config.domain in key.name for zone_id in world.route53.ids for key in world.route53.records(zone_id))
    return config.name not in known and (config.name != LEAVING or left)


def _told(tried: Play, there: Registered) -> bool:
    """Whether a person is told that something is wrong: a zone or a key says so, a registration is missing, or a list has what is too much.

    A set that stands for a Service that is gone, and of which no key is left, is reported by the full resync (``forgotten``), and listed by
    ``recover`` if it is below the domain of a cluster. An upstream of a cluster that is not registered: the list of upstreams has it.
    """
    world = tried.world
    registered = {config.name for config in world.configured()}
    missing = [line for line in _missing(world, there) if line != _LEFT]
    if any(ZoneReadings(world.store, SETTINGS.shard, "").current()) or missing or _forgotten(world):
        return True
    if any(stored.upstream.startswith(f"{LEAVING}/") for stored in _standing(world)) and LEAVING not in registered:
        return True
    problems = (
        p for name in world.clusters for state in StateTable(world.store).load_all(name) for p in state.problems
    )
    if any(problem.code == "Conflict" and "taken.example.com" not in problem.subject for problem in problems):
        return True
    rows = _listed(_session(tried, 0.0, RecoveryRequest()), "unwanted")
    others = {(key.zone_id, key.name, key.type) for key in tried.story.foreign}
    return any((row["zone"], row["name"], row["type"]) not in others for row in rows)


def _forgotten(world: World) -> list[dict[str, Any]]:
    """The sets that the last full resync reports as forgotten, as ``status`` shows them."""
    last = last_resyncs(world.store, SETTINGS.shard)
    clusters = last[0]["report"]["clusters"] if last else ()
    return [row for cluster in clusters for row in cluster.get("forgotten", ())]


def _standing(world: World) -> Iterator[StoredUpstream]:
    return (stored for stored in UpstreamTable(world.store).read_all() if not stored.deleted)


def _session(tried: Play, seconds: float, recovery: RecoveryRequest | None = None) -> SessionReport | None:
    running = tried.world.start(tried.world.new_gate(), recovery)
    if recovery is not None:
        report = running.wait()
    else:
        tried.world.clock.advance(seconds)
        report = running.end()
    if report is None:
        tried.world.clock.advance(_AFTER_DEATH_SECONDS)
    tried.reports.append(report)
    return report


def _quiet(tried: Play) -> None:
    for gap in _GAPS:
        tried.world.clock.advance(gap)
        _session(tried, _ROUND_SECONDS)


def _nothing(_tried: Play, _there: Registered) -> None: ...


def _resync(tried: Play, _there: Registered) -> None:
    ask(tried.world, force=True)
    _quiet(tried)


def _recover(tried: Play, there: Registered) -> None:
    _session(tried, 0.0, RecoveryRequest(dry_run=False))
    _resync(tried, there)


def _by_hand(tried: Play, there: Registered) -> None:
    """Clusters and named upstreams are registered as they were; sets that ``recover`` or the resync lists and that are ours go."""
    world = tried.world
    known = {config.name for config in world.configured()}
    for config in there.clusters:
        if _wanted(world, config, known):
            world.register(config)
    for name in sorted(there.named.keys() - NamedRegistry(world.store).read().named):
        named.register(world.store, name, *there.named[name].members)
    _quiet(tried)
    rows = _listed(_session(tried, 0.0, RecoveryRequest(dry_run=False)), "differing", "unwanted")
    _resync(tried, there)
    for row in (*rows, *_forgotten(world)):
        for key, record_set in world.route53.records(row["zone"]).items():
            if (key.name, key.type) == (row["name"], row["type"]) and key not in tried.story.foreign:
                world.route53.by_hand("DELETE", key, record_set)
    if LEAVING in {config.name for config in world.configured()}:
        world.configure(LEAVING, deleting=True)
    _resync(tried, there)


def _comes_back(tried: Play, history: History) -> list[str]:
    """The removed cluster is registered again, and is whole; it is removed again, and nothing is left of it."""
    world = tried.world
    world.register(next(config for config in history.begins[0].world.configured() if config.name == LEAVING))
    _resync(tried, Registered((), {}))
    lines = [f"registered again: {line}" for line in _wrong(tried, Registered((), {}))]
    world.configure(LEAVING, deleting=True)
    _quiet(tried)
    left = [f"removed again: {line}" for line in judge_quiet(world, tried.story.foreign) if LEAVING in line]
    stored = (key for key in world.store.dump() if key.table == STATE and key.partition.startswith(f"{LEAVING}#"))
    return [*lines, *left, *(f"removed again: {key.partition} {key.sort} is left" for key in stored)]


def _listed(report: SessionReport | None, *kinds: str) -> list[dict[str, Any]]:
    """Rows of a recovery's report."""
    if report is None or not report.recoveries:
        return []
    return [row for cluster in report.recoveries[0]["clusters"] for kind in kinds for row in cluster.get(kind, ())]


_ACTS: Final = {Ends.ITSELF: _nothing, Ends.RESYNC: _resync, Ends.RECOVER: _recover, Ends.BY_HAND: _by_hand}


def _life_goes_on(tried: Play) -> None:
    running = tried.world.start(tried.world.new_gate())
    for step in LATER:
        step(tried.world)
        tried.world.clock.advance(_ROUND_SECONDS)
    tried.reports.append(running.end())
    _quiet(tried)


SECTION: Final = Section(18, "one item of the tables deleted or restored", "I1 I3 I4 I10", cases, play, fault=fault)
