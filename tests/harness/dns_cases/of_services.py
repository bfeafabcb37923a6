"""Cases of the types of Service but headless ones: own name and SRV."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.notation import annotated, pods, svc
from harness.dns_cases.table import Case, Rule

CLUSTER_IPS: Final = Rule(
    "ClusterIP and NodePort",
    "A and AAAA records hold `spec.clusterIPs` by family. Each named port has an SRV record: "
    "`_<port>._<protocol>.<name>` with the value `0 100 <service port> <name>.`",
    [
        Case("one address", svc("10.0.0.1"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"]),
        Case("NodePort", svc("10.0.0.1", kind="NodePort"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"]),
        Case("IPv6 only", svc("fd00::1"), ["web.shop.svc.k8s.example.com AAAA 30 fd00::1"]),
        Case(
            "both families",
            svc("10.0.0.1", "fd00::1"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1", "web.shop.svc.k8s.example.com AAAA 30 fd00::1"],
        ),
        Case("IPv6 in another notation", svc("FD00:0::1"), ["web.shop.svc.k8s.example.com AAAA 30 fd00::1"]),
        Case("IPv4 mapped into IPv6", svc("::ffff:10.0.0.1"), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"]),
        Case("no address yet", svc(""), []),
        Case("not an address", svc("10.0.0.256"), [], ["InvalidClusterIp 10.0.0.256"]),
        Case("leading zeros", svc("10.0.0.01"), [], ["InvalidClusterIp 10.0.0.01"]),
        Case(
            "one bad address beside a good one",
            svc("10.0.0.1", "x"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            ["InvalidClusterIp x"],
        ),
        Case(
            "a named port",
            svc("10.0.0.1", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
            ],
        ),
        Case(
            "a port without a name", svc("10.0.0.1", ports=["80/TCP"]), ["web.shop.svc.k8s.example.com A 30 10.0.0.1"]
        ),
        Case(
            "two protocols of one number",
            svc("10.0.0.1", ports=["dns 53/UDP", "dns-tcp 53/TCP"]),
            [
                "_dns-tcp._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 53 web.shop.svc.k8s.example.com.",
                "_dns._udp.web.shop.svc.k8s.example.com SRV 30 0 100 53 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
            ],
        ),
        Case(
            "SCTP",
            svc("10.0.0.1", ports=["sig 2905/SCTP"]),
            [
                "_sig._sctp.web.shop.svc.k8s.example.com SRV 30 0 100 2905 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
            ],
        ),
        Case(
            "a port's name in capitals",
            svc("10.0.0.1", ports=["HTTP 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
            ],
        ),
        Case(
            "SRV with IPv6 only",
            svc("fd00::1", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com AAAA 30 fd00::1",
            ],
        ),
        Case("SRV of a name without addresses", svc("", ports=["http 80/TCP"]), []),
        Case(
            "SRV switched off",
            svc("10.0.0.1", ports=["http 80/TCP"]),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            settings={"srv": False},
        ),
        Case(
            "endpoints are not known yet: they do not matter here",
            svc("10.0.0.1"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            pods=None,
        ),
        Case("no such Service", None, [], pods=[pods("10.1.0.1")]),
    ],
)

LOAD_BALANCERS: Final = Rule(
    "LoadBalancer",
    "The name gets the addresses of `status.loadBalancer`. If the status has only host names, the name gets a "
    "CNAME of the first one in lexical order. A pending load balancer gets nothing. SRV records exist only if "
    "the name has addresses, never beside a CNAME (RFC 2782). With `--load-balancer-cluster-ips` the name gets "
    "the cluster IPs instead.",
    [
        Case("pending", svc("10.0.0.1", kind="LoadBalancer", ports=["http 80/TCP"]), []),
        Case(
            "an address, with SRV",
            svc("10.0.0.1", status=["192.0.2.1"], ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 192.0.2.1",
            ],
        ),
        Case(
            "several addresses in numerical order, without duplicates",
            svc("10.0.0.1", status=["192.0.2.10", "192.0.2.9", "192.0.2.10", "2001:db8::1"]),
            [
                "web.shop.svc.k8s.example.com A 30 192.0.2.9, 192.0.2.10",
                "web.shop.svc.k8s.example.com AAAA 30 2001:db8::1",
            ],
        ),
        Case(
            "a host name, without SRV",
            svc("10.0.0.1", hosts=["lb.example.net"], ports=["http 80/TCP"]),
            ["web.shop.svc.k8s.example.com CNAME 30 lb.example.net."],
        ),
        Case(
            "several host names: the first",
            svc("10.0.0.1", hosts=["b.example.net", "a.example.net"]),
            ["web.shop.svc.k8s.example.com CNAME 30 a.example.net."],
        ),
        Case(
            "addresses and a host name: addresses win",
            svc("10.0.0.1", status=["192.0.2.1"], hosts=["lb.example.net"]),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.1"],
        ),
        Case(
            "a host name in capitals with a trailing dot",
            svc("10.0.0.1", hosts=["LB.Example.NET."]),
            ["web.shop.svc.k8s.example.com CNAME 30 lb.example.net."],
        ),
        Case(
            "an address in the place of a host name",
            svc("10.0.0.1", hosts=["192.0.2.1"]),
            ["web.shop.svc.k8s.example.com A 30 192.0.2.1"],
        ),
        Case("a mistyped address", svc("10.0.0.1", status=["192.0.2.256"]), [], ["InvalidStatus 192.0.2.256"]),
        Case("a mistyped host name", svc("10.0.0.1", hosts=["a b"]), [], ["InvalidStatus a b"]),
        Case(
            "one bad host name beside a good one",
            svc("10.0.0.1", hosts=["-", "lb.example.net"]),
            ["web.shop.svc.k8s.example.com CNAME 30 lb.example.net."],
            ["InvalidStatus -"],
        ),
        Case(
            "a status that leads to the name itself",
            svc("10.0.0.1", hosts=["web.shop.svc.k8s.example.com"]),
            [],
            ["CnameLoop web.shop.svc.k8s.example.com"],
        ),
        Case(
            "with the option",
            svc("10.0.0.1", status=["192.0.2.1"], ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 80 web.shop.svc.k8s.example.com.",
                "web.shop.svc.k8s.example.com A 30 10.0.0.1",
            ],
            settings={"load_balancer_cluster_ips": True},
        ),
        Case(
            "with the option, pending",
            svc("10.0.0.1", kind="LoadBalancer"),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            settings={"load_balancer_cluster_ips": True},
        ),
        Case(
            "with the option, a Service of another type",
            svc(to="docs.example.net"),
            ["web.shop.svc.k8s.example.com CNAME 30 docs.example.net."],
            settings={"load_balancer_cluster_ips": True},
        ),
    ],
)

EXTERNAL_NAMES: Final = Rule(
    "ExternalName",
    "The name gets a CNAME of `spec.externalName`. If this is an IP address, kubesync reports it and publishes "
    "nothing: DNS would read it as a name of digits.",
    [
        Case("a name", svc(to="docs.example.net"), ["web.shop.svc.k8s.example.com CNAME 30 docs.example.net."]),
        Case(
            "capitals and a trailing dot",
            svc(to="Docs.Example.NET."),
            ["web.shop.svc.k8s.example.com CNAME 30 docs.example.net."],
        ),
        Case("an address", svc(to="192.0.2.1"), [], ["ExternalNameIsAddress 192.0.2.1"]),
        Case("an IPv6 address", svc(to="2001:DB8::1"), [], ["ExternalNameIsAddress 2001:DB8::1"]),
        Case("a mistyped address", svc(to="192.0.2.256"), [], ["InvalidExternalName 192.0.2.256"]),
        Case("not a DNS name", svc(to="not a name"), [], ["InvalidExternalName not a name"]),
        Case(
            "the name itself",
            svc(to="web.shop.svc.k8s.example.com"),
            [],
            ["CnameLoop web.shop.svc.k8s.example.com"],
        ),
        Case(
            "no SRV, whatever its ports",
            svc(to="docs.example.net", ports=["http 80/TCP"]),
            ["web.shop.svc.k8s.example.com CNAME 30 docs.example.net."],
        ),
        Case(
            "endpoints do not matter",
            svc(to="docs.example.net"),
            ["web.shop.svc.k8s.example.com CNAME 30 docs.example.net."],
            pods=[pods("10.1.0.1", "x")],
        ),
        Case(
            "endpoints are not known yet",
            svc(to="docs.example.net"),
            ["web.shop.svc.k8s.example.com CNAME 30 docs.example.net."],
            pods=None,
        ),
    ],
)

EXCLUSION: Final = Rule(
    "Left out",
    '`kubesync.io/exclude: "true"` leaves a Service out, its upstreams included.',
    [
        Case("true", annotated(svc("10.0.0.1"), {"kubesync.io/exclude": "true"}), []),
        Case("in capitals", annotated(svc("10.0.0.1"), {"kubesync.io/exclude": "True "}), []),
        Case(
            "false",
            annotated(svc("10.0.0.1"), {"kubesync.io/exclude": "false"}),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
        Case(
            "neither true nor false",
            annotated(svc("10.0.0.1"), {"kubesync.io/exclude": "yes"}),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            ["InvalidExclude kubesync.io/exclude"],
        ),
        Case(
            "a headless Service, endpoints not known yet",
            annotated(svc("None"), {"kubesync.io/exclude": "true"}),
            [],
            pods=None,
        ),
        Case(
            "kubesync ignores everything else of the Service",
            annotated(svc("x", hostname="-", ttl="x"), {"kubesync.io/exclude": "true"}),
            [],
        ),
    ],
)

OPT_IN: Final = Rule(
    "Opt-in",
    "In a cluster registered with `--opt-in`, kubesync publishes only Services with `kubesync.io/include: "
    '"true"`. This holds for upstreams too.',
    [
        Case(
            "true",
            annotated(svc("10.0.0.1"), {"kubesync.io/include": "true"}),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            settings={"opt_in": True},
        ),
        Case(
            "in capitals, with a space",
            annotated(svc("10.0.0.1"), {"kubesync.io/include": "TRUE "}),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
            settings={"opt_in": True},
        ),
        Case("missing", svc("10.0.0.1"), [], settings={"opt_in": True}),
        Case("false", annotated(svc("10.0.0.1"), {"kubesync.io/include": "false"}), [], settings={"opt_in": True}),
        Case(
            "neither true nor false",
            annotated(svc("10.0.0.1"), {"kubesync.io/include": "yes"}),
            [],
            ["InvalidInclude kubesync.io/include"],
            settings={"opt_in": True},
        ),
        Case(
            "a hostname annotation alone is not enough",
            svc("10.0.0.1", hostname="www.k8s.example.com"),
            [],
            settings={"opt_in": True},
        ),
        Case(
            "included and left out",
            annotated(svc("10.0.0.1"), {"kubesync.io/include": "true", "kubesync.io/exclude": "true"}),
            [],
            settings={"opt_in": True},
        ),
        Case(
            "a headless Service that is not included, endpoints not known yet",
            svc("None"),
            [],
            pods=None,
            settings={"opt_in": True},
        ),
        Case(
            "without the option",
            annotated(svc("10.0.0.1"), {"kubesync.io/include": "false"}),
            ["web.shop.svc.k8s.example.com A 30 10.0.0.1"],
        ),
    ],
)
