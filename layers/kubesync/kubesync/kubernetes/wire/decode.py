"""Turns the bytes of the API into domain values: event lines and list pages.

An event is read in two steps. On arrival, only its metadata is read, because a newer event replaces most events before they are used.
The whole event is parsed when its window closes.
"""

import json
import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kubesync.domain.dns.annotations import PREFIXES
from kubesync.domain.errors import BodyError, StatusError, TooOldError
from kubesync.domain.objects import Observation, RawEvent, Resource
from kubesync.domain.sources.registry import SOURCES
from kubesync.kubernetes.wire import models
from kubesync.kubernetes.wire.lines import one_line
from kubesync.kubernetes.wire.registry import WIRE
from kubesync.log import logger

# Deeper than pydantic's parser accepts (200), so that it still refuses an object that was cut; far less than Python's own parser
# can recurse.
_MAX_DEPTH: Final = 400
# Of a number in a body that pydantic's parser has refused. No field of ours needs more, and Python's own limit is 4,300.
_MAX_DIGITS: Final = 40
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_EVENT_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
# A number of the server may have any number of digits; one of DynamoDB has 38 at most.
_MAX_CODE: Final = 999
_MAX_RETRY_SECONDS: Final = 86_400
_VERSION: Final = re.compile(r"[0-9]{1,20}")
_NAME: Final = re.compile(models.NAME_PATTERN)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to this version has been sent."""

    resource_version: int


@dataclass(frozen=True, slots=True)
class UnreadableEvent:
    """An event whose object cannot be identified: its metadata breaks the API's rules."""

    reason: str


type EventHeader = RawEvent | Bookmark | UnreadableEvent
"""What a line of a watch can hold."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list.

    ``unreadable`` has one line per item without a readable name. If there is any, the list cannot prove that an object is
    absent (I5). ``remaining``: how many items follow it; None where the server does not say.
    """

    resource_version: int
    continue_token: str
    items: tuple[Observation, ...]
    unreadable: tuple[str, ...] = ()
    remaining: int | None = None


# The beginning of a page, up to the version of its first object. The metadata of a list, and what comes before the version, hold no braces.
_PREFIX_OF_PAGE: Final = re.compile(
    rb'\{"kind":"\w+","apiVersion":"[^"]+","metadata":\{[^{}]+\},"items":\[\{"metadata":\{[^{}]+?"resourceVersion":"\d+"'
)
_HEADER: Final = TypeAdapter(models.Header)
_OBJECT: Final = TypeAdapter(models.HeaderObject)
_ANY_LIST: Final = TypeAdapter(models.ListModel[str, Any])


def read_event_header(line: bytes, resource: Resource) -> EventHeader:
    """Read the metadata of a watch line: of bookmarks, errors, and events that the scan of the watch (``event_scan``) does not take.

        the line                                                  gives
        --------                                                  -----
        is not JSON                                               raises BodyError
        is of type ERROR                                          raises its error (``_error_of``)
        is of type BOOKMARK                                       Bookmark
        is an event of an object of the resource, with a name,    RawEvent
          a namespace (if the resource has one) and a uid that
          can be part of a table's key
        any other                                                 UnreadableEvent: reported, and the watch goes on (I4)

    Raises:
        BodyError: the line is not JSON.
        TooOldError, StatusError: it carries this error.
    """
    try:
        header = _HEADER.validate_json(line)
    except ValidationError as error:
        if not _is_not_json(error):  # it is JSON, of the wrong form
            return UnreadableEvent(_first_problem(error))
        try:
            header = _HEADER.validate_python(_lenient_json(line))
        except ValidationError as other:
            return UnreadableEvent(_first_problem(other))
        except ValueError:
            raise BodyError("a line of the watch could not be decoded as JSON") from None
    target = header["object"]
    if header["type"] == "ERROR":
        raise _error_of(target)
    metadata = target.get("metadata") or {}
    version = metadata.get("resourceVersion") or ""
    if not _VERSION.fullmatch(version):
        return UnreadableEvent(f"a {one_line(header['type'], 40)} event without a resourceVersion")
    if header["type"] == "BOOKMARK":
        return Bookmark(int(version))
    name, namespace, uid = metadata.get("name"), metadata.get("namespace") or "", metadata.get("uid")
    if header["type"] not in _EVENT_TYPES or target.get("kind") != WIRE[resource].kind:
        return UnreadableEvent(f"an event of type {one_line(header['type'], 40)!r} that is not about {resource.value}")
    if not name or not uid or bool(namespace) is not SOURCES[resource].namespaced:
        return UnreadableEvent("an event of an object without name, namespace or uid")
    if not all(map(_may_name_a_key, filter(None, (namespace, name, uid)))):
        return UnreadableEvent(f"an event of an object with the invalid name {one_line(repr(name), 80)}")
    return RawEvent(header["type"], resource, namespace, name, uid, int(version), line)


def _error_of(status: models.HeaderObject) -> StatusError:
    """Make the error of an ERROR event, whose object is a Status. Code 410 means too old, even if the response's status is 200.

    Numbers and texts of the server are cut: they are stored.
    """
    code = max(0, min(status.get("code") or 0, _MAX_CODE))
    reason, message = one_line(status.get("reason") or ""), one_line(status.get("message") or "")
    if code == HTTPStatus.GONE:
        return TooOldError(message)
    retry_after = (status.get("details") or {}).get("retryAfterSeconds")
    seconds = None if retry_after is None else float(max(0, min(retry_after, _MAX_RETRY_SECONDS)))
    said = f"the server ended the watch: {code} {reason}: {message}"
    return StatusError(said, status=code, retry_after_seconds=seconds)


def observe(event: RawEvent, prefixes: tuple[str, ...] = PREFIXES) -> Observation:
    """Parse the whole event, once its window closes. An object that cannot be understood becomes an Observation with a problem (I4).

    ``prefixes``: of the annotations of external-dns that are kept, here and in ``read_list_page``.
    """
    deleted = event.type == "DELETED"
    try:
        seen: Observation = WIRE[event.resource].event.validate_json(event.line, context=prefixes)["object"]
    except ValidationError as error:
        # A deletion is clear, whatever the object's last state looked like.
        problem = None if deleted else _first_problem(error)
        place = event.resource, event.namespace, event.name, event.uid
        return Observation(*place, event.resource_version, deleted=deleted, problem=problem)
    return replace(seen, deleted=True) if deleted else seen


def read_list_page(resource: Resource, body: bytes, prefixes: tuple[str, ...] = PREFIXES) -> ListPage:
    """Read one page of a list. If any item breaks the rules, each item is read on its own (I4). ``prefixes``: see ``observe``.

    Raises:
        BodyError: the answer is not a list of that resource. It must never count as an empty list (I5).
    """
    try:
        page = WIRE[resource].page.validate_json(body, context=prefixes)
    except ValidationError:
        return _read_list_item_by_item(resource, body, prefixes)
    return _list_page(page["metadata"], tuple(page["items"] or ()), ())


def read_uid(body: bytes) -> str | None:
    """Read the uid of one object, whatever else the object holds: of the Service that identifies the cluster. None: it has no valid uid.

    Raises:
        BodyError: the answer is not an object.
    """
    try:
        metadata = _OBJECT.validate_json(body).get("metadata") or {}
    except ValidationError as error:
        raise BodyError(f"the object is malformed: {_first_problem(error)}") from None
    uid = metadata.get("uid") or ""
    return uid if _may_name_a_key(uid) else None


def read_cut_page(resource: Resource, head: bytes, problem: str) -> ListPage | None:
    """Read the page of one object that was too long to be read whole, by its beginning. The object gets this problem, and no value.

    Its name is enough for the list to prove which objects exist (I5). None: the name was not found, because the page does not begin as
    API servers write it. Then the caller fails the list.
    """
    beginning = _PREFIX_OF_PAGE.match(head)
    if beginning is None:
        return None
    # Closes the metadata, the object, the items and the page.
    page = read_list_page(resource, beginning[0] + b"}}]}")
    return replace(page, items=tuple(replace(item, value=None, problem=problem) for item in page.items))


def _read_list_item_by_item(resource: Resource, body: bytes, prefixes: tuple[str, ...]) -> ListPage:
    """Read a page of which an item breaks the rules. Such items get a problem, or are named in ``unreadable``. Raises BodyError."""
    reader = WIRE[resource]
    try:
        page = _ANY_LIST.validate_python(_lenient_json(body))
    except ValidationError as error:
        raise BodyError(f"the list of {resource.value} is malformed: {_first_problem(error)}") from None
    except ValueError:
        raise BodyError(f"the list of {resource.value} could not be decoded as JSON") from None
    if page["kind"] != f"{reader.kind}List":
        raise BodyError(f"the answer is a {one_line(page['kind'], 40)!r}, not a list of {resource.value}")
    items: list[Observation] = []
    unreadable: list[str] = []
    for item in page["items"] or ():
        try:
            # Converted to JSON again, so that the rules for events apply to it too, those of UTF-8 included.
            items.append(reader.item.validate_json(json.dumps(item), context=prefixes))
        except ValidationError as error:
            known = _known_metadata(resource, item)
            problem = _first_problem(error)
            if known is None:
                unreadable.append(problem)
                continue
            namespace, name, uid, version = known
            if not all(map(_may_name_a_key, filter(None, (namespace, name)))):
                # kubesync cannot have stored such an object: it can be skipped, as in a watch.
                logger.warning("object skipped", extra={"resource": resource.value, "reason": problem})
            else:
                items.append(Observation(resource, namespace, name, uid, version, value=None, problem=problem))
    return _list_page(page["metadata"], tuple(items), tuple(unreadable))


def _list_page(metadata: Any, items: tuple[Observation, ...], unreadable: tuple[str, ...]) -> ListPage:
    """Make a page of its items and the list's own metadata, which is checked but for ``remainingItemCount``."""
    remaining = metadata.get("remainingItemCount")
    return ListPage(
        resource_version=int(metadata["resourceVersion"]),
        continue_token=metadata.get("continue") or "",
        items=items,
        unreadable=unreadable,
        remaining=remaining if isinstance(remaining, int) and remaining >= 0 else None,
    )


def _known_metadata(resource: Resource, item: Any) -> tuple[str, str, str, int] | None:
    """Namespace, name, uid and version of a malformed item. None: it cannot be identified. uid is empty and version 0 if unreadable."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict):
        return None
    name, namespace, uid, version = (
        value if isinstance(value := metadata.get(key), str) else ""
        for key in ("name", "namespace", "uid", "resourceVersion")
    )
    if not name or bool(namespace) is not SOURCES[resource].namespaced:
        return None
    uid = uid if _may_name_a_key(uid) else ""
    return namespace, name, uid, int(version) if _VERSION.fullmatch(version) else 0


def _may_name_a_key(name: str) -> bool:
    """Whether a table key can hold this name: true for every legal name, and for illegal ones that can be reported on a key of their own."""
    return _NAME.match(name) is not None


def _is_not_json(error: ValidationError) -> bool:
    """Whether pydantic's parser refused the text itself. ``_lenient_json`` may still read it."""
    return any(detail["type"] == "json_invalid" for detail in error.errors(include_url=False, include_input=False))


def _first_problem(error: ValidationError) -> str:
    """The first validation error as one line: where, and what is wrong. Never the value itself."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    first = details[0]
    where = ".".join(str(part) for part in first["loc"] if part != "object")
    return one_line(f"{where}: {first['msg']}" if where else first["msg"], 300)


def _lenient_json(body: bytes) -> Any:
    """Parse a body that pydantic's parser refuses as a whole because of one value, so that only that value's object is lost (I4).

    pydantic refuses lone surrogates and deep nesting. Python's parser refuses integers of thousands of digits and very deep nesting.
    Keeps lone surrogates, replaces bytes that are not UTF-8, and drops values that are nested too deep.

    Raises:
        ValueError: the body is not JSON at all.
    """
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_int=_parse_integer)
    except RecursionError:
        return json.loads(_without_deep_values(text), parse_int=_parse_integer)


def _parse_integer(digits: str) -> int | float:
    """Parse an integer. One with too many digits becomes 0.5: no field accepts it, so only its object is lost."""
    return int(digits) if len(digits) <= _MAX_DIGITS else 0.5


def _without_deep_values(text: str) -> str:
    """The text of a JSON value, with null in place of every list and object that lies deeper than ``_MAX_DEPTH``."""
    kept: list[str] = []
    depth = start = 0  # start: of the text that is kept and not in ``kept`` yet
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth == _MAX_DEPTH + 1:
                kept += [text[start : match.start()], "null"]
        elif match[0] in "]}":
            if depth == _MAX_DEPTH + 1:
                start = match.end()
            depth -= 1
    return "".join([*kept, text[start:]])
