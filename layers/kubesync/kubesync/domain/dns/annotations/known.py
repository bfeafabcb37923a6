"""Every annotation of external-dns, and what kubesync does about it. ``docs/annotations.md`` shows this table.

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
    """One row.

    Args:
        name: without its prefix. With ``*`` at its end: every name that begins like this.
        text: what it asks for, in Markdown.
        kind: refused only at Services of this kind.
        short: no longer value than ``_MAX_SHORT_CHARACTERS`` means anything.
    """

    name: str
    use: Use
    text: str
    kind: str = ""
    short: bool = False

    def means(self, name: str) -> bool:
        """Whether it is the row of a name."""
        return name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name


def _policy(name: str, text: str) -> KnownAnnotation:
    return KnownAnnotation(name, Use.OBEYED, f"{text}; only with `set-identifier`", short=True)


TABLE: Final = (
    KnownAnnotation(
        "hostname",
        Use.OBEYED,
        "more names for the Service, separated by commas; they get the same addresses as its own name",
    ),
    KnownAnnotation("internal-hostname", Use.OBEYED, "names, separated by commas; they get the cluster IPs"),
    KnownAnnotation(
        "target",
        Use.OBEYED,
        "addresses or host names, separated by commas; they replace the Service's own targets, and there "
        "are no SRV records",
    ),
    KnownAnnotation(
        "ttl",
        Use.OBEYED,
        "seconds, or a duration such as `1m30s`, at most the cluster's `--max-ttl`; else, or if it is missing, `--ttl` counts",
    ),
    KnownAnnotation(
        "alias",
        Use.OBEYED,
        '`"true"`: publish alias records in place of a CNAME if the host name is a load balancer, a CloudFront distribution, a global '
        "accelerator, a VPC endpoint or an API Gateway of AWS, or a name of the same zone; `A` or `AAAA`: an alias of this type alone; "
        '`"false"`: never; missing: the cluster\'s `--load-balancer-alias` counts',
    ),
    KnownAnnotation(
        "aws-target-hosted-zone",
        Use.OBEYED,
        "the id of the hosted zone of the alias target, for hosts that kubesync does not know, or `same-zone`; only with `alias`",
        short=True,
    ),
    KnownAnnotation(
        "aws-hosted-zone-id",
        Use.OBEYED,
        "the id of a hosted zone of the cluster: names are published in this zone alone",
        short=True,
    ),
    KnownAnnotation(
        "set-identifier",
        Use.OBEYED,
        "gives all record sets of the Service a routing policy, so that several Services, also of several "
        "clusters, can share a name; 1 to 128 printable ASCII characters. Without one of the annotations below: weight 1",
    ),
    KnownAnnotation(
        "aws-weight",
        Use.OBEYED,
        "the weight of these record sets, 0 to 255; 1 if it is missing; only with `set-identifier`",
    ),
    _policy("aws-region", "latency routing: the region of AWS, such as `eu-west-1`"),
    _policy("aws-failover", "failover routing: `PRIMARY` or `SECONDARY`"),
    _policy("aws-multi-value-answer", "multivalue answer routing: `true`"),
    _policy("aws-geolocation-continent-code", "geolocation routing: `AF`, `AN`, `AS`, `EU`, `NA`, `OC` or `SA`"),
    _policy(
        "aws-geolocation-country-code",
        "geolocation routing: a country's code of two letters, or `*` for queries from wherever no other set answers",
    ),
    _policy("aws-geolocation-subdivision-code", "a state of the country `US`: a code of two letters"),
    _policy("aws-geoproximity-region", "geoproximity routing: the region of AWS"),
    _policy("aws-geoproximity-local-zone-group", "geoproximity routing: a group, such as `us-east-1-bue-1`"),
    _policy(
        "aws-geoproximity-coordinates",
        "geoproximity routing: latitude and longitude with at most two decimals, such as `49.22,-74.01`",
    ),
    _policy("aws-geoproximity-bias", "-99 to 99; 0 if it is missing"),
    _policy("aws-health-check-id", "the id of a health check of Route 53, for all record sets of the Service"),
    KnownAnnotation(
        "aws-evaluate-target-health",
        Use.OBEYED,
        'for alias records. `"false"`: Route 53 answers with them also while their target is not '
        'healthy; `"true"` or missing: it does not. Aliases to CloudFront are always `"false"`',
    ),
    KnownAnnotation(
        "controller",
        Use.OBEYED,
        "`dns-controller`, `kubesync` or missing: kubesync publishes the Service. With any other value, "
        "it belongs to another controller, and only the names that it holds stay published",
    ),
    KnownAnnotation("record-type", Use.REFUSED, "another type of record"),
    KnownAnnotation("access", Use.REFUSED, "addresses of nodes", kind="NodePort"),
    KnownAnnotation("endpoints-type", Use.REFUSED, "addresses of nodes", kind=HEADLESS),
    KnownAnnotation("cloudflare-*", Use.IGNORED, "Cloudflare"),
    KnownAnnotation("azure-*", Use.IGNORED, "Azure DNS"),
    KnownAnnotation("scw-*", Use.IGNORED, "Scaleway"),
    KnownAnnotation("coredns-*", Use.IGNORED, "CoreDNS"),
    KnownAnnotation("ibmcloud-*", Use.IGNORED, "IBM Cloud"),
    KnownAnnotation("webhook-*", Use.IGNORED, "providers outside external-dns"),
    KnownAnnotation("ingress", Use.IGNORED, "gateways of Istio"),
    KnownAnnotation(
        "ingress-hostname-source",
        Use.IGNORED,
        "Ingresses: [there kubesync obeys it](names.md#names-of-an-ingress-hostname-and-ingress-hostname-source)",
    ),
    KnownAnnotation("gateway-hostname-source", Use.IGNORED, "routes of the Gateway API"),
)
"""Where a name has two rows, the first says what is kept of it."""

_BY_NAME: Final = {row.name: row for row in reversed(TABLE)}
_FAMILIES: Final = tuple(row for row in TABLE if row.name.endswith("*"))


def find_known(name: str) -> KnownAnnotation | None:
    """The row of a name without its prefix. None: external-dns does not know it."""
    return _BY_NAME.get(name) or next((row for row in _FAMILIES if row.means(name)), None)


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
    refused                          kept, the value cut; at most the first ten that a ``*`` stands for
    unknown                          the key alone, so that it can be reported; at most the first ten
    other                            not kept
    """
    found: dict[str, str] = {}
    refused: dict[str, str] = {}
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
                family = refused if row in _FAMILIES else found
                family[short] = annotations[key][:_MAX_REPORTED_VALUE_CHARACTERS]
    for few in (refused, unknown):
        found |= list(few.items())[:MAX_REPORTED]
    return tuple(sorted(found.items()))
