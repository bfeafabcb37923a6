"""Every annotation of external-dns, and what kubesync does about it. ``docs/annotations.md`` says what each asks for.

Source: https://kubernetes-sigs.github.io/external-dns/latest/docs/annotations/annotations/ and the code of external-dns,
source/annotations and provider/aws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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
    "aws-target-hosted-zone aws-hosted-zone-id aws-region aws-failover aws-multi-value-answer aws-geolocation-continent-code "
    "aws-geolocation-country-code aws-geolocation-subdivision-code aws-geoproximity-region aws-geoproximity-local-zone-group "
    "aws-geoproximity-coordinates aws-geoproximity-bias aws-health-check-id"
)
# Those of other DNS providers and sources. Ingresses obey ``ingress-hostname-source`` (``sources.ingresses``).
_IGNORED: Final = (
    "cloudflare-* azure-* scw-* coredns-* ibmcloud-* webhook-* ingress ingress-hostname-source gateway-hostname-source"
)
TABLE: Final = (
    *(KnownAnnotation(name, Use.OBEYED) for name in _OBEYED.split()),
    *(KnownAnnotation(name, Use.OBEYED, short=True) for name in _OBEYED_SHORT.split()),
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


def kept(annotations: Mapping[str, str], prefixes: tuple[str, ...] = PREFIXES) -> tuple[tuple[str, str], ...]:
    """What kubesync keeps of a Service's annotations, sorted.

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
            row, short = find_known(name), key[: len(key) - len(name) + MAX_NAME_CHARACTERS]
            if row is None:
                unknown[short] = ""
            elif row.use is Use.OBEYED:
                found[key] = annotations[key].strip()[: _MAX_SHORT_CHARACTERS + 1] if row.short else annotations[key]
            elif row.use is Use.REFUSED:
                found[short] = annotations[key][:_MAX_REPORTED_VALUE_CHARACTERS]
    found |= list(unknown.items())[:MAX_REPORTED]
    return tuple(sorted(found.items()))
