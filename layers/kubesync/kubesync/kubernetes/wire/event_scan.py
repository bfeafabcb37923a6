"""The usual case of a watch at once: chunks that hold one event each, written as API servers write them.

A watch is the hot path of a session, and most of its events are replaced by a newer one before anybody looks at them. Here one
regular expression takes a chunk's size and its event's metadata from a block as the socket gave it; the whole is parsed when
the window closes. Whatever looks otherwise is left to the long way: ``ChunkDecoder``, ``LineSplitter``, ``read_event_headers``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kubesync.domain.objects import RawEvent, Resource
from kubesync.kubernetes.wire.models import MAX_NAME_CHARACTERS

type Scan = Callable[[bytes, int, int], tuple[list[RawEvent], int]]
"""Given a block, where a chunk begins in it, and how long a line may be: the events from there on, and where they end."""

# Plain ASCII without escapes only; whatever else a string may hold is left to the JSON parser.
# Possessive, as nothing in it can match in two ways: what is written otherwise is left at once.
_NAME: Final = rf"[-A-Za-z0-9._:]{{1,{MAX_NAME_CHARACTERS}}}+"
# Of a block, what is looked at in one go: so much stays in a processor's nearest cache.
_TEXT_BYTES: Final = 16 * 1024
_KINDS: Final = {
    Resource.SERVICES: ("Service", "v1"),
    Resource.ENDPOINTS: ("Endpoints", "v1"),
    Resource.ENDPOINTSLICES: ("EndpointSlice", "discovery.k8s.io/v1"),
}


def head_of(resource: Resource) -> str:
    """A pattern of an event's beginning: type, name, namespace, uid and version are its groups."""
    kind, api_version = _KINDS[resource]
    return (
        rf'\{{"type":"(ADDED|MODIFIED|DELETED)","object":\{{"kind":"{kind}","apiVersion":"{re.escape(api_version)}",'
        rf'"metadata":\{{"name":"({_NAME})",(?:"generateName":"{_NAME}",)?+"namespace":"({_NAME})","uid":"({_NAME})",'
        r'"resourceVersion":"([0-9]{1,20})"[,}]'
    )


def scan_of(resource: Resource) -> Scan:
    """A scan for the watch of one resource.

    It stops at anything else but a whole chunk of one event: another kind of event, a chunk of several lines or of a part of
    one, cut off, longer than the limit, the last, not well formed.
    """
    match = re.compile(r"([0-9A-Fa-f]{1,8}+)\r\n" + head_of(resource)).match
    # Past the named tuple's own __new__, a Python function.
    new = tuple.__new__

    def scan(block: bytes, at: int, max_line_bytes: int) -> tuple[list[RawEvent], int]:
        events: list[RawEvent] = []
        add, find, goes_on = events.append, block.find, block.startswith
        begun = -1
        while begun != at:  # until a text holds no event
            begun, until = at, at + _TEXT_BYTES
            # What the pattern takes is ASCII, and a group of a str is one at once.
            text = block[at:until].decode("latin-1")
            while at < until and (found := match(text, at - begun)) is not None:
                size, event_type, name, namespace, uid, version = found.groups()
                start = at + len(size) + 2
                end = start + int(size, 16)
                # No newline lies in what was matched: one before the end means several lines.
                if end - start > max_line_bytes or find(b"\n", start) != end - 1 or not goes_on(b"\r\n", end):
                    return events, at
                add(new(RawEvent, (event_type, resource, namespace, name, uid, int(version), block[start:end])))
                at = end + 2
        return events, at

    return scan


SCANS: Final = {resource: scan_of(resource) for resource in _KINDS}
