"""The body of a watch as lines, each handed on as soon as its last byte is there."""

from __future__ import annotations

from typing import Any, Final

import requests

from kubesync.kubernetes.connections import Interrupter, Phase
from kubesync.kubernetes.failures import FOREIGN_ERRORS, classify
from kubesync.kubernetes.lines import ChunkDecoder, LineSplitter, MalformedBodyError, whole_lines

_BLOCK_BYTES: Final = 256 * 1024  # one read of the socket


class LineStream:
    """The body of a watch, as lines. Read it from one thread; close it in any case."""

    def __init__(self, response: requests.Response, interrupter: Interrupter, authority: str, max_bytes: int) -> None:
        self._response = response
        self._interrupter = interrupter
        self._authority = authority
        self._max_bytes = max_bytes
        self._splitter = LineSplitter(max_bytes)
        plain = response.headers.get("Content-Encoding", "identity") == "identity"
        # The file object below http.client takes what the socket has, urllib3's own readers wait for whole chunks.
        self._file = _socket_file(response) if plain else None
        self._decoder = ChunkDecoder()

    def read(self, timeout_seconds: float) -> list[bytes] | None:
        r"""The lines that the next block completes, each with its ``\n``; maybe none. None: the body ended as it should.

        Bytes of an unterminated last line are dropped: they are no event.

        Raises:
            BodyError: nothing came in time, the body broke off, or it could not be decoded.
            StoppedError: the client was shut down.
        """
        self._interrupter.set_read_timeout(timeout_seconds)
        try:
            lines = self._lines()
        except FOREIGN_ERRORS as error:
            self._interrupter.check()
            raise classify(error, Phase.BODY, self._authority) from None
        self._interrupter.check()
        return lines

    def close(self) -> None:
        self._response.close()

    def _lines(self) -> list[bytes] | None:
        if self._file is None:
            piece = self._response.raw.read1(_BLOCK_BYTES, decode_content=True)
            return self._splitter.feed([piece]) if piece else None
        if self._decoder.ended:
            return None
        block = self._file.read1(_BLOCK_BYTES)
        if not block:
            raise MalformedBodyError("the connection was closed inside a chunk or before the last one")
        if not self._decoder.between_chunks or self._splitter.unfinished:
            return self._splitter.feed(self._decoder.feed(block))
        lines, rest = whole_lines(block, self._max_bytes)
        return lines + self._splitter.feed(self._decoder.feed(block[rest:]))


def _socket_file(response: requests.Response) -> Any:
    raw: Any = response.raw
    original = getattr(raw, "_original_response", None)
    return original.fp if raw.chunked and original is not None else None
