"""What is read outside of any watch: a complete list of one resource or none at all, and the cluster's identity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kubesync.clock import Clock
from kubesync.domain.errors import TOO_LONG, BodyError, DeniedError, ListenerError, StatusError
from kubesync.domain.objects import Observation, Resource, Snapshot
from kubesync.domain.scope import Scope
from kubesync.kubernetes.list_room import NoRoomError, Space
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.failures import BodyTooLongError, TooOldError
from kubesync.kubernetes.wire.decode import read_list_page

_ATTEMPTS: Final = 3  # a continue token may expire; the last attempt reads everything in one piece


def list_all(
    api: ApiClient,
    resource: Resource,
    scope: Scope,
    space: Space,
    *,
    page_limit: int,
    clock: Clock,
    deadline_monotonic: float,
    on_long_wait: Callable[[ListenerError], None] = lambda _error: None,
    on_page: Callable[[int, int | None], None] = lambda _items, _left: None,
) -> Snapshot:
    """Wait for room, and read every page of one consistent list.

    ``page_limit``: objects a page; 0: everything in one piece, so that no ``continue`` can expire. ``on_long_wait``: called with what people
    are to see, again and again while the list waits for room for long. ``on_page``: called after each page but the last, with the number
    of items read so far, and of those left if the server says it.

    Raises:
        TooOldError: the ``continue`` token expired, or pages have different versions. The caller starts over.
        ListenerError: a page failed. The caller must not use any part of an incomplete list (I5).
        StoppedError: the space was ended, or the client shut down.
    """
    policy = api.policy
    # How long one piece is, nobody knows: it waits until it is the first in the room.
    needed = policy.page_bytes if page_limit else policy.max_list_bytes
    came = clock.monotonic()

    def waits(seconds: float) -> None:
        said = f"has waited {seconds:.0f} s for room: lists of other clusters are being read and recorded"
        on_long_wait(BodyError(f"the list of {resource.value} {said}"))

    while space.enter(needed, deadline_monotonic, waits):
        began = clock.monotonic()
        until = min(deadline_monotonic, began + policy.list_timeout)
        try:
            found = _read_pages(api, resource, scope, space, page_limit, until, on_page)
        except NoRoomError as error:
            needed = error.needed
        except BaseException:
            space.leave()
            raise
        else:
            size = space.leave(found.size)
            return replace(found, size=size, waited_seconds=began - came, seconds=clock.monotonic() - began)
    raise BodyError(f"the list of {resource.value} got no room in time: lists of other clusters are being read")


def _read_pages(
    api: ApiClient,
    resource: Resource,
    scope: Scope,
    space: Space,
    page_limit: int,
    deadline_monotonic: float,
    on_page: Callable[[int, int | None], None],
) -> Snapshot:
    """Raises NoRoomError if what is left does not fit into the space."""
    policy = api.policy
    items: list[Observation] = []
    token, version, limit = "", None, page_limit
    read = kept = seen = 0
    for _ in range(policy.max_list_pages):
        body, limit = _fetch_page(api, resource, scope, space, kept, token, limit, deadline_monotonic)
        if 4 * len(body) <= policy.page_bytes:  # the large objects are behind
            limit = min(2 * limit, page_limit)
        read += len(body)
        if read > policy.max_list_bytes:
            raise BodyError(f"the list of {resource.value} {TOO_LONG} {policy.max_list_bytes} bytes")
        page = read_list_page(resource, body, scope.annotation_prefixes)
        if page.unreadable:
            raise BodyError(f"the list of {resource.value} holds an object without a name: {page.unreadable[0]}")
        if version is not None and page.resource_version != version:
            raise TooOldError(f"pages of one list are of versions {version} and {page.resource_version}")
        version = page.resource_version
        held = [item for item in page.items if scope.holds(item.namespace)] if scope.filtered else page.items
        items += held
        seen += len(page.items)
        kept += len(body) * len(held) // max(1, len(page.items))
        if not page.continue_token:
            return Snapshot(resource, version, tuple(items), size=kept)
        if page.continue_token == token:
            raise BodyError(f"the list of {resource.value} does not advance: the same continue token came twice")
        token = page.continue_token
        on_page(seen, page.remaining)
        # As much again, where the server does not say how many items are left.
        rest = kept if page.remaining is None else kept * page.remaining // max(1, seen)
        needed = min(kept + max(rest, policy.page_bytes), policy.max_list_bytes)
        if not space.grow(needed):
            raise NoRoomError(needed)
    raise BodyError(f"the list of {resource.value} has more than {policy.max_list_pages} pages")


def _fetch_page(
    api: ApiClient,
    resource: Resource,
    scope: Scope,
    space: Space,
    kept: int,
    token: str,
    limit: int,
    deadline_monotonic: float,
) -> tuple[bytes, int]:
    """A page and its limit, which is halved as long as the page is too large. Raises NoRoomError, with ``kept`` bytes besides."""
    policy = api.policy
    while True:
        # A single object may be longer than a page.
        if limit == 1 and not space.grow(alone := kept + policy.max_list_page_bytes):
            raise NoRoomError(alone)
        request = urls.list_page(
            resource, scope.namespace, limit=limit, continue_token=token, selectors=scope.selectors(resource)
        )
        longest = {0: policy.max_list_bytes, 1: policy.max_list_page_bytes}.get(limit, policy.page_bytes)
        try:
            return api.fetch(request, deadline_monotonic=deadline_monotonic, max_bytes=longest), limit
        except BodyTooLongError:
            if limit <= 1:
                raise
            limit //= 2


class KubernetesLister:
    """Implements ``ports.Lister``. Good for one ``run``, which closes the client at its end."""

    def __init__(self, api: ApiClient, resource: Resource, scope: Scope, space: Space, clock: Clock) -> None:
        self._api = api
        self._resource = resource
        self._scope = scope
        self._space = space
        self._clock = clock

    def run(self, deadline_monotonic: float) -> Snapshot:
        """Raises StoppedError if ``stop`` was called."""
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                limit = self._api.policy.page_limit if attempt < _ATTEMPTS else 0
                try:
                    return list_all(
                        self._api,
                        self._resource,
                        self._scope,
                        self._space,
                        page_limit=limit,
                        clock=self._clock,
                        deadline_monotonic=deadline_monotonic,
                    )
                except TooOldError:
                    continue
            raise StatusError("the list kept expiring while it was read", status=410)
        finally:
            self._api.close()

    def stop(self) -> None:
        """End ``run`` at once, also while a read blocks. Any thread may call it, any number of times."""
        self._space.end()
        self._api.shutdown()


def cluster_identity(api: ApiClient, deadline_monotonic: float) -> str | None:
    """The uid of Service ``default/kubernetes``. An API server creates that Service once in the life of its store (I5).

    Returns None if it does not exist or may not be read.

    Raises:
        ListenerError: the server could not be reached, or did not answer before the deadline.
    """
    try:
        request = urls.named(Resource.SERVICES, "default", "kubernetes")
        body = api.fetch(request, deadline_monotonic=deadline_monotonic)
    except DeniedError as error:
        if error.status == 403:
            return None
        raise
    page = read_list_page(Resource.SERVICES, body)
    return next((item.uid for item in page.items if item.name == "kubernetes" and item.uid), None)
