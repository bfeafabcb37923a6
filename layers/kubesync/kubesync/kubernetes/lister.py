"""What is read outside of any watch: a complete list of one resource or none at all, and the cluster's identity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from kubesync.clock import Clock
from kubesync.domain.errors import TOO_LONG, BodyError, DeniedError, ListenerError, StatusError
from kubesync.domain.objects import EndpointsObject, Observation, Resource, Snapshot, bytes_of, equal_share
from kubesync.domain.sources.registry import IDENTITY
from kubesync.domain.sources.scope import Scope
from kubesync.kubernetes.list_room import NoRoomError, Space
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.failures import BodyTooLongError, TooOldError
from kubesync.kubernetes.wire.decode import ListPage, read_head, read_list_page, read_uid
from kubesync.log import logger

_ATTEMPTS: Final = 3
_EXPIRED_BEFORE_ONE_PIECE: Final = 2  # a continue token may expire


class KubernetesLister:
    """Implements ``ports.Lister``. Reads lists of one resource: in pages, and in one piece after two that expired, one after the other.

    ``space``: where they wait for room. ``expired``: how many lists in a row have expired.
    """

    def __init__(self, api: ApiClient, resource: Resource, scope: Scope, space: Space, clock: Clock) -> None:
        self._api = api
        self._policy = api.policy
        self._resource = resource
        self._scope = scope
        self._space = space
        self._clock = clock
        self.expired = 0

    def stop(self) -> None:
        """End ``run`` and ``read`` at once, also while they block. Any thread may call it, any number of times."""
        self._space.end()
        self._api.shutdown()

    def run(self, deadline_monotonic: float) -> Snapshot:
        """One list for whoever wants no other: it closes the client. Raises StoppedError if ``stop`` was called."""
        try:
            for _ in range(_ATTEMPTS):
                with suppress(TooOldError):
                    return self.read(deadline_monotonic)
            raise StatusError("the list kept expiring while it was read", status=410)
        finally:
            self._api.close()

    def read(
        self,
        deadline_monotonic: float,
        *,
        on_long_wait: Callable[[ListenerError], None] = lambda _error: None,
        on_page: Callable[[int, int | None], None] = lambda _items, _left: None,
    ) -> Snapshot:
        """Wait for room, and read every page of one consistent list.

        Args:
            on_long_wait: called with what people are to see, again and again while the list waits for room for long.
            on_page: called after each page but the last, with the number of items read so far, and of those left if the server says it.

        Raises:
            TooOldError: the ``continue`` token expired, or pages have different versions. The caller starts over.
            ListenerError: a page failed. The caller must not use any part of an incomplete list (I5).
            StoppedError: the space was ended, or the client shut down.
        """
        policy, space, clock = self._policy, self._space, self._clock
        in_pages = self.expired < _EXPIRED_BEFORE_ONE_PIECE
        # How long one piece is, nobody knows: it waits until it is the first in the room.
        needed = policy.page_bytes if in_pages else policy.max_list_bytes
        came = clock.monotonic()

        def waits(seconds: float) -> None:
            said = f"has waited {seconds:.0f} s for room: lists of other clusters are being read and recorded"
            on_long_wait(BodyError(f"the list of {self._resource} {said}"))

        while space.enter(needed, deadline_monotonic, waits):
            began = clock.monotonic()
            until = min(deadline_monotonic, began + policy.list_timeout)
            try:
                found = self._read_pages(policy.page_limit if in_pages else 0, until, on_page)
            except NoRoomError as error:
                needed = error.needed
            except BaseException as error:
                self.expired += isinstance(error, TooOldError)
                space.leave()
                raise
            else:
                self.expired = 0
                size = space.leave(found.size)
                return replace(found, size=size, waited_seconds=began - came, seconds=clock.monotonic() - began)
        raise BodyError(f"the list of {self._resource} got no room in time: lists of other clusters are being read")

    def _read_pages(
        self, page_limit: int, deadline_monotonic: float, on_page: Callable[[int, int | None], None]
    ) -> Snapshot:
        """``page_limit``: objects a page; 0: all in one. Raises NoRoomError if what is left does not fit into the space."""
        policy, resource, scope = self._policy, self._resource, self._scope
        items: list[Observation] = []
        token, version, limit = "", None, page_limit
        kept = seen = pages = 0
        # A page with an object gets the list on, however small: what is kept, and the time, are what limits it.
        while pages <= policy.max_list_pages + seen:
            pages += 1
            page, limit = self._fetch_page(kept, token, limit, deadline_monotonic)
            limit = min(limit, page_limit)
            if page.unreadable:
                raise BodyError(f"the list of {resource} holds an object without a name: {page.unreadable[0]}")
            if version is not None and page.resource_version != version:
                raise TooOldError(f"pages of one list are of versions {version} and {page.resource_version}")
            version = page.resource_version
            held = [item for item in page.items if scope.holds(item.namespace)] if scope.filtered else page.items
            items += held
            seen += len(page.items)
            kept += sum(bytes_of(item.value) for item in held)
            if kept > (most := policy.max_list_bytes) and (kept := _leave_out(items, most)) > most:
                raise BodyError(f"the list of {resource} {TOO_LONG} {policy.max_list_bytes} bytes in memory")
            if not page.continue_token:
                return Snapshot(resource, version, tuple(items), size=kept)
            if page.continue_token == token:
                raise BodyError(f"the list of {resource} does not advance: the same continue token came twice")
            token = page.continue_token
            on_page(seen, page.remaining)
            # As much again, where the server does not say how many items are left.
            rest = kept if page.remaining is None else kept * page.remaining // max(1, seen)
            needed = min(kept + max(rest, policy.page_bytes), policy.max_list_bytes)
            if not self._space.grow(needed):
                raise NoRoomError(needed)
        raise BodyError(f"the list of {resource} has more than {policy.max_list_pages} pages without an object")

    def _fetch_page(self, kept: int, token: str, limit: int, deadline_monotonic: float) -> tuple[ListPage, int]:
        """A page, and the limit of the next one: half as many objects as long as it is too large, twice as many if it is small.

        Raises NoRoomError, with ``kept`` bytes besides.
        """
        policy, resource, scope = self._policy, self._resource, self._scope
        while True:
            # A single object may be longer than a page.
            if limit == 1 and not self._space.grow(alone := kept + policy.max_list_page_bytes):
                raise NoRoomError(alone)
            request = urls.list_page(
                resource, scope.namespace, limit=limit, continue_token=token, selectors=scope.selectors(resource)
            )
            longest = {0: policy.max_list_bytes, 1: policy.max_list_page_bytes}.get(limit, policy.page_bytes)
            try:
                body = self._api.fetch(request, deadline_monotonic=deadline_monotonic, max_bytes=longest)
            except BodyTooLongError as error:
                if limit > 1:
                    limit //= 2
                    continue
                page = read_head(resource, error.head, f"it {TOO_LONG} {longest} bytes")
                if limit == 0 or page is None:
                    raise
                return page, limit
            page = read_list_page(resource, body, scope.annotation_prefixes)
            return page, limit << (
                4 * len(body) <= policy.page_bytes
            )  # after a small page, the large objects are behind


def _leave_out(items: list[Observation], most: int) -> int:
    """Keep only the names of the largest objects of namespaces that take more than an equal share of 3/4 of ``most`` bytes.

    A namespace must not make its cluster unlistable (I9). A name proves that the object exists: its part stays as it was (I5).
    Returns how many bytes are taken then.
    """
    sizes = [bytes_of(item.value) for item in items]
    taken: Counter[str] = Counter()
    for item, size in zip(items, sizes, strict=True):
        taken[item.namespace] += size
    left, share = taken.copy(), equal_share(taken.values(), most * 3 // 4)
    for at in sorted(range(len(items)), key=lambda at: -sizes[at]):
        item = items[at]
        if left[item.namespace] <= share:
            continue
        label = EndpointsObject(item.value.service) if isinstance(item.value, EndpointsObject) else None
        problem = (
            f"the list has no room for it: the objects of its namespace take {taken[item.namespace]} of {most} bytes"
        )
        items[at] = replace(item, value=label, problem=problem)
        left[item.namespace] -= sizes[at] - bytes_of(label)
    logger.warning("objects left out of a list", extra={"namespaces": taken.most_common(3), "room": most})
    return left.total()


def cluster_identity(api: ApiClient, deadline_monotonic: float, *, lists: bool = True) -> str | None:
    """The uid of Service ``default/kubernetes``. An API server creates that Service once in the life of its store (I5).

    Returns None if it does not exist or may not be read. ``lists``: by a list, else by a read of the object (RBAC: ``get``).

    Raises:
        ListenerError: the server could not be reached, or did not answer before the deadline.
    """
    try:
        request = urls.named(*IDENTITY) if lists else urls.one(*IDENTITY)
        body = api.fetch(request, deadline_monotonic=deadline_monotonic)
    except DeniedError as error:
        if error.status == 403:
            return None
        raise
    except StatusError as error:
        if error.status == 404 and not lists:
            return None
        raise
    resource, _, name = IDENTITY
    if not lists:
        return read_uid(body)
    page = read_list_page(resource, body)
    return next((item.uid for item in page.items if item.name == name and item.uid), None)
