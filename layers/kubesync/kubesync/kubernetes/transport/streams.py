"""The body of a watch as lines. Each line is passed on as soon as its last byte arrives."""

from typing import Any, Final, NamedTuple

import requests

from kubesync.domain.objects import RawEvent
from kubesync.kubernetes.transport.connections import Interrupter, Phase
from kubesync.kubernetes.transport.failures import FOREIGN_ERRORS, classify
from kubesync.kubernetes.wire.event_scan import Scan
from kubesync.kubernetes.wire.lines import ChunkDecoder, LineSplitter, MalformedBodyError

# One read of the socket takes its memory before it waits: twice what the last one brought. A session has hundreds of idle watches.
_BLOCK_BYTES: Final = 256 * 1024
_LEAST_BYTES: Final = 16 * 1024


class Block(NamedTuple):
    r"""What one read of the stream completed, in this order: lines, events that a scan read directly, lines again.

    Lines end in ``\n``.
    """

    before: list[bytes]
    events: list[RawEvent]
    after: list[bytes]


class LineStream:
    """Reads the body of a watch as lines. Only one thread uses it. The caller closes it in any case."""

    def __init__(self, response: requests.Response, interrupter: Interrupter, authority: str, max_bytes: int) -> None:
        self._response = response
        self._interrupter = interrupter
        self._authority = authority
        self._max_bytes = max_bytes
        self._splitter = LineSplitter(max_bytes)
        plain = response.headers.get("Content-Encoding", "identity") == "identity"
        # The file object below http.client returns what the socket has; urllib3's own readers wait for whole chunks. None: read through urllib3,
        # because the body is compressed or not chunked.
        self._file = _socket_file(response) if plain else None
        self._decoder = ChunkDecoder()
        self._size = _LEAST_BYTES  # how much the next read may bring

    def read(self, timeout_seconds: float, scan: Scan | None = None) -> Block | None:
        """Wait for the next block. Returns what it completes, possibly nothing; None: the body ended properly.

        The bytes of an unterminated last line are dropped: they are not an event. ``scan`` reads the events that it can directly;
        the rest comes as lines.

        Raises:
            BodyError: nothing came in time, the body broke off, or it could not be decoded.
            StoppedError: the client was shut down.
        """
        self._interrupter.limit(timeout_seconds, timeout_seconds)
        try:
            block = self._next_block(scan)
        except FOREIGN_ERRORS as error:
            self._interrupter.raise_if_stopped()
            raise classify(error, Phase.BODY, self._authority) from None
        self._interrupter.raise_if_stopped()
        return block

    def _next_block(self, scan: Scan | None) -> Block | None:
        """Read one block. Returns what it completes; None: the body ended properly.

        1. The rest of the chunk that an earlier block began, as lines. 2. The chunks after it: ``scan`` reads as many whole events as it can, if no
        line is unfinished. 3. The rest, as lines. Without a file of its own, everything comes as lines.
        """
        splitter, decoder = self._splitter, self._decoder
        if self._file is None:
            piece = self._response.raw.read1(_BLOCK_BYTES, decode_content=True)
            return Block(splitter.feed([piece]), [], []) if piece else None
        if decoder.ended:
            return None
        block = self._file.read1(self._size)
        self._size = min(max(_LEAST_BYTES, 2 * len(block)), _BLOCK_BYTES)
        if not block:
            raise MalformedBodyError("the connection was closed inside a chunk or before the last one")
        block, at = decoder.resume(block)
        before = splitter.feed(decoder.feed(block[:at])) if at else []
        events: list[RawEvent] = []
        if scan is not None and at < len(block) and not splitter.unfinished:
            events, at = scan(block, at, self._max_bytes)
        after = splitter.feed(decoder.feed(block[at:])) if at < len(block) else []
        return Block(before, events, after)


def _socket_file(response: requests.Response) -> Any:
    """The file from which http.client reads the socket, if the body is chunked. None: read through urllib3 instead.

    ``LineStream`` removes the chunks itself: the readers of http.client and urllib3 wait until a whole chunk has come.
    """
    raw: Any = response.raw
    original = getattr(raw, "_original_response", None)
    return original.fp if raw.chunked and original is not None else None
