"""``kubesync completion``: a script for the shell. shtab writes it from the parser, so that it knows every command and option."""

import argparse
import sys
from typing import Final

from kubesync.domain.errors import UsageError
from kubesync_local.cli.help_pages import pages
from kubesync_local.cli.parser import Commands, short_texts

_SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = frozenset({"FILE", "DIR"})


def add_completion_command(commands: Commands) -> None:
    """``kubesync completion``."""
    command = commands.add_parser(
        "completion",
        help="a script that completes commands and options in your shell",
        description="Prints a script for the shell. It completes commands, options and their fixed values, and reads nothing from AWS. "
        "For zsh: write it to a file named _kubesync in a folder of $fpath. For fish: pipe it into `source`.",
    )
    command.add_argument("shell", metavar="SHELL", choices=_SHELLS, help=", ".join(_SHELLS))


def show_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the script on standard output.

    Raises:
        UsageError: shtab is not installed.
    """
    try:
        import shtab
    except ImportError:
        raise UsageError("completion needs the Python package shtab, which is not installed here") from None
    _prepare(parser, shtab.FILE)
    _offer_commands(parser)
    sys.stdout.write(shtab.complete(parser, shell) + "\n")
    return 0


def _prepare(parser: argparse.ArgumentParser, files: object) -> None:
    """Options that take a file complete files. Beside a command stands its short text, not the whole description of its page."""
    for name, text in short_texts(parser).items():
        (command,) = (found for words, found in pages(parser) if words == name)
        command.description = text
        _prepare(command, files)
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way
        if action.metavar in _FILES:
            action.complete = files  # type: ignore[attr-defined]


def _offer_commands(parser: argparse.ArgumentParser) -> None:
    """``kubesync help`` completes commands. The parser itself takes any word there: it then says which one is meant."""
    known = dict(pages(parser))
    for action in known["help"]._actions:  # noqa: SLF001
        if action.dest == "words":
            action.choices = [words for words in known if " " not in words]
