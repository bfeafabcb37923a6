"""Objects of a hostile namespace, drawn from a seed, as an API server lists them.

Everything here passes the validation of a real API server: names and labels have the allowed form, an object has at most 1 MB, all
annotations together at most 256 KB. What annotations say is up to whoever writes them.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from harness.seen.builders import EXTERNAL_DNS

NAMESPACE: Final = "evil"
MAX_ANNOTATIONS: Final = 262_144  # bytes, keys and values together (Kubernetes, "Annotations")
_NEWER: Final = "external-dns.kubernetes.io/"
# ``domain`` is what follows; see ``harness.hostile.outside``.
_OTHERS: Final = (
    "web.shop.svc.prod.example.com",
    "later.shop.svc.prod.example.com",
    "shop.example.com",
    "www.shop.example.com",
    "kubernetes.default.svc.prod.example.com",
    "web.shop.svc.edge.example.com",
    "mail.example.com",
    "example.com",
    "prod.example.com",
    "svc.prod.example.com",
    "_kubesync-bench-0.example.com",
)
_LABELS: Final = (
    "*",
    "_http",
    "_tcp",
    "a",
    "www",
    "web",
    "later",
    "shop",
    "svc",
    "prod",
    "edge",
    "x-y",
    "xn--bcher-kva",
)
_ODD: Final = ("bücher", "ﬀ", "\u200b", "\u202eevil", "😈", "İ", "\x00", "a" * 64, "-", "", " ", "٣", "ß", "\t\n")
FORBIDDEN: Final = (
    "127.0.0.1",
    "169.254.169.254",
    "::1",
    "fd00:ec2::254",
    "64:ff9b::a9fe:a9fe",
    "0.0.0.0",
    "224.0.0.1",
)
"""Addresses that nobody may be pointed at."""
_TARGETS: Final = (
    "192.0.2.66",
    "2001:db8::66",
    "evil.example.org",
    "shop.example.com",
    "::ffff:192.0.2.1",
    "999.1.1.1",
    "",
    *FORBIDDEN,
)
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")
"""A host of an Ingress, as an API server takes it."""
_NUMBERS: Final = ("1", "86400", "never", "-1", "1" * 400, "1e9", "0x10", "٣", "2147483648", "255", "")


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much there is of everything. An object is a Service or an EndpointSlice.

    Args:
        objects: of the namespace, Ingresses apart.
        ports, slices, endpoints: at most so many of a Service, of a Service, of a slice.
        annotation_bytes: of a Service whose annotations are large.
        large_each: one of so many objects is as large as it may be.
        ingresses, rules: of the namespace; of a large Ingress, as many hosts again in ``spec.tls``.
    """

    objects: int
    ports: int = 100
    slices: int = 60
    endpoints: int = 1_000
    annotation_bytes: int = 250_000
    large_each: int = 50
    ingresses: int = 100
    rules: int = 10_000


WHOLE: Final = Amounts(1_000)
SMALL: Final = Amounts(
    60, ports=20, slices=4, endpoints=100, annotation_bytes=20_000, large_each=8, ingresses=10, rules=500
)


class Hostile:
    """Draws objects. The same seed draws the same ones."""

    def __init__(self, seed: int, amounts: Amounts) -> None:
        self._chance = random.Random(f"hostile {seed}")
        self._amounts = amounts
        self._numbers = 0

    def objects(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Services and slices, ``amounts.objects`` of them. The first Service has as much of everything as there may be."""
        services, slices = [self.service("worst")], list[dict[str, Any]]()
        ports = [{"name": f"p{number}", "protocol": "TCP", "port": 1 + number} for number in range(self._amounts.ports)]
        services[0]["spec"] = {
            "type": "ClusterIP",
            "clusterIP": "10.66.0.1",
            "clusterIPs": ["10.66.0.1"],
            "ports": ports,
        }
        slices += self.slices("worst", ports, self._amounts.slices, worst=True)
        while (left := self._amounts.objects - len(services) - len(slices)) > 0:
            name = f"svc-{len(services):04d}"
            services.append(service := self.service(name))
            slices += self.slices(name, service["spec"].get("ports", []), left - 1)
        return services, slices

    def service(self, name: str) -> dict[str, Any]:
        """A Service of this name, whatever else it is."""
        chance = self._chance
        kind = chance.choice(
            ("ClusterIP", "ClusterIP", "ClusterIP", "headless", "LoadBalancer", "ExternalName", "NodePort")
        )
        spec: dict[str, Any] = {"type": "ClusterIP" if kind == "headless" else kind}
        status: dict[str, Any] = {"loadBalancer": {}}
        if kind == "ExternalName":
            spec["externalName"] = chance.choice(
                ("evil.example.org", "web.shop.svc.prod.example.com", "192.0.2.66", "a." * 120 + "b")
            )
        else:
            address = "None" if kind == "headless" else f"10.66.{chance.randrange(256)}.{chance.randrange(256)}"
            spec |= {"clusterIP": address, "clusterIPs": [address], "ports": list(self._ports())}
            spec["publishNotReadyAddresses"] = chance.random() < 0.3
        if kind == "LoadBalancer":
            status["loadBalancer"]["ingress"] = [self._ingress() for _ in range(chance.choice((0, 1, 3, 300)))]
        metadata = self._metadata(name)
        metadata["annotations"] = self._annotations()
        return {"metadata": metadata, "spec": spec, "status": status}

    def slices(
        self, service: str, ports: list[dict[str, Any]], most: int, *, worst: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Slices of a Service: usually few, now and then as many as there may be."""
        chance, amounts = self._chance, self._amounts
        count = amounts.slices if worst or self._large() else chance.choice((0, 1, 1, 2, 3))
        for number in range(min(count, most)):
            endpoints = amounts.endpoints if count == amounts.slices or self._large() else chance.randint(0, 40)
            long = 200 if self._large() else 20
            metadata = self._metadata(f"{service}-{number:03d}")
            metadata["labels"]["kubernetes.io/service-name"] = service
            yield {
                "metadata": metadata,
                "addressType": (family := chance.choice(("IPv4", "IPv4", "IPv4", "IPv6", "FQDN"))),
                "endpoints": [self._endpoint(family, long) for _ in range(endpoints)],
                "ports": [
                    {"name": p["name"], "protocol": p["protocol"], "port": chance.randint(1, 65_535)} for p in ports
                ],
            }

    def ingresses(self) -> Iterator[dict[str, Any]]:
        """``amounts.ingresses`` of them. The first has as many hosts as there may be."""
        return (self.ingress(f"ing-{number:03d}", worst=number == 0) for number in range(self._amounts.ingresses))

    def ingress(self, name: str, *, worst: bool = False) -> dict[str, Any]:
        """An Ingress of this name. Its owner may write its status too."""
        chance = self._chance
        count = self._amounts.rules if worst or self._large() else chance.randint(0, 20)
        rules, tls = ([host for host in self._names(count) if _HOST.fullmatch(host)] for _ in range(2))
        metadata = self._metadata(name)
        metadata["annotations"] = self._annotations()
        if chance.random() < 0.2:
            words = ("annotation-only", "defined-hosts-only", "😈")
            metadata["annotations"][EXTERNAL_DNS + "ingress-hostname-source"] = chance.choice(words)
        return {
            "metadata": metadata,
            "spec": {"rules": [{"host": host} for host in rules], "tls": [{"hosts": tls}]},
            "status": {"loadBalancer": {"ingress": [self._ingress() for _ in range(chance.choice((0, 1, 300)))]}},
        }

    # --- parts ---

    def _large(self) -> bool:
        return self._chance.randrange(self._amounts.large_each) == 0

    def _ports(self) -> Iterator[dict[str, Any]]:
        count = self._amounts.ports if self._large() else self._chance.randint(1, 5)
        for number in range(count):
            protocol = self._chance.choice(("TCP", "TCP", "UDP", "SCTP"))
            name = f"p{number}" if count > 1 else self._chance.choice(("", "http", "p" * 15))
            yield {"name": name, "protocol": protocol, "port": 1 + number}

    def _ingress(self) -> dict[str, Any]:
        chance = self._chance
        if chance.random() < 0.5:
            return {"ip": chance.choice((f"192.0.2.{chance.randrange(256)}", *FORBIDDEN[:2]))}
        return {"hostname": chance.choice(("lb.example.net", "shop.example.com", "LB." + "x" * 60 + ".example.net"))}

    def _endpoint(self, family: str, long: int) -> dict[str, Any]:
        chance = self._chance
        number = chance.getrandbits(24)
        address = {
            "IPv4": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
            "IPv6": f"fd66::{number >> 8:x}:{number & 255:x}",
            "FQDN": f"e{number}.example.org",
        }[family]
        if family == "IPv6" and chance.random() < 0.05:
            address = chance.choice(FORBIDDEN[3:5])  # an API server lets these in
        found: dict[str, Any] = {
            "addresses": [address],
            "conditions": {"ready": chance.random() < 0.8, "serving": chance.random() < 0.8, "terminating": False},
            "nodeName": f"node-{chance.randrange(5_000)}.{'n' * long}",
            "zone": f"zone-{chance.randrange(50)}",
            "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": f"pod-{number:x}-{'p' * long}"},
        }
        if chance.random() < 0.5:
            found["hostname"] = f"h{number % 700}-{'h' * 50}"
        return found

    def _metadata(self, name: str) -> dict[str, Any]:
        self._numbers += 1
        labels = {f"{'l' * 240}/{'k' * 60}-{n}": "v" * 63 for n in range(self._chance.choice((0, 0, 0, 3, 500)))}
        return {
            "name": name,
            "namespace": NAMESPACE,
            "uid": str(UUID(int=(0xE << 100) + self._numbers)),
            "creationTimestamp": f"20{self._chance.randint(10, 40)}-01-01T00:00:00Z",
            "labels": labels,
        }

    def _annotations(self) -> dict[str, str]:
        chance = self._chance
        prefix = chance.choice((EXTERNAL_DNS, _NEWER))
        found = {
            prefix + chance.choice(("hostname", "internal-hostname")): ",".join(self._names(chance.randint(0, 12)))
        }
        for name, values in (
            ("target", _TARGETS),
            ("ttl", _NUMBERS),
            ("aws-weight", _NUMBERS),
            ("set-identifier", ("evil", "prod", "shop", "i" * 128, "#wait#", "😈")),
            ("alias", ("true", "false", "A", "")),
            ("aws-region", ("eu-west-1", "")),
        ):
            if chance.random() < 0.25:
                found[prefix + name] = chance.choice(values)
        if chance.random() < 0.2:
            found[prefix + "target"] = ",".join(chance.choices(_TARGETS, k=chance.choice((2, 50))))
        if self._large():
            self._fill(found, prefix)
        return found

    def _fill(self, found: dict[str, str], prefix: str) -> None:
        """As much text as there is room for: in one list that kubesync reads, or in many that it does not."""
        chance, room = self._chance, self._amounts.annotation_bytes - 4_096
        what = chance.choice(("hostname", "target", "other", "keys"))
        if what == "keys":
            found |= {f"evil.example.org/{number}": "v" * 100 for number in range(room // 130)}
        elif what == "other":
            found["evil.example.org/blob"] = "😈" * (room // 4)
        else:
            made: list[str] = []
            while room > 0:
                made.append(next(self._names(1)) if what == "hostname" else f"10.{len(made) >> 8}.{len(made) & 255}.1")
                room -= len(made[-1].encode("utf-8")) + 1
            found[prefix + what] = ",".join(made)
        used = sum(len(text.encode("utf-8")) for pair in found.items() for text in pair)
        assert used <= MAX_ANNOTATIONS, "an API server would refuse it"

    def _names(self, count: int) -> Iterator[str]:
        """Names of others, above, below and beside them, in every spelling, and what is no name."""
        chance = self._chance
        for _ in range(count):
            name = chance.choice(_OTHERS)
            how = chance.randrange(9)
            if how == 0:
                name = ".".join([*chance.choices(_LABELS, k=chance.randint(1, 3)), name])
            elif how == 1:
                name = f"*.{name.partition('.')[2]}"
            elif how == 2:
                name = ".".join([*chance.choices(_LABELS, k=chance.randint(0, 4)), "example.com"])
            elif how == 3:
                name = name.upper() + "."
            elif how == 4:
                name = f"  {name} "
            elif how == 5:
                name = f"{chance.choice(_ODD)}.{name}"
            elif how == 6:
                name = f"n{chance.randrange(100_000)}.example.com"
            elif how == 7:
                name = ".".join([*(("x" * 60,) * 4), name])
            yield name
