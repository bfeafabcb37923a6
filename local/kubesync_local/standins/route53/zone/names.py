r"""Domain names as Route 53 reads, stores, lists and orders them.

https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DomainNameFormat.html: labels of 1 to 63 bytes; 255 bytes in
all; printable ASCII may be written as it is, anything else as ``\ooo`` (octal); letters are stored in lower case, also
when escaped; answers escape everything but a-z, 0-9, ``-`` and ``_``.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

_ESCAPE = re.compile(r"\\([0-3][0-7]{2})")
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_MAX_LABEL_BYTES = 63
# RFC 1035 section 2.3.4 counts a length byte per label and the root.
_MAX_NAME_BYTES = 255


class NameRefusedError(ValueError):
    """The name is not valid; the message has the form of Route 53's ``FATAL problem``."""

    def __init__(self, problem: str, explanation: str, written: str) -> None:
        super().__init__(f"FATAL problem: {problem} ({explanation}) encountered with '{written}'")


@lru_cache(maxsize=100_000)
def listing_form(written: str) -> str:
    """The name as Route 53 lists it: lower case, escaped, trailing dot.

    Raises:
        NameRefusedError: empty or over-long label, over-long name, or characters that must be escaped.
    """
    labels = _labels(written)
    return "".join(_escape(label) + "." for label in labels)


def _labels(written: str) -> list[bytes]:
    text = written.removesuffix(".")
    labels = [_unescape(label, written) for label in text.split(".")]
    if any(not label for label in labels):
        raise NameRefusedError("DomainLabelEmpty", "Domain label is empty", written)
    if any(len(label) > _MAX_LABEL_BYTES for label in labels):
        raise NameRefusedError("DomainLabelTooLong", "Domain label is too long", written)
    if sum(len(label) + 1 for label in labels) + 1 > _MAX_NAME_BYTES:
        raise NameRefusedError("DomainNameTooLong", "Domain name is too long", written)
    return labels


def _unescape(label: str, written: str) -> bytes:
    out = bytearray()
    position = 0
    while position < len(label):
        escape = _ESCAPE.match(label, position)
        if escape:
            out.append(int(escape[1], 8))
            position = escape.end()
            continue
        character = label[position]
        if not "!" <= character <= "~":
            raise NameRefusedError("UnsupportedCharacter", "Value contains unsupported characters", written)
        out.append(ord(character))
        position += 1
    return bytes(out).lower()


def _escape(label: bytes) -> str:
    return "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in label)


@lru_cache(maxsize=100_000)
def sort_key(name: str) -> bytes:
    """Order of a listing: labels reversed, each followed by a dot, compared as ASCII.

    https://docs.aws.amazon.com/Route53/latest/APIReference/API_ListResourceRecordSets.html, "Sort order": the trailing
    dot takes part, so ``-`` (before the dot in ASCII) sorts before a child's label.

    Args:
        name: in listing form.
    """
    return b"".join(label + b"." for label in reversed(_labels(name)))


def lets_change(patterns: Iterable[str], names: Iterable[str]) -> bool:
    r"""Whether IAM lets a request change these names (in listing form), by ``ForAllValues:StringLike`` on
    ``route53:ChangeResourceRecordSetsNormalizedRecordNames``. In a pattern ``*`` stands for any characters, dots included, ``?`` for one.

    https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/specifying-rrset-conditions.html: names in lower case, without the
    trailing dot, escaped: ``\052`` for ``*``.
    """
    likes = [re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".") for pattern in patterns]
    return all(any(re.fullmatch(like, name.removesuffix(".")) for like in likes) for name in names)


def lies_in(name: str, zone_name: str) -> bool:
    """Whether ``name`` is ``zone_name`` or below it, by whole labels; both in listing form."""
    return name == zone_name or name.endswith("." + zone_name)
