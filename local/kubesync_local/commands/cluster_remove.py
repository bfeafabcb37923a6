"""``kubesync cluster remove``."""

from __future__ import annotations

import argparse

from kubesync.aws.clusters import OnDelete
from kubesync.domain.plan import Policy
from kubesync_local.commands.workplace import Workplace
from kubesync_local.output import remark


def run(arguments: argparse.Namespace) -> int:
    """Mark the cluster as being deleted, and tell the running master, which does the rest."""
    work = Workplace()
    config = work.chosen(arguments.name)[0]
    if not config.deleting:
        config = work.clusters.put(config.model_copy(update={"deleting": True}))
    work.lease.signal()
    stays = config.on_delete is OnDelete.RETAIN or config.policy is not Policy.SYNC
    what = "its record sets and upstreams stay" if stays else "its record sets and upstreams go"
    held = not work.lease.read().free(int(work.now() * 1000))
    who = "the running session does it now" if held else "the next session does it"
    remark(f"cluster {config.name} is being removed, {what}; {who}")
    return 0
