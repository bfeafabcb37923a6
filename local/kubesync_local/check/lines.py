"""Steps of a check as lines for people."""

import shutil
import sys
import textwrap
from typing import Final

from kubesync_local.check.step import Step
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import print_line

_RESULT_WIDTH: Final = 9
_STEP_WIDTH: Final = 22


def show(step: Step) -> None:
    """One line in a pipe; on a terminal the text is folded under its column."""
    code = f"{step.code.key} ({int(step.code)}): " if step.code is not None else ""
    text = visible(f"{code}{step.details}{f'; {step.advice}' if step.advice else ''}")
    head = f"{step.result.value:<{_RESULT_WIDTH}}{visible(step.name):<{_STEP_WIDTH}}"
    if len(head) > _RESULT_WIDTH + _STEP_WIDTH:
        head += " "
    lines = [head + text]
    if sys.stdout.isatty():
        width = max(60, shutil.get_terminal_size().columns)
        indent = " " * (_RESULT_WIDTH + _STEP_WIDTH)
        lines = textwrap.wrap(
            head + text, width, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False
        )
    for line in lines:
        print_line(line)
