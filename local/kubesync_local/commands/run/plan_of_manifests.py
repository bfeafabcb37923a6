"""The plan of manifests that are to be applied: what their objects would change, by the tables. No cluster and no zone is asked.

the object                 what is planned
----------                 ---------------
is known                   the manifest's, with the cluster IPs, load balancers' addresses and endpoints that the cluster gave it
is new                     the manifest's; what only the cluster knows stands there in words
is not in the manifests    nothing: who removes an object from a repository has not deleted it yet
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.state import StateTable
from kubesync.domain.plan import changes_of
from kubesync.domain.sources.registry import KINDS, main_id
from kubesync.domain.state import KeyState, Part, PartId
from kubesync_local.documents.lint_report import Given, as_in_the_cluster, in_words, objects_of
from kubesync_local.plans.of_state import change_line, plan_of_lines, planner_of, upstream_lines
from kubesync_local.plans.plan import Line, Plan

QUIET: Final = "no record set and no upstream changes"


def plan_of_manifests(given: Sequence[Given], namespace: str, config: ClusterConfig, store: Store, now: float) -> Plan:
    """The plan of one cluster. ``namespace``: of objects that name none. ``now``: epoch seconds."""
    states = {state.key: state for state in StateTable(store).load_all(config.name)}
    planner = planner_of(config, states.values(), store, frozenset(config.resources), now)
    pairs: list[tuple[KeyState, KeyState]] = []
    notes: list[str] = []
    for key, value, endpoints in objects_of(given, namespace, config):
        if not config.scope.holds(key.namespace) or KINDS[key.kind] not in config.kinds:
            notes.append(f"{key} is not watched by cluster {config.name}: nothing is published")
            continue
        before = states.get(key) or KeyState(key)
        pairs.append((before, _with(before, value, endpoints, config)))
    zones: dict[str, list[Line]] = defaultdict(list)
    entries: list[Entry] = []
    planned = {after.key: after for _, after in pairs}
    for write in planner.plan(pairs, "plan").writes:
        planned[write.after.key] = write.after
        entries += [entry for entry in write.changes if entry.what.startswith("upstream ")]
    for before, _ in pairs:
        to_come = set(changes_of(before, config.policy))
        after = planned[before.key]
        for change in changes_of(after, config.policy):
            if change not in to_come:
                zones[change.key.zone_id].append(_in_words(change_line(change, after)))
        known = {(problem.code, problem.subject) for problem in before.problems}
        notes += [
            f"{after.key}: {problem.code} {problem.subject}: {problem.message}"
            for problem in after.problems
            if (problem.code, problem.subject) not in known
        ]
    plan = plan_of_lines(zones, upstream_lines(entries), (config,), tuple(notes))
    return replace(plan, quiet=QUIET)


def _with(state: KeyState, value: object, endpoints: Sequence[object], config: ClusterConfig) -> KeyState:
    main = main_id(state.key)
    stored = state.parts.get(main)
    known = None if stored is None else stored.value
    part = Part("plan", 1, 1, None) if stored is None else stored
    value = as_in_the_cluster(state.key.kind, value, known)
    parts = {**state.parts, main: replace(part, value=value, problem="", held=False)}
    if endpoints:
        parts = {part_id: found for part_id, found in parts.items() if part_id.resource != config.endpoints_source}
        for number, each in enumerate(endpoints):
            parts[PartId(config.endpoints_source, f"{number:06}")] = Part("plan", 1, 1, each)
    return replace(state, parts=parts)


def _in_words(line: Line) -> Line:
    before, after = (
        None if side is None else tuple(in_words(part) for part in side) for side in (line.before, line.after)
    )
    return replace(line, before=before, after=after)
