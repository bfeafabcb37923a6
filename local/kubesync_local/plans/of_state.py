"""Plans made from what the tables hold, without asking a cluster: what another configuration, or a removal, would change.

The stored parts of each key are planned again with the new rules, by the planner of sessions. It reads claims and counts; what it
would write is dropped.

    a key's namespace leaves the scope     its Service counts as gone
    the endpoints come from elsewhere      what depends on them is unknown, and stays
    a key was already to be changed        shown only where the new configuration changes it in another way
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import batched
from typing import Final

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.audit import AuditTable, Entry
from kubesync.aws.tables.control.clusters import ClusterConfig, retains
from kubesync.aws.tables.control.named_upstreams import NamedReferrals
from kubesync.aws.tables.of_clusters import Tables
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.planner import Planner
from kubesync.domain.dns.records import RecordChange
from kubesync.domain.merge import GUARD_SHARE, too_many
from kubesync.domain.objects import Resource
from kubesync.domain.plan import Policy, changes_of, remaining_sets, surplus
from kubesync.domain.sources.registry import created_at
from kubesync.domain.state import KeyState, Name
from kubesync.operations.record_rows import side
from kubesync_local.plans.plan import UPSTREAMS, Group, Line, Numbers, Plan, Sign, in_order, parts_of, sign_of
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.workplace.readings import ListenerReadings

_KEYS_AT_A_TIME: Final = 200
_FIRST: Final = 10
"""How many lines of each group a removal shows: the numbers say the rest."""

_QUIET: Final = "no record set changes that the tables know of"
_OTHER_SERVER: Final = "another server may hold other Services"
_UNSEEN: Final = {
    "server": _OTHER_SERVER,
    "eks": _OTHER_SERVER,
    "kubeconfig": _OTHER_SERVER,
    "context": _OTHER_SERVER,
    "selector": "only the API server knows which Services have other labels",
    "select_endpoints": "only the API server knows which endpoints have other labels",
    "annotation_prefix": "annotations below another prefix are not stored",
    "endpoints_source": "endpoints of another source are not stored",
}
"""What the tables cannot tell, by the setting that changes. Record sets that exist may go."""
_JOIN: Final = {
    "sources": "objects of kinds that join are not stored",
    "namespaces": "Services of namespaces that join are not stored",
}
"""The same, where the next list can only add. What leaves is planned."""


def plan_of_change(before: ClusterConfig, after: ClusterConfig, store: Store, now: float) -> Plan:
    """What the record sets and upstreams of a cluster become under another configuration, as far as the tables can tell.

    Args:
        now: epoch seconds.
    """
    states = sorted(StateTable(store).load_all(before.name), key=_age)
    listed = ListenerReadings(store).checkpoints(before.name).keys()
    unseen = _unseen(before, after)
    notes = (*unseen, *_notes(before, after, listed=bool(listed)))
    held = any(remaining_sets(state) for state in states)
    may_delete = held and after.policy is Policy.SYNC and _may_delete(before, after)
    if after.annotation_prefix != before.annotation_prefix or not states:
        # Planned with the stored annotations, names would seem to go.
        return Plan(quiet=_QUIET, notes=notes, unseen=unseen, may_delete=may_delete, unwanted={before.name: (0, 0)})
    planner = planner_of(after, states, store, frozenset(listed), now)
    zones: dict[str, list[Line]] = defaultdict(list)
    entries: list[Entry] = []
    unwanted = sets = 0
    for some_states in batched(states, _KEYS_AT_A_TIME):
        pairs = [(state, _in_scope(state, after)) for state in some_states]
        planned = {state.key: state for state in some_states}
        for write in planner.plan(pairs, "plan").writes:
            planned[write.after.key] = write.after
            entries += [entry for entry in write.changes if entry.what.startswith("upstream ")]
        for state in some_states:
            if after.policy is Policy.SYNC:
                unwanted += len(surplus(state, planned[state.key].intended))
                sets += len(remaining_sets(state))
            to_come = set(changes_of(state, before.policy))
            for change in changes_of(planned[state.key], after.policy):
                if change not in to_come:
                    zones[change.key.zone_id].append(change_line(change, planned[state.key]))
    if too_many(sets, unwanted):
        notes += (
            f"that is more than {GUARD_SHARE:.0%}: elsewhere than on a terminal it needs --allow-deletions {unwanted}",
        )
    plan = plan_of_lines(zones, upstream_lines(entries), (before, after), notes)
    return replace(plan, unseen=unseen, may_delete=may_delete, unwanted={before.name: (unwanted, sets)})


def plan_of_removal(config: ClusterConfig, store: Store) -> Plan:
    """The record sets and upstreams that go with a cluster, or stay if it retains them: the first of each zone."""
    zones: dict[str, list[Line]] = defaultdict(list)
    upstreams: list[Line] = []
    sign = Sign.STAYS if retains(config) else Sign.DELETE
    for state in StateTable(store).load_all(config.name):
        for key, record_set in state.applied.items():
            zones[key.zone_id].append(Line(sign, key.label, parts_of(side(record_set)), None, str(state.key)))
        upstreams += [Line(sign, name, None, None, str(state.key)) for name in state.upstreams]
    plan = plan_of_lines(zones, upstreams, (config,), (), first=_FIRST)
    return replace(plan, in_conflict=0, kept=(plan.in_conflict, len(upstreams))) if retains(config) else plan


def plan_of_lines(
    zones: Mapping[str, list[Line]],
    upstreams: list[Line],
    configs: Iterable[ClusterConfig],
    notes: tuple[str, ...],
    first: int | None = None,
) -> Plan:
    """A plan of lines by the ids of their zones. ``first``: at most so many of each group; None: all."""
    titles = {zone.id: (zone.name, zone.private) for config in configs for zone in config.zones}

    def title(zone_id: str) -> str:
        if zone_id not in titles:
            return zone_id
        name, private = titles[zone_id]
        return f"{name} ({zone_id}{', private' if private else ''})"

    groups = [
        replace(_group(title(zone_id), zones[zone_id], first), of_zone=True) for zone_id in sorted(zones, key=title)
    ]
    if upstreams:
        groups.append(_group(UPSTREAMS, upstreams, first))
    records = [line for lines in zones.values() for line in lines]
    in_conflict = sum(line.sign is Sign.STAYS for line in records)
    return Plan(
        tuple(groups), Numbers.of(records), Numbers.of(upstreams), in_conflict=in_conflict, quiet=_QUIET, notes=notes
    )


def _group(title: str, lines: list[Line], first: int | None) -> Group:
    shown = in_order(lines)[:first]
    return Group(title, shown, len(lines) - len(shown))


def planner_of(
    config: ClusterConfig, states: Iterable[KeyState], store: Store, listed: frozenset[Resource], now: float
) -> Planner:
    """A planner that writes nothing. ``states``: of all keys of the cluster. ``listed``: what counts as completely listed."""
    known = KeyStates(config, Tables.of(store, AuditTable("plan"), NamedReferrals(config.shard)))
    known.counts.begin()
    for state in states:
        known.counts.tally(state)
    known.counts.corrections()
    return Planner(known, lambda: now, listed=listed)


def _in_scope(state: KeyState, config: ClusterConfig) -> KeyState:
    return state if config.scope.holds(state.key.namespace) else replace(state, parts={})


def change_line(change: RecordChange, planned: KeyState) -> Line:
    """A change of a key's record set, with the reason or what refuses it."""
    before, after = (None if each is None else parts_of(side(each)) for each in (change.before, change.after))
    conflict = planned.conflicts.get(Name.of(change.key)) if change.before is None else None
    sign = Sign.STAYS if conflict else sign_of(before, after)
    refused = next((f"; {p.code}: {p.message}" for p in planned.problems if p.subject == change.key.name), "")
    conflict = in_the_way_for_people(conflict) if conflict else None
    return Line(sign, change.key.label, before, after, conflict or f"{planned.key}{refused}")


def upstream_lines(entries: Iterable[Entry]) -> list[Line]:
    """Changes of upstreams, from the audit entries that a planner makes of them."""
    found: list[Line] = []
    for entry in entries:
        before, after = (None if each is None else (str(each),) for each in (entry.before, entry.after))
        found.append(
            Line(sign_of(before, after), entry.what.removeprefix("upstream "), before, after, str(entry.service))
        )
    return found


def _changed(before: ClusterConfig, after: ClusterConfig) -> list[str]:
    return [name for name in ClusterConfig.model_fields if getattr(before, name) != getattr(after, name)]


def _unseen(before: ClusterConfig, after: ClusterConfig) -> tuple[str, ...]:
    found: dict[str, list[str]] = defaultdict(list)
    for name in (name for name in _changed(before, after) if name in _UNSEEN):
        found[_UNSEEN[name]].append(name.replace("_", " "))
    old, new = before.scope, after.scope
    joining = not set(new.excluded) >= set(old.excluded) or (
        old.namespaces and not (new.namespaces and set(new.namespaces) <= set(old.namespaces))
    )
    joined = [("sources", set(after.sources) - set(before.sources)), ("namespaces", joining)]
    found |= {_JOIN[name]: [name] for name, more in joined if more}
    return tuple(f"not known before the next list: {', '.join(names)}: {why}" for why, names in found.items())


def _may_delete(before: ClusterConfig, after: ClusterConfig) -> bool:
    """Whether the next list may lead to deletions that the tables do not foresee. Without a selector, it can only bring more."""
    harmless = set() if after.selector else {"selector"}
    if not after.select_endpoints:
        harmless.add("select_endpoints")
    return any(name in _UNSEEN and name not in harmless for name in _changed(before, after))


def _notes(before: ClusterConfig, after: ClusterConfig, *, listed: bool) -> tuple[str, ...]:
    notes: list[str] = []
    if not listed:
        notes.append(f"not known: cluster {before.name} has not been listed yet")
    if after.disabled:
        notes.append(f"cluster {after.name} is disabled: its records change when it is enabled")
    return tuple(notes)


def _age(state: KeyState) -> tuple[str, str]:
    return created_at(state), str(state.key)
