"""An argparse parser that reports each error in one line, and the types of its arguments."""

import argparse
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, NoReturn

from kubesync.domain.errors import UsageError
from kubesync_local.terminal.remarks import columns

EXAMPLE: Final = "example:"
_CHOICE: Final = re.compile(
    r"argument (?P<argument>\S+): invalid choice: '(?P<given>.*?)' \(choose from (?P<known>.*)\)", re.DOTALL
)
_HYPHENED: Final = re.compile(r"-[^-0-9.]")
_DURATION: Final = re.compile(r"(?:\d{1,6}[smhdw])+")
_DAYS: Final = {"today": 0, "yesterday": 1}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MAX_TTL: Final = 2147483647  # RFC 2181 section 8
# How alike two options are of which one is a slip of the other: --domian and --domain, not --slow and --fast.
_SAME_WORD: Final = 0.8
_OTHER_WORDS: Final = {"delete": "remove", "rm": "remove"}


class _Page(argparse.HelpFormatter):
    """argparse's own, but an example keeps its line. argparse makes one for each option, and would load ``shutil`` for its width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns(sys.stdout) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(EXAMPLE) else super()._fill_text(text, width, indent)


class OneLineParser(argparse.ArgumentParser):
    """Raises UsageError with one line where argparse would print the usage and exit."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": _Page, **settings})  # type: ignore[arg-type]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Called by argparse. A misspelt option is named before what it leaves missing."""
        if commands_of(self) is None:
            self._refuse_misspelt(args or ())
            self._refuse_hyphens(args or ())
        return super().parse_known_args(args, namespace)

    def _refuse_misspelt(self, arguments: Sequence[str]) -> None:
        known = [option for option in self._option_string_actions if option.startswith("--")]
        for argument in arguments:
            option = argument.partition("=")[0]
            if option == "--":
                return
            if not option.startswith("--") or option in known:
                continue
            import difflib  # only now: a command whose options are right does without

            if close := difflib.get_close_matches(option, known, n=1, cutoff=_SAME_WORD):
                self.error(f"unknown option {option}; did you mean {close[0]}?")

    def _refuse_hyphens(self, arguments: Sequence[str]) -> None:
        """A value such as -reg is an option for argparse, which only says that the value is missing."""
        for option, value in pairwise(arguments):
            action = self._option_string_actions.get(option)
            takes = isinstance(action, argparse._StoreAction | argparse._AppendAction) and action.nargs is None  # noqa: SLF001
            if takes and _HYPHENED.match(value) and value[:2] not in self._option_string_actions:
                self.error(f"argument {option}: a value that begins with a hyphen is written {option}={value}")

    def error(self, message: str) -> NoReturn:
        """Called by argparse for every error."""
        said = _readable(message)
        raise UsageError(
            f"{said} See `{self.prog} --help`" if said.endswith("?") else f"{said}; see `{self.prog} --help`"
        )


type Commands = argparse._SubParsersAction[OneLineParser]  # noqa: SLF001 - argparse has no public name for it
"""Where a command is added."""


def commands_of(parser: argparse.ArgumentParser) -> Commands | None:
    """Where a parser's commands were added; None: it has none."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return action
    return None


def short_texts(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The short text of each command of a parser, by its name."""
    commands = commands_of(parser)
    return {each.dest: each.help or "" for each in commands._get_subactions()} if commands is not None else {}  # noqa: SLF001


def _readable(message: str) -> str:
    choice = _CHOICE.fullmatch(message)
    if choice is None:
        return " ".join(message.split())
    known = [name.strip(" '") for name in choice["known"].split(",")]
    import difflib  # only now: `kubesync --help` does without

    close = difflib.get_close_matches(choice["given"], known, n=1)
    what = {"COMMAND": "command", "ACTION": "action"}.get(choice["argument"])
    if what is not None and close:
        return f"unknown {what} '{choice['given']}'; did you mean {close[0]}?"
    meant = f", did you mean {close[0]}?" if close else ""
    return f"{what or choice['argument']} '{choice['given']}' is not one of {', '.join(known)}{meant}"


class ShowVersion(argparse.Action):
    """Reads the version only when it is needed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        sys.stdout.write(f"kubesync {installed_version() or '(a checkout that is not installed)'}\n")
        parser.exit()


def installed_version() -> str | None:
    """None: a checkout that is not installed."""
    from importlib import metadata

    try:
        return metadata.version("kubesync")
    except metadata.PackageNotFoundError:
        return None


def refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse empty arguments: an unset variable in a script must not mean all clusters.

    Raises:
        UsageError: an argument is empty; the message names its option, if it has one.
    """
    for before, argument in zip(("", *arguments), arguments, strict=False):
        option = before if not argument and before.startswith("--") else argument.removesuffix("=")
        if argument and not (argument.startswith("--") and argument.endswith("=") and argument.count("=") == 1):
            continue
        if option.startswith("--"):
            raise UsageError(f"{option} is empty: give it a value, or leave it out")
        raise UsageError("an argument is empty: give it a value")


def in_known_words(arguments: Sequence[str]) -> list[str]:
    """The arguments with the words of other tools replaced: `cluster delete` and `cluster rm` are `cluster remove`."""
    found = list(arguments)
    for number, group in enumerate(found[:2]):
        if group in ("cluster", "upstream") and number + 1 < len(found) and found[:number] in ([], ["help"]):
            found[number + 1] = _OTHER_WORDS.get(found[number + 1], found[number + 1])
    return found


def refuse_early_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Refuse an option before the command or action that it belongs to: argparse would take its value for the command.

    Raises:
        UsageError: the message names the option.
    """
    here, what, example = parser, "command", ", as in `kubesync status -o json`"
    for argument in arguments[:-1]:  # behind the last one stands no command
        commands = commands_of(here)
        if commands is None:
            return
        if argument in commands.choices:
            here, what = commands.choices[argument], "action"
            example = f", as in `kubesync {argument} list -o json`" if argument in ("cluster", "upstream") else ""
            continue
        option = argument.partition("=")[0]
        if option.strip("-") and option.startswith("-") and option not in here._option_string_actions:  # noqa: SLF001
            raise UsageError(
                f"{option} stands before the {what}: options come after it{example}; see `{here.prog} --help`"
            )
        return


def positive(text: str) -> float:
    """Seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and up to 86400")
    return value


def shard_id(text: str) -> str:
    """A shard, as ``Settings`` takes it."""
    if not re.fullmatch(r"[a-z0-9]{1,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 to 8 lower-case letters and digits")
    return text


def whole(text: str, most: int, least: int = 1) -> int:
    """A whole number."""
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
    return int(text)


def count(text: str) -> int:
    """A TTL or another count: 1 to 2147483647."""
    return whole(text, _MAX_TTL)


def limit(text: str) -> int:
    """A limit of how many: 0 to 2147483647."""
    return whole(text, _MAX_TTL, 0)


class Moment(NamedTuple):
    """A moment: seconds before now, the beginning of a day in UTC so many days ago, or an epoch time."""

    seconds_ago: float | None = None
    at: float = 0.0
    days_ago: int | None = None

    def epoch(self, now: float) -> float:
        """In seconds since 1970."""
        if self.days_ago is not None:
            return (now // _SECONDS["d"] - self.days_ago) * _SECONDS["d"]
        return self.at if self.seconds_ago is None else max(0.0, now - self.seconds_ago)


def moment(text: str) -> Moment:
    """A duration before now (``2h``, ``1d12h``), ``today`` or ``yesterday``, or a time in ISO form (default: UTC)."""
    if text in _DAYS:
        return Moment(days_ago=_DAYS[text])
    if _DURATION.fullmatch(text):
        ago = sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)([smhdw])", text))
        return Moment(seconds_ago=float(ago))
    from datetime import UTC, datetime  # only now: `kubesync --help` does without

    try:
        given = datetime.fromisoformat(text)
        at = (given if given.tzinfo is not None else given.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        at = -1.0
    if at < 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a duration such as 90m, 2h or 1d12h, nor today or yesterday, nor a time such as 2026-01-31T08:00:00Z"
        )
    return Moment(at=at)


def days(text: str) -> Moment:
    """Days to look back."""
    return Moment(seconds_ago=86_400.0 * whole(text, 3_660))


def add_output(command: argparse.ArgumentParser, default: str | None = "table", others: tuple[str, ...] = ()) -> None:
    """``--output table|json|yaml`` and ``others``. ``default``: None if it depends on where the output goes."""
    command.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml", *others),
        default=default,
        help=f"form of the output (default: {default or 'table on a terminal, json elsewhere'})",
    )


def add_sort(command: argparse.ArgumentParser, columns: Sequence[str]) -> None:
    """``--sort COLUMN``, of a list."""
    command.add_argument("--sort", choices=columns, metavar="COLUMN", help=f"sort the rows by {', '.join(columns)}")


def add_namespace(command: argparse.ArgumentParser) -> None:
    """``-n NS`` and ``-A``, as kubectl has them, of a list."""
    where = command.add_mutually_exclusive_group()
    where.add_argument("-n", "--namespace", metavar="NS", default="", help="only objects of this namespace")
    where.add_argument("-A", "--all-namespaces", action="store_true", help="objects of all namespaces (the default)")


def add_selector(command: argparse.ArgumentParser) -> None:
    """``-l LABELS``, as kubectl has it, of a list."""
    command.add_argument(
        "-l",
        "--selector",
        metavar="LABELS",
        default="",
        help="only objects with these labels now, such as app=web; asks the API servers",
    )


def add_yes(command: argparse.ArgumentParser, otherwise: str) -> None:
    """``--yes``. ``otherwise``: what happens without it."""
    command.add_argument("--yes", action="store_true", help=f"do not ask (default: {otherwise})")


def add_allow_deletions(command: argparse.ArgumentParser) -> None:
    """``--allow-deletions``."""
    command.add_argument(
        "--allow-deletions", metavar="N", type=limit, default=None,
        help="confirm that up to N record sets are deleted: needed where nobody is asked and more than 30%% of 10 or more would go",
    )  # fmt: skip
