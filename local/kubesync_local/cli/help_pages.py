"""What ``kubesync help`` prints: commands in groups, and an example with each command."""

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from kubesync.domain.errors import UsageError
from kubesync_local.cli.examples import EXAMPLES
from kubesync_local.cli.parser import EXAMPLE, Commands, OneLineParser, commands_of, short_texts
from kubesync_local.terminal.remarks import columns

GROUPS: Final = (
    ("Try it on this machine", ("demo", "local", "setup")),
    ("Look before you publish", ("lint", "plan")),
    ("Watch and publish", ("session", "run", "resync", "recover", "wait", "render", "pause", "resume")),
    ("See what is there", ("status", "records", "upstreams", "explain", "errors", "audit", "doctor", "ui")),
    ("Clusters and named upstreams", ("cluster", "upstream")),
    ("The command itself", ("help", "completion")),
)
"""Title, and the commands in the order of the page. A command that stands in no group comes last."""
_OTHER: Final = "More"
_NAME_WIDTH: Final = 12
_NARROWEST: Final = 40


class GroupedParser(OneLineParser):
    """The whole command line: its help lists the commands in groups."""

    def format_help(self) -> str:
        """Called by argparse."""
        width = max(_NARROWEST, columns(sys.stdout) - 2)
        lines = ["usage: kubesync COMMAND [OPTION ...]", "", *textwrap.wrap(self.description or "", width)]
        found = short_texts(self)
        grouped = {name for _, names in GROUPS for name in names}
        for title, names in (*GROUPS, (_OTHER, tuple(name for name in found if name not in grouped))):
            if shown := [name for name in names if name in found]:
                lines += ["", f"{title}:", *(line for name in shown for line in _command(name, found[name], width))]
        lines += ["", "Options:", *_command("-h, --help", "show this page", width)]
        lines += [*_command("--version", "show the version", width), ""]
        return "\n".join([*lines, *textwrap.wrap(self.epilog or "", width, break_on_hyphens=False), ""])


def add_help_command(commands: Commands) -> None:
    """``kubesync help``."""
    command = commands.add_parser(
        "help",
        help="this page, or the page of one command",
        description="Prints the list of commands, or the page of one command: the same as --help.",
    )
    command.add_argument("words", nargs="*", metavar="COMMAND", help="such as status, or cluster add")


def show_examples(parser: argparse.ArgumentParser) -> None:
    """Give every command that is added already its example."""
    for words, command in pages(parser):
        if example := EXAMPLES.get(words):
            command.epilog = f"{EXAMPLE}\n  {example}"


def pages(parser: argparse.ArgumentParser, above: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command and each group by its words: ``cluster``, ``cluster add``."""
    commands = commands_of(parser)
    for name, command in commands.choices.items() if commands is not None else ():
        words = f"{above} {name}".strip()
        yield words, command
        yield from pages(command, words)


def show_help(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Print the page of a command on standard output.

    Raises:
        UsageError: there is no such command.
    """
    named = " ".join(words)
    known = {"": parser, **dict(pages(parser))}
    if named not in known:
        # The parser knows what is meant, and says so.
        first = [word for word in words[:2] if not word.startswith("-")]
        parser.parse_known_args(first)
        raise UsageError(f"there is no command {named!r}; see `kubesync help`")
    sys.stdout.write(known[named].format_help())
    return 0


def _command(name: str, text: str, width: int) -> list[str]:
    indent = " " * (_NAME_WIDTH + 4)
    return textwrap.wrap(
        text, width, initial_indent=f"  {name:<{_NAME_WIDTH}}  ", subsequent_indent=indent, break_on_hyphens=False
    )
