r"""Names and values in Route 53's form and in kubesync's.

https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DomainNameFormat.html: Route 53 lists names in lower case with
a trailing dot. It writes every character except a-z, 0-9, ``-`` and ``_`` as ``\ooo`` (octal).

    kubesync's name           Route 53's
    ---------------           ----------
    web.example.com           web.example.com.
    *.example.com             \052.example.com.
    a\056b.example.com        a\056b.example.com.     a dot in a label stays escaped, like unprintable characters
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

_OCTAL = re.compile(r"\\([0-3][0-7]{2})")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
# Without their escapes these would change the meaning of the name.
_STAYS_ESCAPED = frozenset(".\\")


@lru_cache(maxsize=65_536)
def from_route53(name: str) -> str:
    """Convert a name from Route 53's form to kubesync's."""
    return _OCTAL.sub(_readable, name).lower().removesuffix(".")


def _readable(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 8))
    return character if "!" <= character <= "~" and character not in _STAYS_ESCAPED else escape[0]


@lru_cache(maxsize=65_536)
def to_route53(name: str) -> str:
    """Convert a name from kubesync's form to the one that Route 53 lists."""
    out: list[str] = []
    position = 0
    while position < len(name):
        escape = _OCTAL.match(name, position)
        if escape is not None:
            out.append(escape[0])
            position = escape.end()
            continue
        character = name[position].lower()
        out.append(character if character in _PLAIN else "".join(f"\\{byte:03o}" for byte in character.encode()))
        position += 1
    return "".join(out).removesuffix(".") + "."


def _address(value: str) -> str:
    return str(ipaddress.ip_address(value))


def _host(value: str) -> str:
    return value.lower().removesuffix(".") + "."


def _host_after_numbers(value: str) -> str:
    *numbers, host = value.split()
    return " ".join([*(str(int(number)) for number in numbers), _host(host)])


_CANONICAL: Final[Mapping[str, Callable[[str], str]]] = {
    "A": _address,
    "AAAA": _address,
    "CNAME": _host,
    "MX": _host_after_numbers,
    "NS": _host,
    "PTR": _host,
    "SRV": _host_after_numbers,
}


def canonical_values(record_type: str, values: Iterable[str]) -> tuple[str, ...]:
    """Values in the canonical form, in which equal values mean the same: see ``domain.dns.records.RecordSet``.

    Route 53 returns values as somebody wrote them: addresses in any notation, host names in any case and without the
    trailing dot. Addresses are sorted by number, everything else as text.
    """
    canonical = {_canonical(record_type, value) for value in values}
    if record_type in ("A", "AAAA"):
        return tuple(sorted(canonical, key=_as_number))
    return tuple(sorted(canonical))


def _canonical(record_type: str, value: str) -> str:
    form = _CANONICAL.get(record_type)
    if form is None:
        return value
    try:
        return form(value)
    except ValueError:
        return value  # not ours, and never equal to ours


def _as_number(value: str) -> tuple[int, int, str]:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return 0, 0, value
    return address.version, int(address), value
