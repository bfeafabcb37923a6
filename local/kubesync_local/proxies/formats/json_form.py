"""The JSON form, for OpenResty and for programs of your own: ``docs/proxies.md`` describes every field."""

import json
from collections.abc import Mapping
from typing import Any, Final

from kubesync_local.proxies.bounds import Place
from kubesync_local.proxies.formats.form import read_place
from kubesync_local.proxies.names import is_key
from kubesync_local.proxies.servers import Server

VERSION: Final = 1


class JsonForm:
    """``{"v": 1, "upstreams": {KEY: {"version": N, "nodes": [...]}}}``, an upstream a line."""

    protocols: tuple[str, ...] = ("TCP", "UDP", "SCTP")

    def block(self, key: str, version: int, servers: tuple[Server, ...]) -> str:
        del key
        return json.dumps({"version": version, "nodes": [_node(server) for server in servers]}, separators=(",", ":"))

    def files(self, blocks: Mapping[str, str]) -> dict[str, str]:
        lines = ",\n".join(f"{json.dumps(key)}:{blocks[key]}" for key in sorted(blocks))
        return {"": f'{{"v":{VERSION},"upstreams":{{\n{lines}\n}}}}\n'}

    def blocks(self, files: Mapping[str, str]) -> dict[str, str]:
        try:
            found = json.loads(files.get("", ""))["upstreams"]
            return {key: json.dumps(each, separators=(",", ":")) for key, each in found.items() if is_key(key)}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}

    def has_servers(self, block: str) -> bool:
        found = json.loads(block)
        return not isinstance(found, dict) or bool(found.get("nodes"))

    def places(self, block: str) -> frozenset[Place]:
        try:
            nodes = json.loads(block)["nodes"]
            return frozenset(place for node in nodes for place in read_place(node["ip"], node["port"]))
        except (KeyError, TypeError):  # not as this format writes it
            return frozenset()

    def is_own(self, text: str) -> bool:
        return bool(self.blocks({"": text}))


def _node(server: Server) -> dict[str, Any]:
    node: dict[str, Any] = {"ip": server.address.text, "port": server.port}
    if server.draining:
        node["draining"] = True
    else:
        node |= {"tier": server.tier, "weight": server.weight}
    return {**node, **dict(server.names)}
