"""What every format can do: one text for each upstream (a *block*), and files made of blocks.

Blocks can be read back from files. So ``--when-empty keep`` finds the last block of an upstream, also after a restart.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from kubesync.domain.dns.addresses import parse_address
from kubesync_local.proxies.bounds import Place
from kubesync_local.proxies.names import is_key
from kubesync_local.proxies.servers import MAX_PORT, Server

HEADER: Final = "# Written by `kubesync render`. It replaces the whole file at each change: do not edit it."
_MARK: Final = "# upstream "
_MARKED: Final = re.compile(rf"^{_MARK}(\S+)$", re.MULTILINE)


class Form(Protocol):
    """A proxy's format. ``protocols``: what it can balance."""

    protocols: tuple[str, ...]

    def block(self, key: str, version: int, servers: tuple[Server, ...]) -> str:
        """The text of one upstream."""

    def files(self, blocks: Mapping[str, str]) -> dict[str, str]:
        """Text by file name, in the order in which to write them. A format with one file has the name ``""``."""

    def blocks(self, files: Mapping[str, str]) -> dict[str, str]:
        """The inverse of ``files``. Texts that are not of this format give nothing."""

    def has_servers(self, block: str) -> bool:
        """Whether a block has a server, draining ones too."""

    def places(self, block: str) -> frozenset[Place]:
        """Address and port of each server of a block, draining ones too. What cannot be read is left out."""

    def is_own(self, text: str) -> bool:
        """Whether this format wrote this file of its directory; so it may be removed when its upstream is gone."""


def place_of(endpoint: str) -> Iterator[Place]:
    """The inverse of ``Server.endpoint``; nothing if the text is none."""
    host, _, port = endpoint.rpartition(":")
    return read_place(host.removeprefix("[").removesuffix("]"), int(port) if port.isascii() and port.isdigit() else 0)


def read_place(ip: object, port: object) -> Iterator[Place]:
    """Address and port; nothing if they are not valid."""
    address = parse_address(ip) if isinstance(ip, str) else None
    if address is not None and type(port) is int and 1 <= port <= MAX_PORT:
        yield address, port


def joined(blocks: Mapping[str, str]) -> str:
    """Blocks in order of their keys, each under a comment with its key."""
    return "\n".join([HEADER, *(f"{_MARK}{key}\n{blocks[key]}" for key in sorted(blocks))]).rstrip("\n") + "\n"


def parted(text: str) -> dict[str, str]:
    """The inverse of ``joined``."""
    found = list(_MARKED.finditer(text)) if text.startswith(HEADER) else []
    if not found:
        return {}
    ends = [mark.start() for mark in found[1:]] + [len(text)]
    return {
        mark[1]: text[mark.end() + 1 : end].rstrip("\n") + "\n"
        for mark, end in zip(found, ends, strict=True)
        if is_key(mark[1])
    }
