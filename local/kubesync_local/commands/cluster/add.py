"""``kubesync cluster add``."""

from __future__ import annotations

import argparse
import json

from kubesync.aws.tables.control.clusters import ClusterConfig, valid_cluster_name
from kubesync.domain.errors import UsageError
from kubesync_local.commands.cluster.changes import Change, agree, refuse_clash, registered
from kubesync_local.commands.cluster.form import read_form
from kubesync_local.commands.cluster.probe import remark_on, remark_on_server
from kubesync_local.registration.name_rules import ANY_NAME
from kubesync_local.terminal.asking import can_ask
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Check, write, and signal the running session."""
    work = Workplace()
    work.lease.bind(work.settings.deployment)
    known = work.clusters.get(arguments.name) if valid_cluster_name(arguments.name) else None
    _refuse_other_use(arguments, known)
    form = read_form(arguments, work, accept=lambda config: refuse_clash(config, work.clusters.all()))
    change = Change(None if known is None else registered(known, work), form)
    if known is not None and change.settings and not arguments.yes and can_ask():
        agree(change.plan(work), f"Change cluster {form.config.name}?", yes=False)
    stored = change.write(work)
    work.lease.signal()
    zones = ", ".join(f"{zone.name} ({'private, ' if zone.private else ''}{zone.id})" for zone in stored.zones)
    done = "changed" if known is not None else "registered"
    remark(f"cluster {stored.name} {done}: {stored.domain} in {zones}, pods from {stored.endpoints_source}")
    if known is not None:
        remark(_difference(known, stored))
    remark_on(stored.name, form.unanswered)
    remark_on_server(arguments.endpoints_source, stored, work)
    if stored.disabled:
        remark(f"note: it stays disabled; `kubesync cluster enable {stored.name}` enables it")
    if not stored.domain_filter:
        remark(f"note: it accepts {ANY_NAME}; --domain-filter {stored.domain} ends that (docs/clusters.md)")
    if stored.insecure_skip_tls_verify:
        remark("warning: TLS is not verified for this cluster: any server that answers at its address gets the token")
    return 0


def _refuse_other_use(arguments: argparse.Namespace, known: ClusterConfig | None) -> None:
    """Raise UsageError if the name is taken, or there is nothing to replace. This needs neither Route 53 nor an API server."""
    name = arguments.name
    if known is not None and known.deleting:
        raise UsageError(
            f"cluster {name} is being removed: add it again when `kubesync cluster list` no longer shows it"
        )
    if known is not None and not arguments.replace:
        raise UsageError(
            f"cluster {name} is already registered: `kubesync cluster set {name}` changes single options; --replace takes them all anew"
        )
    if known is None and arguments.replace and valid_cluster_name(name):
        raise UsageError(f"there is no cluster {name} to replace: leave out --replace")


def _difference(before: ClusterConfig, after: ClusterConfig) -> str:
    """Every setting that changed. An option that was left out goes back to its default."""
    old, new = (config.model_dump(mode="json", exclude={"revision"}) for config in (before, after))
    changed = [
        f"{name} {_shown(name, old[name])} -> {_shown(name, new[name])}" for name in new if old[name] != new[name]
    ]
    return f"changed: {', '.join(changed) or 'nothing'}"


def _shown(name: str, value: object) -> str:
    """A value as JSON; for certificates only whether there are any."""
    if name == "ca_pem":
        return "given" if value else "none"
    return json.dumps(value)
