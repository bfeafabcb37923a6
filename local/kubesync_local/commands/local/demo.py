"""``kubesync demo``."""

from __future__ import annotations

import argparse

from kubesync_local.terminal.logs import set_up_logs
from kubesync_local.terminal.output import new_console


def run(arguments: argparse.Namespace) -> int:
    """Play the demo; moto is imported only here."""
    set_up_logs()
    from kubesync_local.demo.run import run_demo

    return run_demo(new_console(), fast=arguments.fast)
