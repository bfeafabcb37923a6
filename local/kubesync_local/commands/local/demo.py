"""``kubesync demo``: start the stand-ins, play, show, compare."""

from __future__ import annotations

import argparse
import signal
from types import FrameType
from typing import NoReturn

from kubesync_local.terminal.logs import set_up_logs
from kubesync_local.terminal.output import new_console
from kubesync_local.terminal.signals import handled


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


def _ended_by(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
