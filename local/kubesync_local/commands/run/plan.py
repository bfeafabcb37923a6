"""``kubesync plan``: what a resync would change, for people; or what manifests would change.

--cluster         who compares
---------         ------------
a disabled one    this process: it only looks (``workplace.looking``)
others, or none   the running session; without one this process, with the lease
-f FILE           nobody: the tables say what there is
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.errors import UsageError
from kubesync.operations.resync_invocation import ResyncEvent
from kubesync_local.commands.run.resync import remark_on, report_of
from kubesync_local.plans.markdown import markdown_of
from kubesync_local.plans.of_report import plan_of_report
from kubesync_local.plans.of_state import plan_of_removal
from kubesync_local.plans.plan import Plan, zone_titles
from kubesync_local.plans.view import show_plan
from kubesync_local.sessions.looking import compared
from kubesync_local.terminal.output import print_document, remark
from kubesync_local.workplace.looking import Look
from kubesync_local.workplace.workplace import NO_CLUSTERS, Workplace

SOMETHING_TO_DO: Final = 3
"""The exit status with --exit-code: neither failed (1) nor wrong use (2)."""


def run(arguments: argparse.Namespace) -> int:
    """Show the plan. Returns 1 if a cluster could not be compared; with --exit-code 3 if something is to be done."""
    work = Workplace()
    chosen = work.chosen(arguments.cluster)
    if not chosen:
        raise UsageError(NO_CLUSTERS)
    if arguments.files:
        plan = _of_manifests(arguments, chosen, work)
        report = None
    else:
        report = _report(arguments, chosen, work)
        plan = plan_of_report(report, zone_titles(work.clusters.all()))
        for config in chosen:
            if config.deleting:
                plan += _removal(config, work)
    _show(plan, report, arguments.output)
    if plan.errors:
        return 1
    return SOMETHING_TO_DO if arguments.exit_code and not plan.empty else 0


def _report(arguments: argparse.Namespace, chosen: Sequence[ClusterConfig], work: Workplace) -> dict[str, Any]:
    if arguments.cluster and chosen[0].paused:
        look = Look(work)
        look.enable(chosen[0], {})
        remark(f"cluster {arguments.cluster} is disabled: this is what enabling it would change")
        return compared(look, arguments.cluster, force=arguments.force)
    if left_out := ", ".join(config.name for config in chosen if config.paused):
        remark(f"left out, because they are disabled: {left_out}; `kubesync plan --cluster NAME` compares one")
    wanted = ResyncEvent(cluster=arguments.cluster, dry_run=True, force=arguments.force)
    return report_of(work, wanted, arguments.timeout)


def _of_manifests(arguments: argparse.Namespace, chosen: Sequence[ClusterConfig], work: Workplace) -> Plan:
    from kubesync_local.commands.run.plan_of_manifests import QUIET, plan_of_manifests
    from kubesync_local.documents.lint_report import Given
    from kubesync_local.documents.manifests import read_manifests

    if arguments.output not in ("table", "markdown"):
        raise UsageError(
            "-f makes a plan for people: give -o table or -o markdown; `kubesync lint -f FILE -o json` is for programs"
        )
    if arguments.force:
        raise UsageError("--force is about deletions that are held back: leave it out with -f")
    manifests = read_manifests(arguments.files)
    given = [Given(each.place, each.resource, each.value) for each in manifests if each.resource is not None]
    plan = Plan(quiet=QUIET)
    for config in chosen:
        if not config.deleting:
            plan += plan_of_manifests(given, arguments.namespace, config, work.store, work.now())
    return plan


def _show(plan: Plan, report: dict[str, Any] | None, output: str) -> None:
    if output == "markdown":
        sys.stdout.write(markdown_of(plan))
    elif output == "table":
        show_plan(plan)
    else:
        assert report is not None, "plans of manifests have no JSON"
        remark_on(report)
        print_document(report, output)


def _removal(config: ClusterConfig, work: Workplace) -> Plan:
    """What the removal of a cluster still deletes: no resync compares the cluster any more."""
    plan = plan_of_removal(config, work.store)
    if plan.kept is not None:
        return Plan(notes=(f"{config.name} is being removed: {plan.last_line}",))
    return replace(plan, notes=(f"{config.name} is being removed: the next session deletes what is left of it",))
