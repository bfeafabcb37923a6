"""The annotations of a Service that kubesync obeys: those of external-dns, and its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kubesync.domain.names import canonical_name
from kubesync.domain.records import Problem

# The first that has an annotation wins, even where it is empty.
PREFIXES: Final = ("external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/")
EXCLUDE: Final = "kubesync.io/exclude"

# RFC 2181 8, and the range that external-dns takes.
MIN_TTL_SECONDS: Final = 1
MAX_TTL_SECONDS: Final = 2_147_483_647

# Longer than any sensible TTL; bounds the arithmetic on what people write.
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
    """What a Service asks for. Names and targets are canonical but not checked; ``ttl_seconds`` None: the default.

    ``targets`` is None where the annotation is missing or empty, which is not the same as one that holds nothing usable.
    """

    exclude: bool = False
    hostnames: tuple[str, ...] = ()
    internal_hostnames: tuple[str, ...] = ()
    targets: tuple[str, ...] | None = None
    ttl_seconds: int | None = None
    problems: tuple[Problem, ...] = ()


def read_annotations(annotations: Iterable[tuple[str, str]]) -> DnsAnnotations:
    """Read what is there; what cannot be understood is a problem and counts as missing."""
    given = dict(annotations)
    problems = []
    exclude = given.get(EXCLUDE, "").strip().lower()
    if exclude not in {"", "true", "false"}:
        problems.append(Problem("InvalidExclude", EXCLUDE, 'must be "true" or "false"; the service is not left out'))
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
    return DnsAnnotations(
        exclude=exclude == "true",
        hostnames=_names(_find(given, "hostname")[1]),
        internal_hostnames=_names(_find(given, "internal-hostname")[1]),
        targets=_names(_find(given, "target")[1]) or None,
        ttl_seconds=ttl,
        problems=tuple(problems),
    )


def parse_ttl(text: str) -> int | None:
    """Whole seconds of ``90``, ``1m30s``, ``1.5h`` (Go's durations; fractions of a second are cut off), else None."""
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


def _find(given: dict[str, str], name: str) -> tuple[str, str | None]:
    for prefix in PREFIXES:
        if (key := prefix + name) in given:
            return key, given[key]
    return PREFIXES[0] + name, None


def _names(text: str | None) -> tuple[str, ...]:
    """A comma-separated list; empty items are dropped, as in trailing commas."""
    return tuple(dict.fromkeys(name for item in (text or "").split(",") if (name := canonical_name(item))))
