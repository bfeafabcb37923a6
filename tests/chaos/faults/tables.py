"""Section 10: tables are lost, or restored from a backup: recognised, reported, and recovered without one record changing (I2, I3).

Between two sessions of a story, all quiet, the tables (or one of them) become empty, or what they were before an earlier session.
Then a session runs; a person tries ``recover`` dry, lets it happen, and asks for a resync. Through all of this the zones stay as they
are, but for the journals; afterwards everything is known again, and the story goes on.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from chaos.faults.crash import undisturbed
from chaos.sections import Effort, Section, sample
from chaos.stories.every_story import CHANGES
from chaos.stories.play import Play
from chaos.stories.requests_story import ask
from chaos.stories.verdict import shortened
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import CONTROL, KEY_ATTRIBUTES, STATE, UPSTREAMS
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.report import SessionReport
from kubesync_local.recovery.recovery import RecoveryRequest
from simulation.gate import Gate, kill_at
from simulation.world import World, copy_tables

ALL = tuple(KEY_ATTRIBUTES)
_SHORT_CASES, _SHORT_KILLS = 12, 8
_ROUND_SECONDS = 10.0
_LATER_SECONDS = 600.0  # restoring tables takes a while

type Zones = dict[RecordKey, RecordSet]


@dataclass(frozen=True, slots=True)
class Mishap:
    """Before session ``at`` of the story (counted from 0) tables become what they were before session ``backup`` (None: empty).

    ``killed``: the recovery is killed at that call, and run again; 0: it is left alone.
    """

    seed: int
    at: int
    backup: int | None
    tables: tuple[str, ...] = ALL
    killed: int = 0
    before: bool = True


def cases(effort: Effort) -> Sequence[Mishap]:
    seed, sessions = effort.seed, len(undisturbed(effort.seed).begins)
    whole = [Mishap(seed, at, backup) for at in range(1, sessions) for backup in (None, *range(at))]
    parts = [
        Mishap(seed, at, backup, (table,))
        for at in range(1, sessions)
        for backup in (None, at - 1)
        for table in (CONTROL, STATE, UPSTREAMS)
    ]
    kills = [
        Mishap(seed, at, backup, killed=call, before=before)
        for at in (2, sessions - 1)
        for backup in (None, at - 1)
        for call in recovery_writes(seed, at, backup)
        for before in (True, False)
    ]
    if effort.short:
        # Whatever else is sampled: a control table that is too old, of zones in which there is nothing to write; and tables that
        # know the set of the last owner of a name.
        silent = [Mishap(seed, at, at - 1, (CONTROL,)) for at in (2, sessions // 2)]
        return [
            *silent,
            Mishap(seed, 6, 3),
            *sample([*whole, *parts], _SHORT_CASES, seed),
            *sample(kills, _SHORT_KILLS, seed),
        ]
    return [*whole, *parts, *kills]


def fault(case: object) -> str:
    assert isinstance(case, Mishap)
    what = "all tables" if case.tables == ALL else f"table {case.tables[0]}"
    how = "lost" if case.backup is None else "restored"
    return f"{what}: {how}" + (", recovery killed" if case.killed else "")


@lru_cache(maxsize=64)
def recovery_writes(seed: int, at: int, backup: int | None) -> tuple[int, ...]:
    """The writes of an undisturbed recovery, by the number of their call."""
    tried = _struck(Mishap(seed, at, backup))
    gate = Gate("recovery")
    _recover(tried, gate, dry_run=False)
    return tuple(call.number for call in gate.calls if call.writes)


def play(case: object) -> list[str]:
    assert isinstance(case, Mishap)
    tried = _struck(case)
    world = tried.world
    before, lines = zones_of(world), []
    lines += _recognised(tried, case)
    lines += _same("a session", world, before)
    lines += _dry(tried)
    lines += _same("the dry run", world, before)
    if case.killed:
        gate = Gate("recovery that is killed")
        kill_at(gate, case.killed, before=case.before)
        _recover(tried, gate, dry_run=False)
        world.clock.advance(30.0)
    report = _recover(tried, Gate("recovery"), dry_run=False)
    if report is None or not report.recoveries or any("error" in each for each in report.recoveries[0]["clusters"]):
        return [*lines, f"the recovery failed: {report}"]
    lines += _same("the recovery", world, before)
    _resync(tried)
    lines += _same("the resync", world, before)
    lines += [f"after the resync: {line}" for line in _judge(tried)]
    tried.to_the_end()
    lines += [f"at the end: {line}" for line in _judge(tried)]
    return shortened(lines)


def _judge(tried: Play) -> list[str]:
    # A batch that was refused whole stays noted until the next one: the journal says that it never happened.
    return [line for line in tried.judge() if not line.startswith("noted as under way")]


def zones_of(world: World) -> Zones:
    """All record sets, but for the journals."""
    found = {key: s for zone_id in world.route53.ids for key, s in world.route53.records(zone_id).items()}
    return {key: s for key, s in found.items() if not key.name.startswith("_kubesync-")}


def _struck(case: Mishap) -> Play:
    """The story as it stands before a session, with the tables that are left."""
    begins = undisturbed(case.seed, CHANGES).begins
    tried = begins[case.at][1].copy()
    world = tried.world
    there = world.configured()
    source = MemoryStore(clock=world.clock) if case.backup is None else begins[case.backup][1].world.store
    restore(world, source, case.tables)
    known = {config.name: config for config in world.configured()}
    for config in there:  # a person sees to it that the clusters are registered as they were
        if config.name not in known or known[config.name].model_copy(update={"revision": config.revision}) != config:
            world.register(config)
    return tried


def restore(world: World, source: MemoryStore, tables: Collection[str]) -> None:
    """What a table was in a backup, it is again; nothing else is on its way."""
    copy_tables(source, world.store, tables)


def _run(tried: Play, gate: Gate, rounds: int, recovery: RecoveryRequest | None = None) -> SessionReport | None:
    """A session of so many rounds in which nothing happens, or a recovery."""
    world = tried.world
    running = world.start(gate, recovery)
    if recovery is not None:
        return running.wait()
    world.clock.advance(_ROUND_SECONDS * rounds)
    return running.end()


def _recognised(tried: Play, case: Mishap) -> list[str]:
    """Where the control table tells less than the journals, whoever has to write to a zone writes nothing, and says why."""
    journals, known = _journal_epochs(tried.world), tried.world.epoch()
    ahead = {zone_id for zone_id, epoch in journals.items() if epoch > known}
    tried.world.clock.advance(_LATER_SECONDS)
    found = {str(key.sort) for key in tried.world.store.dump() if key.partition.startswith("inflight#")}
    first = _run(tried, Gate("a session"), 2)
    if first is None:
        return ["a session that meets such tables does not end"]
    if CONTROL not in case.tables or not ahead:
        return []  # nothing was written to the zones since then, that a journal could tell of
    # The first one says so, also where it has nothing to write; and it stays so, however many epochs are drawn meanwhile.
    lines = _silent(first, ahead & found)
    other = tried.copy()
    for _ in range(max(journals.values()) - known):
        _run(other, Gate("an idle session"), 1)
        other.world.clock.advance(_ROUND_SECONDS)
    for name, cluster in other.world.clusters.items():
        cluster.apply(
            "new", a_service(annotations={"hostname": f"new-of-{name}.inner.example.com, n.{name}.example.com"})
        )
    before = zones_of(other.world)
    report = _run(other, Gate("a session that has to write"), 2)
    assert report is not None
    after = zones_of(other.world)
    written = {key.zone_id for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    lines += [
        f"zone {zone_id} was written, though the tables know less than its journal" for zone_id in written & ahead
    ]
    return lines + _silent(report, ahead)


def _silent(report: SessionReport, ahead: Collection[str]) -> list[str]:
    """Zones whose journal is ahead, and of which the session does not say so."""
    said = {zone["zone"]: str(zone["problem"]) for zone in report.zones}
    silent = sorted(zone_id for zone_id in ahead if "recover" not in said.get(zone_id, ""))
    return [
        f"epoch {report.epoch}: nobody says that zone {zone_id} is ahead of the tables: {said}" for zone_id in silent
    ]


def _journal_epochs(world: World) -> dict[str, int]:
    found: dict[str, int] = {}
    for zone_id in world.route53.ids:
        for key, record_set in world.route53.records(zone_id).items():
            if key.name.startswith("_kubesync-"):
                found[zone_id] = int(record_set.values[0].partition("epoch=")[2].partition(",")[0])
    return found


def _dry(tried: Play) -> list[str]:
    """A dry run says what would be done, and writes nothing but its lease, its epoch and its fences."""
    world = tried.world
    kept = {key: item for key, item in world.store.dump().items() if key.table in (STATE, UPSTREAMS)}
    report = _recover(tried, Gate("dry run"), dry_run=True)
    if report is None or not report.recoveries:
        return [f"the dry run failed: {report}"]
    after = {key: item for key, item in world.store.dump().items() if key.table in (STATE, UPSTREAMS)}
    return [] if after == kept else ["the dry run wrote to the tables"]


def _recover(tried: Play, gate: Gate, *, dry_run: bool) -> SessionReport | None:
    return _run(tried, gate, 0, RecoveryRequest(dry_run=dry_run))


def _resync(tried: Play) -> None:
    """A person asks for it, and lets deletions through that look like many at once; retries have their time."""
    ask(tried.world, force=True)
    for seconds in (0.0, 60.0, 1200.0):
        tried.world.clock.advance(seconds)
        _run(tried, Gate("resync"), 3)


def _same(when: str, world: World, before: Zones) -> list[str]:
    after = zones_of(world)
    return [
        f"{when} changed {key.name} {key.type}: {before.get(key)} became {after.get(key)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


SECTION = Section(10, "tables lost or restored, and recovered", "I1 I2 I3", cases, play, fault=fault)
