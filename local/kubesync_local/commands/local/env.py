"""``kubesync local env``: the exports of a running ``kubesync local up``, for a shell to evaluate."""

import argparse
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubesync_local.commands.local.running import RunningError, state_directory
from kubesync_local.terminal.output import print_line


def _fish(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _powershell(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


_FORMS: Final[Mapping[str, Callable[[str, str], str]]] = {
    "sh": lambda name, value: f"export {name}={shlex.quote(value)}",
    "fish": lambda name, value: f"set -gx {name} {_fish(value)}",
    "powershell": lambda name, value: f"$env:{name} = {_powershell(value)}",
}
"""Shell to the line that sets a variable. The command line offers these names."""


def export_lines(exports: Mapping[str, str], shell: str) -> Iterator[str]:
    """One line for each variable, in the shell's own words and quotes."""
    return (_FORMS[shell](name, value) for name, value in exports.items())


def run(arguments: argparse.Namespace) -> int:
    """Print them.

    Raises:
        RunningError: nothing runs.
    """
    directory = state_directory(arguments.dir, os.environ)
    found = directory.running()
    if found is None:
        raise RunningError(
            "kubesync local up does not run, or is not ready: "
            f"start it with `kubesync local up --detach{directory.option}`"
        )
    for line in export_lines(found.exports, arguments.shell):
        print_line(line)
    return 0
