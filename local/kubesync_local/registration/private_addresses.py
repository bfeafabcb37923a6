"""Addresses of private networks in public hosted zones: everybody can read them, and only their own network can reach them. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.dns.addresses import lies_in, parse_address, parse_networks
from kubesync.domain.dns.records import RecordKey, RecordSet

# RFC 1918 and 4193, and the addresses that carriers and EKS give to what is behind them (RFC 6598).
_PRIVATE: Final = parse_networks(("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"))

CLUSTER_IP: Final = "(its cluster IP)"
"""What plans of manifests show of a Service that no cluster has yet."""


@dataclass(frozen=True, slots=True)
class Exposed:
    """Record sets of one public zone with private addresses: how many, and one of them."""

    zone: str
    zone_name: str
    record_sets: int
    example: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "zone": self.zone,
            "zone_name": self.zone_name,
            "record_sets": self.record_sets,
            "example": self.example,
        }


def is_private(text: str) -> bool:
    """Whether it is an address of a private network; a cluster IP that is not known yet is one too."""
    address = parse_address(text)
    return lies_in(address, _PRIVATE) if address is not None else text == CLUSTER_IP


def exposed(records: Iterable[Mapping[RecordKey, RecordSet]], config: ClusterConfig) -> Iterator[Exposed]:
    """What a cluster's record sets put into its public zones."""
    names = {zone.id: zone.name for zone in config.zones if not zone.private}
    found: dict[str, list[str]] = {zone_id: [] for zone_id in names}
    for sets in records if names else ():
        for key, record_set in sets.items():
            if key.zone_id in names and key.type in ("A", "AAAA"):
                private = next(filter(is_private, record_set.values), "")
                found[key.zone_id] += [f"{key.name} {private}"] if private else []
    yield from (Exposed(zone, names[zone], len(sets), min(sets)) for zone, sets in sorted(found.items()) if sets)


def in_words(zone_name: str, record_sets: int, example: str) -> str:
    """For people."""
    if record_sets == 1:
        return (
            f"a record set has a private address in the public zone {zone_name}: {example}; nobody outside can reach it"
        )
    return f"{record_sets} record sets have private addresses in the public zone {zone_name}, such as {example}: nobody outside can reach them"
