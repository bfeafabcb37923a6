"""Annotations: every one of external-dns, what kubesync does about it, and what those of an object ask for.

``docs/annotations.md`` says what each asks for.

Source: https://kubernetes-sigs.github.io/external-dns/latest/docs/annotations/annotations/ and the code of external-dns,
source/annotations and provider/aws.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Final

from kubesync.domain.dns.names import canonical_name
from kubesync.domain.dns.records import Problem
from kubesync.domain.dns.routing.policies import NOT_POSSIBLE, SIMPLE, Routing
from kubesync.domain.dns.routing.reading import NOTHING_SAID, POLICY_ANNOTATIONS, read_routing

# The first prefix that has an annotation wins, even if its value is empty.
PREFIXES: Final = ("external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/")
EXCLUDE: Final = "kubesync.io/exclude"
INCLUDE: Final = "kubesync.io/include"
HEADLESS: Final = "headless"
"""The kind of a headless Service. The kind of any other Service is its type."""

# Annotations that are only reported are stored with the Service. One Service may have thousands of them (256 KiB).
MAX_REPORTED: Final = 10
# Kubernetes, "Annotations": the part after the slash. An API server that allows more must not make items longer.
MAX_NAME_CHARACTERS: Final = 63
_MAX_REPORTED_VALUE_CHARACTERS: Final = 63
_MAX_SHORT_CHARACTERS: Final = 64


class Use(StrEnum):
    """What kubesync does about an annotation. One that is not in the table is reported, and has no effect."""

    OBEYED = "obeyed"
    REFUSED = "refused"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class KnownAnnotation:
    """One annotation.

    Args:
        name: without its prefix. With ``*`` at its end: every name that begins like this.
        text: what a refused one asks for.
        kind: refused only at Services of this kind.
        short: no longer value than ``_MAX_SHORT_CHARACTERS`` means anything.
    """

    name: str
    use: Use
    text: str = ""
    kind: str = ""
    short: bool = False


_OBEYED: Final = (
    "hostname internal-hostname target ttl alias set-identifier aws-weight aws-evaluate-target-health controller"
)
_OBEYED_SHORT: Final = (
    "aws-target-hosted-zone",
    "aws-hosted-zone-id",
    "aws-health-check-id",
    *sorted(POLICY_ANNOTATIONS - {"aws-weight"}),
)
# Those of other DNS providers and sources. Ingresses obey ``ingress-hostname-source`` (``sources.ingresses``).
_IGNORED: Final = (
    "cloudflare-* azure-* scw-* coredns-* ibmcloud-* webhook-* ingress ingress-hostname-source gateway-hostname-source"
)
TABLE: Final = (
    *(KnownAnnotation(name, Use.OBEYED) for name in _OBEYED.split()),
    *(KnownAnnotation(name, Use.OBEYED, short=True) for name in _OBEYED_SHORT),
    KnownAnnotation("access", Use.REFUSED, "addresses of nodes", kind="NodePort"),
    KnownAnnotation("endpoints-type", Use.REFUSED, "addresses of nodes", kind=HEADLESS),
    KnownAnnotation("record-type", Use.REFUSED, "another type of record"),
    *(KnownAnnotation(name, Use.IGNORED) for name in _IGNORED.split()),
)

_BY_NAME: Final = {row.name: row for row in TABLE}
_FAMILIES: Final = tuple(row for row in TABLE if row.name.endswith("*"))


def find_known(name: str) -> KnownAnnotation | None:
    """The row of a name without its prefix. None: external-dns does not know it."""
    return _BY_NAME.get(name) or next((row for row in _FAMILIES if name.startswith(row.name[:-1])), None)


def nearest(name: str) -> str:
    """The most similar name of the table; empty if none is similar."""
    import difflib  # only now: most annotations are known

    return next(iter(difflib.get_close_matches(name, _BY_NAME, n=1)), "")


def bare_name(key: str, prefixes: tuple[str, ...] = PREFIXES) -> str:
    """An annotation's key without its prefix; empty if it has none of these prefixes."""
    return next((key[len(prefix) :] for prefix in prefixes if key.startswith(prefix)), "")


def annotations_to_keep(
    annotations: Mapping[str, str], prefixes: tuple[str, ...] = PREFIXES
) -> tuple[tuple[str, str], ...]:
    """What kubesync keeps of a Service's annotations, sorted: what it reads, and what it reports.

    They are kept with the key, so their size is limited here. ``prefixes``: of external-dns' annotations.

    obeyed, or of kubesync itself    kept whole, or as much as can mean anything
    refused                          kept, the value cut
    unknown                          the key alone, so that it can be reported; at most the first ten
    other                            not kept
    """
    found: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for key in sorted(annotations):
        if key in (EXCLUDE, INCLUDE):
            found[key] = annotations[key]
        elif name := bare_name(key, prefixes):
            row, short_key = find_known(name), key[: len(key) - len(name) + MAX_NAME_CHARACTERS]
            if row is None:
                unknown[short_key] = ""
            elif row.use is Use.OBEYED:
                # One character more than means anything: a value that was too long must not become a usable one.
                found[key] = annotations[key].strip()[: _MAX_SHORT_CHARACTERS + 1] if row.short else annotations[key]
            elif row.use is Use.REFUSED:
                found[short_key] = annotations[key][:_MAX_REPORTED_VALUE_CHARACTERS]
            # An ignored one is not kept.
    found |= list(unknown.items())[:MAX_REPORTED]
    return tuple(sorted(found.items()))


# RFC 2181 8, and the range that external-dns accepts.
MIN_TTL_SECONDS: Final = 1
MAX_TTL_SECONDS: Final = 2_147_483_647

CONTROLLERS: Final = ("dns-controller", "kubesync")
"""Values of ``controller`` that leave a Service to kubesync. The first is external-dns' own."""
_HOLDS_ON: Final = "names that the Service holds stay published, other names are not published"

# https://docs.aws.amazon.com/Route53/latest/APIReference/API_AliasTarget.html, HostedZoneId.
_ALIAS_WORDS: Final = '"true", "false", "A" or "AAAA"'
_ZONE_ID: Final = re.compile("[A-Z0-9]{1,32}")
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
class Given:
    """Annotations by their whole keys, and the prefixes of external-dns that count: the first that has an annotation wins."""

    texts: Mapping[str, str]
    prefixes: tuple[str, ...]

    def find(self, name: str) -> tuple[str, str | None]:
        """The whole key under which an annotation is read, and its value. None: the object does not have it; the key is for messages."""
        for prefix in self.prefixes:
            if (key := prefix + name) in self.texts:
                return key, self.texts[key]
        return self.prefixes[0] + name, None

    def origin(self, name: str) -> str:
        """For people: ``annotation``, and the key under which it is read."""
        return f"annotation {self.find(name)[0]}"


@dataclass(frozen=True, slots=True)
class DnsAnnotations:
    """What a Service asks for. Names and targets are canonical but not checked. ``ttl_seconds`` None: use the default.

    ``targets`` is None if the annotation is missing or empty; an empty tuple means that it holds nothing usable.
    ``alias`` is None if the cluster's setting decides. ``identifier`` and ``routing`` are those of all record sets of the
    Service: see ``dns.routing.reading``. ``unpublishable``: Route 53 does not accept the identifier. Nothing is published
    then, because simple sets would exclude other Services that share the name. ``evaluate_health``: of its aliases; None: not said.
    ``alias_types``: those that it asks for by annotation. ``alias_zone``: the hosted zone of their targets. ``zone_id``: the only zone for its names.

    ``only_held``: an annotation asks for what is not possible, or leaves the Service to another controller. It keeps the
    names that it holds, and gets no others. ``given``: what all this was read from.
    """

    exclude: bool = False
    include: bool = False
    hostnames: tuple[str, ...] = ()
    internal_hostnames: tuple[str, ...] = ()
    targets: tuple[str, ...] | None = None
    ttl_seconds: int | None = None
    alias: bool | None = None
    identifier: str = ""
    routing: Routing = SIMPLE
    unpublishable: bool = False
    alias_types: tuple[str, ...] = ()
    alias_zone: str = ""
    zone_id: str = ""
    evaluate_health: bool | None = None
    only_held: bool = False
    problems: tuple[Problem, ...] = ()
    given: Given = field(default=Given({}, PREFIXES), compare=False)


def read_annotations(
    annotations: Iterable[tuple[str, str]],
    prefixes: tuple[str, ...] = PREFIXES,
    kind: str = "",
    max_ttl: int = MAX_TTL_SECONDS,
    routing: Mapping[str, str] = NOTHING_SAID,
) -> DnsAnnotations:
    """Read what the annotations of one object ask for. One that cannot be understood is reported as a problem and counts as missing.

    Some ask for what kubesync does not do, or leave the object to another program. With one of these, what the object holds stays as it is,
    and it gets nothing new (``only_held``).

    Args:
        prefixes: of the annotations of external-dns. The first that has an annotation wins, even if its value is empty.
        kind: the Service's type, or ``headless``: some annotations concern only one of them.
        max_ttl: in seconds; a longer one is reported, and counts as missing.
        routing: what the cluster says of it (``routing_of_cluster``).
    """
    given = Given(dict(annotations), prefixes)
    problems: list[Problem] = []
    exclude = _switch((EXCLUDE, given.texts.get(EXCLUDE)), "InvalidExclude", "the service is not left out", problems)
    include = _switch((INCLUDE, given.texts.get(INCLUDE)), "InvalidInclude", 'it counts as "false"', problems)
    ttl_key, ttl_text = given.find("ttl")
    ttl = None
    if ttl_text is not None:
        ttl = parse_ttl(ttl_text)
        if ttl is None or not MIN_TTL_SECONDS <= ttl <= max_ttl:
            ttl = None
            option = "" if max_ttl == MAX_TTL_SECONDS else " (--max-ttl)"
            limits = f"{MIN_TTL_SECONDS} to {max_ttl} seconds{option}"
            why = f"must be seconds or a duration such as 1m30s, {limits}; the default is used"
            problems.append(Problem("InvalidTtl", ttl_key, why))
    # ``policy``: None if Route 53 does not accept the identifier; ``NOT_POSSIBLE`` if what is asked for is not possible.
    identifier, policy = read_routing(given.find, problems, routing)
    # ``alias`` is on or off, or it is the one type of the alias: then it is on.
    family = (given.find("alias")[1] or "").strip().upper()
    types = (family,) if family in ("A", "AAAA") else ()
    alias: bool | None = True
    if not types:
        alias = _switch(given.find("alias"), "InvalidAlias", "the cluster's setting is used", problems, _ALIAS_WORDS)
    zone_id, alias_zone = _zone_id(given, "aws-hosted-zone-id"), _zone_id(given, "aws-target-hosted-zone")
    of_health = given.find("aws-evaluate-target-health")
    health = _switch(of_health, "InvalidEvaluateTargetHealth", "health is evaluated", problems)
    # Problems that lead to ``only_held``.
    withheld = [*_unsupported(given, kind), *_other_controller(given)]
    if alias_zone.lower() == "same-zone":
        alias_zone = "same-zone"
    elif alias_zone and not _ZONE_ID.fullmatch(alias_zone):
        key = given.find("aws-target-hosted-zone")[0]
        withheld.append(Problem("UnsupportedAnnotation", key, f"is no id of a hosted zone: {_HOLDS_ON}"))
    problems += [*withheld, *_unknown(given)]
    return DnsAnnotations(
        exclude=exclude is True,
        include=include is True,
        hostnames=_names(given.find("hostname")[1]),
        internal_hostnames=_names(given.find("internal-hostname")[1]),
        targets=_names(given.find("target")[1]) or None,
        ttl_seconds=ttl,
        alias=alias,
        identifier=identifier,
        routing=policy or SIMPLE,
        unpublishable=policy is None,
        alias_types=types or (("A", "AAAA") if alias else ()),
        alias_zone=alias_zone,
        zone_id=zone_id,
        evaluate_health=health,
        only_held=bool(withheld) or policy == NOT_POSSIBLE,
        problems=tuple(problems),
        given=given,
    )


def _switch(
    found: tuple[str, str | None], code: str, otherwise: str, problems: list[Problem], words: str = '"true" or "false"'
) -> bool | None:
    """What an annotation that is on or off says. None: it is missing or empty, or it has another text, which is reported.

    Args:
        found: its key, and its text (``Given.find``).
        code: of the problem.
        otherwise: what happens instead, for the message.
        problems: takes the problem.
        words: the allowed texts, for the message.
    """
    key, text = found
    word = (text or "").strip().lower()
    if word not in {"", "true", "false"}:
        problems.append(Problem(code, key, f"must be {words}; {otherwise}"))
        return None
    return word == "true" if word else None


def _zone_id(given: Given, name: str) -> str:
    """The id of a hosted zone in an annotation, not checked; empty if it is missing."""
    return (given.find(name)[1] or "").strip().removeprefix("/hostedzone/")


def _unsupported(given: Given, kind: str) -> Iterator[Problem]:
    """Problems of annotations that ask for something else than kubesync would publish. ``kind``: see ``read_annotations``.

    row of the table         refused
    ----------------         -------
    for a kind of Service    any value but an empty one, at Services of this kind
    other                    any value: external-dns goes by the presence of some of them
    """
    for row in TABLE:
        key, text = given.find(row.name)
        if row.use is Use.REFUSED and text is not None and (not row.kind or (text.strip() and row.kind == kind)):
            yield Problem("UnsupportedAnnotation", key, f"kubesync does not do this ({row.text}): {_HOLDS_ON}")


def _other_controller(given: Given) -> Iterator[Problem]:
    """The problem of an object that annotation ``controller`` leaves to another program."""
    key, text = given.find("controller")
    if text is not None and text not in CONTROLLERS:
        message = f"neither {CONTROLLERS[0]} nor {CONTROLLERS[1]}: {_HOLDS_ON}"
        yield Problem("OtherController", key, message)


def _unknown(given: Given) -> Iterator[Problem]:
    """Problems of annotations that have a prefix of external-dns and a name that it does not know: mistyped ones, mostly."""
    for key in given.texts:
        if (name := bare_name(key, given.prefixes)) and find_known(name) is None:
            close = nearest(name)
            yield Problem("UnknownAnnotation", key, "has no effect" + (f"; did you mean {close}?" if close else ""))


def parse_ttl(text: str) -> int | None:
    """Whole seconds of ``90``, ``1m30s`` or ``1.5h`` (Go's durations; fractions of a second are cut off), else None.

    May be negative: the caller checks the range.
    """
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


def _names(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list. Empty items, as after a trailing comma, are dropped."""
    return tuple(dict.fromkeys(name for item in (text or "").split(",") if (name := canonical_name(item))))
