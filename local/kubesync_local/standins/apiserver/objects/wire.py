"""Bytes on the wire: JSON as Go's encoder writes it, objects, lists, events, bookmarks and continue tokens."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kubesync_local.standins.apiserver.objects.resources import ResourceType
from kubesync_local.standins.apiserver.objects.status import JsonObject

# encoding/json escapes these five inside strings (SetEscapeHTML is on), and nothing else beyond control characters.
_GO_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_TOKEN_VERSION: Final = "meta.k8s.io/v1"  # noqa: S105 -- the version of the token's format


def go_json(value: object) -> bytes:
    """Compact JSON in UTF-8, escaped as Go's ``encoding/json`` does; no trailing newline."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_GO_ESCAPES).encode()


def object_bytes(resource: ResourceType, item: bytes) -> bytes:
    """A whole object from its list item, with ``kind`` and ``apiVersion`` in front."""
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode() + item[1:]


def event_line(event_type: str, resource: ResourceType, item: bytes) -> bytes:
    """One line of a watch, newline included."""
    return f'{{"type":"{event_type}","object":'.encode() + object_bytes(resource, item) + b"}\n"


def error_line(status: JsonObject) -> bytes:
    """An ERROR event, newline included."""
    return b'{"type":"ERROR","object":' + go_json(status) + b"}\n"


def bookmark_line(resource: ResourceType, version: int, *, initial_events_end: bool = False) -> bytes:
    """A bookmark; ``initial_events_end`` marks the one that closes a streaming list."""
    metadata: JsonObject = {"resourceVersion": str(version)}
    if initial_events_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    item = b'{"metadata":' + go_json(metadata) + resource.bookmark_tail.encode() + b"}"
    return event_line("BOOKMARK", resource, item)


def list_bytes(resource: ResourceType, metadata: JsonObject, items: Iterable[bytes]) -> bytes:
    """A list, newline included; its items carry neither kind nor apiVersion."""
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'.encode()
    return head + go_json(metadata) + b',"items":[' + b",".join(items) + b"]}\n"


@dataclass(frozen=True, slots=True)
class ContinueToken:
    """Where a list continues: the version of its first page (-1: the current one) and the first key, inclusive."""

    version: int
    start: str

    def encode(self) -> str:
        """Unpadded base64url of compact JSON; a consistent token's key starts with a slash, as recorded."""
        start = ("/" if self.version >= 0 else "") + self.start
        raw = json.dumps({"v": _TOKEN_VERSION, "rv": self.version, "start": start}, separators=(",", ":"))
        return base64.urlsafe_b64encode(raw.encode()).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> ContinueToken:
        """The token's content. Raises ValueError if this server did not make it."""
        try:
            value = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (binascii.Error, ValueError) as error:
            raise ValueError("not base64url of JSON") from error
        if not isinstance(value, dict) or value.get("v") != _TOKEN_VERSION:
            raise ValueError("server does not recognize this encoded version")
        version, start = value.get("rv"), value.get("start")
        if not isinstance(version, int) or not isinstance(start, str) or not start:
            raise ValueError("incorrect encoded start resourceVersion")
        return cls(version, start.removeprefix("/"))
