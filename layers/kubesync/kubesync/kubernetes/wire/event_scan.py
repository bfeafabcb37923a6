"""Reads the usual part of a watch in one pass: chunks of one event each, in the form that API servers write.

A watch is the hot path of a session, and a newer event replaces most events before they are used. One regular expression
reads a chunk's size and its event's metadata directly from a block of the socket. The whole event is parsed when the window
closes. Any other form takes the slow path: ``ChunkDecoder``, ``LineSplitter``, ``read_event_header``.
"""

import re
from collections.abc import Callable
from typing import Final

from kubesync.domain.objects import RawEvent, Resource

type Scan = Callable[[bytes, int, int], tuple[list[RawEvent], int]]
"""Reads events from a block.

Takes the block, the offset of a chunk in it, and the longest line allowed (bytes). Returns the events of the chunks from there that it
can read, and the offset of the first chunk that it cannot: the slow path reads from there.
"""

# Plain ASCII without escapes only; the JSON parser reads any other string.
# Possessive, because nothing in it can match in two ways: a different form fails at once.
_NAME: Final = "[-A-Za-z0-9._]{1,253}+"
# How much of a block is searched in one go: this much stays in a processor's nearest cache.
_TEXT_BYTES: Final = 16 * 1024


def make_scan(resource: Resource, kind: str, api_version: str) -> Scan:
    """Make the scan for the watch of one resource.

    The scan stops at anything but a whole chunk of one event: another kind of event, several lines in a chunk, part of a line, a
    chunk that is cut off, longer than the limit, the last one, or not well formed.
    """
    # What API servers begin an event with. The groups are the chunk's size, type, name, namespace, uid and version.
    match = re.compile(
        rf'([0-9A-Fa-f]{{1,8}}+)\r\n\{{"type":"(ADDED|MODIFIED|DELETED)","object":\{{"kind":"{kind}",'
        rf'"apiVersion":"{re.escape(api_version)}","metadata":\{{"name":"({_NAME})",(?:"generateName":"{_NAME}",)?+'
        rf'"namespace":"({_NAME})","uid":"({_NAME})","resourceVersion":"([0-9]{{1,20}})"[,}}]'
    ).match
    # Makes a RawEvent without the named tuple's own __new__, which is a slow Python function.
    new = tuple.__new__

    def scan(block: bytes, at: int, max_line_bytes: int) -> tuple[list[RawEvent], int]:
        """See ``Scan``. ``at``: the offset of the next chunk in the block."""
        events: list[RawEvent] = []
        add, find, goes_on = events.append, block.find, block.startswith
        begun = -1  # where the last pass began: it has decoded ``_TEXT_BYTES`` from there
        while begun != at:  # until a pass finds no event
            begun, until = at, at + _TEXT_BYTES
            # The pattern matches ASCII only, and a group of a str needs no decoding.
            text = block[at:until].decode("latin-1")
            while at < until and (found := match(text, at - begun)) is not None:
                size, event_type, name, namespace, uid, version = found.groups()
                start = at + len(size) + 2  # of the line: behind the chunk's size and \r\n
                end = start + int(size, 16)  # the chunk ends with another \r\n
                # The match itself holds no newline: one before the end means several lines.
                if end - start > max_line_bytes or find(b"\n", start) != end - 1 or not goes_on(b"\r\n", end):
                    return events, at
                add(new(RawEvent, (event_type, resource, namespace, name, uid, int(version), block[start:end])))
                at = end + 2
        return events, at

    return scan
