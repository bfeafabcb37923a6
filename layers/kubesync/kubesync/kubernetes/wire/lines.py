"""Turns the bytes of a response body into lines, without waiting for more bytes than have arrived.

``requests`` reads a chunked body chunk by chunk with several calls each, and splits lines at characters that occur inside
JSON strings. This code splits a block from the socket in one pass, wherever the block is cut.
"""

from __future__ import annotations

import http.client
import re
from typing import Final

_MAX_SIZE_LINE: Final = 1024  # bytes of a chunk's size line with extensions; real ones have under ten


class MalformedBodyError(http.client.HTTPException):
    """The body breaks the rules of its transfer coding, or a limit of ours."""


class ChunkDecoder:
    """Removes the chunked transfer coding (RFC 9112, section 7.1). Blocks may be cut at any byte.

    ``ended`` is set once the last chunk has come. What follows it (trailers) is ignored.
    """

    def __init__(self) -> None:
        self.ended = False
        self._head = b""  # an unfinished size line
        self._left = 0  # bytes of the current chunk still to come
        self._closing = 0  # bytes of the CRLF after a chunk still to come

    def resume(self, block: bytes) -> tuple[bytes, int]:
        """Prepend a size line that the last block cut. Returns the block, and the offset of the next chunk in it.

        Bytes before that offset belong to the chunk under way.
        """
        if self._head:
            block, self._head = self._head + block, b""
        return block, min(len(block), self._left + self._closing)

    def feed(self, block: bytes) -> list[bytes]:
        """Decode a block. Returns its payload, one piece per chunk or part of a chunk.

        Raises:
            MalformedBodyError: the body is not chunked.
        """
        pieces: list[bytes] = []
        at = self._finish_chunk(block, pieces)
        if self._head:
            block, at, self._head = self._head + block[at:], 0, b""
        size, find, add = len(block), block.find, pieces.append
        while at < size and not self.ended:
            line_end = find(b"\r\n", at)
            if line_end < 0:
                if size - at > _MAX_SIZE_LINE:
                    raise MalformedBodyError("a chunk size is missing")
                self._head = block[at:]
                break
            try:
                length = int(block[at:line_end], 16)
            except ValueError:
                length = _chunk_length_before_extension(block[at:line_end])
            start = line_end + 2
            end = start + length
            if length <= 0:
                if length < 0:
                    raise MalformedBodyError("a chunk size is missing")
                self.ended = True
            elif end + 2 <= size:  # the usual case: a whole chunk lies in this block
                if block[end : end + 2] != b"\r\n":
                    raise MalformedBodyError("a chunk does not end where its size says")
                add(block[start:end])
                at = end + 2
            else:
                self._left, self._closing = length, 2
                at = start + self._finish_chunk(block[start:], pieces)
        return pieces

    def _finish_chunk(self, block: bytes, pieces: list[bytes]) -> int:
        """Add what the block holds of the chunk under way to ``pieces``. Returns the offset behind it."""
        at = 0
        if self._left:
            piece = block[: self._left]
            if piece:
                pieces.append(piece)
            at = len(piece)
            self._left -= at
        if not self._left and self._closing:
            closing = block[at : at + self._closing]
            if closing != b"\r\n"[2 - self._closing :][: len(closing)]:
                raise MalformedBodyError("a chunk does not end where its size says")
            self._closing -= len(closing)
            at += len(closing)
        return at


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
        longest, add = self._max_line_bytes, lines.append
        for piece in pieces:
            end = piece.find(b"\n") + 1
            if end == len(piece) <= longest and not self._tail:
                add(piece)  # the usual case: one event, one chunk, one line
            else:
                self._split(piece, end, lines)
        return lines

    def _split(self, piece: bytes, end: int, lines: list[bytes]) -> None:
        """Add the lines of a piece to ``lines``, the unfinished one before them first. ``end``: of the first line; 0: none ends."""
        start = 0
        while end:
            self._check_length(self._tail_bytes + end - start)
            if self._tail:
                lines.append(b"".join([*self._tail, piece[start:end]]))
                self._tail, self._tail_bytes = [], 0
            else:
                lines.append(piece[start:end])
            start, end = end, piece.find(b"\n", end) + 1
        if start < len(piece):
            self._tail.append(piece[start:])
            self._tail_bytes += len(piece) - start
            self._check_length(self._tail_bytes)

    def _check_length(self, length: int) -> None:
        if length > self._max_line_bytes:
            raise MalformedBodyError(f"a line is longer than {self._max_line_bytes} bytes")


def _chunk_length_before_extension(size_line: bytes) -> int:
    """The length in a size line with extensions. Raises MalformedBodyError."""
    try:
        return int(size_line.split(b";", 1)[0], 16)
    except ValueError:
        raise MalformedBodyError("a chunk size is missing") from None


def one_line(text: str, limit: int = 500) -> str:
    """Printable text on one line, cut at ``limit`` characters: text from servers goes into tables and terminals."""
    printable = "".join(character if character.isprintable() else " " for character in text[: limit * 4])
    flat = re.sub(r" {2,}", " ", printable).strip()
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
