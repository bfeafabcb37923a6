"""external-dns' TXT registry: which record sets of a zone external-dns calls its own. Reads only, and decides nothing.

external-dns keeps a TXT record set beside each set that it makes. Its name comes from the set's name, after external-dns' options
``--txt-prefix`` and ``--txt-suffix`` (one of them) and ``--txt-wildcard-replacement``:

    set                     options                         new format                      old format
    ---                     -------                         ----------                      ----------
    www.example.com A       -                               a-www.example.com               www.example.com
    www.example.com CNAME   prefix reg.                     reg.cname-www.example.com       reg.www.example.com
    www.example.com AAAA    prefix %{record_type}-x.        aaaa-x.www.example.com          (none for AAAA)
    www.example.com A       suffix -%{record_type}          www-a.example.com               www-.example.com
    *.example.com A         wildcard replacement any        a-any.example.com               any.example.com
    www.example.com, alias  -                               a-www, before 0.18 cname-www    www.example.com

The value is ``heritage=external-dns,external-dns/owner=ID,external-dns/resource=service/shop/web``. An encrypted one is base64 of
random bytes: it says nothing without the key. Sources: external-dns, ``docs/registry/txt.md`` and ``registry/mapper``.
"""

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubesync.domain.dns.records import RecordKey, RecordSet

TEMPLATE: Final = "%{record_type}"
_HERITAGE: Final = "external-dns"
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
# 12 bytes of nonce, 16 of tag, 18 of gzip's frame, and a text of 60 characters or more. Tokens that others publish are shorter.
_LEAST_ENCRYPTED_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Affixes:
    """external-dns' options that name its TXT record sets. At most one of ``prefix`` and ``suffix`` is not empty."""

    prefix: str = ""
    suffix: str = ""
    wildcard: str = ""

    def __post_init__(self) -> None:
        for name in ("prefix", "suffix", "wildcard"):
            object.__setattr__(self, name, getattr(self, name).lower())

    def names(self, key: RecordKey, record_set: RecordSet) -> tuple[list[str], str]:
        """The TXT names of a set: in the new format, the one preferred first, and in the old (empty: none)."""
        types = [key.type.lower()]
        if record_set.alias is not None:
            types.append("cname")  # external-dns before 0.18, for aliases of both types
        old = key.type not in ("AAAA", "TXT") or record_set.alias is not None
        return [self._new(key.name, each) for each in types], self._old(key.name) if old else ""

    def _new(self, name: str, record_type: str) -> str:
        if TEMPLATE in self.prefix + self.suffix:
            return self._named(name, record_type, "")
        return self._named(name, record_type, f"{record_type}-")

    def _old(self, name: str) -> str:
        return self._named(name, "", "")

    def _named(self, name: str, record_type: str, before: str) -> str:
        first, dot, rest = name.partition(".")
        if first == "*" and self.wildcard:
            first = self.wildcard
        prefix, suffix = (affix.replace(TEMPLATE, record_type) for affix in (self.prefix, self.suffix))
        return f"{prefix}{before}{first}{suffix}{dot}{rest}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A TXT record set of the registry.

    Args:
        resource: such as ``service/shop/web``; empty if external-dns names none.
        alone: the set holds no value but external-dns'.
    """

    key: RecordKey
    record_set: RecordSet
    owner: str
    resource: str
    alone: bool


@dataclass(slots=True)
class Registry:
    """The registry of one zone.

    Args:
        entries: the readable TXT record sets, in the zone's order.
        of_set: the entry of each registered set that stands.
        covered: the sets of each entry (its key). Empty: none of them stands, or the affixes are not external-dns'.
        unreadable: TXT record sets that look encrypted.
    """

    entries: dict[RecordKey, Entry] = field(default_factory=dict)
    of_set: dict[RecordKey, Entry] = field(default_factory=dict)
    covered: dict[RecordKey, list[RecordKey]] = field(default_factory=lambda: defaultdict(list))
    unreadable: list[RecordKey] = field(default_factory=list)


def read_registry(actual: Mapping[RecordKey, RecordSet], affixes: Affixes, owner: str = "") -> Registry:
    """Read the registry out of all sets of a zone.

    A TXT name can be that of one set in the new format and of another in the old one: ``a-www`` is that of ``www`` A and of
    ``a-www``. Then it covers both: which of them external-dns means is not known, and neither may lose it. For a set that has
    entries in both formats, the new one counts, as in external-dns.

    Args:
        owner: only entries of this owner id; empty: of every owner.
    """
    registry = Registry()
    for key, record_set in actual.items():
        if key.type == "TXT":
            _read_entry(registry, key, record_set, owner)
    sets = [(key, affixes.names(key, actual[key])) for key in actual if _can_be_registered(key, registry)]
    for key, (new, _) in sets:
        for name in new:
            _cover(registry, key, name)
    for key, (_, old) in sets:
        if old:
            _cover(registry, key, old)
    return registry


def _can_be_registered(key: RecordKey, registry: Registry) -> bool:
    return key.type != "SOA" and key not in registry.entries


def _cover(registry: Registry, key: RecordKey, name: str) -> None:
    entry = registry.entries.get(_txt_key(key, name))
    if entry is not None and entry.key != key:
        registry.of_set.setdefault(key, entry)
        registry.covered[entry.key].append(key)


def _txt_key(key: RecordKey, name: str) -> RecordKey:
    return RecordKey(key.zone_id, name, "TXT", key.identifier)


def _read_entry(registry: Registry, key: RecordKey, record_set: RecordSet, owner: str) -> None:
    for value in record_set.values:
        text = _text_of(value)
        labels = _labels(text)
        if labels is not None:
            if owner in ("", labels.get("owner", "")):
                alone = len(record_set.values) == 1
                found = Entry(key, record_set, labels.get("owner", ""), labels.get("resource", ""), alone)
                registry.entries.setdefault(key, found)
        elif _looks_encrypted(text):
            registry.unreadable.append(key)


def _text_of(value: str) -> str:
    """The text of a TXT value: its strings (at most 255 bytes each) joined."""
    return "".join(_STRING.findall(value))


def _labels(text: str) -> dict[str, str] | None:
    """external-dns' labels without their prefix; None: the text is not external-dns'."""
    given = dict(_pairs(text))
    if given.pop("heritage", "") != _HERITAGE:
        return None
    mine = f"{_HERITAGE}/"
    return {label.removeprefix(mine): value for label, value in given.items() if label.startswith(mine)}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for token in text.split(","):
        label, equals, value = token.partition("=")
        if equals:
            yield label, value


def _looks_encrypted(text: str) -> bool:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(decoded) >= _LEAST_ENCRYPTED_BYTES
