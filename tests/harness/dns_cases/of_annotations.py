"""Cases of annotations: further names, other targets."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.notation import pods, svc
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
