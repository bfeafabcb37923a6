"""``kubesync local down``: ends the ``kubesync local up`` that runs in a directory of state, and no other process."""

import argparse
import os
from typing import Final

from kubesync_local.commands.local.running import state_directory
from kubesync_local.terminal.output import remark

_SECONDS: Final = 20.0


def run(arguments: argparse.Namespace) -> int:
    """End it. Nothing to end is no failure.

    Raises:
        RunningError: it does not end.
    """
    ended = state_directory(arguments.dir, os.environ).end(_SECONDS)
    remark("kubesync local up does not run" if ended is None else f"ended (process {ended.pid}); nothing was kept")
    return 0
