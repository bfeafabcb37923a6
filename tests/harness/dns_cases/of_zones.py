"""Cases of names, zones and limits."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.notation import ZONE, pods, svc
from harness.dns_cases.table import Case, Rule
from kubesync.domain.dns.records import Zone

_PUBLIC, _PRIVATE = Zone("Z1", "example.com"), Zone("Z2", "example.com", private=True)
_SUB, _NET = Zone("Z3", "k8s.example.com"), Zone("Z4", "example.net")
_LONG: Final = "a" * 63
_LONGEST: Final = f"{_LONG}.{_LONG}.{_LONG}.{'a' * 49}.example.com"
_TOO_LONG: Final = f"{_LONG}.{_LONG}.{_LONG}.{'a' * 50}.example.com"

TEMPLATES: Final = Rule(
    "The Service's own name: `--template`",
    "The default is `{service}.{namespace}.svc.{domain}`. A template may also use `{cluster}`. `none` means "
    "that there is no such name. SRV records and host names of endpoints lie below this name.",
    [
        Case(
            "another template",
            svc("10.0.0.1", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.k8s.example.com SRV 30 0 100 80 web.shop.k8s.example.com.",
                "web.shop.k8s.example.com A 30 10.0.0.1",
            ],
            settings={"template": "{service}.{namespace}.{domain}"},
        ),
        Case(
            "the cluster's name in it",
            svc("10.0.0.1"),
            ["web-shop.prod.k8s.example.com A 30 10.0.0.1"],
            settings={"template": "{service}-{namespace}.{cluster}.{domain}"},
        ),
        Case(
            "without the namespace",
            svc("None"),
            ["web-0.web.k8s.example.com A 30 10.1.0.1", "web.k8s.example.com A 30 10.1.0.1"],
            pods=[pods("10.1.0.1 host=web-0")],
            settings={"template": "{service}.{domain}"},
        ),
        Case(
            "`none`: only names from annotations",
            svc("10.0.0.1", ports=["http 80/TCP"], hostname="www.example.com"),
            ["www.example.com A 30 10.0.0.1"],
            settings={"template": "none"},
        ),
        Case(
            "`none`, without annotations",
            svc("10.0.0.1", ports=["http 80/TCP"]),
            [],
            settings={"template": "none"},
        ),
        Case(
            "`none`, headless",
            svc("None", hostname="web.example.com"),
            ["web.example.com A 30 10.1.0.1"],
            pods=[pods("10.1.0.1 host=web-0")],
            settings={"template": "none"},
        ),
        Case(
            "capitals become lower case",
            svc("10.0.0.1"),
            ["web.x.shop.k8s.example.com A 30 10.0.0.1"],
            settings={"template": "{service}.X.{namespace}.{domain}"},
        ),
        Case(
            "an unknown field stays as it is, so the name is not valid",
            svc("10.0.0.1"),
            [],
            ["InvalidName web.{pod}.k8s.example.com"],
            settings={"template": "{service}.{pod}.{domain}"},
        ),
    ],
)

ZONES: Final = Rule(
    "Hosted zones",
    "kubesync publishes a name in every zone of the cluster that has the longest matching suffix. If a public "
    "and a private zone have the same name, it publishes in both. If no zone fits, kubesync reports the name. "
    "The AWS account of a zone makes no difference.",
    [
        Case(
            "a public and a private zone of one name",
            svc("10.0.0.1"),
            ["Z1: web.shop.svc.k8s.example.com A 30 10.0.0.1", "Z2: web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            settings={"zones": (_PUBLIC, _PRIVATE)},
        ),
        Case(
            "the longest suffix",
            svc("10.0.0.1", hostname="www.example.com"),
            ["Z1: www.example.com A 30 10.0.0.1", "Z3: web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            settings={"zones": (_PUBLIC, _SUB)},
        ),
        Case(
            "a private zone with a longer suffix hides the public one",
            svc("10.0.0.1"),
            ["Z3: web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            settings={"zones": (_PUBLIC, _PRIVATE, _SUB)},
        ),
        Case(
            "a zone of another name for annotations",
            svc("10.0.0.1", hostname="www.example.net"),
            ["Z1: web.shop.svc.k8s.example.com A 30 10.0.0.1", "Z4: www.example.net A 30 10.0.0.1"],
            settings={"zones": (_PUBLIC, _NET)},
        ),
        Case(
            "a name that fits none",
            svc("10.0.0.1", hostname="www.example.net"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            ["NoZone www.example.net"],
        ),
        Case(
            "a name that only ends like the zone",
            svc("10.0.0.1", hostname="www.evilexample.com"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            ["NoZone www.evilexample.com"],
        ),
        Case(
            "only names from annotations fit a zone",
            svc("10.0.0.1", hostname="www.example.net", ports=["http 80/TCP"]),
            ["www.example.net A 30 10.0.0.1"],
            ["NoZone web.shop.svc.k8s.example.com"],
            settings={"zones": (_NET,)},
        ),
        Case(
            "the apex of the longer zone takes no CNAME",
            svc("10.0.0.1", hosts=["lb.example.org"], hostname="k8s.example.com"),
            ["Z3: web.shop.svc.k8s.example.com CNAME 30 lb.example.org."],
            ["CnameAtApex k8s.example.com"],
            settings={"zones": (_PUBLIC, _SUB)},
        ),
        Case(
            "a zone in the list twice counts once",
            svc("10.0.0.1"),
            ["Z1: web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            settings={"zones": (_PUBLIC, _PUBLIC)},
        ),
    ],
)

_NO_LABEL: Final = "a" * 64
LIMITS: Final = Rule(
    "Limits",
    "Labels have 1 to 63 characters and names at most 253 (RFC 1035 2.3.4). kubesync reports a name beyond "
    "these limits and leaves it out. Everything else goes on. A record set holds at most 400 values and 15,500 "
    "characters. If there are more, kubesync publishes the first ones in order and reports the rest. The same holds for more than "
    "10,000 host names of the endpoints of one headless Service, where names that the Service has already go first.",
    [
        Case(
            "a label of 63 characters",
            svc("10.0.0.1", hostname=f"{_LONG}.example.com"),
            [f"{_LONG}.example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "a label of 64 characters",
            svc("10.0.0.1", hostname=f"{_NO_LABEL}.example.com"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            [f"InvalidName {_NO_LABEL}.example.com"],
        ),
        Case(
            "an endpoint's host name of 64 characters",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            [f"InvalidName {_NO_LABEL}.web.shop.svc.k8s.example.com"],
            pods=[pods(f"10.1.0.1 host={_NO_LABEL}")],
        ),
        Case(
            "a template that makes a label of 64 characters",
            svc("10.0.0.1"),
            [],
            [f"InvalidName {'a' * 61}web.shop.k8s.example.com"],
            settings={"template": f"{'a' * 61}{{service}}.{{namespace}}.{{domain}}"},
        ),
        Case(
            "a name of 253 characters",
            svc("10.0.0.1", hostname=_LONGEST),
            [f"{_LONGEST} A 30 10.0.0.1", "web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "a name of 254 characters",
            svc("10.0.0.1", hostname=_TOO_LONG),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            [f"InvalidName {_TOO_LONG}"],
        ),
        Case(
            "a target that is too long",
            svc("10.0.0.1", target=f"{_NO_LABEL}.example.net"),
            [],
            [f"InvalidTarget {_NO_LABEL}.example.net"],
        ),
        Case(
            "400 values",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 " + ", ".join(f"10.1.{n >> 8}.{n & 255}" for n in range(400))],
            pods=[pods(*(f"10.1.{n >> 8}.{n & 255}" for n in range(400)))],
        ),
        Case(
            "401 values: the first 400",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 " + ", ".join(f"10.1.{n >> 8}.{n & 255}" for n in range(400))],
            ["TooManyValues web.shop.svc.k8s.example.com A"],
            pods=[pods(*(f"10.1.{n >> 8}.{n & 255}" for n in range(401)))],
        ),
        Case(
            "15,500 characters of values",
            svc(
                "10.0.0.1",
                target=",".join(f"fd00:1111:1111:1111:1111:1111:1111:{n:04x}" for n in range(0x1000, 0x1190)),
            ),
            [
                "web.shop.svc.k8s.example.com AAAA 30 "
                + ", ".join(f"fd00:1111:1111:1111:1111:1111:1111:{n:04x}" for n in range(0x1000, 0x118D)),
            ],
            ["TooManyValues web.shop.svc.k8s.example.com AAAA"],
        ),
    ],
)
assert ZONE == _PUBLIC
