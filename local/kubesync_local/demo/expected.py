"""The expected result of the story, written by hand from the story and the contracts for DNS and upstreams.

Nothing here is computed. Cluster IPs come in the order in which services are made (10.68.0.16 is test-hello's, which is
deleted in the end), pods in the order in which they start (10.42.0.2 to .5 were test-hello's; web begins at .6, pg at .9,
dns at .12; .14 to .16 came and went when web was scaled to five and back).
"""

from typing import Final

from kubesync_local.demo.outside import Records, Upstreams

_PODS_OF_PG: Final = ("10.42.0.9", "10.42.0.10", "10.42.0.11")

RECORDS: Final[Records] = {
    # ClusterIP: an A record, and SRV for each named port.
    ("kubernetes.default.svc.demo.example.com", "A"): (30, ("10.68.0.1",)),
    ("_https._tcp.kubernetes.default.svc.demo.example.com", "SRV"): (
        30,
        ("0 100 443 kubernetes.default.svc.demo.example.com.",),
    ),
    ("web.shop.svc.demo.example.com", "A"): (30, ("10.68.0.17",)),
    ("_http._tcp.web.shop.svc.demo.example.com", "SRV"): (30, ("0 100 80 web.shop.svc.demo.example.com.",)),
    ("_metrics._tcp.web.shop.svc.demo.example.com", "SRV"): (30, ("0 100 9090 web.shop.svc.demo.example.com.",)),
    # Created again with the same name, with IPv4 only: the AAAA record of the first one is deleted.
    ("web-dual.shop.svc.demo.example.com", "A"): (30, ("10.68.0.25",)),
    ("_http._tcp.web-dual.shop.svc.demo.example.com", "SRV"): (30, ("0 100 80 web-dual.shop.svc.demo.example.com.",)),
    # A LoadBalancer by host name (CNAME) that became a ClusterIP service; the annotated name changed with it.
    ("web-lb.shop.svc.demo.example.com", "A"): (30, ("10.68.0.18",)),
    ("_http._tcp.web-lb.shop.svc.demo.example.com", "SRV"): (30, ("0 100 80 web-lb.shop.svc.demo.example.com.",)),
    ("shop.example.com", "A"): (30, ("10.68.0.18",)),
    # A LoadBalancer by addresses.
    ("web-lb-ip.shop.svc.demo.example.com", "A"): (30, ("203.0.113.10", "203.0.113.11")),
    ("web-lb-ip.shop.svc.demo.example.com", "AAAA"): (30, ("2001:db8::10",)),
    ("_http._tcp.web-lb-ip.shop.svc.demo.example.com", "SRV"): (
        30,
        ("0 100 80 web-lb-ip.shop.svc.demo.example.com.",),
    ),
    # An Ingress: the host of its rule, at its load balancer. It was there before the first session.
    ("store.example.com", "CNAME"): (30, ("k8s-shop-store-1.eu-west-1.elb.amazonaws.com.",)),
    # ExternalName, after its change.
    ("docs.shop.svc.demo.example.com", "CNAME"): (30, ("docs2.partner.example.org.",)),
    # Headless, with the host names of a stateful set; pg-boot selects the same pods, which belong to another set.
    ("pg.data.svc.demo.example.com", "A"): (30, _PODS_OF_PG),
    ("pg-0.pg.data.svc.demo.example.com", "A"): (30, ("10.42.0.9",)),
    ("pg-1.pg.data.svc.demo.example.com", "A"): (30, ("10.42.0.10",)),
    ("pg-2.pg.data.svc.demo.example.com", "A"): (30, ("10.42.0.11",)),
    ("_pg._tcp.pg.data.svc.demo.example.com", "SRV"): (
        30,
        (
            "0 33 5432 pg-0.pg.data.svc.demo.example.com.",
            "0 33 5432 pg-1.pg.data.svc.demo.example.com.",
            "0 33 5432 pg-2.pg.data.svc.demo.example.com.",
        ),
    ),
    ("pg-boot.data.svc.demo.example.com", "A"): (30, _PODS_OF_PG),
    # UDP and TCP on one port number.
    ("dns.edge.svc.demo.example.com", "A"): (30, ("10.68.0.21",)),
    ("_dns._udp.dns.edge.svc.demo.example.com", "SRV"): (30, ("0 100 53 dns.edge.svc.demo.example.com.",)),
    ("_dns-tcp._tcp.dns.edge.svc.demo.example.com", "SRV"): (30, ("0 100 53 dns.edge.svc.demo.example.com.",)),
    # A cluster IP has its record with or without pods; a port without a name has no SRV.
    ("no-selector.edge.svc.demo.example.com", "A"): (30, ("10.68.0.22",)),
    ("_tcp._tcp.no-selector.edge.svc.demo.example.com", "SRV"): (
        30,
        ("0 100 3306 no-selector.edge.svc.demo.example.com.",),
    ),
    ("idle.edge.svc.demo.example.com", "A"): (30, ("10.68.0.23",)),
    ("crowd.edge.svc.demo.example.com", "A"): (30, ("10.68.0.24",)),
    ("_http._tcp.crowd.edge.svc.demo.example.com", "SRV"): (30, ("0 100 80 crowd.edge.svc.demo.example.com.",)),
}

_WEB_8080: Final = ("10.42.0.6:8080", "10.42.0.17:8080", "10.42.0.18:8080")

UPSTREAMS: Final[Upstreams] = {
    "demo/data/pg-boot/5432/TCP": ("10.42.0.9:5432", "10.42.0.10:5432", "10.42.0.11:5432"),
    "demo/data/pg/5432/TCP": ("10.42.0.9:5432", "10.42.0.10:5432", "10.42.0.11:5432"),
    "demo/default/kubernetes/443/TCP": ("192.0.2.2:6443",),
    "demo/edge/crowd/80/TCP": (),
    "demo/edge/dns/53/TCP": ("10.42.0.12:53", "10.42.0.13:53"),
    "demo/edge/dns/53/UDP": ("10.42.0.12:53", "10.42.0.13:53"),
    "demo/edge/idle/80/TCP": (),
    "demo/edge/no-selector/3306/TCP": ("192.168.7.7:3306", "!192.168.7.8:3306", "192.168.7.9:3307"),
    "demo/shop/web-dual/80/TCP": _WEB_8080,
    "demo/shop/web-lb-ip/80/TCP": (
        *_WEB_8080,
        "[fd00:10:42::6]:8080",
        "[fd00:10:42::11]:8080",
        "[fd00:10:42::12]:8080",
    ),
    "demo/shop/web-lb/80/TCP": _WEB_8080,
    "demo/shop/web/80/TCP": _WEB_8080,
    "demo/shop/web/9090/TCP": ("10.42.0.6:9090", "10.42.0.17:9090", "10.42.0.18:9090"),
}
