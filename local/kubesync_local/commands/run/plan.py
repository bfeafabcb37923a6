"""``kubesync plan``: what a resync would change, for people; nothing is changed."""

from __future__ import annotations

import argparse
from typing import Final

from kubesync.domain.errors import UsageError
from kubesync.operations.resync_invocation import ResyncEvent
from kubesync_local.commands.run.resync import remark_on, report_of
from kubesync_local.plans.of_report import plan_of_report
from kubesync_local.plans.plan import zone_titles
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
    if arguments.output != "table":
        remark_on(report)
        print_document(report, arguments.output)
    else:
        show_plan(plan)
    if plan.errors:
        return 1
    return SOMETHING_TO_DO if arguments.exit_code and not plan.empty else 0
