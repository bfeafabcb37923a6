"""``kubesync cluster remove``."""

from __future__ import annotations

import argparse

from kubesync.aws.clusters import retains
from kubesync.aws.named_upstreams import NamedUpstreamTable
from kubesync.aws.store import Check
from kubesync.domain.errors import UsageError
from kubesync_local.commands.workplace import Workplace
from kubesync_local.output import remark


def run(arguments: argparse.Namespace) -> int:
    """Mark the cluster as being deleted, and tell the running master, which does the rest."""
    work = Workplace()
    config = work.chosen(arguments.name)[0]
    if not config.deleting:
        only_if = _unless_referred_to(config.name, NamedUpstreamTable(work.store))
        config = work.clusters.put(config.model_copy(update={"deleting": True}), only_if)
    work.lease.signal()
    what = "its record sets and upstreams stay" if retains(config) else "its record sets and upstreams go"
    held = not work.lease.read().free(int(work.now() * 1000))
    who = "the running session does it now" if held else "the next session does it"
    remark(f"cluster {config.name} is being removed, {what}; {who}")
    return 0


def _unless_referred_to(cluster: str, named: NamedUpstreamTable) -> list[Check]:
    """That no named upstream refers to a Service of the cluster, now and when it is marked. Raises UsageError."""
    registry = named.read()
    if names := registry.of_cluster(cluster):
        raise UsageError(
            f"cluster {cluster} is behind named upstream{'s' if len(names) > 1 else ''} {', '.join(names)}: take its Services "
            "out (`kubesync upstream add NAME ... --replace`) or remove the named upstream (`kubesync upstream remove NAME`) first"
        )
    return [named.unchanged(registry)]
