"""``kubesync status``: the lease, and for each cluster its listeners, and what is open, wrong or held back."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from typing import Any

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import Lease
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.control.zone_problems import ZoneProblem, ZoneProblemTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable, timestamp
from kubesync.domain.dns.records import Problem, RecordKey
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.named_upstreams import named_key
from kubesync.domain.objects import ServiceKey
from kubesync.domain.reasons import advice_for
from kubesync.domain.state import KeyState, Name, OpenMark
from kubesync_local.commands.show.status_table import show_status
from kubesync_local.documents.credential_rows import credential_rows
from kubesync_local.documents.last_resync import resyncs_document
from kubesync_local.documents.listener_rows import listener_rows
from kubesync_local.documents.named_upstream import NamedDocument
from kubesync_local.documents.outlook import NOTHING_THERE, tried_next, zone_code
from kubesync_local.terminal.output import print_json
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Gather the status and show it."""
    work = Workplace()
    chosen = work.chosen(arguments.cluster)
    problems = {each.zone_id: each for each in ZoneProblemTable(work.store, work.settings.shard, "").current()}
    zones = {zone.id: zone for config in chosen for zone in config.zones}
    status: dict[str, Any] = {
        "deployment": work.settings.deployment,
        "shard": work.settings.shard,
        "lease": lease_document(work.lease.read(), int(work.now() * 1000)),
        "clusters": [_cluster(config, work, problems) for config in chosen],
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
        "named_upstreams": _named_upstreams(work),
        "named_upstreams_waiting": len(NamedUpstreamTable(work.store).marks(work.settings.shard)),
    }
    if arguments.output == "json":
        print_json(status)
    else:
        show_status(status, work.now())
    return 0


def lease_document(lease: Lease, now_ms: int) -> dict[str, Any]:
    """The holder of the lease, and until when. ``state``: held, released, expired or never held."""
    state = "held"
    if not lease.holder:
        state = "never held"
    elif lease.released:
        state = "released clean" if lease.clean else "released, not clean"
        if not lease.clean and lease.to_settle is not None:
            state = f"released clean, but for {', '.join(lease.to_settle)}"
    elif lease.free(now_ms):
        state = "expired"
    return {
        "state": state,
        "holder": lease.holder or None,
        "epoch": lease.epoch,
        "expires_at": timestamp(lease.expires_at_ms / 1000) if lease.expires_at_ms else None,
        "session_ends_at": timestamp(lease.ends_at_ms / 1000) if lease.ends_at_ms else None,
    }


def _named_upstreams(work: Workplace) -> list[dict[str, Any]]:
    """The problems of named upstreams, which belong to no cluster. An unreadable one does not hide the others."""
    registry, table = NamedUpstreamTable(work.store).read(), UpstreamTable(work.store)
    rows: list[dict[str, Any]] = []
    for name in sorted(registry.entries):
        try:
            problems = NamedDocument(name, registry, table).document()["problems"]
        except (NewerSchemaError, KeyError, TypeError) as error:  # written by a newer release, or by another program
            problems = [{"reason": "Unreadable", "subject": named_key(name), "message": str(error)}]
        for problem in problems:
            code = problem["reason"]
            said = {"subject": problem["subject"], "message": problem["message"], "advice": advice_for(code)}
            rows.append({"name": name, "code": code, **said})
    return rows


def _cluster(config: ClusterConfig, work: Workplace, problems: Mapping[str, ZoneProblem]) -> dict[str, Any]:
    states = list(StateTable(work.store).load_all(config.name))
    looks = ZoneProblemTable(work.store, config.shard, "").checks()
    empty = {name: state.key for state in states for name in state.empty_claims}
    return {
        "cluster": config.name,
        "server": config.server,
        "domain": config.domain,
        "state": config.state,
        "shard": config.shard,
        "revision": config.revision,
        "services": sum(state.service is not None for state in states),
        "record_sets": sum(len(state.applied) for state in states),
        "upstreams": sum(len(state.upstreams) for state in states),
        "listeners": listener_rows(config.name, ListenerTable(work.store)),
        "credentials": credential_rows(config, ListenerTable(work.store), work.now()),
        "open": [_open(state, state.opened, problems, looks) for state in states if state.opened is not None],
        "problems": [
            {
                "service": str(state.key),
                "code": each.code,
                "subject": each.subject,
                "message": each.message + _why_taken(state, each, empty),
                "advice": advice_for(each.code),
            }
            for state in states
            for each in state.problems
        ],
        "held": _held(config, states),
    }


def _open(
    state: KeyState, mark: OpenMark, problems: Mapping[str, ZoneProblem], looks: Mapping[str, float]
) -> dict[str, Any]:
    retry_at = tried_next(state, looks)
    # A problem of a whole zone is no failure of its keys: it is stored with the zone only.
    zones = sorted({key.zone_id for key in {*state.intended, *state.applied} if _differs(state, key)} & problems.keys())
    of_zones = "; ".join(f"zone {zone_id}: {problems[zone_id].problem}" for zone_id in zones)
    return {
        "service": str(state.key),
        "attempts": mark.attempts,
        "retry_at": timestamp(retry_at) if retry_at else None,
        "code": mark.code or (zone_code(problems[zones[0]].problem) if zones else None),
        "reason": mark.reason or of_zones or None,
        "cause": mark.cause or None,
    }


def _why_taken(state: KeyState, problem: Problem, empty: Mapping[Name, ServiceKey]) -> str:
    """What to add to the message of a name that a Service keeps without a record set."""
    for name in sorted(state.waits & empty.keys()) if problem.code == "NameTaken" else ():
        # The key may want the name with another set identifier than that for which it waits.
        if problem.subject.startswith(f"{name.name} ") and problem.subject.endswith(f" in {name.zone_id}"):
            return f". {empty[name]} {NOTHING_THERE}"
    return ""


def _differs(state: KeyState, key: RecordKey) -> bool:
    return state.intended.get(key) != state.applied.get(key)


def _held(config: ClusterConfig, states: list[KeyState]) -> list[dict[str, Any]]:
    counts = Counter(part_id.resource for state in states for part_id, part in state.parts.items() if part.held)
    return [
        {
            "listener": resource.value,
            "deletions": count,
            "release": f"kubesync resync --cluster {config.name} --force",
        }
        for resource, count in sorted(counts.items())
    ]
