"""``kubesync demo``: start the stand-ins, play, show, compare."""

from __future__ import annotations

import argparse
import signal
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from rich.console import Console

from kubesync_local.terminal.logs import set_up_logs
from kubesync_local.terminal.output import new_console
from kubesync_local.terminal.signals import handled

if TYPE_CHECKING:
    from kubesync_local.demo.stack import DemoStack  # it imports moto, which takes half a second


def run(arguments: argparse.Namespace) -> int:
    """Play once. Returns 0 only if the result is exactly as expected."""
    set_up_logs()  # before kubesync is imported: its modules make their loggers then
    from kubesync_local.demo import expected
    from kubesync_local.demo.play import FAST, USUAL, Play, before_the_story
    from kubesync_local.demo.screen import showing
    from kubesync_local.demo.stack import ZONE, Place, demo_stack
    from kubesync_local.demo.verdict import differences, show_tables, show_verdict

    console = new_console()
    with demo_stack(Place(sources=("service", "ingress"))) as stack:
        before_the_story(stack)
        _show_first_plan(console, stack)
        play = Play(stack, FAST if arguments.fast else USUAL)
        came: list[int] = []

        def stop(number: int, _frame: FrameType | None) -> NoReturn:
            came.append(number)
            play.stop()
            raise _ended_by(number)

        with handled(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP), showing(play.board, console):
            outcome = play.run()
        if came:  # Python drops what a handler raises within a destructor, or while a module is imported
            raise _ended_by(came[0])
    problems = differences(outcome.records, outcome.upstreams, expected.RECORDS, expected.UPSTREAMS)
    if play.board.hand_over_seconds is None:
        problems.append("the second session did not take over during the story")
    show_tables(console, outcome, ZONE)
    show_verdict(console, play.board, outcome, problems)
    return 1 if problems or outcome.failures else 0


def _show_first_plan(console: Console, stack: DemoStack) -> None:
    """What the first session will write: an Ingress and the API server's own Service are there already."""
    from kubesync_local.plans.of_report import plan_of_report
    from kubesync_local.plans.plan import zone_titles
    from kubesync_local.plans.view import show_plan
    from kubesync_local.workplace.looking import Look
    from kubesync_local.workplace.workplace import Workplace

    deployment = stack.place.deployment
    work = Workplace(deployment=deployment, table_prefix=f"kubesync-{deployment}")
    look = Look(work)
    report = look.compared(look.session(lambda _what, _details: None), "")
    console.print("before the first session, as `kubesync plan` shows it:", style="bold", markup=False)
    show_plan(plan_of_report(report, zone_titles(work.clusters.all())))
    console.print()


def _ended_by(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
