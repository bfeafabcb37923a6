r"""Text that came from outside, made harmless for a terminal. Everything that a command prints passes here.

Names, annotations, comments of zones, and messages of API servers and of AWS may hold characters that a terminal obeys (ESC and
other control characters), or that reorder or hide what stands beside them (bidirectional controls, invisible characters). They are
printed as Python or JSON would write them: ``\x1b``, ``\u202e``. Printing the result again changes nothing.

``visible``, ``readable``   before anything is measured, so that the widths of tables are right
``spelled``                 a name or value that a message quotes too: both look the same
``escaped_json``            JSON stays JSON: a program reads the same text
``EscapedStream``           behind all of them: standard output and standard error of every command
``output.EscapedConsole``   the same for rich, which writes colours to the terminal itself
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

# ``str.isprintable`` is false for control and format characters (C0, DEL, C1, bidirectional controls), for surrogates, for characters
# without a meaning yet and for all spaces but one. These print nothing and count as printable: Unicode's Default_Ignorable_Code_Point
# (DerivedCoreProperties.txt) and the blank of Braille.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def escaped(text: str) -> str:
    """Text without any character that a terminal obeys, or that hides or reorders others. Line feeds stay."""
    return _escaped(text, lambda c: ascii(c)[1:-1])


def escaped_json(document: str) -> str:
    r"""A JSON document with ``\uXXXX`` for the same characters: a program reads the same values."""
    import json  # only now: `kubesync --help` does without

    return _escaped(document, lambda c: json.dumps(c)[1:-1])


def visible(text: str) -> str:
    """The same on one line, with single spaces: a message from outside must not make a line of its own."""
    return escaped(" ".join(text.split()))


def spelled(text: str) -> str:
    r"""A name or value from outside, written as messages quote it, without the quotation marks: a line feed in it is ``\n``."""
    return repr(text)[1:-1]


def with_spelled_subjects(problems: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Problems for people: a subject is often quoted in the message beside it."""
    return [{**problem, "subject": spelled(problem["subject"])} for problem in problems]


def readable[T](value: T) -> T:
    """A document as people read it: ``visible`` for every string in it, at any depth. Keys stay."""
    return cast("T", _readable(value))


def _readable(value: Any) -> Any:
    match value:
        case str():
            return visible(value)
        case dict():
            return {key: _readable(each) for key, each in value.items()}
        case list() | tuple():
            return [_readable(each) for each in value]
    return value


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    lines = text.split("\n")
    return "\n".join(
        line if _harmless(line) else "".join(c if _harmless(c) else escape(c) for c in line) for line in lines
    )


def _harmless(text: str) -> bool:
    return text.isprintable() and _INVISIBLE.search(text) is None


class EscapedStream:
    """A stream of text that escapes whatever is written to it. Everything else is the wrapped stream's."""

    def __init__(self, wrapped: TextIO) -> None:
        self.wrapped = wrapped

    def write(self, text: str) -> int:
        self.wrapped.write(escaped(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)


def unescaped(stream: TextIO) -> TextIO:
    """The stream behind an ``EscapedStream``, for a console that escapes by itself."""
    return stream.wrapped if isinstance(stream, EscapedStream) else stream


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Within the block standard output and standard error are escaped, whoever writes: logs, warnings and tracebacks too."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", EscapedStream(unescaped(stream))) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
