"""Cases of headless Services: addresses, host names and SRV of endpoints."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.notation import pods, svc
from harness.dns_cases.table import UNKNOWN, Case, Rule

HEADLESS: Final = Rule(
    "Headless",
    "The name gets the addresses of ready endpoints, also without ports. With `publishNotReadyAddresses` it "
    "gets those of all endpoints. Each of these endpoints that has a host name also gets A and AAAA at "
    "`<hostname>.<name>`. Each named port of the Service gets SRV records over the same host names:\n\n"
    "- There is one value for each different pair of host name and endpoint port.\n"
    "- The value is `0 <weight> <endpoint port> <hostname>.<name>.`\n"
    "- If there are n such pairs, the weight is 100 ÷ n, rounded down, but at least 1.",
    [
        Case("endpoints are not known yet", svc("None"), [UNKNOWN], pods=None),
        Case("no endpoints", svc("None", ports=["http 80/TCP"]), []),
        Case(
            "ready endpoints",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2"],
            pods=[pods("10.1.0.2", "10.1.0.1")],
        ),
        Case(
            "an endpoint that is not ready",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            pods=[pods("10.1.0.1", "10.1.0.2 not-ready")],
        ),
        Case("no endpoint is ready", svc("None"), [], pods=[pods("10.1.0.1 not-ready", "10.1.0.2 not-ready")]),
        Case(
            "an endpoint that is not ready, publishNotReadyAddresses",
            svc("None", not_ready_too=True),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2"],
            pods=[pods("10.1.0.1", "10.1.0.2 not-ready")],
        ),
        Case(
            "a host name that is not ready",
            svc("None", ports=["http 80/TCP"]),
            [],
            pods=[pods("10.1.0.1 host=web-0 not-ready")],
        ),
        Case(
            "a host name that is not ready, publishNotReadyAddresses",
            svc("None", ports=["http 80/TCP"], not_ready_too=True),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 8080 web-0.web.shop.svc.k8s.example.com.",
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1",
            ],
            pods=[pods("10.1.0.1 host=web-0 not-ready")],
        ),
        Case(
            "duplicate pod addresses",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            pods=[pods("10.1.0.1", "10.1.0.1"), pods("10.1.0.1", ports=["https 8443/TCP"])],
        ),
        Case(
            "one address in two notations",
            svc("None"),
            ["web.shop.svc.k8s.example.com AAAA 30 fd00::1"],
            pods=[pods("fd00::1", "FD00:0:0::1")],
        ),
        Case(
            "an address that is ready in one slice and not in another",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            pods=[pods("10.1.0.1 not-ready"), pods("10.1.0.1")],
        ),
        Case(
            "both families, each in its own slice",
            svc("None"),
            [
                "web.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2",
                "web.shop.svc.k8s.example.com AAAA 30 fd00::1, fd00::2",
            ],
            pods=[pods("10.1.0.1", "10.1.0.2"), pods("fd00::1", "fd00::2")],
        ),
        Case(
            "both families with host names: one SRV value for each host name",
            svc("None", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 8080 web-0.web.shop.svc.k8s.example.com.",
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web-0.web.shop.svc.k8s.example.com AAAA 30 fd00::1",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web.shop.svc.k8s.example.com AAAA 30 fd00::1",
            ],
            pods=[pods("10.1.0.1 host=web-0"), pods("fd00::1 host=web-0")],
        ),
        Case(
            "without ports",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            pods=[pods("10.1.0.1", ports=[])],
        ),
        Case(
            "host names share the weight of 100",
            svc("None", ports=["http 80/TCP"]),
            [
                (
                    "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 33 8080 web-0.web.shop.svc.k8s.example.com., "
                    "0 33 8080 web-1.web.shop.svc.k8s.example.com., 0 33 8080 web-2.web.shop.svc.k8s.example.com."
                ),
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web-1.web.shop.svc.k8s.example.com A 30 10.1.0.2",
                "web-2.web.shop.svc.k8s.example.com A 30 10.1.0.3",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2, 10.1.0.3",
            ],
            pods=[pods("10.1.0.1 host=web-0", "10.1.0.2 host=web-1", "10.1.0.3 host=web-2")],
        ),
        Case(
            "two endpoints of one host name",
            svc("None", ports=["http 80/TCP"]),
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 8080 web-0.web.shop.svc.k8s.example.com.",
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2",
            ],
            pods=[pods("10.1.0.1 host=web-0", "10.1.0.2 host=web-0")],
        ),
        Case(
            "one host name on two ports",
            svc("None", ports=["http 80/TCP"]),
            [
                (
                    "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 50 8080 web-0.web.shop.svc.k8s.example.com., "
                    "0 50 9090 web-0.web.shop.svc.k8s.example.com."
                ),
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2",
            ],
            pods=[pods("10.1.0.1 host=web-0"), pods("10.1.0.2 host=web-0", ports=["http 9090/TCP"])],
        ),
        Case(
            "endpoints without a host name have no SRV",
            svc("None", ports=["http 80/TCP"]),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            pods=[pods("10.1.0.1")],
        ),
        Case(
            "a port of another name has no SRV",
            svc("None", ports=["metrics 9000/TCP"]),
            [
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1",
            ],
            pods=[pods("10.1.0.1 host=web-0")],
        ),
        Case(
            "a port of another protocol has no SRV",
            svc("None", ports=["http 80/UDP"]),
            [
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1",
            ],
            pods=[pods("10.1.0.1 host=web-0")],
        ),
        Case(
            "SRV switched off: host names stay",
            svc("None", ports=["http 80/TCP"]),
            [
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1",
            ],
            pods=[pods("10.1.0.1 host=web-0")],
            settings={"srv": False},
        ),
        Case(
            "a host name that is not a label",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            ["InvalidName a.b.web.shop.svc.k8s.example.com"],
            pods=[pods("10.1.0.1 host=a.b")],
        ),
        Case(
            "a host name in capitals",
            svc("None"),
            [
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1",
            ],
            pods=[pods("10.1.0.1 host=WEB-0")],
        ),
        Case(
            "not an address: left out",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            ["InvalidAddress pod.example.net"],
            pods=[pods("10.1.0.1", "pod.example.net")],
        ),
        Case(
            "an object over its capacity",
            svc("None"),
            ["web.shop.svc.k8s.example.com A 30 10.1.0.1"],
            ["EndpointsTruncated endpoints"],
            pods=[pods("10.1.0.1", truncated=True)],
        ),
        Case(
            "the same pods behind two headless Services",
            {"web": svc("None", ports=["http 80/TCP"]), "peers": svc("None", not_ready_too=True)},
            [
                "_http._tcp.web.shop.svc.k8s.example.com SRV 30 0 100 8080 web-0.web.shop.svc.k8s.example.com.",
                "peers.shop.svc.k8s.example.com A 30 10.1.0.1, 10.1.0.2",
                "web-0.peers.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web-0.web.shop.svc.k8s.example.com A 30 10.1.0.1",
                "web.shop.svc.k8s.example.com A 30 10.1.0.1",
            ],
            pods=[pods("10.1.0.1 host=web-0", "10.1.0.2 not-ready")],
        ),
    ],
)
