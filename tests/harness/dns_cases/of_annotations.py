"""Cases of annotations: further names, other targets, and what kubesync refuses, ignores or does not know."""

from __future__ import annotations

from typing import Any, Final

from harness.dns_cases.notation import PREFIX, annotated, pods, svc
from harness.dns_cases.table import Case, Rule

HOSTNAMES: Final = Rule(
    "Further names: `hostname`",
    "The annotation is a list separated by commas. These names get the same targets as the Service's own name. "
    "SRV records exist only at the Service's own name.",
    [
        Case(
            "one name",
            svc("10.0.0.1", hostname="www.example.com"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1", "www.example.com A 30 10.0.0.1"],
        ),
        Case(
            "a list, with spaces and a trailing comma",
            svc("10.0.0.1", hostname=" a.example.com , b.example.com,"),
            [
                "a.example.com A 30 10.0.0.1",
                "b.example.com A 30 10.0.0.1",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
            ],
        ),
        Case(
            "a name twice, in capitals and with a trailing dot",
            svc("10.0.0.1", hostname="WWW.example.com,www.example.com."),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1", "www.example.com A 30 10.0.0.1"],
        ),
        Case(
            "the Service's own name",
            svc("10.0.0.1", hostname="web.shop.svc.k8s.example.com"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case("empty", svc("10.0.0.1", hostname=""), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"]),
        Case(
            "no SRV there",
            svc("10.0.0.1", hostname="www.example.com", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
                "www.example.com A 30 10.0.0.1",
            ],
        ),
        Case(
            "of a load balancer with addresses and a host name",
            svc("10.0.0.1", status=["192.0.2.1", "2001:db8::1"], hosts=["lb.example.net"], hostname="www.example.com"),
            [
                "web.shop.svc.k8s.example.com A 30 192.0.2.1",
                "web.shop.svc.k8s.example.com AAAA 30 2001:db8::1",
                "www.example.com A 30 192.0.2.1",
                "www.example.com AAAA 30 2001:db8::1",
            ],
        ),
        Case(
            "of a load balancer with a host name",
            svc("10.0.0.1", hosts=["lb.example.net"], hostname="www.example.com"),
            [
                "web.shop.svc.k8s.example.com CNAME 30 lb.example.net.",
                "www.example.com CNAME 30 lb.example.net.",
            ],
        ),
        Case(
            "of a load balancer that is pending", svc("10.0.0.1", kind="LoadBalancer", hostname="www.example.com"), []
        ),
        Case(
            "of an external name",
            svc(to="docs.example.net", hostname="docs.example.com"),
            [
                "docs.example.com CNAME 30 docs.example.net.",
                "web.shop.svc.k8s.example.com CNAME 30 docs.example.net.",
            ],
        ),
        Case(
            "the target of the external name itself",
            svc(to="docs.example.com", hostname="docs.example.com"),
            ["web.shop.svc.k8s.example.com CNAME 30 docs.example.com."],
            ["CnameLoop docs.example.com"],
        ),
        Case(
            "of a headless Service: addresses, no host names",
            svc("None", hostname="peers.example.com"),
            [
                "peers.example.com A 30 10.1.0.1",
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1",
            ],
            pods=[pods("10.1.0.1 host=web-0")],
        ),
        Case(
            "the apex of a zone, with addresses",
            svc("10.0.0.1", hostname="example.com"),
            ["example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "the apex of a zone, with a host name",
            svc("10.0.0.1", hosts=["lb.example.net"], hostname="example.com"),
            ["web.shop.svc.k8s.example.com CNAME 30 lb.example.net."],
            ["CnameAtApex example.com"],
        ),
        Case(
            "a wildcard",
            svc("10.0.0.1", hostname="*.apps.example.com"),
            ["*.apps.example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "a wildcard of the whole zone, as CNAME",
            svc("10.0.0.1", hosts=["lb.example.net"], hostname="*.example.com"),
            [
                "*.example.com CNAME 30 lb.example.net.",
                "web.shop.svc.k8s.example.com CNAME 30 lb.example.net.",
            ],
        ),
        Case(
            "a wildcard as Route 53 writes it: not a name",
            svc("10.0.0.1", hostname="\\052.apps.example.com"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            ["InvalidName \\052.apps.example.com"],
        ),
        Case(
            "a wildcard in the middle, within a label, or alone",
            svc("10.0.0.1", hostname="a.*.example.com,a*.example.com,*"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            ["InvalidName *", "InvalidName a*.example.com", "InvalidName a.*.example.com"],
        ),
        Case(
            "underscores",
            svc("10.0.0.1", hostname="_acme.example.com"),
            ["_acme.example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "not a name",
            svc("10.0.0.1", hostname="a..example.com,-a.example.com,a b.example.com,straße.example.com"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            [
                "InvalidName -a.example.com",
                "InvalidName a b.example.com",
                "InvalidName a..example.com",
                "InvalidName straße.example.com",
            ],
        ),
    ],
)

INTERNAL: Final = Rule(
    "Cluster IPs by another name: `internal-hostname`",
    "The annotation is a list. These names get the cluster IPs. A name that is also in `hostname` gets both.",
    [
        Case(
            "beside the addresses of a load balancer",
            svc("10.0.0.1", status=["192.0.2.1"], internal_hostname="web.int.example.com"),
            ["web.int.example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com A 30 192.0.2.1"],
        ),
        Case(
            "of a load balancer that is pending",
            svc("10.0.0.1", "fd00::1", kind="LoadBalancer", internal_hostname="web.int.example.com"),
            ["web.int.example.com A 30 10.0.0.1", "web.int.example.com AAAA 30 fd00::1"],
        ),
        Case(
            "the same name in hostname: the union",
            svc("10.0.0.1", status=["192.0.2.1"], hostname="w.example.com", internal_hostname="w.example.com"),
            ["w.example.com A 30 10.0.0.1, 192.0.2.1", "web.shop.svc.k8s.example.com A 30 192.0.2.1"],
        ),
        Case(
            "the load balancer has a host name; one name in both annotations: the cluster IP wins",
            svc("10.0.0.1", hosts=["lb.example.net"], hostname="w.example.com", internal_hostname="w.example.com"),
            ["w.example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com CNAME 30 lb.example.net."],
        ),
        Case(
            "the Service's own name: the union there, with SRV",
            svc(
                "10.0.0.1",
                status=["192.0.2.1"],
                internal_hostname="web.shop.svc.k8s.example.com",
                ports=["http 80/TCP"],
            ),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1, 192.0.2.1",
            ],
        ),
        Case(
            "of a ClusterIP Service: the same as hostname",
            svc("10.0.0.1", internal_hostname="a.example.com,b.example.com"),
            [
                "a.example.com A 30 10.0.0.1",
                "b.example.com A 30 10.0.0.1",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
            ],
        ),
        Case(
            "of a headless Service: it has no cluster IPs",
            svc("None", internal_hostname="a.example.com"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            ["NoClusterIp a.example.com"],
            pods=[pods("10.1.0.1")],
        ),
        Case(
            "of an external name: it has no cluster IPs",
            svc(to="docs.example.net", internal_hostname="a.example.com"),
            ["web.shop.svc.k8s.example.com CNAME 30 docs.example.net."],
            ["NoClusterIp a.example.com"],
        ),
    ],
)

TARGETS: Final = Rule(
    "Other targets: `target`",
    "The annotation is a list of addresses or host names. All names of the Service get these targets instead "
    "of its own. Then there are no SRV records and no host names of endpoints. As everywhere, addresses win "
    "over host names, and the first host name wins over the others.",
    [
        Case(
            "of a ClusterIP Service",
            svc("10.0.0.1", target="192.0.2.7", ports=["http 80/TCP"]),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7"],
        ),
        Case(
            "of a NodePort Service",
            svc("10.0.0.1", kind="NodePort", target="192.0.2.7,192.0.2.8"),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7, 192.0.2.8"],
        ),
        Case(
            "of a load balancer, at further names too",
            svc("10.0.0.1", status=["192.0.2.1"], target="edge.example.net", hostname="www.example.com"),
            [
                "web.shop.svc.k8s.example.com CNAME 30 edge.example.net.",
                "www.example.com CNAME 30 edge.example.net.",
            ],
        ),
        Case(
            "of a load balancer that is pending",
            svc("10.0.0.1", kind="LoadBalancer", target="192.0.2.7"),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7"],
        ),
        Case(
            "of a headless Service: no host names of endpoints",
            svc("None", target="192.0.2.7", ports=["http 80/TCP"]),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7"],
            pods=[pods("10.1.0.1 host=web-0")],
        ),
        Case(
            "of an external name",
            svc(to="docs.example.net", target="192.0.2.7"),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7"],
        ),
        Case(
            "at internal names too",
            svc("10.0.0.1", target="192.0.2.7", internal_hostname="a.example.com"),
            ["a.example.com A 30 192.0.2.7", "web.shop.svc.k8s.example.com A 30 192.0.2.7"],
        ),
        Case(
            "of a headless Service, at internal names too",
            svc("None", target="192.0.2.7", internal_hostname="a.example.com"),
            ["a.example.com A 30 192.0.2.7", "web.shop.svc.k8s.example.com A 30 192.0.2.7"],
        ),
        Case(
            "an IPv6 address in capitals",
            svc("10.0.0.1", target="2001:0DB8::00AB"),
            ["web.shop.svc.k8s.example.com AAAA 30 2001:db8::ab"],
        ),
        Case(
            "both families",
            svc("10.0.0.1", target="192.0.2.7,2001:DB8::1"),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7", "web.shop.svc.k8s.example.com AAAA 30 2001:db8::1"],
        ),
        Case(
            "a trailing dot",
            svc("10.0.0.1", target="edge.example.net."),
            ["web.shop.svc.k8s.example.com CNAME 30 edge.example.net."],
        ),
        Case(
            "an address with a trailing dot",
            svc("10.0.0.1", target="192.0.2.7."),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7"],
        ),
        Case(
            "addresses and a host name",
            svc("10.0.0.1", target="edge.example.net,192.0.2.7"),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7"],
        ),
        Case(
            "two host names",
            svc("10.0.0.1", target="b.example.net,a.example.net"),
            ["web.shop.svc.k8s.example.com CNAME 30 a.example.net."],
        ),
        Case(
            "one bad target beside a good one",
            svc("10.0.0.1", target="a b,192.0.2.7"),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.7"],
            ["InvalidTarget a b"],
        ),
        Case("a mistyped address", svc("10.0.0.1", target="192.0.2.256"), [], ["InvalidTarget 192.0.2.256"]),
        Case("only bad targets: nothing", svc("10.0.0.1", target="-"), [], ["InvalidTarget -"]),
        Case(
            "of a wildcard",
            svc("10.0.0.1", hostname="*.Apps.example.com", target="Edge.example.net"),
            [
                "*.apps.example.com CNAME 30 edge.example.net.",
                "web.shop.svc.k8s.example.com CNAME 30 edge.example.net.",
            ],
        ),
        Case(
            "a wildcard is not a target", svc("10.0.0.1", target="*.example.net"), [], ["InvalidTarget *.example.net"]
        ),
        Case(
            "empty: the same as missing",
            svc("10.0.0.1", target=" , "),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "the name itself",
            svc("10.0.0.1", target="www.example.com", hostname="www.example.com"),
            ["web.shop.svc.k8s.example.com CNAME 30 www.example.com."],
            ["CnameLoop www.example.com"],
        ),
    ],
)

_WEB: Final = "web.shop.svc.k8s.example.com A 30 10.0.0.1"
_ALIASES: Final = [
    "web.shop.svc.k8s.example.com A alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
    "web.shop.svc.k8s.example.com AAAA alias Z2IFOLAFXWLO4F web-0123.elb.eu-west-1.amazonaws.com",
]
_LB: Final = "web-0123.elb.eu-west-1.amazonaws.com"


def _refused(title: str, **annotations: Any) -> Case:
    (name,) = annotations
    name = name.replace("_", "-")
    return Case(title, svc("10.0.0.1", **annotations), [], [f"UnsupportedAnnotation {PREFIX}{name}"])


CLASSES: Final = Rule(
    "Annotations that ask for something else",
    "kubesync refuses annotations that ask for something that it does not do. A Service with one of these gets no names. "
    "If it held names before it got the annotation, these stay published and follow the Service; names that it asks for later are not published. "
    "The same is true if `controller` names another controller. Upstreams do not depend on it. An annotation that nobody knows "
    "is reported and has no effect. "
    "[Annotations](annotations.md) has the whole list.",
    [
        _refused("failover routing", aws_failover="PRIMARY"),
        _refused("latency routing", aws_region="eu-west-1"),
        _refused("geolocation routing", aws_geolocation_country_code="SE"),
        _refused("geoproximity routing", aws_geoproximity_bias="10"),
        _refused("multivalue answers, which need no value", aws_multi_value_answer=""),
        _refused("a health check", aws_health_check_id="0123"),
        _refused("one chosen hosted zone", aws_hosted_zone_id="Z2"),
        _refused("a chosen hosted zone of the alias target", aws_target_hosted_zone="Z3"),
        _refused("an alias for one address family", alias="AAAA"),
        _refused("another type of record", record_type="TXT"),
        Case(
            "addresses of nodes, at a NodePort",
            svc("10.0.0.1", kind="NodePort", access="public"),
            [],
            [f"UnsupportedAnnotation {PREFIX}access"],
        ),
        Case("addresses of nodes, at another Service", svc("10.0.0.1", access="public"), [_WEB]),
        Case(
            "addresses of nodes, at a headless Service",
            svc("None", endpoints_type="HostIP"),
            [],
            [f"UnsupportedAnnotation {PREFIX}endpoints-type"],
            [pods("10.1.0.1")],
        ),
        Case("the same annotation, at another Service", svc("10.0.0.1", endpoints_type="HostIP"), [_WEB]),
        Case(
            "empty",
            svc("None", endpoints_type=""),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            [],
            [pods("10.1.0.1")],
        ),
        Case("another controller", svc("10.0.0.1", controller="mine"), [], [f"OtherController {PREFIX}controller"]),
        Case("the controller of external-dns", svc("10.0.0.1", controller="dns-controller"), [_WEB]),
        Case("kubesync", svc("10.0.0.1", controller="kubesync"), [_WEB]),
        Case("another provider", svc("10.0.0.1", cloudflare_proxied="true"), [_WEB]),
        Case("unknown", svc("10.0.0.1", hostnames="www.example.com"), [_WEB], [f"UnknownAnnotation {PREFIX}hostnames"]),
        Case(
            "a refused one, left out by `kubesync.io/exclude`",
            annotated(svc("10.0.0.1", aws_failover="PRIMARY"), {"kubesync.io/exclude": "true"}),
        ),
        Case(
            "aliases that answer also while the load balancer is not healthy",
            svc("10.0.0.1", hosts=[_LB], alias="true", aws_evaluate_target_health="false"),
            [f"{line} (health not evaluated)" for line in _ALIASES],
        ),
        Case(
            "neither true nor false",
            svc("10.0.0.1", hosts=[_LB], alias="true", aws_evaluate_target_health="no"),
            _ALIASES,
            [f"InvalidEvaluateTargetHealth {PREFIX}aws-evaluate-target-health"],
        ),
    ],
)
