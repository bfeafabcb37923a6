"""``kubesync cluster add``."""

import argparse
import json
import os
from dataclasses import replace

from kubesync.aws.tables.control.clusters import ClusterConfig, served_at_once, valid_cluster_name
from kubesync.domain.errors import UsageError
from kubesync_local.commands.cluster.changes import Change, agree, refuse_clash, registered
from kubesync_local.commands.cluster.form import read_form
from kubesync_local.commands.cluster.probe import remark_on, remark_on_server
from kubesync_local.plans.of_report import plan_of_report
from kubesync_local.plans.plan import zone_titles
from kubesync_local.plans.view import show_plan
from kubesync_local.registration.clusters import remarks_on_routing
from kubesync_local.registration.name_rules import ANY_NAME
from kubesync_local.sessions.looking import compared
from kubesync_local.terminal.asking import NOTHING_CHANGED, can_ask
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.looking import Look
from kubesync_local.workplace.shards import roomiest, unwatched
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Check, write, and signal the running session."""
    work = Workplace()
    work.lease.bind(work.settings.deployment)
    known = work.clusters.get(arguments.name) if valid_cluster_name(arguments.name) else None
    _refuse_other_use(arguments, known)
    work = work.in_shard(_shard(arguments, known, work))
    form = read_form(arguments, work, accept=lambda config: refuse_clash(config, work.clusters.all()))
    change = Change(None if known is None else registered(known, work), form)
    if arguments.dry_run:
        return _dry_run(change, work)
    if arguments.disabled:
        change = replace(change, disabled=True)
    confirmed: dict[str, int] = {}
    if known is not None and change.settings:
        quiet = arguments.yes or not can_ask()
        question = f"Change cluster {form.config.name}?"
        confirmed = agree(change.plan(work), question, yes=quiet, allowed=arguments.allow_deletions)
    stored = change.write(work, "cluster add", confirmed)
    work.lease.signal()
    zones = ", ".join(f"{zone.name} ({'private, ' if zone.private else ''}{zone.id})" for zone in stored.zones)
    done = "changed" if known is not None else "registered"
    shard = f", in shard {stored.shard}" if stored.shard != "0" else ""
    remark(f"cluster {stored.name} {done}: {stored.domain} in {zones}, pods from {stored.endpoints_source}{shard}")
    if known is not None:
        remark(_difference(known, stored))
    if form.decided:
        remark(f"note: {form.decided}")
    remark_on(stored.name, form.unanswered)
    remark_on_server(arguments.endpoints_source, stored, work)
    _remark_on_shard(stored, work)
    if stored.disabled:
        stays = "stays" if known is not None and known.disabled else "is"
        remark(
            f"note: it {stays} disabled; `kubesync plan --cluster {stored.name}` shows what it would write, "
            f"`kubesync cluster enable {stored.name}` enables it"
        )
    for line in remarks_on_routing(stored, work.clusters.all()):
        remark(line)
    if not stored.domain_filter:
        remark(f"note: it accepts {ANY_NAME}; --domain-filter {stored.domain} ends that (docs/clusters.md)")
    if stored.insecure_skip_tls_verify:
        remark("warning: TLS is not verified for this cluster: any server that answers at its address gets the token")
    return 0


def _dry_run(change: Change, work: Workplace) -> int:
    """Show what registering or changing the cluster would lead to. Returns 1 if it could not be compared."""
    look = Look(work)
    look.enable(change.after.config, change.after.access)
    report = compared(look, change.name)
    plan = plan_of_report(report, zone_titles([*work.clusters.all(), change.after.config]))
    show_plan(plan)
    if change.after.decided:
        remark(f"note: {change.after.decided}")
    _remark_on_shard(change.after.config, work)
    remark(f"{NOTHING_CHANGED}: this was a dry run")
    return 1 if plan.errors else 0


def _remark_on_shard(config: ClusterConfig, work: Workplace) -> None:
    if nobody := unwatched(work.store, config.shard):
        remark(f"note: {nobody}")


def _refuse_other_use(arguments: argparse.Namespace, known: ClusterConfig | None) -> None:
    """Raise UsageError if the name is taken, or there is nothing to replace. This needs neither Route 53 nor an API server."""
    name = arguments.name
    if known is not None and known.deleting:
        raise UsageError(
            f"cluster {name} is being removed: add it again when `kubesync cluster list` no longer shows it"
        )
    if known is not None and not arguments.replace:
        raise UsageError(
            f"cluster {name} is already registered: `kubesync cluster set {name}` changes single options; --replace takes them all again"
        )
    if known is None and arguments.replace and valid_cluster_name(name):
        raise UsageError(f"there is no cluster {name} to replace: leave out --replace")


def _shard(arguments: argparse.Namespace, known: ClusterConfig | None, work: Workplace) -> str:
    """Whose master is to serve it. A registered cluster stays where it is: ``put`` refuses another shard, and says what to do."""
    if known is not None and arguments.shard is None:
        return work.of(known).settings.shard
    configs = work.clusters.all()
    if arguments.shard is not None or os.environ.get("KUBESYNC_SHARD"):
        shard = str(arguments.shard or work.settings.shard)
    else:
        shard = roomiest(work.store, configs, work.settings.shard, work.now())
    of_shard = [config for config in configs if config.shard == shard]
    if known is None and served_at_once([*of_shard, None]) <= len(of_shard):
        raise UsageError(
            f"shard {shard} has {len(of_shard)} clusters, the most that one session serves: raise the stack's parameter Shards, and give --shard"
        )
    return shard


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
