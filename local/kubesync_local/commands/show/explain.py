"""``kubesync explain``: one object: what is wanted and why, who owns its names, what is current, what is wrong, and what happens next."""

import argparse
import difflib
from collections.abc import Iterable, Mapping, Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Final

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.claims.allowed_names import keep_to_held_names
from kubesync.cluster.keys.key_states import rules_of
from kubesync.cluster.keys.shared import SharedReader
from kubesync.domain.dns.desired import Desired, with_zone_aliases
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.errors import KubesyncError, NewerSchemaError
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.sources.port import UnknownObjectError
from kubesync.domain.sources.registry import KINDS
from kubesync.domain.state import KeyState, Name, names_of
from kubesync_local.commands.show.current import current_at
from kubesync_local.commands.show.explain_table import show_explanation
from kubesync_local.commands.show.service_keys import key_in
from kubesync_local.documents.explanation import Evidence, document
from kubesync_local.documents.outlook import Surroundings, empty_claims
from kubesync_local.terminal.output import print_document
from kubesync_local.workplace.readings import ListenerReadings, ZoneReadings
from kubesync_local.workplace.workplace import Workplace


class NothingSeenError(KubesyncError):
    """kubesync knows no such object: there is nothing to explain. The message says what to do."""


_BEYOND: Final = ("TooManyWaits", "TooManyRecordSets")
_SHARED_NAMES: Final = 50
"""Others are looked up at so many names of an object."""


def run(arguments: argparse.Namespace) -> int:
    """Gather the evidence and show it. What holds no slash is a DNS name or an address."""
    if "/" not in arguments.service:
        from kubesync_local.commands.show import explain_name

        return explain_name.run(arguments)
    key = key_in(arguments.service, arguments.cluster)
    work = Workplace()
    (config,) = work.chosen(key.cluster)
    states = StateTable(work.store)
    state = states.load([key])[key]
    if state == KeyState(key):
        if not ListenerReadings(work.store).checkpoints(config.name):
            raise NothingSeenError(
                f"no session has listed cluster {config.name} yet: `kubesync session` runs one, "
                f"`kubesync cluster check {config.name}` tests what the cluster needs"
            )
        raise NothingSeenError(_unknown(key, config, states))
    found = document(gather(state, config, work))
    if arguments.output != "table":
        print_document(found, arguments.output)
    else:
        show_explanation(found)
    return 0


def gather(state: KeyState, config: ClusterConfig, work: Workplace) -> Evidence:
    """Everything that is known about a key, with what the zones hold now."""
    now, lease = work.now(), work.lease.read()
    listed = frozenset(ListenerReadings(work.store).checkpoints(config.name)).intersection(config.resources)
    want = _wanted(state, config, listed, work.store)
    allowed = keep_to_held_names(want, state).records
    withheld = frozenset[RecordKey]()
    if want.records is not None and allowed is not None:
        withheld = frozenset(key for key in want.records if Name.of(key) not in names_of(allowed))
        # A name that is held under another set identifier is published under that one.
        moved = {(key.zone_id, key.name, key.type) for key in allowed.keys() - want.records.keys()}
        withheld = frozenset(key for key in withheld if (key.zone_id, key.name, key.type) not in moved)
        want = replace(want, records={key: want.records[key] for key in withheld} | dict(allowed))
    names = {*names_of(want.records or {}), *names_of(state.intended), *names_of(state.applied), *state.conflicts}
    names |= state.waits
    claims = ClaimTable(work.store)
    owned = claims.read(names) if names else {}
    queues = {name: [waiter for waiter, _ in claims.waiters(name)] for name, claim in owned.items() if claim.waiting}
    turns = _turns(state, names_of(want.records or {}), owned, queues)
    current, unread = current_at(work.application.zones(), names)
    upstreams, named = UpstreamTable(work.store), sorted({*(want.upstreams or {}), *state.upstreams})
    of_zones = ZoneReadings(work.store, config.shard, "")
    problems = {each.zone_id: each.problem for each in of_zones.current()}
    return Evidence(
        config=config,
        state=state,
        want=want,
        listed=listed,
        owners={name: claim.owner for name, claim in owned.items()},
        queues=queues,
        current=current,
        unread=unread,
        upstreams={name: found for name in named if (found := upstreams.read(name)) is not None},
        around=Surroundings(
            policy=config.policy,
            zone_problems=problems,
            turns=turns,
            empty=_empty(turns, owned, StateTable(work.store)),
            running=bool(lease.holder) and not lease.is_free(int(now * 1000)),
            paused=config.paused,
            looked_at=of_zones.checks(),
        ),
        withheld=withheld,
        sharing={
            name: {each: claim.owner for each, claim in claims.read_all(name).items()}
            for name in sorted({replace(each, identifier="", seat="") for each in names if each.identifier})[
                :_SHARED_NAMES
            ]
        },
    )


def _wanted(state: KeyState, config: ClusterConfig, listed: AbstractSet[Resource], store: Store) -> Desired:
    """As a session plans it, from what is stored."""
    if config.deleting:
        return Desired({}, {}, ())
    table, kind = StateTable(store), KINDS[state.key.kind]
    complete = {*listed, kind.main}
    try:
        want = kind.desired(
            state,
            complete,
            rules_of(config),
            SharedReader(config.name, complete, lambda bucket: table.load([bucket])[bucket]),
        )
    except UnknownObjectError:
        return Desired(None, None, ())
    want = with_zone_aliases(want, partial(_alias_types, state))
    asked_for = {name.name for name in (*state.claims, *state.waits, *state.conflicts)}
    codes = {problem.code for problem in state.problems}
    if want.records is None or codes.isdisjoint({"TooManyNames", *_BEYOND}):
        return want
    # The limits of a namespace: only the session that planned the key knows which names were beyond them.
    asked = want.counted if codes.isdisjoint(_BEYOND) else [key.name for key in want.records]
    beyond = set(asked) - asked_for
    return replace(want, records={key: found for key, found in want.records.items() if key.name not in beyond})


def _alias_types(state: KeyState, zone_id: str, target: str, alias: str) -> tuple[AbstractSet[str], AbstractSet[str]]:
    """Types of an alias to a name of its zone, as the session found what stands there."""
    sets = ((key, found.alias) for key, found in state.intended.items() if key.place == (zone_id, alias))
    stands = {key.type for key, found in sets if found is not None and found.name == target}
    missing = any((each.code, each.subject) == ("NoAliasTarget", target) for each in state.problems)
    return stands, stands if missing else {"A", "AAAA"}


def _turns(
    state: KeyState, wanted: Iterable[Name], claims: dict[Name, Claim], queues: dict[Name, list[ObjectKey]]
) -> dict[Name, tuple[str, int]]:
    turns: dict[Name, tuple[str, int]] = {}
    for name in state.waits:
        if name in claims:
            queue = queues.get(name, [])
            turns[name] = str(claims[name].owner), queue.index(state.key) + 1 if state.key in queue else len(queue) + 1
    # Who wants a weighted set may wait for the claim of a simple one, and the other way round.
    places = {name.place: turn for name, turn in turns.items()}
    missing = {*wanted} - state.claims - turns.keys()
    return turns | {n: places[n.place] for n in missing if n.place in places}


def _empty(turns: Mapping[Name, tuple[str, int]], claims: Mapping[Name, Claim], states: StateTable) -> frozenset[Name]:
    """Names whose owner has nothing to publish there now."""
    owners = {claim.owner for claim in claims.values() if str(claim.owner) in {owner for owner, _ in turns.values()}}
    try:
        found = states.load(sorted(owners)).values() if owners else ()
    except NewerSchemaError:  # of a cluster that a newer release serves
        return frozenset()
    places = {(str(state.key), name.zone_id, name.name) for state in found for name in empty_claims(state)}
    return frozenset(name for name, (owner, _) in turns.items() if (owner, name.zone_id, name.name) in places)


def _unknown(key: ObjectKey, config: ClusterConfig, states: StateTable) -> str:
    if KINDS[key.kind] not in config.kinds:
        return f"cluster {config.name} reads no {key.kind}: its sources are {', '.join(config.sources)}"
    if not config.scope.holds(key.namespace):
        which = f"--namespace {','.join(config.namespaces)}" if config.namespaces else "--exclude-namespaces"
        return f"namespace {key.namespace} is not watched: cluster {config.name} was added with {which}"
    keys = [state.key for state in states.load_all(key.cluster) if not KINDS[state.key.kind].shared]
    same = [str(each) for each in keys if (each.namespace, each.name) == (key.namespace, key.name)]
    close = same or difflib.get_close_matches(str(key), map(str, keys), n=1)
    advice = f"did you mean {close[0]}?" if close else "check the key, or wait until a session has seen it."
    disabled = f"; the cluster is disabled: `kubesync cluster enable {config.name}`" if config.paused else ""
    return (
        f"kubesync knows no {key.kind} {key} now: {advice} "
        f"`kubesync audit --service {key}` shows what became of a deleted one{disabled}"
    )
