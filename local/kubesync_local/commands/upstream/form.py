"""Reads the arguments of ``kubesync upstream``: members with their options, and holders."""

import argparse
import re
from collections.abc import Callable
from typing import Final

from kubesync.domain.errors import UsageError
from kubesync.domain.upstreams.named import (
    MAX_WEIGHT,
    Member,
    MemberSource,
    NamedOf,
    parse_service,
    parse_static,
    valid_name,
)

# A semicolon means the same as a comma, but a shell needs it quoted.
_SEPARATOR: Final = re.compile("[,;]")
_HOLDER: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,98}[\x21-\x7e])?")


def read_members(arguments: argparse.Namespace) -> tuple[Member, ...]:
    """Members in the order of the options: Services, other named upstreams, static nodes.

    Raises:
        UsageError: a member has another form.
    """
    return (
        *(read_member("--service", text, parse_service) for text in arguments.service),
        *(read_member("--upstream", text, _parse_name) for text in arguments.upstream),
        *(read_member("--static", text, parse_static) for text in arguments.static),
    )


def read_member(option: str, text: str, parse: Callable[[str], MemberSource]) -> Member:
    """``SOURCE[,weight=N][,backup]``. Raises UsageError."""
    source, *rest = _SEPARATOR.split(text)
    names = [word.partition("=")[0] for word in rest]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{option} {text!r}: {name} is given twice")
    weight, backup = 1, False
    for word in rest:
        name, equals, value = word.partition("=")
        if name == "weight" and equals:
            weight = _weight(option, value)
        elif word == "backup":
            backup = True
        else:
            raise UsageError(f"{option} {text!r}: {word!r} is neither weight=N nor backup")
    try:
        return Member(parse(source), weight, backup)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None


def read_holder(text: str) -> str:
    """The name of a holder, for people: printable ASCII. Raises UsageError."""
    if _HOLDER.fullmatch(text) is None:
        raise UsageError("--by: give 1 to 100 printable ASCII characters, without a space at either end")
    return text


def _weight(option: str, text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
    if not 1 <= number <= MAX_WEIGHT:
        raise UsageError(f"{option}: weight {text!r} is not a whole number from 1 to {MAX_WEIGHT}")
    return number


def _parse_name(text: str) -> NamedOf:
    if not valid_name(text):
        raise ValueError(f"{text!r} is not a name: use lower-case letters, digits and hyphens, at most 63")
    return NamedOf(text)
