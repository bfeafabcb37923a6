"""``kubesync cluster set``: changes some options of a cluster and leaves the others."""

import argparse
from dataclasses import replace

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.errors import UsageError
from kubesync_local.commands.cluster.changes import Change, agree, refuse_clash, registered
from kubesync_local.commands.cluster.form import Form, read_form
from kubesync_local.commands.cluster.options import (
    KINDS,
    NEEDED,
    OF_NEW_CLUSTERS,
    Options,
    arguments_of,
    given_options,
    options_of,
    with_changes,
)
from kubesync_local.commands.cluster.probe import remark_on
from kubesync_local.plans.view import show_plan
from kubesync_local.registration.clusters import remarks_on_routing
from kubesync_local.terminal.asking import NOTHING_CHANGED
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Show what changes, ask, write, and signal the running session. Writes nothing if nothing changes."""
    work = Workplace()
    config = work.chosen(arguments.name)[0]
    work.lease.bind(work.settings.deployment)
    if config.deleting:
        raise UsageError(f"cluster {config.name} is being removed: it cannot be changed")
    work = work.of(config)
    before = registered(config, work)
    change = Change(before, _changed(arguments, before, work))
    if change.settings:
        refuse_clash(change.after.config, work.clusters.all(), before.config)
    remark_on(config.name, change.after.unanswered)
    if not change.settings:
        remark(f"cluster {config.name}: nothing to change")
        return 0
    plan = change.plan(work)
    if arguments.dry_run:
        show_plan(plan)
        remark(f"{NOTHING_CHANGED}: this was a dry run")
        return 0
    confirmed = agree(plan, f"Change cluster {config.name}?", yes=arguments.yes, allowed=arguments.allow_deletions)
    stored = change.write(work, "cluster set", confirmed)
    work.lease.signal()
    remark(change.said)
    if "routing" in {line.subject for line in change.settings}:
        for remarked in remarks_on_routing(stored, work.clusters.all()):
            remark(remarked)
    return 0


def _changed(arguments: argparse.Namespace, before: Form, work: Workplace) -> Form:
    given, unset = given_options(arguments), _unset(arguments)
    if not given and not unset:
        raise UsageError("give an option that is to be changed, such as --ttl 600, or --unset ttl")
    for name in unset:
        if name in given:
            raise UsageError(f"--{name.replace('_', '-')} is given, and also in --unset")
    known = options_of(before.config, before.access)
    merged = {name: value for name, value in with_changes(known, given).items() if name not in unset}
    merged |= {name: ClusterConfig.model_fields[name].default for name in OF_NEW_CLUSTERS if name in unset}
    # Zones that are given are looked up again: one may have been made again, with another name, or private.
    known_form = replace(before, access={}) if "zones" in given else before
    try:
        return read_form(arguments_of(before.config.name, merged), work, known_form)
    except UsageError as error:
        others = sorted(set(merged) & set(known) - set(given) - {"endpoints_source"})
        if any(f"--{name.replace('_', '-')}" in str(error) for name in others):
            raise UsageError(f"{error} (the cluster has this option: --unset takes it away)") from error
        raise


def _unset(arguments: argparse.Namespace) -> Options:
    """The options that go back to their defaults, with None. Raises UsageError."""
    found: Options = {}
    for text in arguments.unset:
        for part in filter(None, (each.strip() for each in text.split(","))):
            name = part.removeprefix("--").replace("-", "_").removeprefix("no_")
            name = {"zone": "zones", "namespace": "namespaces", "ca_file": "ca_pem"}.get(name, name)
            if name not in KINDS:
                raise UsageError(f"--unset {part}: there is no such option; see `kubesync cluster set --help`")
            if name in NEEDED:
                raise UsageError(f"--unset {part}: every cluster has one; give another one with --{part}")
            found[name] = None
    return found
