"""Cases of aliases to load balancers, weighted sets, and names that several Services want."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.notation import PREFIX, pods, svc
from harness.dns_cases.table import Case, Rule

_ALB: Final = "internal-web-1.eu-west-1.elb.amazonaws.com"
_NLB: Final = "web-0123.elb.eu-west-1.amazonaws.com"
_WANTED: Final = {"load_balancer_alias": True}

ALIASES: Final = Rule(
    "Aliases to load balancers: `alias`",
    'You ask for aliases with `--load-balancer-alias` or with the annotation `alias: "true"`. If the host name '
    "is a load balancer of AWS whose hosted zone kubesync knows (`kubesync/domain/dns/elb_zones.py`), A and AAAA "
    "aliases replace the CNAME, also at the apex of a zone. The annotation wins over the option. The annotation "
    "applies to every host name. The option applies only to the status of load balancers and to `target`. An "
    "alias has no TTL of its own.",
    [
        Case(
            "an Application Load Balancer",
            svc("10.0.0.1", hosts=[_ALB]),
            [
                "web.shop.svc.k8s.example.com A alias Z32O12XQLNTSW2 internal-web-1.eu-west-1.elb.amazonaws.com",
                "web.shop.svc.k8s.example.com AAAA alias Z32O12XQLNTSW2 internal-web-1.eu-west-1.elb.amazonaws.com",
            ],
            settings=_WANTED,
        ),
        Case(
            "a Network Load Balancer",
            svc("10.0.0.1", hosts=[_NLB]),
            [
                "web.shop.svc.k8s.example.com A alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "web.shop.svc.k8s.example.com AAAA alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
            ],
            settings=_WANTED,
        ),
        Case(
            "a load balancer in China",
            svc("10.0.0.1", hosts=["web-1.cn-north-1.elb.amazonaws.com.cn"]),
            [
                "web.shop.svc.k8s.example.com A alias Z1GDH35T77C1KE web-1.cn-north-1.elb.amazonaws.com.cn",
                "web.shop.svc.k8s.example.com AAAA alias Z1GDH35T77C1KE web-1.cn-north-1.elb.amazonaws.com.cn",
            ],
            settings=_WANTED,
        ),
        Case(
            "without option and annotation",
            svc("10.0.0.1", hosts=[_ALB]),
            ["web.shop.svc.k8s.example.com CNAME 30 internal-web-1.eu-west-1.elb.amazonaws.com."],
        ),
        Case(
            "by annotation",
            svc("10.0.0.1", hosts=[_NLB], alias="true"),
            [
                "web.shop.svc.k8s.example.com A alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "web.shop.svc.k8s.example.com AAAA alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
            ],
        ),
        Case(
            'annotation "false" wins over the option',
            svc("10.0.0.1", hosts=[_NLB], alias="False"),
            ["web.shop.svc.k8s.example.com CNAME 30 web-0123.elb.eu-west-1.amazonaws.com."],
            settings=_WANTED,
        ),
        Case(
            "an annotation that is neither true nor false",
            svc("10.0.0.1", hosts=[_NLB], alias="maybe"),
            ["web.shop.svc.k8s.example.com CNAME 30 web-0123.elb.eu-west-1.amazonaws.com."],
            [f"InvalidAlias {PREFIX}alias"],
        ),
        Case(
            "at the apex",
            svc("10.0.0.1", hosts=[_NLB], alias="true", hostname="example.com"),
            [
                "example.com A alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "example.com AAAA alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "web.shop.svc.k8s.example.com A alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "web.shop.svc.k8s.example.com AAAA alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
            ],
        ),
        Case(
            "SRV beside an alias: an alias answers with addresses",
            svc("10.0.0.1", hosts=[_NLB], alias="true", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "web.shop.svc.k8s.example.com AAAA alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
            ],
        ),
        Case(
            "of a target",
            svc("10.0.0.1", target=_NLB),
            [
                "web.shop.svc.k8s.example.com A alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "web.shop.svc.k8s.example.com AAAA alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
            ],
            settings=_WANTED,
        ),
        Case(
            "an external name: the option does not count for it",
            svc(to=_NLB),
            ["web.shop.svc.k8s.example.com CNAME 30 web-0123.elb.eu-west-1.amazonaws.com."],
            settings=_WANTED,
        ),
        Case(
            "an external name, by annotation",
            svc(to=_NLB, alias="true"),
            [
                "web.shop.svc.k8s.example.com A alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "web.shop.svc.k8s.example.com AAAA alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
            ],
        ),
        Case(
            "an unknown host name, with the option",
            svc("10.0.0.1", hosts=["lb.example.net"]),
            ["web.shop.svc.k8s.example.com CNAME 30 lb.example.net."],
            settings=_WANTED,
        ),
        Case(
            "an unknown host name, by annotation",
            svc("10.0.0.1", hosts=["lb.example.net"], alias="true"),
            ["web.shop.svc.k8s.example.com CNAME 30 lb.example.net."],
            ["NoAliasTarget lb.example.net"],
        ),
        Case(
            "an unknown region",
            svc("10.0.0.1", hosts=["web-1.xx-north-9.elb.amazonaws.com"]),
            ["web.shop.svc.k8s.example.com CNAME 30 web-1.xx-north-9.elb.amazonaws.com."],
            settings=_WANTED,
        ),
        Case(
            "addresses win",
            svc("10.0.0.1", status=["192.0.2.1"], hosts=[_NLB], alias="true"),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.1"],
        ),
        Case(
            "without host names it has no effect",
            svc("10.0.0.1", alias="true"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
    ],
)

WEIGHTED: Final = Rule(
    "Weighted sets: `set-identifier` and `aws-weight`",
    "A set identifier (1 to 128 printable ASCII characters) makes all record sets of the Service weighted sets "
    "of Route 53: A, AAAA, CNAME, SRV and aliases, at all its names. The weight is a whole number from 0 to "
    "255. If it is missing, it is 1. Services with different identifiers can share a name, in one cluster or "
    "in several. Route 53 answers with one of the sets, in proportion to the weights. kubesync does not "
    "support other routing policies of external-dns (`aws-region`, `aws-failover`, ...). A name and type has "
    "either a simple set or weighted sets: see the next section.",
    [
        Case(
            "an identifier and a weight",
            svc("10.0.0.1", set_identifier="blue", aws_weight="10", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV [blue 10] 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A [blue 10] 30 10.0.0.1",
            ],
        ),
        Case(
            "no weight",
            svc("10.0.0.1", set_identifier="blue"),
            ["web.shop.svc.k8s.example.com A [blue 1] 30 10.0.0.1"],
        ),
        Case(
            "weight 0",
            svc("10.0.0.1", set_identifier="blue", aws_weight="0"),
            ["web.shop.svc.k8s.example.com A [blue 0] 30 10.0.0.1"],
        ),
        Case(
            "weight 255",
            svc("10.0.0.1", set_identifier="blue", aws_weight="255"),
            ["web.shop.svc.k8s.example.com A [blue 255] 30 10.0.0.1"],
        ),
        Case(
            "weight 256",
            svc("10.0.0.1", set_identifier="blue", aws_weight="256"),
            ["web.shop.svc.k8s.example.com A [blue 1] 30 10.0.0.1"],
            [f"InvalidWeight {PREFIX}aws-weight"],
        ),
        Case(
            "a negative weight",
            svc("10.0.0.1", set_identifier="blue", aws_weight="-1"),
            ["web.shop.svc.k8s.example.com A [blue 1] 30 10.0.0.1"],
            [f"InvalidWeight {PREFIX}aws-weight"],
        ),
        Case(
            "a weight without an identifier",
            svc("10.0.0.1", aws_weight="10"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            [f"WeightWithoutIdentifier {PREFIX}aws-weight"],
        ),
        Case(
            "an empty identifier: the same as missing",
            svc("10.0.0.1", set_identifier=" "),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "an identifier of 128 characters",
            svc("10.0.0.1", set_identifier="i" * 128),
            [f"web.shop.svc.k8s.example.com A [{'i' * 128} 1] 30 10.0.0.1"],
        ),
        Case(
            "an identifier of 129 characters: nothing is published",
            svc("10.0.0.1", set_identifier="i" * 129),
            [],
            [f"InvalidSetIdentifier {PREFIX}set-identifier"],
        ),
        Case(
            "an identifier beyond ASCII",
            svc("10.0.0.1", set_identifier="blå"),
            [],
            [f"InvalidSetIdentifier {PREFIX}set-identifier"],
        ),
        Case(
            "a host name",
            svc("10.0.0.1", hosts=["lb.example.net"], set_identifier="blue", aws_weight="10"),
            ["web.shop.svc.k8s.example.com CNAME [blue 10] 30 lb.example.net."],
        ),
        Case(
            "an alias",
            svc("10.0.0.1", hosts=[_NLB], set_identifier="blue", alias="true"),
            [
                "web.shop.svc.k8s.example.com A [blue 1] alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
                "web.shop.svc.k8s.example.com AAAA [blue 1] alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
            ],
        ),
        Case(
            "a headless Service, with host names of endpoints",
            svc("None", set_identifier="blue"),
            [
                "web-0.web.shop.svc.k8s.example.com A [blue 1] 30 10.1.0.1",
                "web.shop.svc.k8s.example.com A [blue 1] 30 10.1.0.1",
            ],
            pods=[pods("10.1.0.1 host=web-0")],
        ),
        Case(
            "two Services with the same hostname and different identifiers",
            {
                "blue": svc("10.0.0.1", hostname="www.example.com", set_identifier="blue", aws_weight="90"),
                "green": svc("10.0.0.2", hostname="www.example.com", set_identifier="green", aws_weight="10"),
            },
            [
                "blue.shop.svc.k8s.example.com A [blue 90] 30 10.0.0.1",
                "green.shop.svc.k8s.example.com A [green 10] 30 10.0.0.2",
                "www.example.com A [blue 90] 30 10.0.0.1",
                "www.example.com A [green 10] 30 10.0.0.2",
            ],
        ),
        Case(
            "two clusters that share a name",
            {
                "prod/shop/web": svc("10.0.0.1", hostname="www.example.com", set_identifier="prod"),
                "dr/shop/web": svc("10.9.0.1", hostname="www.example.com", set_identifier="dr", aws_weight="0"),
            },
            [
                "web.shop.svc.dr.example.com A [dr 0] 30 10.9.0.1",
                "web.shop.svc.k8s.example.com A [prod 1] 30 10.0.0.1",
                "www.example.com A [dr 0] 30 10.9.0.1",
                "www.example.com A [prod 1] 30 10.0.0.1",
            ],
        ),
        Case(
            "the same hostname and the same identifier: the older Service gets it",
            {
                "blue": svc("10.0.0.1", hostname="www.example.com", set_identifier="x", born="2026-02-01"),
                "green": svc("10.0.0.2", hostname="www.example.com", set_identifier="x", born="2026-01-01"),
            },
            [
                "blue.shop.svc.k8s.example.com A [x 1] 30 10.0.0.1",
                "green.shop.svc.k8s.example.com A [x 1] 30 10.0.0.2",
                "www.example.com A [x 1] 30 10.0.0.2",
            ],
            ["prod/shop/blue: NameTaken www.example.com [x] in Z1"],
        ),
    ],
)

CONFLICTS: Final = Rule(
    "Names that several Services want",
    "A Service *claims* a name, in one zone and with its set identifier if it has one. Who claims it first keeps "
    "it. If several claim it at the same time (in one window or list), the oldest Service gets it (by "
    "`creationTimestamp`, then by key). kubesync reports the others (`NameTaken`). When the owner lets the name "
    "go, the next one in the same order gets it. kubesync never "
    "touches a record set in the zone that it did not make (`Conflict`). A simple set of one Service and a "
    "weighted set of another at one name are also a conflict, and so are a CNAME and another set. kubesync "
    "publishes such a name as soon as the other Service's set goes. In a cluster with rules for names (`--domain-filter`), a Service "
    "keeps a name as long as it asks for it, also while it has nothing to publish there, and simple and weighted sets wait for each other "
    "in line (`NameTaken`).",
    [
        Case(
            "two ClusterIP Services: the older one gets it",
            {
                "new": svc("10.0.0.1", hostname="www.example.com", born="2026-02-01"),
                "old": svc("10.0.0.2", hostname="www.example.com", born="2026-01-01"),
            },
            [
                "new.shop.svc.k8s.example.com A 30 10.0.0.1",
                "old.shop.svc.k8s.example.com A 30 10.0.0.2",
                "www.example.com A 30 10.0.0.2",
            ],
            ["prod/shop/new: NameTaken www.example.com in Z1"],
        ),
        Case(
            "Services of the same age: the key decides",
            {
                "b": svc("10.0.0.1", hostname="www.example.com"),
                "a": svc("10.0.0.2", hostname="www.example.com"),
            },
            [
                "a.shop.svc.k8s.example.com A 30 10.0.0.2",
                "b.shop.svc.k8s.example.com A 30 10.0.0.1",
                "www.example.com A 30 10.0.0.2",
            ],
            ["prod/shop/b: NameTaken www.example.com in Z1"],
        ),
        Case(
            "three load balancers with the same hostname",
            {
                "a": svc("10.0.0.1", status=["192.0.2.1"], hostname="www.example.com", born="2026-01-03"),
                "b": svc("10.0.0.2", hosts=["lb.example.net"], hostname="www.example.com", born="2026-01-01"),
                "c": svc("10.0.0.3", status=["192.0.2.3"], hostname="www.example.com", born="2026-01-02"),
            },
            [
                "a.shop.svc.k8s.example.com A 30 192.0.2.1",
                "b.shop.svc.k8s.example.com CNAME 30 lb.example.net.",
                "c.shop.svc.k8s.example.com A 30 192.0.2.3",
                "www.example.com CNAME 30 lb.example.net.",
            ],
            [
                "prod/shop/a: NameTaken www.example.com in Z1",
                "prod/shop/c: NameTaken www.example.com in Z1",
            ],
        ),
        Case(
            "the oldest has nothing to publish: the next one gets the name",
            {
                "a": svc("10.0.0.1", status=["192.0.2.1"], hostname="www.example.com", born="2026-01-02"),
                "b": svc("10.0.0.2", kind="LoadBalancer", hostname="www.example.com", born="2026-01-01"),
            },
            ["a.shop.svc.k8s.example.com A 30 192.0.2.1", "www.example.com A 30 192.0.2.1"],
        ),
        Case(
            "another Service's own name",
            {
                "api": svc("10.0.0.1", born="2026-02-01"),
                "web": svc("10.0.0.2", hostname="api.shop.svc.k8s.example.com", born="2026-01-01"),
            },
            [
                "api.shop.svc.k8s.example.com A 30 10.0.0.2",
                "web.shop.svc.k8s.example.com A 30 10.0.0.2",
            ],
            ["prod/shop/api: NameTaken api.shop.svc.k8s.example.com in Z1"],
        ),
        Case(
            "Services of two clusters",
            {
                "dev/shop/web": svc("10.9.0.1", hostname="www.example.com", born="2026-02-01"),
                "prod/shop/web": svc("10.0.0.1", hostname="www.example.com", born="2026-01-01"),
            },
            [
                "web.shop.svc.dev.example.com A 30 10.9.0.1",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
                "www.example.com A 30 10.0.0.1",
            ],
            ["dev/shop/web: NameTaken www.example.com in Z1"],
        ),
        Case(
            "a hostname that is the name of an own SRV record",
            svc("10.0.0.1", hostname="_http._tcp.web.shop.svc.k8s.example.com", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com A 30 10.0.0.1",
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
            ],
        ),
    ],
)
