"""Files of Envoy's filesystem subscriptions: endpoints (EDS), and the clusters that read them (CDS).

https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/endpoint/v3/endpoint.proto

Envoy takes exactly one upstream from a file of endpoints ("Unexpected EDS resource length"). So ``EnvoyDirectory`` writes one file
for each upstream and ``clusters.json``. ``EnvoyFile`` writes one file; with several upstreams it is for people to look at.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from kubesync_local.proxies.bounds import Place
from kubesync_local.proxies.formats.form import read_place
from kubesync_local.proxies.names import dotted, is_key, protocol_of
from kubesync_local.proxies.servers import Server

CLUSTERS: Final = "clusters.json"
_ENDPOINTS: Final = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
_CLUSTER: Final = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
# One healthy server of a tier counts as 100 % of it: later tiers are used only while no server of it works, as in nginx and HAProxy.
# By default Envoy begins to use the next tier below 72 % healthy servers, and a draining server is not healthy.
_NEVER_SPILL: Final = 1_000_000


class EnvoyFile:
    """One DiscoveryResponse of ClusterLoadAssignments. Draining servers have the health status DRAINING."""

    protocols: tuple[str, ...] = ("TCP", "UDP")

    def block(self, key: str, version: int, servers: tuple[Server, ...]) -> str:
        del version
        assignment: dict[str, Any] = {"@type": _ENDPOINTS, "cluster_name": key, "endpoints": _localities(key, servers)}
        if any(server.tier for server in servers):
            assignment["policy"] = {"overprovisioning_factor": _NEVER_SPILL}
        return _response([assignment])

    def files(self, blocks: Mapping[str, str]) -> dict[str, str]:
        return {"": _response([_resource(blocks[key]) for key in sorted(blocks)])}

    def blocks(self, files: Mapping[str, str]) -> dict[str, str]:
        return {
            each["cluster_name"]: _response([each]) for text in files.values() for each in _resources(text, _ENDPOINTS)
        }

    def has_servers(self, block: str) -> bool:
        return bool(_resource(block).get("endpoints"))

    def places(self, block: str) -> frozenset[Place]:
        try:
            entries = _resource(block).get("endpoints", [])
            sockets = [
                each["endpoint"]["address"]["socket_address"] for entry in entries for each in entry["lb_endpoints"]
            ]
            return frozenset(place for each in sockets for place in read_place(each["address"], each["port_value"]))
        except (KeyError, TypeError, AttributeError):  # not as this format writes it
            return frozenset()

    def is_own(self, text: str) -> bool:
        return bool(_resources(text, _ENDPOINTS) or _resources(text, _CLUSTER))


class EnvoyDirectory(EnvoyFile):
    """A file of endpoints for each upstream, and the clusters in ``clusters.json``, which name those files.

    Args:
        directory: absolute; Envoy reads the files there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def files(self, blocks: Mapping[str, str]) -> dict[str, str]:
        # The clusters come last: a cluster that names a file which does not exist yet would wait for it.
        files = {f"{dotted(key)}.json": blocks[key] for key in sorted(blocks)}
        return {**files, CLUSTERS: _response([self._cluster(key) for key in sorted(blocks)])}

    def _cluster(self, key: str) -> dict[str, Any]:
        path = str(self._directory / f"{dotted(key)}.json")
        source = {"resource_api_version": "V3", "path_config_source": {"path": path}}
        return {
            "@type": _CLUSTER,
            "name": key,
            "type": "EDS",
            "connect_timeout": "1s",
            "eds_cluster_config": {"service_name": key, "eds_config": source},
            # With panic routing Envoy would send requests to draining servers as soon as they are the majority.
            "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
            # By default only three requests at a time are tried again: too few in the moment when many pods go.
            "circuit_breakers": {"thresholds": [{"max_retries": 1024}]},
        }


def _localities(key: str, servers: Sequence[Server]) -> list[dict[str, Any]]:
    """One entry for each tier and zone. A draining server stands in the first tier: it takes no part in the choice."""

    def place(server: Server) -> tuple[int, str]:
        return server.tier, server.zone

    entries = []
    for (tier, zone), members in groupby(sorted(servers, key=lambda s: (place(s), s.address, s.port)), key=place):
        entry: dict[str, Any] = {"lb_endpoints": [_endpoint(key, server) for server in members]}
        if tier:
            entry["priority"] = tier
        if zone:
            entry["locality"] = {"zone": zone}
        entries.append(entry)
    return entries


def _endpoint(key: str, server: Server) -> dict[str, Any]:
    socket: dict[str, Any] = {"address": server.address.text, "port_value": server.port}
    if protocol_of(key) == "UDP":
        socket["protocol"] = "UDP"
    entry: dict[str, Any] = {"endpoint": {"address": {"socket_address": socket}}}
    if server.weight > 1:
        entry["load_balancing_weight"] = server.weight
    if server.draining:
        entry["health_status"] = "DRAINING"
    return entry


def _response(resources: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps({"resources": resources}, separators=(",", ":")) + "\n"


def _resource(block: str) -> dict[str, Any]:
    resource: dict[str, Any] = json.loads(block)["resources"][0]
    return resource


def _resources(text: str, kind: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)["resources"]
        return [each for each in found if each["@type"] == kind and is_key(each.get("cluster_name") or each["name"])]
    except (ValueError, KeyError, TypeError):
        return []
