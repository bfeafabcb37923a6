"""``upstream`` blocks of nginx, for the ``http`` or the ``stream`` context.

https://nginx.org/en/docs/http/ngx_http_upstream_module.html
"""

from collections.abc import Mapping
from typing import Final

from kubesync_local.proxies.bounds import Place
from kubesync_local.proxies.formats.form import joined, parted, place_of
from kubesync_local.proxies.names import dotted
from kubesync_local.proxies.servers import Server

# nginx refuses an upstream without servers. RFC 5737: nobody has this address, and `down` means that nginx never connects to it.
_NOBODY: Final = "    server 192.0.2.1:9 down;"


class Nginx:
    """Servers of the first tier, ``backup`` for all others, ``down`` while one drains.

    Args:
        options: lines at the beginning of each block, such as ``least_conn;``.
        server_options: what each server gets, such as ``max_fails=0``.
    """

    protocols: tuple[str, ...] = ("TCP", "UDP")

    def __init__(self, options: tuple[str, ...] = (), server_options: tuple[str, ...] = ()) -> None:
        self._options = options
        self._server_options = server_options

    def block(self, key: str, version: int, servers: tuple[Server, ...]) -> str:
        del version
        lines = [f"    {option}" for option in self._options]
        lines += [self._server(server) for server in servers] or [_NOBODY]
        return "\n".join([f"upstream {dotted(key)} {{", *lines, "}", ""])

    def _server(self, server: Server) -> str:
        words = ["server", server.endpoint]
        if server.weight > 1:
            words.append(f"weight={server.weight}")
        words += self._server_options
        # Open source nginx has no `drain`. `down` gets no new request; those under way go on in the workers before the reload.
        if server.draining:
            words.append("down")
        elif server.tier:
            words.append("backup")
        return f"    {' '.join(words)};"

    def files(self, blocks: Mapping[str, str]) -> dict[str, str]:
        return {"": joined(blocks)}

    def blocks(self, files: Mapping[str, str]) -> dict[str, str]:
        return parted(files.get("", ""))

    def has_servers(self, block: str) -> bool:
        return any(line.startswith("    server ") and line != _NOBODY for line in block.splitlines())

    def places(self, block: str) -> frozenset[Place]:
        lines = [line.split() for line in block.splitlines() if line.startswith("    server ") and line != _NOBODY]
        return frozenset(place for words in lines for place in place_of("".join(words[1:2]).rstrip(";")))

    def is_own(self, text: str) -> bool:
        return bool(parted(text))
