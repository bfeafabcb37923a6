"""``kubesync plan``: what a resync would change, for people. Without a running session it takes the lease while it compares."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.errors import UsageError
from kubesync.operations.resync_invocation import ResyncEvent
from kubesync_local.commands.run.resync import remark_on, report_of
from kubesync_local.plans.of_report import plan_of_report
from kubesync_local.plans.of_state import plan_of_removal
from kubesync_local.plans.plan import Plan, zone_titles
from kubesync_local.plans.view import show_plan
from kubesync_local.terminal.output import print_document
from kubesync_local.workplace.workplace import NO_CLUSTERS, Workplace

SOMETHING_TO_DO: Final = 3
"""The exit status with --exit-code: neither failed (1) nor wrong use (2)."""


def run(arguments: argparse.Namespace) -> int:
    """Show the plan. Returns 1 if a cluster could not be compared; with --exit-code 3 if something is to be done."""
    work = Workplace()
    if not work.chosen(arguments.cluster):
        raise UsageError(NO_CLUSTERS)
    wanted = ResyncEvent(cluster=arguments.cluster, dry_run=True, force=arguments.force)
    report = report_of(work, wanted, arguments.timeout)
    plan = plan_of_report(report, zone_titles(work.clusters.all()))
    for config in work.chosen(arguments.cluster):
        if config.deleting:
            plan += _removal(config, work)
    if arguments.output != "table":
        remark_on(report)
        print_document(report, arguments.output)
    else:
        show_plan(plan)
    if plan.errors:
        return 1
    return SOMETHING_TO_DO if arguments.exit_code and not plan.empty else 0


def _removal(config: ClusterConfig, work: Workplace) -> Plan:
    """What the removal of a cluster still deletes: no resync compares the cluster any more."""
    plan = plan_of_removal(config, work.store)
    if plan.kept is not None:
        return Plan(notes=(f"{config.name} is being removed: {plan.last_line}",))
    return replace(plan, notes=(f"{config.name} is being removed: the next session deletes what is left of it",))
