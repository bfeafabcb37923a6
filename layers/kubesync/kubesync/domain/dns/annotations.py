"""The annotations of a Service that kubesync reads: those of external-dns, and its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kubesync.domain.dns.names import canonical_name
from kubesync.domain.dns.records import Problem

# The first prefix that has an annotation wins, even if its value is empty.
PREFIXES: Final = ("external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/")
NAMES: Final = ("hostname", "internal-hostname", "target", "ttl", "alias", "set-identifier", "aws-weight")
EXCLUDE: Final = "kubesync.io/exclude"
INCLUDE: Final = "kubesync.io/include"
KNOWN: Final = frozenset({prefix + name for prefix in PREFIXES for name in NAMES} | {EXCLUDE, INCLUDE})
"""All annotations of a Service that kubesync reads."""

# RFC 2181 8, and the range that external-dns accepts.
MIN_TTL_SECONDS: Final = 1
MAX_TTL_SECONDS: Final = 2_147_483_647

# https://docs.aws.amazon.com/Route53/latest/APIReference/API_ResourceRecordSet.html: SetIdentifier, Weight.
MAX_IDENTIFIER_CHARACTERS: Final = 128
MAX_WEIGHT: Final = 255
DEFAULT_WEIGHT: Final = 1

# Longer than any sensible TTL; limits the arithmetic on text that people write.
_MAX_TTL_CHARACTERS: Final = 40
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DURATION: Final = re.compile(r"[+-]?((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+")
_DURATION_PART: Final = re.compile(r"([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS_OF_UNIT: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),  # U+00B5, micro sign
    "μs": Fraction(1, 10**6),  # U+03BC, Greek letter mu: Go takes both
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


@dataclass(frozen=True, slots=True)
class DnsAnnotations:
    """What a Service asks for. Names and targets are canonical but not checked. ``ttl_seconds`` None: use the default.

    ``targets`` is None if the annotation is missing or empty; an empty tuple means that it holds nothing usable.
    ``alias`` is None if the cluster's setting decides. ``identifier`` and ``weight`` make all record sets of the Service
    weighted; both are empty for simple sets. ``unpublishable``: Route 53 does not accept the identifier. Nothing is published
    then, because simple sets would exclude other Services that share the name.
    """

    exclude: bool = False
    include: bool = False
    hostnames: tuple[str, ...] = ()
    internal_hostnames: tuple[str, ...] = ()
    targets: tuple[str, ...] | None = None
    ttl_seconds: int | None = None
    alias: bool | None = None
    identifier: str = ""
    weight: int | None = None
    unpublishable: bool = False
    problems: tuple[Problem, ...] = ()


def read_annotations(annotations: Iterable[tuple[str, str]]) -> DnsAnnotations:
    """Read the annotations. One that cannot be understood is reported as a problem and counts as missing."""
    given = dict(annotations)
    problems: list[Problem] = []
    exclude, include = (given.get(name, "").strip().lower() for name in (EXCLUDE, INCLUDE))
    if exclude not in {"", "true", "false"}:
        problems.append(Problem("InvalidExclude", EXCLUDE, 'must be "true" or "false"; the service is not left out'))
    if include not in {"", "true", "false"}:
        problems.append(Problem("InvalidInclude", INCLUDE, 'must be "true" or "false"; it counts as "false"'))
    ttl_key, ttl_text = _find(given, "ttl")
    ttl = None
    if ttl_text is not None:
        ttl = parse_ttl(ttl_text)
        if ttl is None or not MIN_TTL_SECONDS <= ttl <= MAX_TTL_SECONDS:
            ttl = None
            problems.append(
                Problem(
                    "InvalidTtl",
                    ttl_key,
                    f"must be seconds or a duration such as 1m30s, {MIN_TTL_SECONDS} to {MAX_TTL_SECONDS} seconds; "
                    "the default is used",
                )
            )
    identifier, weight, unpublishable = _weighted(given, problems)
    return DnsAnnotations(
        exclude=exclude == "true",
        include=include == "true",
        hostnames=_names(_find(given, "hostname")[1]),
        internal_hostnames=_names(_find(given, "internal-hostname")[1]),
        targets=_names(_find(given, "target")[1]) or None,
        ttl_seconds=ttl,
        alias=_alias(given, problems),
        identifier=identifier,
        weight=weight,
        unpublishable=unpublishable,
        problems=tuple(problems),
    )


def _alias(given: dict[str, str], problems: list[Problem]) -> bool | None:
    key, text = _find(given, "alias")
    word = (text or "").strip().lower()
    if word not in {"", "true", "false"}:
        problems.append(Problem("InvalidAlias", key, 'must be "true" or "false"; the cluster\'s setting is used'))
        return None
    return word == "true" if word else None


def _weighted(given: dict[str, str], problems: list[Problem]) -> tuple[str, int | None, bool]:
    """Set identifier, weight, and whether the identifier is unusable.

    set-identifier    aws-weight        identifier    weight
    --------------    ----------        ----------    ------
    none or empty     none              ""            None
    none or empty     any               ""            None: reported
    usable            none or empty     it            1
    usable            0 to 255          it            it
    usable            anything else     it            1: reported
    not usable        any               unpublishable: reported
    """
    (identifier_key, identifier), (weight_key, weight_text) = _find(given, "set-identifier"), _find(given, "aws-weight")
    identifier, weight_text = (identifier or "").strip(), (weight_text or "").strip()
    if not identifier:
        if weight_text:
            problems.append(
                Problem("WeightWithoutIdentifier", weight_key, "has no effect: give a set-identifier as well")
            )
        return "", None, False
    if len(identifier) > MAX_IDENTIFIER_CHARACTERS or not (identifier.isascii() and identifier.isprintable()):
        message = f"must be 1 to {MAX_IDENTIFIER_CHARACTERS} printable ASCII characters; nothing is published"
        problems.append(Problem("InvalidSetIdentifier", identifier_key, message))
        return "", None, True
    if not weight_text:
        return identifier, DEFAULT_WEIGHT, False
    if re.fullmatch("[0-9]{1,3}", weight_text) is None or int(weight_text) > MAX_WEIGHT:
        message = f"must be a whole number from 0 to {MAX_WEIGHT}; {DEFAULT_WEIGHT} is used"
        problems.append(Problem("InvalidWeight", weight_key, message))
        return identifier, DEFAULT_WEIGHT, False
    return identifier, int(weight_text), False


def parse_ttl(text: str) -> int | None:
    """Whole seconds of ``90``, ``1m30s`` or ``1.5h`` (Go's durations; fractions of a second are cut off), else None."""
    text = text.strip()
    if len(text) > _MAX_TTL_CHARACTERS:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DURATION.fullmatch(text) is None:
        return None
    parts = _DURATION_PART.findall(text)
    seconds = int(sum(Fraction(number.rstrip(".")) * _SECONDS_OF_UNIT[unit] for number, unit in parts))
    return -seconds if text.startswith("-") else seconds


def annotation_used(annotations: Iterable[tuple[str, str]], name: str) -> str:
    """The full key under which an annotation is read: with the first prefix that has it."""
    return _find(dict(annotations), name)[0]


def _find(given: dict[str, str], name: str) -> tuple[str, str | None]:
    for prefix in PREFIXES:
        if (key := prefix + name) in given:
            return key, given[key]
    return PREFIXES[0] + name, None


def _names(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list. Empty items, as after a trailing comma, are dropped."""
    return tuple(dict.fromkeys(name for item in (text or "").split(",") if (name := canonical_name(item))))
