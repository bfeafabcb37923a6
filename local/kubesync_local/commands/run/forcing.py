"""The question before a forced resync: the plan of a dry run, and a second look where the answer took long.

the plan                                      what happens
--------                                      ------------
could not compare a cluster                   refused: what is deleted there cannot be shown
has nothing to do                             the resync runs without a question
is answered within ``FRESH_SECONDS``          the resync runs
is answered later, and deletes nothing more   the resync runs
is answered later, and deletes more           it is shown again, and asked again
"""

from collections.abc import Callable
from typing import Any, Final

from kubesync.domain.errors import KubesyncError
from kubesync_local.plans.of_report import plan_of_report
from kubesync_local.plans.plan import Plan, zone_titles
from kubesync_local.plans.view import show_for_question
from kubesync_local.terminal.asking import NOTHING_CHANGED, confirm
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.workplace import Workplace

FRESH_SECONDS: Final = 5.0
"""A plan that is older is made again before anything is deleted."""


class UnknownPlanError(KubesyncError):
    """What would be deleted cannot be shown. Nothing was changed."""


def agree(work: Workplace, dry_run: Callable[[], dict[str, Any]]) -> None:
    """Show what a forced resync would do, and ask.

    Raises:
        DeclinedError: the answer is no.
        UnknownPlanError: a cluster could not be compared.
    """
    clock, titles = work.application.scheduler, zone_titles(work.clusters.all())
    plan = _planned(dry_run, titles)
    while True:
        show_for_question(plan)
        if not plan.numbers:
            return
        shown_at = clock.monotonic()
        confirm(plan.question)
        if clock.monotonic() - shown_at <= FRESH_SECONDS:
            return
        remark("the answer took long: comparing again")
        shown, plan = plan, _planned(dry_run, titles)
        if plan.deletes_within(shown):
            return
        remark("more would be deleted now than was shown")


def _planned(dry_run: Callable[[], dict[str, Any]], titles: dict[str, str]) -> Plan:
    plan = plan_of_report(dry_run(), titles)
    if plan.errors:
        raise UnknownPlanError(
            f"{'; '.join(plan.errors)}: what would be deleted there cannot be shown, and {NOTHING_CHANGED}; choose another cluster "
            "with --cluster NAME, or give --yes"
        )
    return plan
