"""Cluster IPs and node ports, given out in order, so that a demo shows the same ones every time."""

import ipaddress
from typing import Final

from kubesync_local.standins.apiserver.objects.status import JsonObject

IPV4: Final = "IPv4"
IPV6: Final = "IPv6"
# The real server's default --service-node-port-range.
_NODE_PORTS: Final = range(30000, 32768)
# The first addresses of a range are reserved for statically assigned services (.1 kubernetes, .10 DNS by custom).
_FIRST_OFFSET: Final = 16


class ExhaustedError(Exception):
    """The range is used up."""


class TakenError(Exception):
    """The value is allocated to another service; the message is the real server's."""


class OutOfRangeError(Exception):
    """The value is outside the server's range; the message is the real server's."""


class AddressRange:
    """One service CIDR. Addresses come in order and are given out again only after the whole range was used."""

    def __init__(self, cidr: str) -> None:
        self.network = ipaddress.ip_network(cidr)
        self._next = _FIRST_OFFSET
        self._used: set[str] = set()

    def allocate(self) -> str:
        """The next free address. Raises ExhaustedError."""
        size = self.network.num_addresses - 1
        for _ in range(size):
            offset, self._next = self._next, self._next + 1 if self._next + 1 < size else 1
            address = str(self.network[offset])
            if address not in self._used:
                self._used.add(address)
                return address
        raise ExhaustedError(f"range is full: {self.network}")

    def claim(self, address: str) -> None:
        """Take a given address. Raises OutOfRangeError, TakenError."""
        if ipaddress.ip_address(address) not in self.network:
            raise OutOfRangeError(
                f"failed to allocate IP {address}: the provided IP is not in the valid range. The range of valid IPs is "
                f"{self.network}"
            )
        if address in self._used:
            raise TakenError(f"failed to allocate IP {address}: provided IP is already allocated")
        self._used.add(address)

    def release(self, address: str) -> None:
        """Release it."""
        self._used.discard(address)

    def note(self, address: str) -> None:
        """Mark an address of an installed object as used, in range or not."""
        self._used.add(address)


class ServiceAllocations:
    """The addresses and node ports that services hold, by family. Not thread-safe: guarded by the store's lock."""

    def __init__(self, ipv4_cidr: str = "10.68.0.0/16", ipv6_cidr: str | None = "fd00:10:68::/112") -> None:
        """``ipv6_cidr`` None: a server with IPv4 only."""
        self.ranges = {IPV4: AddressRange(ipv4_cidr)}
        if ipv6_cidr is not None:
            self.ranges[IPV6] = AddressRange(ipv6_cidr)
        self._node_ports: set[tuple[int, str]] = set()
        self._next_node_port = _NODE_PORTS.start

    def allocate_node_port(self, protocol: str) -> int:
        """The next free node port. Raises ExhaustedError."""
        for _ in _NODE_PORTS:
            port = self._next_node_port
            self._next_node_port = port + 1 if port + 1 in _NODE_PORTS else _NODE_PORTS.start
            if (port, protocol) not in self._node_ports:
                self._node_ports.add((port, protocol))
                return port
        raise ExhaustedError("range is full")

    def claim_node_port(self, port: int, protocol: str) -> None:
        """Take a given node port. Raises OutOfRangeError, TakenError."""
        if port not in _NODE_PORTS:
            raise OutOfRangeError(
                f"provided port is not in the valid range. The range of valid ports is "
                f"{_NODE_PORTS.start}-{_NODE_PORTS.stop - 1}"
            )
        if (port, protocol) in self._node_ports:
            raise TakenError("provided port is already allocated")
        self._node_ports.add((port, protocol))

    def release_node_port(self, port: int, protocol: str) -> None:
        """Release it."""
        self._node_ports.discard((port, protocol))

    def note(self, service: JsonObject) -> None:
        """Mark what an installed service holds."""
        spec = service.get("spec", {})
        for address in spec.get("clusterIPs", ()):
            if address != "None":
                self.ranges.get(family_of(address), self.ranges[IPV4]).note(address)
        for port in spec.get("ports", ()):
            if port.get("nodePort"):
                self._node_ports.add((port["nodePort"], port.get("protocol", "TCP")))

    def release(self, service: JsonObject) -> None:
        """Release what a service holds."""
        spec = service.get("spec", {})
        for address in spec.get("clusterIPs", ()):
            self.release_address(address)
        for port in spec.get("ports", ()):
            self.release_node_port(port.get("nodePort", 0), port.get("protocol", "TCP"))

    def release_address(self, address: str) -> None:
        """Release a cluster IP; ``None`` (headless) is ignored."""
        if address != "None" and family_of(address) in self.ranges:
            self.ranges[family_of(address)].release(address)


def family_of(address: str) -> str:
    """``IPv4`` or ``IPv6``. Raises ValueError if it is not an address."""
    return IPV6 if ipaddress.ip_address(address).version == 6 else IPV4
