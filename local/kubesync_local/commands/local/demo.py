"""``kubesync demo``: start the stand-ins, play, show, compare."""

from __future__ import annotations

import argparse

from kubesync_local.terminal.logs import set_up_logs
from kubesync_local.terminal.output import new_console


def run(arguments: argparse.Namespace) -> int:
    """Play once. Returns 0 only if the result is exactly as expected."""
    set_up_logs()  # before kubesync is imported: its modules make their loggers then
    from kubesync_local.demo import expected
    from kubesync_local.demo.play import FAST, USUAL, Play
    from kubesync_local.demo.screen import showing
    from kubesync_local.demo.stack import ZONE, demo_stack
    from kubesync_local.demo.verdict import differences, show_tables, show_verdict

    console = new_console()
    with demo_stack() as stack:
        play = Play(stack, FAST if arguments.fast else USUAL)
        with showing(play.board, console):
            outcome = play.run()
    problems = differences(outcome.records, outcome.upstreams, expected.RECORDS, expected.UPSTREAMS)
    if play.board.hand_over_seconds is None:
        problems.append("the second session did not take over during the story")
    show_tables(console, outcome, ZONE)
    show_verdict(console, play.board, outcome, problems)
    return 1 if problems or outcome.failures else 0
