"""Cases of annotations: TTLs, and the prefixes that all annotations can have."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.notation import annotated, svc
from harness.dns_cases.table import Case, Rule

NEW: Final = "external-dns.kubernetes.io/"
OLD: Final = "external-dns.alpha.kubernetes.io/"

_TTL: Final = f"InvalidTtl {OLD}ttl"

TTLS: Final = Rule(
    "TTL: `ttl`",
    "The annotation is a number of seconds, or a duration as Go writes it; kubesync cuts off fractions of a "
    "second. It ranges from 1 to 2147483647, or to the cluster's `--max-ttl`, and counts for all record sets of the Service. "
    "kubesync reports anything else and uses the cluster's default (30, or `--ttl`).",
    [
        Case("seconds", svc("10.0.0.1", ttl="60"), ["web.shop.svc.k8s.example.com A 60 10.0.0.1"]),
        Case("a duration", svc("10.0.0.1", ttl="1m30s"), ["web.shop.svc.k8s.example.com A 90 10.0.0.1"]),
        Case("a fraction of an hour", svc("10.0.0.1", ttl="1.5h"), ["web.shop.svc.k8s.example.com A 5400 10.0.0.1"]),
        Case("milliseconds", svc("10.0.0.1", ttl="1999ms"), ["web.shop.svc.k8s.example.com A 1 10.0.0.1"]),
        Case("spaces around it", svc("10.0.0.1", ttl=" 60 "), ["web.shop.svc.k8s.example.com A 60 10.0.0.1"]),
        Case("the minimum", svc("10.0.0.1", ttl="1"), ["web.shop.svc.k8s.example.com A 1 10.0.0.1"]),
        Case("the maximum", svc("10.0.0.1", ttl="2147483647"), ["web.shop.svc.k8s.example.com A 2147483647 10.0.0.1"]),
        Case("zero", svc("10.0.0.1", ttl="0"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"], [_TTL]),
        Case(
            "less than a second", svc("10.0.0.1", ttl="500ms"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"], [_TTL]
        ),
        Case("negative", svc("10.0.0.1", ttl="-60"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"], [_TTL]),
        Case("a negative duration", svc("10.0.0.1", ttl="-1m"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"], [_TTL]),
        Case(
            "more than the maximum",
            svc("10.0.0.1", ttl="2147483648"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            [_TTL],
        ),
        Case(
            "a fraction without a unit",
            svc("10.0.0.1", ttl="1.5"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            [_TTL],
        ),
        Case("an unknown unit", svc("10.0.0.1", ttl="1d"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"], [_TTL]),
        Case("a word", svc("10.0.0.1", ttl="soon"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"], [_TTL]),
        Case("empty", svc("10.0.0.1", ttl=""), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"], [_TTL]),
        Case(
            "for all record sets",
            svc("10.0.0.1", ttl="60", ports=["http 80/TCP"], hostname="www.example.com"),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 60 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 60 10.0.0.1",
                "www.example.com A 60 10.0.0.1",
            ],
        ),
        Case(
            "another default of the cluster",
            svc("10.0.0.1"),
            ["web.shop.svc.k8s.example.com A 300 10.0.0.1"],
            settings={"default_ttl": 300},
        ),
        Case(
            "as much as the cluster allows",
            svc("10.0.0.1", ttl="24h"),
            ["web.shop.svc.k8s.example.com A 86400 10.0.0.1"],
            settings={"max_ttl": 86400},
        ),
        Case(
            "more than the cluster allows",
            svc("10.0.0.1", ttl="86401"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            [_TTL],
            settings={"max_ttl": 86400},
        ),
        Case(
            "the default of the cluster may be more than annotations may ask for",
            svc("10.0.0.1"),
            ["web.shop.svc.k8s.example.com A 300 10.0.0.1"],
            settings={"default_ttl": 300, "max_ttl": 60},
        ),
        Case(
            "not valid, with another default of the cluster",
            svc("10.0.0.1", ttl="x"),
            ["web.shop.svc.k8s.example.com A 300 10.0.0.1"],
            [_TTL],
            settings={"default_ttl": 300},
        ),
    ],
)

PREFIXES: Final = Rule(
    "Prefixes",
    "Each annotation of external-dns has the prefix `external-dns.kubernetes.io/` or the older "
    "`external-dns.alpha.kubernetes.io/`. If both exist, the first wins. The tables write annotations without "
    "the older prefix.",
    [
        Case(
            "the newer prefix",
            annotated(svc("10.0.0.1"), {f"{NEW}hostname": "new.example.com"}),
            ["new.example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "both prefixes: the newer wins",
            annotated(svc("10.0.0.1", hostname="old.example.com"), {f"{NEW}hostname": "new.example.com"}),
            ["new.example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "both prefixes, the newer one is empty: it wins",
            annotated(svc("10.0.0.1", hostname="old.example.com"), {f"{NEW}hostname": ""}),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "different prefixes for different annotations",
            annotated(svc("10.0.0.1", hostname="old.example.com"), {f"{NEW}ttl": "60"}),
            ["old.example.com A 60 10.0.0.1", "web.shop.svc.k8s.example.com A 60 10.0.0.1"],
        ),
        Case(
            "a problem names the annotation that was read",
            annotated(svc("10.0.0.1", ttl="60"), {f"{NEW}ttl": "x"}),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            [f"InvalidTtl {NEW}ttl"],
        ),
        Case(
            "other annotations do not matter",
            annotated(svc("10.0.0.1"), {f"{NEW}access": "private", "example.com/hostname": "x.example.com"}),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
    ],
)
