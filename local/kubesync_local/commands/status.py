"""``kubesync status``: the lease, and for each cluster its listeners, what is open, wrong or held back."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from kubesync.aws.clusters import ClusterConfig
from kubesync.aws.lease import Lease
from kubesync.aws.listeners import ListenerTable
from kubesync.aws.state import StateTable
from kubesync.aws.upstreams import timestamp
from kubesync.aws.zone_problems import ZoneProblemTable
from kubesync.domain.state import KeyState, OpenMark
from kubesync_local.commands.cluster_show import document
from kubesync_local.commands.status_table import show_status
from kubesync_local.commands.workplace import Workplace
from kubesync_local.output import print_json


def run(arguments: argparse.Namespace) -> int:
    """Gather and show it."""
    work = Workplace()
    chosen = work.chosen(arguments.cluster)
    problems = {each.zone_id: each for each in ZoneProblemTable(work.store, work.settings.shard, "").current()}
    zones = {zone.id: zone for config in chosen for zone in config.zones}
    status: dict[str, Any] = {
        "deployment": work.settings.deployment,
        "lease": lease_document(work.lease.read(), int(work.now() * 1000)),
        "clusters": [_cluster(config, work) for config in chosen],
        "zones": [
            {
                "zone": zone_id,
                "name": zone.name,
                "private": zone.private,
                "problem": problems[zone_id].problem if zone_id in problems else None,
                "since": problems[zone_id].at if zone_id in problems else None,
            }
            for zone_id, zone in sorted(zones.items())
        ],
    }
    if arguments.output == "json":
        print_json(status)
    else:
        show_status(status)
    return 0


def lease_document(lease: Lease, now_ms: int) -> dict[str, Any]:
    """Who is master, until when. ``state``: held, released, expired or never held."""
    state = "held"
    if not lease.holder:
        state = "never held"
    elif lease.released:
        state = "released clean" if lease.clean else "released, not clean"
    elif lease.free(now_ms):
        state = "expired"
    return {
        "state": state,
        "holder": lease.holder or None,
        "epoch": lease.epoch,
        "expires_at": timestamp(lease.expires_at_ms / 1000) if lease.expires_at_ms else None,
        "session_ends_at": timestamp(lease.ends_at_ms / 1000) if lease.ends_at_ms else None,
    }


def _cluster(config: ClusterConfig, work: Workplace) -> dict[str, Any]:
    states = list(StateTable(work.store).load_all(config.name))
    shown = document(config)
    return {
        "cluster": config.name,
        "server": config.server,
        "domain": config.domain,
        "state": shown["state"],
        "revision": config.revision,
        "services": sum(state.service is not None for state in states),
        "record_sets": sum(len(state.applied) for state in states),
        "upstreams": sum(len(state.upstreams) for state in states),
        "listeners": _listeners(config, work),
        "open": [_open(state, state.opened) for state in states if state.opened is not None],
        "problems": [
            {"service": str(state.key), "code": each.code, "subject": each.subject, "message": each.message}
            for state in states
            for each in state.problems
        ],
        "held": _held(config, states),
    }


def _listeners(config: ClusterConfig, work: Workplace) -> list[dict[str, Any]]:
    table = ListenerTable(work.store)
    checkpoints, errors = table.checkpoints(config.name), table.errors(config.name)
    rows = []
    for resource in sorted(checkpoints.keys() | errors.keys()):
        checkpoint, error = checkpoints.get(resource), errors.get(resource)
        last = error.last if error is not None else None
        ended = error.ended if error is not None else None
        rows.append(
            {
                "listener": resource.value,
                "checkpoint": checkpoint.resource_version if checkpoint is not None else None,
                "last_error": last["key"] if last else None,
                "last_error_at": last["at"] if last else None,
                "last_error_message": last["message"] if last else None,
                "ended": ended["key"] if ended else None,
                "ended_at": ended["at"] if ended else None,
            }
        )
    return rows


def _open(state: KeyState, mark: OpenMark) -> dict[str, Any]:
    return {
        "service": str(state.key),
        "attempts": mark.attempts,
        "retry_at": timestamp(mark.retry_at) if mark.retry_at else None,
        "reason": mark.reason or None,
    }


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
