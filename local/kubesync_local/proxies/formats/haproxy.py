"""``backend`` sections of HAProxy. https://docs.haproxy.org/2.6/configuration.html"""

from collections.abc import Mapping
from typing import Final

from kubesync_local.proxies.bounds import Place
from kubesync_local.proxies.formats.form import joined, parted, place_of
from kubesync_local.proxies.names import dotted
from kubesync_local.proxies.servers import Server

# "The maximum accepted value is 256" (5.2, weight).
_MAX_WEIGHT: Final = 256
_ENDPOINT: Final = 2  # server NAME ENDPOINT


class Haproxy:
    """Servers of the first tier, ``backup`` for all others, ``weight 0`` while one drains: only persistent sessions still reach it.

    A server's name is its address and port. It stays the same while others come and go.

    Args:
        options: lines at the beginning of each section, such as ``balance leastconn``.
        server_options: what each server gets, such as ``check``.
    """

    protocols: tuple[str, ...] = ("TCP",)

    def __init__(self, options: tuple[str, ...] = (), server_options: tuple[str, ...] = ()) -> None:
        self._options = options
        self._server_options = server_options

    def block(self, key: str, version: int, servers: tuple[Server, ...]) -> str:
        del version
        lines = [f"    {option}" for option in self._options]
        if sum(1 for server in servers if server.tier) > 1:
            lines.append("    option allbackups")  # without it only the first backup works
        heaviest = max((server.weight for server in servers), default=1)
        lines += [self._server(server, _scaled(server.weight, heaviest)) for server in servers]
        return "\n".join([f"backend {dotted(key)}", *lines, ""])

    def _server(self, server: Server, weight: int) -> str:
        words = ["server", f"{server.address.text}_{server.port}", server.endpoint]
        if server.draining:
            words += ["weight", "0"]
        elif weight > 1:
            words += ["weight", str(weight)]
        if server.tier and not server.draining:
            words.append("backup")
        return f"    {' '.join([*words, *self._server_options])}"

    def files(self, blocks: Mapping[str, str]) -> dict[str, str]:
        return {"": joined(blocks)}

    def blocks(self, files: Mapping[str, str]) -> dict[str, str]:
        return parted(files.get("", ""))

    def has_servers(self, block: str) -> bool:
        return any(line.startswith("    server ") for line in block.splitlines())

    def places(self, block: str) -> frozenset[Place]:
        lines = [line.split() for line in block.splitlines() if line.startswith("    server ")]
        return frozenset(place for words in lines if len(words) > _ENDPOINT for place in place_of(words[_ENDPOINT]))

    def is_own(self, text: str) -> bool:
        return bool(parted(text))


def _scaled(weight: int, heaviest: int) -> int:
    return weight if heaviest <= _MAX_WEIGHT else max(1, round(weight * _MAX_WEIGHT / heaviest))
