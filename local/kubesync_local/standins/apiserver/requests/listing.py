"""Lists: consistent pages of one version, in the order of keys."""

from collections.abc import Mapping
from dataclasses import dataclass

from kubesync.actors.scheduler import Clock
from kubesync_local.standins.apiserver.objects import status
from kubesync_local.standins.apiserver.objects.resources import ResourceType, Target
from kubesync_local.standins.apiserver.objects.status import JsonObject
from kubesync_local.standins.apiserver.objects.store import Store, StoredObject, VersionGoneError
from kubesync_local.standins.apiserver.objects.wire import ContinueToken, list_bytes
from kubesync_local.standins.apiserver.requests.query import Selection, parse_version, select, whole_number

# The longest single wait for a change, in seconds: then the clock is read again, which tests set.
WAIT_SLICE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class _Page:
    """Where a page begins: the state it comes from, the version it shows and the first key."""

    objects: tuple[StoredObject, ...]
    version: int
    start: str = ""


def answer_list(
    store: Store, target: Target, params: Mapping[str, str], clock: Clock, future_version_wait_seconds: float
) -> bytes:
    """The body of a list.

    | resourceVersion | match         | continue | answer                                                           |
    |-----------------|---------------|----------|------------------------------------------------------------------|
    | absent          |               |          | the current state                                                |
    | 0               |               |          | the current state; ``limit`` is ignored, as the watch cache does |
    | N               | NotOlderThan  |          | the current state, after waiting for N; 504 when it does not come|
    | N               | Exact         |          | the state at N; 410 when it is compacted                         |
    |                 |               | token    | the next page of the token's version; 410 when it is compacted   |
    | -1 in the token |               | token    | the rest, of the current state                                   |

    Raises ApiStatusError.
    """
    selection = select(target, params)
    limit = whole_number(params, "limit")
    if params.get("resourceVersion") == "0" and not params.get("continue"):
        limit = 0
    _validate_match(params)
    with store.changed:
        page = _page(store, target.resource, params, clock, future_version_wait_seconds)
    return _encode(target.resource, page, selection, limit)


def _validate_match(params: Mapping[str, str]) -> None:
    match = params.get("resourceVersionMatch", "")
    if not match:
        return
    if match not in ("Exact", "NotOlderThan"):
        raise status.invalid_list_options("resourceVersionMatch", f'Unsupported value: "{match}"')
    if not params.get("resourceVersion"):
        message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise status.invalid_list_options("resourceVersionMatch", message)
    if params.get("continue"):
        message = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        raise status.invalid_list_options("resourceVersionMatch", message)


def _page(store: Store, resource: ResourceType, params: Mapping[str, str], clock: Clock, wait_seconds: float) -> _Page:
    given = params.get("resourceVersion", "")
    if params.get("continue"):
        if given not in ("", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        return _continued(store, resource, params["continue"])
    version = parse_version(given)
    _wait_for_version(store, resource, version, clock, wait_seconds)
    if params.get("resourceVersionMatch") == "Exact":
        try:
            return _Page(store.snapshot(resource, version), version)
        except VersionGoneError as error:
            raise status.expired_version() from error
    return _Page(store.objects(resource), store.version(resource))


def _continued(store: Store, resource: ResourceType, text: str) -> _Page:
    try:
        token = ContinueToken.decode(text)
    except ValueError as error:
        raise status.bad_request(f"continue key is not valid: {error}") from error
    if token.version < 0:
        return _Page(store.objects(resource), store.version(resource), token.start)
    try:
        return _Page(store.snapshot(resource, token.version), token.version, token.start)
    except VersionGoneError as error:
        raise status.expired_continue(ContinueToken(-1, token.start).encode()) from error


def _wait_for_version(store: Store, resource: ResourceType, version: int, clock: Clock, wait_seconds: float) -> None:
    until = clock.monotonic() + wait_seconds
    while store.version(resource) < version:
        if clock.monotonic() >= until:
            raise status.version_too_large(version, store.version(resource))
        store.changed.wait(WAIT_SLICE_SECONDS)


def _encode(resource: ResourceType, page: _Page, selection: Selection, limit: int) -> bytes:
    prefix = f"{selection.namespace}/" if selection.namespace else ""
    start = prefix + page.start if page.start else ""
    chosen = [each for each in page.objects if each.key >= start and selection.matches(each.item)]
    metadata: JsonObject = {"resourceVersion": str(page.version)}
    if limit and len(chosen) > limit:
        # The first key that is not served: the last served key and a zero byte, as in etcd's range.
        next_start = chosen[limit - 1].key.removeprefix(prefix) + "\0"
        metadata["continue"] = ContinueToken(page.version, next_start).encode()
        if not selection.selective:
            metadata["remainingItemCount"] = len(chosen) - limit
        chosen = chosen[:limit]
    return list_bytes(resource, metadata, (each.encoded for each in chosen))
