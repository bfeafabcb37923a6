"""Cases of addresses: those that nobody may newly be pointed at, and networks that a cluster keeps to."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.notation import pods, svc
from harness.dns_cases.table import Case, Rule
from kubesync.domain.dns.addresses import Network, parse_network

_OWN: Final = "web.shop.svc.k8s.example.com"


def networks(*texts: str) -> tuple[Network, ...]:
    """Networks in CIDR notation."""
    return tuple(network for text in texts if (network := parse_network(text)) is not None)


ADDRESSES: Final = Rule(
    "Addresses that are not let in",
    "No name newly leads to a loopback, link-local, unspecified, multicast or broadcast address, or to an address of "
    "`fd00:ec2::/32`, where AWS serves instance metadata and credentials. This counts for all sources of addresses, and for IPv4 "
    "addresses that are written as IPv6. A value that a name of the Service has already stays there as long as the Service asks for it. "
    "kubesync reports both.",
    [
        Case(
            "the metadata service", svc("10.0.0.1", target="169.254.169.254"), [], ["AddressNotAllowed 169.254.169.254"]
        ),
        Case(
            "among others",
            svc("10.0.0.1", target="192.0.2.1,127.0.0.1,::1,2001:db8::1"),
            [f"{_OWN} A 30 192.0.2.1", f"{_OWN} AAAA 30 2001:db8::1"],
            ["AddressNotAllowed 127.0.0.1", "AddressNotAllowed ::1"],
        ),
        Case(
            "a host name beside it is published",
            svc("10.0.0.1", target="127.0.0.1,lb.example.net"),
            [f"{_OWN} CNAME 30 lb.example.net."],
            ["AddressNotAllowed 127.0.0.1"],
        ),
        Case("written as IPv6", svc("10.0.0.1", target="::ffff:127.0.0.1"), [], ["AddressNotAllowed 127.0.0.1"]),
        Case(
            "through NAT64", svc("10.0.0.1", target="64:ff9b::a9fe:a9fe"), [], ["AddressNotAllowed 64:ff9b::a9fe:a9fe"]
        ),
        Case("of services of AWS", svc("10.0.0.1", target="fd00:ec2::254"), [], ["AddressNotAllowed fd00:ec2::254"]),
        Case(
            "unspecified",
            svc("10.0.0.1", target="0.0.0.0,::"),
            [],
            ["AddressNotAllowed 0.0.0.0", "AddressNotAllowed ::"],
        ),
        Case(
            "multicast and broadcast",
            svc("10.0.0.1", target="224.0.0.251,255.255.255.255,ff02::fb"),
            [],
            ["AddressNotAllowed 224.0.0.251", "AddressNotAllowed 255.255.255.255", "AddressNotAllowed ff02::fb"],
        ),
        Case("of a load balancer", svc("10.0.0.1", status=["127.0.0.1"]), [], ["AddressNotAllowed 127.0.0.1"]),
        Case(
            "a cluster IP, with a port",
            svc("127.0.0.1", ports=["http 80/TCP"], internal_hostname="in.example.com"),
            [],
            ["AddressNotAllowed 127.0.0.1"],
        ),
        Case(
            "of endpoints, with host names",
            svc("None", ports=["http 80/TCP"]),
            [
                f"_http._tcp.{_OWN} SRV 30 0 100 8080 web-0.{_OWN}.",
                f"web-0.{_OWN} A 30 10.1.0.1",
                f"{_OWN} A 30 10.1.0.1",
            ],
            ["AddressNotAllowed fe80::1"],
            pods=[pods("10.1.0.1 host=web-0", "fe80::1 host=web-1")],
        ),
        Case(
            "it stands already",
            svc("10.0.0.1", target="127.0.0.1"),
            [f"{_OWN} A 30 127.0.0.1"],
            ["AddressNotAllowed 127.0.0.1"],
            stands=[f"{_OWN} A 30 127.0.0.1"],
        ),
        Case(
            "it stands already, and one is new",
            svc("10.0.0.1", target="127.0.0.1,127.0.0.2"),
            [f"{_OWN} A 30 127.0.0.1"],
            ["AddressNotAllowed 127.0.0.1", "AddressNotAllowed 127.0.0.2"],
            stands=[f"{_OWN} A 30 127.0.0.1"],
        ),
        Case(
            "it stands already, and a name is new",
            svc("10.0.0.1", target="127.0.0.1", hostname="www.example.com"),
            [f"{_OWN} A 30 127.0.0.1"],
            ["AddressNotAllowed 127.0.0.1", "AddressNotAllowed 127.0.0.1"],
            stands=[f"{_OWN} A 30 127.0.0.1"],
        ),
        Case("private addresses are let in", svc("10.0.0.1", target="192.168.0.1"), [f"{_OWN} A 30 192.168.0.1"]),
    ],
)

NETWORKS: Final = Rule(
    "Networks of a cluster",
    "With `--target-net-filter`, a cluster publishes only addresses of these networks, from whatever source; host names do not matter. "
    "With `--endpoint-cidrs`, endpoints outside these networks are in no record set and no upstream. A person gives these options, "
    "so what stands outside them goes.",
    [
        Case(
            "targets",
            svc("10.0.0.1", target="192.0.2.1,10.0.0.9,2001:db8::1"),
            [f"{_OWN} A 30 192.0.2.1"],
            ["AddressNotAllowed 10.0.0.9", "AddressNotAllowed 2001:db8::1"],
            settings={"target_nets": networks("192.0.2.0/24")},
        ),
        Case(
            "several networks",
            svc("10.0.0.1", target="192.0.2.1,2001:db8::1"),
            [f"{_OWN} A 30 192.0.2.1", f"{_OWN} AAAA 30 2001:db8::1"],
            settings={"target_nets": networks("192.0.2.0/24", "2001:db8::/32")},
        ),
        Case(
            "a host name as target",
            svc("10.0.0.1", target="lb.example.net"),
            [f"{_OWN} CNAME 30 lb.example.net."],
            settings={"target_nets": networks("192.0.2.0/24")},
        ),
        Case(
            "addresses of the cluster",
            svc("10.0.0.1", status=["192.0.2.1"], internal_hostname="in.example.com"),
            [f"{_OWN} A 30 192.0.2.1"],
            ["AddressNotAllowed 10.0.0.1"],
            settings={"target_nets": networks("192.0.2.0/24")},
        ),
        Case(
            "it stands already",
            svc("10.0.0.1", target="10.0.0.9"),
            [],
            ["AddressNotAllowed 10.0.0.9"],
            settings={"target_nets": networks("192.0.2.0/24")},
            stands=[f"{_OWN} A 30 10.0.0.9"],
        ),
        Case(
            "loopback in such a network",
            svc("10.0.0.1", target="127.0.0.1"),
            [],
            ["AddressNotAllowed 127.0.0.1"],
            settings={"target_nets": networks("0.0.0.0/0")},
        ),
        Case(
            "endpoints",
            svc("None", ports=["http 80/TCP"]),
            [
                f"_http._tcp.{_OWN} SRV 30 0 100 8080 web-0.{_OWN}.",
                f"web-0.{_OWN} A 30 10.1.0.1",
                f"{_OWN} A 30 10.1.0.1",
            ],
            ["AddressNotAllowed 10.2.0.1"],
            pods=[pods("10.1.0.1 host=web-0", "10.2.0.1 host=web-1")],
            settings={"endpoint_nets": networks("10.1.0.0/16")},
        ),
        Case(
            "endpoints do not concern other addresses",
            svc("10.0.0.1", target="192.0.2.1"),
            [f"{_OWN} A 30 192.0.2.1"],
            ["AddressNotAllowed 10.2.0.1"],
            pods=[pods("10.2.0.1")],
            settings={"endpoint_nets": networks("10.1.0.0/16")},
        ),
    ],
)
