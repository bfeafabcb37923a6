"""Turns the bytes of a response body into lines, without waiting for more bytes than have arrived.

A *block* is what one read of the socket gave. It may end in the middle of a chunk, and a chunk in the middle of a line.

``requests`` reads a chunked body chunk by chunk with several calls each, and splits lines at characters that occur inside
JSON strings. This code splits a block from the socket in one pass, wherever the block is cut.
"""

import http.client
import re
from typing import Final

_MAX_SIZE_LINE: Final = 1024  # bytes of a chunk's size line with extensions; real ones have under ten
_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[; \t][^\n]*)?\r\n")
_END_OF_CHUNK: Final = b"\r\n"


class MalformedBodyError(http.client.HTTPException):
    """The body breaks the rules of its transfer coding, or a limit of ours."""


class ChunkDecoder:
    """Removes the chunked transfer coding (RFC 9112, section 7.1). Blocks may be cut at any byte.

    Each chunk is a line with its size, the payload, and CRLF. ``ended`` is set once the last chunk has come. What follows it (trailers) is ignored.
    """

    def __init__(self) -> None:
        self.ended = False
        self._head = b""  # an unfinished size line
        self._left = 0  # bytes of the current chunk still to come, those of the CRLF after it included

    def resume(self, block: bytes) -> tuple[bytes, int]:
        """Prepend the beginning of a size line with which the last block ended. Returns the block, and the offset of the next chunk in it.

        Bytes before that offset belong to the chunk that an earlier block began. The caller (``transport.streams``) lets the scan of the watch
        read from the offset, and feeds the rest to the decoder.
        """
        block, self._head = self._head + block, b""
        return block, min(len(block), self._left)

    def feed(self, block: bytes) -> list[bytes]:
        """Decode a block. Returns its payload, one piece per chunk or part of a chunk.

        Raises:
            MalformedBodyError: the body is not chunked.
        """
        pieces: list[bytes] = []
        block, at = self.resume(block)[0], 0
        while at < len(block) and not self.ended:
            if self._left:
                at = self._read_chunk(block, at, pieces)
            elif (size_line := _SIZE_LINE.match(block, at)) is not None:
                at, length = size_line.end(), int(size_line[1], 16)
                self.ended, self._left = not length, length + len(_END_OF_CHUNK)  # the last chunk has length 0
            elif _END_OF_CHUNK in block[at:] or len(block) - at > _MAX_SIZE_LINE:
                raise MalformedBodyError("a chunk size is missing")
            else:  # the rest of the size line comes with the next block
                self._head, at = block[at:], len(block)
        return pieces

    def _read_chunk(self, block: bytes, at: int, pieces: list[bytes]) -> int:
        """Add what the block holds of the chunk under way to ``pieces``. Returns the offset behind it."""
        end = at + self._left  # behind the CRLF that follows the payload
        payload_end = max(at, end - len(_END_OF_CHUNK))
        expected = _END_OF_CHUNK[payload_end - end :]  # CRLF; only LF if an earlier block ended with the CR
        # The block may end inside of either.
        payload, closing = block[at:payload_end], block[payload_end:end]
        if not expected.startswith(closing):
            raise MalformedBodyError("a chunk does not end where its size says")
        if payload:
            pieces.append(payload)
        self._left -= len(payload) + len(closing)
        return at + len(payload) + len(closing)


class LineSplitter:
    r"""Joins pieces and splits them on ``\n`` only; other line separators are part of JSON strings.

    A line longer than ``max_line_bytes`` is refused, so that a faulty server cannot fill the memory.
    """

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._tail: list[bytes] = []  # pieces of an unfinished line, joined once when it ends
        self._tail_bytes = 0

    @property
    def unfinished(self) -> bool:
        """Whether a line has begun but not ended. At the end of a body its bytes are not an event."""
        return bool(self._tail)

    def feed(self, pieces: list[bytes]) -> list[bytes]:
        r"""Take pieces. Returns the lines that they complete, each with its ``\n``.

        Raises:
            MalformedBodyError: a line is longer than the limit.
        """
        lines: list[bytes] = []
        for piece in pieces:
            *ends, begun = piece.split(b"\n")
            for end in ends:
                self._add(end + b"\n")
                lines.append(b"".join(self._tail))
                self._tail, self._tail_bytes = [], 0
            if begun:
                self._add(begun)
        return lines

    def _add(self, part: bytes) -> None:
        """Add to the unfinished line. Raises MalformedBodyError if it is longer than the limit."""
        self._tail.append(part)
        self._tail_bytes += len(part)
        if self._tail_bytes > self._max_line_bytes:
            raise MalformedBodyError(f"a line is longer than {self._max_line_bytes} bytes")


def one_line(text: str, limit: int = 500) -> str:
    """Printable text on one line, cut at ``limit`` characters: text from servers goes into tables and terminals."""
    # Four times the limit is looked at: runs of spaces shrink, and a text of megabytes must not take long.
    printable = "".join(character if character.isprintable() else " " for character in text[: limit * 4])
    flat = re.sub(r" {2,}", " ", printable).strip()
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
