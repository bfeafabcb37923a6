"""What must hold at rest: as a system that began from nothing, and nothing that a full resync would find to do.

name wanted by     asked for
--------------     ---------
nobody             nothing stands there, in both systems
one Service        the same record sets in both
several            one of them holds it with its values (``chaos.stories.oracle``, for each system); the others are reported
somebody else too  what stands there of theirs stays; who is kept out is reported
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from chaos.stories.oracle import Wanted, desired_by_key, judge_quiet, mixed_names
from chaos.stories.requests_story import ask
from kubesync.aws.tables.control.resync_requests import ResyncTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.state import Name
from sequences.outside import FOREIGN
from sequences.player import Player, afresh, played
from sequences.steps import Resync, Round, Script
from simulation.world import SETTINGS, World

type Place = tuple[str, str]


def violations(script: Script) -> list[str]:
    """What is wrong after a script, one line each."""
    player = played(script)
    world = player.world
    lines = [f"at rest: {line}" for line in _not_quiet(world)]
    fresh = afresh(world).world
    lines += [f"from nothing: {line}" for line in _not_quiet(fresh)]
    lines += difference(world, fresh)
    if any(_unreported(world)):
        # Who waits for the owner of a name that changed in the last window of a session is told by a resync (ADR 0052).
        player.play((Resync(), Round()))
    lines += _unreported(world)
    lines += _found_by_resync(player)
    return lines


def _not_quiet(world: World) -> Iterator[str]:
    """What the oracle says, but for batches that were refused whole: they stay noted until the next one, and never happened."""
    accepted = {batch.comment.removeprefix("kubesync ") for batch in world.route53.accepted}
    for line in judge_quiet(world, FOREIGN):
        _, _, noted = line.partition("noted as under way: ")
        if not noted or noted.split()[1].strip("'") in accepted:
            yield line


def difference(world: World, other: World) -> list[str]:
    """Where two systems that hold the same objects differ, but for contested names, those that other people have among them."""
    contested = contested_places(world) | contested_places(other) | {(key.zone_id, key.name) for key in FOREIGN}
    lines = [
        f"{key.label} in {key.zone_id} is {one}, and from nothing {another}"
        for key, one, another in _differing(record_sets(world), record_sets(other))
        if (key.zone_id, key.name) not in contested
    ]
    return lines + [
        f"upstream {name} is {one}, and from nothing {another}"
        for name, one, another in _differing(upstreams(world), upstreams(other))
    ]


def record_sets(world: World) -> dict[RecordKey, RecordSet]:
    """All that stands in the zones, but for the journals."""
    return {
        key: record_set
        for zone_id in world.route53.ids
        for key, record_set in world.route53.records(zone_id).items()
        if not key.name.startswith("_kubesync-") and key.type not in ("SOA", "NS")
    }


def upstreams(world: World) -> dict[str, tuple[dict[str, Any], ...]]:
    """The nodes of all upstreams that are not removed; their versions are the past's."""
    return {found.upstream: found.nodes for found in UpstreamTable(world.store).read_all() if not found.deleted}


def contested_places(world: World) -> set[Place]:
    """Names in zones that several Services want, and those that lead there: an alias follows what stands."""
    wanted: dict[Place, set[object]] = defaultdict(set)
    leads: dict[Place, set[Place]] = defaultdict(set)
    for name, by_key in _wanted(world).items():
        wanted[name.zone_id, name.name].update(by_key)
        for record_set in (each for sets in by_key.values() for each in sets.values()):
            host = record_set.alias.name if record_set.alias else next(iter(record_set.values)).rstrip(".")
            leads[name.zone_id, name.name].add((name.zone_id, host))
    contested = {place for place, keys in wanted.items() if len(keys) > 1}
    return contested | {place for place, hosts in leads.items() if hosts & contested}


def _wanted(world: World) -> Wanted:
    wanted: Wanted = defaultdict(dict)
    for config in world.configured():
        for key, want in desired_by_key(world, config):
            for record_key, record_set in (want.records or {}).items():
                wanted[Name.of(record_key)].setdefault(key, {})[record_key] = record_set
    return wanted


def _unreported(world: World) -> Iterator[str]:
    """Services that want a name, do not have it, and are not told so."""
    standing, table = record_sets(world), StateTable(world.store)
    states = {state.key: state for config in world.configured() for state in table.load_all(config.name)}
    for name, by_key in _wanted(world).items():
        for key, sets in by_key.items():
            has_it = all(standing.get(record_key) == record_set for record_key, record_set in sets.items())
            shared = key in states and name in states[key].claims and len(by_key) > 1
            claims = key in states and name in states[key].claims
            told = key in states and any(
                problem.subject in (name.label, Name(*name.place).label) and problem.code in ("NameTaken", "Conflict")
                for problem in states[key].problems
            )
            # Another Service publishes the same, with its own TTL: nothing to report to those that wait.
            alike = (
                key in states
                and (shared or name in states[key].waits)
                and all(_alike(standing.get(k), s) for k, s in sets.items())
            )
            if not told and not alike and not (has_it and claims):
                yield f"{key} wants {name.label}, does not have it, and is not told so"
            if told and claims and has_it and name not in mixed_names(_wanted(world)):
                yield f"{key} has {name.label}, and is told that it does not"


def _alike(stands: RecordSet | None, wanted: RecordSet) -> bool:
    return stands is not None and replace(stands, ttl=wanted.ttl) == wanted


def _found_by_resync(player: Player) -> list[str]:
    """A dry run of a full resync must find nothing to do; conflicts with sets of other people, or mixed ones, are known."""
    world = player.world
    known = {(name.zone_id, name.name) for name in mixed_names(_wanted(world))}
    known |= {(key.zone_id, key.name) for key in FOREIGN}
    ask(world, dry_run=True)
    (request,) = ResyncTable(world.store, SETTINGS.shard).clean_up_and_list(world.clock.epoch_seconds())
    before = record_sets(world), upstreams(world)
    player.play((Round(),), quiet=(8.0,))
    lines = [] if (record_sets(world), upstreams(world)) == before else ["the dry run changed something"]
    answer = ResyncTable(world.store, SETTINGS.shard).collect(request)
    if answer is None:
        return [*lines, "the dry run was not answered"]
    for cluster in answer["clusters"]:
        found = {what: cluster.get(what) for what in ("error", "drift", "held", "held_deletions")}
        found["conflicts"] = [row for row in cluster.get("conflicts", ()) if (row["zone"], row["name"]) not in known]
        found["changes"] = [
            row
            for row in cluster.get("changes", ())
            if not any(f" {name} " in row["what"] and row["what"].endswith(zone_id) for zone_id, name in known)
        ]
        lines += [f"a full resync of {cluster['cluster']} finds {what}: {rows}" for what, rows in found.items() if rows]
    return lines


def _differing[K, V](one: Mapping[K, V], other: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    for key in sorted(one.keys() | other.keys(), key=str):
        if one.get(key) != other.get(key):
            yield key, one.get(key), other.get(key)
