"""The syntax of values by type, and their canonical form.

https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/ResourceRecordTypes.html. The texts of the refusals for A,
AAAA, TXT and names come from public reports about Route 53; for the other types only their frame is known.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final

from kubesync_local.standins.route53.zone.names import NameRefusedError, listing_form

_MAX_16_BIT = 65_535
_MAX_32_BIT = 4_294_967_295
_MAX_STRING_BYTES = 255
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(?:[0-3][0-7]{2}|.)")


class ValueRefusedError(ValueError):
    """The value is not valid for its type; the message is Route 53's ``FATAL problem``."""


def _refuse(problem: str, explanation: str, value: str) -> ValueRefusedError:
    return ValueRefusedError(f"FATAL problem: {problem} ({explanation}) encountered with '{value}'")


def same_form(record_type: str, value: str) -> str:
    """The canonical form of the value: equal for equal record data.

    Raises:
        ValueRefusedError: not valid for the type.
    """
    parse = _PARSERS.get(record_type)
    return value if parse is None else parse(value)


def _a(value: str) -> str:
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError:
        raise _refuse("ARRDATAIllegalIPv4Address", "Value is not a valid IPv4 address", value) from None


def _aaaa(value: str) -> str:
    try:
        address = ipaddress.IPv6Address(value)
    except ValueError:
        address = None
    if address is None or address.scope_id is not None:
        raise _refuse("AAAARRDATAIllegalIPv6Address", "Value is not a valid IPv6 address", value)
    return address.exploded


def _name(value: str) -> str:
    try:
        return listing_form(value)
    except NameRefusedError as error:
        raise ValueRefusedError(str(error)) from None


def _target(text: str, value: str) -> str:
    # The root alone says "no such service" (RFC 2782, RFC 7505).
    return "." if text == "." else _name_in(text, value)


def _name_in(text: str, value: str) -> str:
    if not text:
        raise _refuse("InvalidRDATA", "Value has a missing field", value)
    return _name(text)


def _number(text: str, highest: int, what: str, value: str) -> str:
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > highest:
        raise _refuse(f"Invalid{what}", f"{what} is not a number from 0 to {highest}", value)
    return str(int(text))


def _fields(value: str, count: int, names: str) -> list[str]:
    fields = value.split()
    if len(fields) != count:
        raise _refuse("InvalidRDATA", f"Value needs {count} fields: {names}", value)
    return fields


def _srv(value: str) -> str:
    priority, weight, port, target = _fields(value, 4, "priority weight port target")
    numbers = [
        _number(priority, _MAX_16_BIT, "Priority", value),
        _number(weight, _MAX_16_BIT, "Weight", value),
        _number(port, _MAX_16_BIT, "Port", value),
    ]
    return " ".join([*numbers, _target(target, value)])


def _mx(value: str) -> str:
    preference, host = _fields(value, 2, "preference host")
    return f"{_number(preference, _MAX_16_BIT, 'Preference', value)} {_target(host, value)}"


def _soa(value: str) -> str:
    server, mailbox, *numbers = _fields(value, 7, "server mailbox serial refresh retry expire minimum")
    return " ".join(
        [_name(server), _name(mailbox), *(_number(number, _MAX_32_BIT, "SOATimer", value) for number in numbers)]
    )


def _caa(value: str) -> str:
    match = re.fullmatch(r'([0-9]{1,3})\s+([A-Za-z0-9]+)\s+("(?:[^"\\]|\\.)*")', value)
    if match is None or int(match[1]) > 255:
        raise _refuse("InvalidCAARDATA", 'Value needs: flags tag "value"', value)
    return f"{int(match[1])} {match[2].lower()} {_strings(match[3], value)}"


def _txt(value: str) -> str:
    return _strings(value, value)


def _strings(text: str, value: str) -> str:
    """Quoted strings of at most 255 bytes, separated by blanks; equal if their bytes are equal."""
    strings: list[str] = []
    position = 0
    while position < len(text):
        match = _STRING.match(text, position)
        if match is None:
            raise _refuse("InvalidCharacterString", "Value should be enclosed in quotation marks", value)
        strings.append(_string(match[1], value))
        position = match.end()
        blanks = len(text) - position - len(text[position:].lstrip(" \t"))
        if position < len(text) and blanks == 0:
            raise _refuse("InvalidCharacterString", "Value should be enclosed in quotation marks", value)
        position += blanks
    if not strings or text != text.strip():
        raise _refuse("InvalidCharacterString", "Value should be enclosed in quotation marks", value)
    return " ".join(f'"{string}"' for string in strings)


def _string(content: str, value: str) -> str:
    if any(not " " <= character <= "~" for character in content):
        raise _refuse("UnsupportedCharacter", "Value contains unsupported characters", value)
    plain = _ESCAPED.sub(_unescaped, content)
    if len(plain) > _MAX_STRING_BYTES:
        raise _refuse("CharacterStringTooLong", "Value is too long", value)
    return "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\{ord(c):03o}" for c in plain)


def _unescaped(match: re.Match[str]) -> str:
    text = match[0][1:]
    return chr(int(text, 8)) if len(text) == 3 else text


_PARSERS: Final[Mapping[str, Callable[[str], str]]] = {
    "A": _a,
    "AAAA": _aaaa,
    "CAA": _caa,
    "CNAME": _name,
    "MX": _mx,
    "NS": _name,
    "PTR": _name,
    "SOA": _soa,
    "SPF": _txt,
    "SRV": _srv,
    "TXT": _txt,
}

# https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html, Type. Values of types without a
# parser are accepted as they are.
RECORD_TYPES: Final = frozenset(_PARSERS) | {"DS", "HTTPS", "NAPTR", "SSHFP", "SVCB", "TLSA"}
