"""``kubesync cluster add``."""

from __future__ import annotations

import argparse

from kubesync.domain.errors import UsageError
from kubesync_local.commands.cluster_form import configuration
from kubesync_local.commands.workplace import Workplace
from kubesync_local.output import remark


def run(arguments: argparse.Namespace) -> int:
    """Check, write, and tell the running master."""
    work = Workplace()
    work.lease.bind(work.settings.deployment)
    config = configuration(arguments, work)
    known = work.clusters.get(config.name)
    if known is not None and known.deleting:
        raise UsageError(f"cluster {config.name} is being removed: add it again once `kubesync cluster list` lacks it")
    if known is not None and not arguments.replace:
        raise UsageError(f"cluster {config.name} is already registered: --replace changes it (give all its options)")
    if known is None and arguments.replace:
        raise UsageError(f"there is no cluster {config.name} to replace: leave out --replace")
    for other in work.clusters.all():
        if other.name != config.name and (other.domain, other.template) == (config.domain, config.template):
            remark(f"note: cluster {other.name} makes the same names ({config.template} of {config.domain})")
    revision = known.revision if known is not None else 0
    stored = work.clusters.put(config.model_copy(update={"revision": revision}))
    work.lease.signal()
    zones = ", ".join(f"{zone.name} ({'private, ' if zone.private else ''}{zone.id})" for zone in stored.zones)
    done = "changed" if known is not None else "registered"
    remark(f"cluster {stored.name} {done}: {stored.domain} in {zones}, pods from {stored.endpoints_source}")
    if stored.insecure_skip_tls_verify:
        remark("warning: TLS is not verified for this cluster: whoever answers at its address gets the token")
    return 0
