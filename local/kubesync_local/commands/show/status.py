"""``kubesync status``: the lease, and for each cluster its listeners, and what is open, wrong or held back."""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Protocol

from kubesync.aws.dynamodb.store import CONTROL, Key, Store
from kubesync.aws.tables.control.clusters import ClusterConfig, lost_clusters, served_at_once
from kubesync.aws.tables.control.lease import Lease, LeaseTable
from kubesync.aws.tables.control.listeners import failing_since
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.dns.records import Problem, RecordKey
from kubesync.domain.errors import NewerSchemaError, StoreUnavailableError, UsageError
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.open_keys import waiting_for_person
from kubesync.domain.reasons import advice_for
from kubesync.domain.sources.registry import IDENTITY
from kubesync.domain.state import KeyState, Name, OpenMark
from kubesync.settings import Settings
from kubesync_local.check.advice import UNGUARDED
from kubesync_local.commands.show.status_table import show_status
from kubesync_local.documents.alarm_causes import Seen, causes_of
from kubesync_local.documents.credential_rows import credential_rows
from kubesync_local.documents.kinds import has_object
from kubesync_local.documents.lag import lag_of_session
from kubesync_local.documents.last_resync import resyncs_document
from kubesync_local.documents.listener_rows import listener_rows
from kubesync_local.documents.named_upstream import problems_of_named
from kubesync_local.documents.outlook import NOTHING_THERE, empty_claims, tried_next, zone_code
from kubesync_local.documents.problem_order import in_order
from kubesync_local.registration.private_addresses import exposed
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import print_document, print_line, remark
from kubesync_local.workplace.readings import ListenerReadings, Pause, ZoneProblem, ZoneReadings, pause_of
from kubesync_local.workplace.registry import ClusterRegistry, state_of
from kubesync_local.workplace.shards import problems_of_zones, shards_of
from kubesync_local.workplace.workplace import Workplace

_CONFIGURATION: Final = "its configuration cannot be read: a newer release wrote it, so this one does not watch it"
_FEWER: Final = "fewer clusters are registered than the last session saw"
_LOST: Final = (
    "it is not registered any more, and nobody has removed it: nothing watches it (docs/runbook.md#registrationslost)"
)
_NONE_LEFT: Final = (
    "no cluster is registered, but the state table is not empty: registrations were lost, and nothing is watched "
    "(docs/runbook.md#registrationslost)"
)
_ITEMS: Final = "a newer release wrote items of it, so this one does not watch it"


class Place(Protocol):
    """What the status is read from. ``Workplace`` is one."""

    @property
    def store(self) -> Store: ...

    @property
    def lease(self) -> LeaseTable: ...

    @property
    def settings(self) -> Settings: ...

    def now(self) -> float: ...


def run(arguments: argparse.Namespace) -> int:
    """Gather the status and show it."""
    work = Workplace()
    if arguments.watch:
        from kubesync_local.commands.show.watch import watch  # reads more, and draws

        if arguments.check or arguments.output != "table":
            raise UsageError("--watch is for people: leave out --check and --output")
        return watch(work, arguments.cluster)
    status = status_document(work, work.chosen(arguments.cluster), every=not arguments.cluster)
    if arguments.check:
        return _check(status, work, arguments.output)
    if arguments.output != "table":
        print_document(status, arguments.output)
    else:
        show_status(status, work.now(), verbose=arguments.verbose)
    return 0


def status_document(work: Place, chosen: Sequence[ClusterConfig], *, every: bool = True) -> dict[str, Any]:
    """The status of these clusters. ``every``: these are all clusters; also say which ones cannot be read."""
    lease = work.lease.read()
    shards = shards_of(chosen, work.settings.shard)
    problems = problems_of_zones(work.store, shards)
    zones = {zone.id: zone for config in chosen for zone in config.zones}
    registered = ClusterRegistry(work.store).read() if every else {}
    return {
        "deployment": work.settings.deployment,
        "shard": work.settings.shard,
        "lease": lease_document(lease, int(work.now() * 1000), pause_of(work.store)),
        "lag": [asdict(each) for each in lag_of_session(lease)],
        "too_many": _too_many(registered),
        "other_shards": [_shard(shard, work) for shard in shards[1:]],
        "alarms_notify": not lease.silent,
        "turn": turn_document(lease, int(work.now() * 1000)),
        "clusters": [_cluster(config, work, problems) for config in chosen],
        "unreadable": [
            {"cluster": name, "reason": _CONFIGURATION} for name, found in sorted(registered.items()) if found is None
        ],
        "lost": [lost for shard in shards for lost in _lost(work, registered, shard)] if every else [],
        "zones": [
            {
                "zone": zone_id,
                "name": zone.name,
                "private": zone.private,
                "code": zone_code(problems[zone_id].problem) if zone_id in problems else None,
                "problem": problems[zone_id].problem if zone_id in problems else None,
                "since": problems[zone_id].at if zone_id in problems else None,
            }
            for zone_id, zone in sorted(zones.items())
        ],
        "resyncs": resyncs_document(work.store, work.settings.shard, work.now()),
        "named_upstreams": problems_of_named(work.store),
        "named_upstreams_waiting": sum(len(NamedUpstreamTable(work.store).marks(shard)) for shard in shards),
    }


def _too_many(registered: Mapping[str, ClusterConfig | None]) -> list[dict[str, Any]]:
    """Shards with more clusters than one session serves."""
    of_shards: dict[str, list[ClusterConfig]] = {}
    for _, config in sorted(registered.items()):
        if config is not None:
            of_shards.setdefault(config.shard, []).append(config)
    served = {shard: served_at_once(configs) for shard, configs in of_shards.items()}
    return [
        {"shard": shard, "clusters": len(configs), "served": served[shard]}
        for shard, configs in sorted(of_shards.items())
        if len(configs) > served[shard]
    ]


def _shard(shard: str, work: Place) -> dict[str, Any]:
    """A shard of clusters besides that of this command: whether it has a master, and its resyncs."""
    now = work.now()
    return {
        "shard": shard,
        "lease": lease_document(LeaseTable(work.store, shard).read(), int(now * 1000), pause_of(work.store)),
        "resyncs": resyncs_document(work.store, shard, now),
    }


def _check(status: dict[str, Any], work: Workplace, output: str) -> int:
    """Show the causes of alarms, one line each. Returns 1 if there is one."""
    causes = causes_of(Seen(status, work.now(), _failing_since(status, work)))
    if not status["alarms_notify"]:
        remark("the stack's alarms notify nobody: its parameter AlarmTopicArn is empty")
    if output != "table":
        print_document({"ok": not causes, "causes": [cause.document() for cause in causes]}, output)
    elif not causes:
        remark("OK: nothing to alert on")
    for each in causes if output == "table" else ():
        print_line(f"{each.cause}: {visible(f'{each.subject}: {each.message}')}; {each.then}")
    return 1 if causes else 0


def _failing_since(status: dict[str, Any], work: Workplace) -> dict[tuple[str, str], str]:
    table = ListenerReadings(work.store)
    since: dict[tuple[str, str], str] = {}
    for cluster in status["clusters"]:
        name = cluster["cluster"]
        failing = [Resource(row["listener"]) for row in cluster["listeners"] if row["state"] == "failing"]
        checkpoints, errors = (table.checkpoints(name), table.errors(name)) if failing else ({}, {})
        for resource in failing:
            if found := failing_since(checkpoints.get(resource), errors.get(resource)):
                since[name, resource.value] = found
    return since


def _lost(work: Place, registered: Mapping[str, ClusterConfig | None], shard: str) -> list[dict[str, str]]:
    """Clusters of a shard that are not registered any more, and were not removed."""
    here = [name for name, config in registered.items() if config is None or config.shard == shard]
    try:
        found = lost_clusters(work.store, here, LeaseTable(work.store, shard).read().clusters)
    except StoreUnavailableError as error:  # an older policy does not allow the scan
        return [{"cluster": "", "reason": f"{_FEWER}, and the tables may not be looked through: {error}"}]
    return [{"cluster": name, "reason": _LOST if name else _NONE_LEFT} for name in found]


def lease_document(lease: Lease, now_ms: int, pause: Pause | None = None) -> dict[str, Any]:
    """The holder of the lease, and until when. ``state``: held, released, expired or never held. ``paused``: since when and by whom."""
    state = "held"
    if not lease.holder:
        state = "never held"
    elif lease.released:
        state = "released clean" if lease.clean else "released, not clean"
        if not lease.clean and lease.to_settle is not None:
            state = f"released clean, but for {', '.join(lease.to_settle)}"
    elif lease.is_free(now_ms):
        state = "expired"
    return {
        "state": state,
        "holder": lease.holder or None,
        "epoch": lease.epoch,
        "expires_at": timestamp(lease.expires_at_ms / 1000) if lease.expires_at_ms else None,
        "session_ends_at": timestamp(lease.ends_at_ms / 1000) if lease.ends_at_ms else None,
        "paused": None if pause is None else {"since": pause.at, "by": pause.by},
        "no_master_minutes": lease.no_master_minutes,
    }


def turn_document(lease: Lease, now_ms: int) -> dict[str, Any] | None:
    """How long the oldest event waits to be recorded, as the running session has told within the last minute. None: nothing waits."""
    if lease.is_free(now_ms) or not lease.turn or lease.turn[0] != lease.epoch:
        return None
    _, seconds, of = lease.turn
    cluster, _, namespace = str(of).partition("/")
    return {"cluster": cluster, "namespace": namespace or None, "seconds": seconds}


def _cluster(config: ClusterConfig, work: Place, problems: Mapping[str, ZoneProblem]) -> dict[str, Any]:
    try:
        states, newer = sorted(StateTable(work.store).load_all(config.name), key=lambda state: state.key), ""
        listeners = listener_rows(config.name, ListenerReadings(work.store))
    except NewerSchemaError as error:  # others are shown all the same
        states, newer, listeners = [], f"{_ITEMS} ({error})", []
    looks = ZoneReadings(work.store, config.shard, "").checks()
    inferred = [] if newer else _inferred(config, work)
    empty = {name: state.key for state in states for name in empty_claims(state)}
    return {
        "cluster": config.name,
        "server": config.server,
        "domain": config.domain,
        "state": state_of(config),
        "shard": config.shard,
        "revision": config.revision,
        "services": sum(has_object(state) for state in states),
        "objects": dict(sorted(Counter(state.key.kind for state in states if has_object(state)).items())),
        "record_sets": sum(len(state.applied) for state in states),
        "upstreams": sum(len(state.upstreams) for state in states),
        "problem": newer or None,
        "exposed": [each.document() for each in exposed((state.applied for state in states), config)],
        "unguarded": None if newer else _unguarded(config, work.store),
        "listeners": listeners,
        "credentials": credential_rows(config, ListenerReadings(work.store), work.now()),
        "open": [_open(state, state.opened, problems, looks) for state in states if state.opened is not None],
        "problems": [
            {
                "service": str(state.key),
                "kind": state.key.kind,
                "code": each.code,
                "subject": each.subject,
                "message": each.message + _why_taken(state, each, empty),
                "advice": advice_for(each.code),
            }
            for state in states
            for each in in_order(state.problems)
        ],
        "held": _held(config, states),
        "inferred_deletions": sum(each["deletions"] for each in inferred),
        "inferred": inferred,
        "waiting_for_person": sum(waiting_for_person(state, config.policy) or state.holds_back for state in states),
    }


def _unguarded(config: ClusterConfig, store: Store) -> str | None:
    """UNGUARDED if sessions have listed the cluster, and never learned its identity. None: it is known, or its lists hold it."""
    if config.shows_identity or store.get(Key(CONTROL, f"cluster#{config.name}", "identity")) is not None:
        return None
    asked_with = IDENTITY[0] if config.lists_services else config.resources[0]
    return UNGUARDED if ListenerReadings(store).checkpoints(config.name).get(asked_with) else None


def _inferred(config: ClusterConfig, work: Place) -> list[dict[str, Any]]:
    """How many objects of each listener went within the last hour because lists lacked them, and how many may."""
    rows = [
        {
            "listener": resource.value,
            "deletions": each.believed.within_the_hour(work.now()),
            "limit": each.believed.limit or None,
        }
        for resource, each in sorted(ListenerReadings(work.store).checkpoints(config.name).items())
    ]
    return [row for row in rows if row["deletions"]]


def _open(
    state: KeyState, mark: OpenMark, problems: Mapping[str, ZoneProblem], looks: Mapping[str, float]
) -> dict[str, Any]:
    retry_at = tried_next(state, looks)
    # A problem of a whole zone is no failure of its keys: it is stored with the zone only.
    zones = sorted({key.zone_id for key in {*state.intended, *state.applied} if _differs(state, key)} & problems.keys())
    of_zones = "; ".join(f"zone {zone_id}: {problems[zone_id].problem}" for zone_id in zones)
    return {
        "service": str(state.key),
        "kind": state.key.kind,
        "attempts": mark.attempts,
        "retry_at": timestamp(retry_at) if retry_at else None,
        "code": mark.code or (zone_code(problems[zones[0]].problem) if zones else None),
        "reason": mark.reason or of_zones or None,
        "cause": mark.cause or None,
        "since": timestamp(mark.since) if mark.since else None,
    }


def _why_taken(state: KeyState, problem: Problem, empty: Mapping[Name, ObjectKey]) -> str:
    """What to add to the message of a name that a Service keeps without a record set."""
    for name in sorted(state.waits & empty.keys()) if problem.code == "NameTaken" else ():
        # The key may want the name with another set identifier than that for which it waits.
        if problem.subject.startswith(f"{name.name} ") and problem.subject.endswith(f" in {name.zone_id}"):
            return f". {empty[name]} {NOTHING_THERE}"
    return ""


def _differs(state: KeyState, key: RecordKey) -> bool:
    return state.intended.get(key) != state.applied.get(key)


def _held(config: ClusterConfig, states: list[KeyState]) -> list[dict[str, Any]]:
    counts = Counter(part_id.resource.value for state in states for part_id, part in state.parts.items() if part.held)
    if kept := sum(len(state.kept) for state in states):
        counts["configuration"] = kept
    return [
        {
            "listener": asked_by,
            "deletions": count,
            "release": f"kubesync resync --cluster {config.name} --force",
        }
        for asked_by, count in sorted(counts.items())
    ]
