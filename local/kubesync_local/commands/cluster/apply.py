"""``kubesync cluster apply``: makes the registered clusters as a reviewed file says.

    the cluster is                             what happens
    --------------                             ------------
    in the file, not registered                it is added
    in the file, as registered                 nothing
    in the file, registered in another way     it is changed; an option that the file lacks goes back to its default
    registered, not in the file                nothing; with --prune it is removed as ``cluster remove`` removes it

Changes and additions come first, removals last. Nothing is written before the whole file is checked and a person agreed.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.domain.errors import KubesyncError, UsageError
from kubesync_local.commands.cluster.changes import Change, agree, refuse_clash, registered
from kubesync_local.commands.cluster.clusters_file import ClustersFile, Entry, read_clusters_file
from kubesync_local.commands.cluster.form import Form, read_form
from kubesync_local.commands.cluster.options import (
    NEEDED,
    OF_NEW_CLUSTERS,
    WAYS_IN,
    Options,
    arguments_of,
    is_default,
    options_of,
    with_known_external_ids,
)
from kubesync_local.commands.cluster.probe import remark_on
from kubesync_local.commands.cluster.remove import unless_referred_to
from kubesync_local.plans.of_state import plan_of_removal
from kubesync_local.plans.plan import Group, Line, Plan, Sign, some
from kubesync_local.plans.view import show_plan
from kubesync_local.registration.clusters import policy_of
from kubesync_local.registration.mistakes import Mistakes, WrongOptionsError
from kubesync_local.registration.named_upstreams import NamedRegistry
from kubesync_local.registration.templates import DEFAULT_TEMPLATE
from kubesync_local.terminal.asking import NOTHING_CHANGED, can_ask
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.people import note
from kubesync_local.workplace.workplace import Workplace


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the file asks for."""

    changes: tuple[Change, ...]
    removed: tuple[ClusterConfig, ...]

    @property
    def question(self) -> str:
        added = sum(change.before is None for change in self.changes)
        counts = (("add", added), ("change", len(self.changes) - added), ("remove", len(self.removed)))
        said = [f"{verb} {some(number, 'cluster')}" for verb, number in counts if number]
        text = f"{', '.join(said)}?"
        return text[0].upper() + text[1:]


def run(arguments: argparse.Namespace) -> int:
    """Show what changes, ask, write, and signal the running session. Returns 1 if only a part could be written."""
    work = Workplace()
    file = read_clusters_file(arguments.file)
    try:
        work.lease.bind(work.settings.deployment)
        wanted = _wanted(file, work, prune=arguments.prune)
    except KubesyncError:
        if not file.problems:  # what is wrong in the file itself is known without AWS
            raise
    if file.problems:
        return _refused(file)
    if not wanted.changes and not wanted.removed:
        remark(f"nothing to change: {some(len(file.entries), 'cluster')} as the file says")
        return 0
    plan = _plan(wanted, work)
    if arguments.dry_run:
        show_plan(plan)
        for change in wanted.changes:
            _remark_on(change, registered=change.before is not None)
        remark(f"{NOTHING_CHANGED}: this was a dry run")
        return 0
    if wanted.removed and not arguments.yes and not can_ask():
        names = ", ".join(config.name for config in wanted.removed)
        raise UsageError(
            f"--prune would remove {names}, and this is not a terminal: confirm with --yes; {NOTHING_CHANGED}"
        )
    if not file.entries and not arguments.yes:
        raise UsageError(
            f"the file names no cluster: --prune would remove all {len(wanted.removed)}; if you mean it, give --yes"
        )
    return _write(wanted, work, agree(plan, wanted.question, yes=arguments.yes, allowed=arguments.allow_deletions))


def _refused(file: ClustersFile) -> int:
    for problem in file.problems:
        remark(f"kubesync: {visible(problem)}")
    remark(f"kubesync: {some(len(file.problems), 'problem')}: {NOTHING_CHANGED}")
    return 2


def _wanted(file: ClustersFile, work: Workplace, *, prune: bool) -> _Wanted:
    """Compare the file with what is registered. What is wrong goes into ``file.problems``."""
    known = {config.name: config for config in work.clusters.all()}
    forms: list[tuple[Entry, Form | None, Form]] = []
    for entry in file.entries:
        try:
            config = known.get(entry.name)
            before = None if config is None else registered(_changeable(config, work), work)
            form = _form(entry, before, file, work)
            forms += [(entry, before, form)] if entry.name else []
        except WrongOptionsError as error:
            for mistake in error.mistakes:
                file.wrong(entry.line, f"{entry.title}: {mistake}")
        except UsageError as error:
            file.wrong(entry.line, f"{entry.title}: {error}")
    named = {entry.name for entry in file.entries}
    ours = [config for config in known.values() if config.shard == work.settings.shard and not config.deleting]
    removed = [config for config in ours if prune and config.name not in named]
    going = {config.name for config in removed}
    for config in removed:
        try:
            unless_referred_to(config.name, NamedRegistry(work.store))
        except UsageError as error:
            file.wrong(1, str(error))
    stay = [config for name, config in known.items() if name not in named | going]
    roles: dict[str, tuple[str, ZoneAccess | None]] = {}
    for position, (entry, before, form) in enumerate(forms):
        try:
            was = None if before is None else before.config
            refuse_clash(form.config, [*stay, *(earlier.config for _, _, earlier in forms[:position])], was)
            if was is not None and type(policy_of(was)) is not type(policy_of(form.config)):
                # Simple ones and others would wait for one another: only one cluster can have simple ones.
                refuse_clash(form.config, [config for name, config in known.items() if name not in going], was)
        except UsageError as error:
            file.wrong(entry.line, f"cluster {entry.name}: {error}")
        for zone_id, access in form.access.items():
            other, role = roles.setdefault(zone_id, (entry.name, access))
            if role != access:
                file.wrong(entry.line, f"cluster {entry.name}: zone {zone_id} has another role than at cluster {other}")
    changes = (Change(before, form) for _, before, form in forms if form is not before)
    return _Wanted(tuple(change for change in changes if change.before is None or change.settings), tuple(removed))


def _changeable(config: ClusterConfig, work: Workplace) -> ClusterConfig:
    if config.deleting:
        raise UsageError("it is being removed: apply the file again when `kubesync cluster list` no longer shows it")
    if config.shard != work.settings.shard:
        raise UsageError(f"it belongs to shard {config.shard}: set KUBESYNC_SHARD={config.shard}")
    return config


def _form(entry: Entry, before: Form | None, file: ClustersFile, work: Workplace) -> Form:
    """What a cluster of the file becomes; ``before`` itself if it is as registered. Raises WrongOptionsError with all mistakes."""
    wrong = Mistakes(every=True)
    for name in NEEDED:
        if name not in entry.options and name not in entry.unusable:
            wrong.add(f"{name} is missing")
    given = dict(entry.options)
    if entry.unusable & set(WAYS_IN) and "context" not in given:  # that it is not given would be no second mistake
        given.setdefault("server", "https://not-known.invalid")
    if entry.unusable or not entry.name:  # nothing is written: the server need not be asked
        given["endpoints_source"] = "endpointslices"
    for name in ("ca_file", "kubeconfig"):
        if name in given:
            given[name] = str(Path(file.path).parent / Path(given[name]).expanduser())
    if before is None:
        if not file.api_version:  # written for a release in which every new cluster had this one
            given.setdefault("template", DEFAULT_TEMPLATE)
        return read_form(arguments_of(entry.name or "x", given), work, wrong=wrong)
    known = options_of(before.config, before.access)
    given = {name: known[name] for name in OF_NEW_CLUSTERS} | with_known_external_ids(given, known)
    if given.get("endpoints_source", "auto") == "auto" and all(given.get(n) == known.get(n) for n in WAYS_IN):
        given["endpoints_source"] = known["endpoints_source"]
    if _plain(given, before.config) == _plain(known, before.config):
        return before
    return read_form(arguments_of(entry.name, given), work, before, wrong)


def _plain(options: Options, config: ClusterConfig) -> Options:
    """Options without those that say nothing."""
    found = {name: value for name, value in options.items() if not is_default(name, value)}
    if config.domain_filter == (config.domain,) and found.get("domain_filter") == [found.get("domain")]:
        del found["domain_filter"]
    return found


def _plan(wanted: _Wanted, work: Workplace) -> Plan:
    plan = Plan(quiet="no record set changes that the tables know of")
    for change in wanted.changes:
        plan += replace(change.plan(work), quiet=plan.quiet)
    for config in wanted.removed:
        removal = plan_of_removal(config, work.store)
        stays = "" if removal.kept is None else f": {removal.last_line}"
        gone = Group(f"cluster {config.name}: removed{stays}", (Line(Sign.DELETE, f"cluster {config.name}"),))
        plan += replace(Plan((gone,)) + removal, quiet=plan.quiet, kept=None)
    return plan


def _write(wanted: _Wanted, work: Workplace, confirmed: Mapping[str, int]) -> int:
    done: list[str] = []
    todo = [f"cluster {change.name}" for change in wanted.changes] + [f"removal of {c.name}" for c in wanted.removed]
    try:
        for change in wanted.changes:
            change.write(work, "cluster apply", confirmed)
            done.append(change.said)
        for config in wanted.removed:
            only_if = unless_referred_to(config.name, NamedRegistry(work.store))
            work.clusters.put(config.model_copy(update={"deleting": True}), only_if)
            note(work, config.name, "cluster apply", [("deleting", None, config.on_delete.value)])
            done.append(f"cluster {config.name} is being removed")
    except KubesyncError as error:
        return _half_done(done, todo[len(done) :], error, work)
    work.lease.signal()
    for line in done:
        remark(line)
    for change in wanted.changes:
        _remark_on(change)
    return 0


def _remark_on(change: Change, *, registered: bool = True) -> None:
    if change.after.decided:
        remark(f"note: cluster {change.name}: {change.after.decided}")
    remark_on(change.name, change.after.unanswered, registered=registered)


def _half_done(done: Sequence[str], left: Sequence[str], error: KubesyncError, work: Workplace) -> int:
    """Say what was written before the error, and what was not."""
    if done:
        work.lease.signal()
    for line in done:
        remark(line)
    remark(f"kubesync: {visible(str(error))}")
    remark(f"kubesync: not done: {', '.join(left)}; run the command again")
    return 1
