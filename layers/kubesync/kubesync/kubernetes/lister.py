"""Reads complete lists of one resource, and the cluster's identity. An incomplete list is an error, never a shorter list (I5)."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.domain.errors import TOO_LONG, BodyError, DeniedError, StatusError, TooOldError
from kubesync.domain.objects import EndpointsObject, Observation, Resource, Snapshot, bytes_of, equal_share
from kubesync.domain.sources.registry import IDENTITY
from kubesync.domain.sources.scope import Scope
from kubesync.kubernetes.list_room import ListReservation, NoRoomError
from kubesync.kubernetes.ports import WatchSink
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.failures import BodyTooLongError
from kubesync.kubernetes.wire.decode import ListPage, read_cut_page, read_list_page, read_uid
from kubesync.log import logger

_ATTEMPTS: Final = 3
_EXPIRED_BEFORE_ONE_PIECE: Final = 2  # after so many lists whose continue token has expired, the next list has no pages


class KubernetesLister:
    """Implements ``ports.Lister``. Reads lists of one resource in pages. After two lists that expired in a row, it reads one without pages.

    Args:
        api: a client of its own.
        room: its lists wait for room there.

    ``expired``: how many lists in a row have expired.
    """

    def __init__(self, api: ApiClient, resource: Resource, scope: Scope, room: ListReservation, clock: Clock) -> None:
        self.api = api
        self._policy = api.policy
        self.resource = resource
        self.scope = scope
        self._room = room
        self._clock = clock
        self.expired = 0

    def stop(self) -> None:
        """End ``run`` and ``read`` at once, also while they block. Any thread may call it, any number of times."""
        self._room.end()
        self.api.shutdown()

    def run(self, deadline_monotonic: float) -> Snapshot:
        """Read one list, try again if it expires, and close the client. Raises StoppedError if ``stop`` was called."""
        try:
            for _ in range(_ATTEMPTS):
                with suppress(TooOldError):
                    return self.read(deadline_monotonic)
            raise StatusError("the list kept expiring while it was read", status=410)
        finally:
            self.api.close()

    def read(self, deadline_monotonic: float, sink: WatchSink | None = None) -> Snapshot:
        """Wait for room, and read every page of one consistent list.

        Args:
            sink: told of each page but the last, and of an error every LONG_SECONDS that the list waits for room. The caller hands it the list.

        Raises:
            TooOldError: the ``continue`` token expired, or pages have different versions. The caller starts over.
            ListenerError: a page failed. The caller must not use any part of an incomplete list (I5).
            StoppedError: the room was ended, or the client shut down.
        """
        # 1. Wait for room for the first page. 2. Read pages, with more room for each. 3. If the room ends, drop all pages, and wait for as much as
        # the list is known to need. So each turn of this loop reads the list from its first page.
        policy, room, clock = self._policy, self._room, self._clock
        in_pages = self.expired < _EXPIRED_BEFORE_ONE_PIECE
        # Nobody knows how long a list without pages is, so it asks for the most. Usually that fits only once its cluster comes first
        # (``ListRoom.fits``).
        needed = policy.page_bytes if in_pages else policy.max_list_bytes
        came = clock.monotonic()

        def report_long_wait(seconds: float) -> None:
            if sink is not None:
                said = f"has waited {seconds:.0f} s for room: lists of other clusters are being read and recorded"
                sink.on_error(BodyError(f"the list of {self.resource} {said}"), consecutive=1)

        while room.take(needed, deadline_monotonic, report_long_wait):
            began = clock.monotonic()
            until = min(deadline_monotonic, began + policy.list_timeout)
            try:
                snapshot = self._read_pages(policy.page_limit if in_pages else 0, until, sink)
            except NoRoomError as error:
                needed = error.needed
            except BaseException as error:
                self.expired += isinstance(error, TooOldError)
                room.release()
                raise
            else:
                self.expired = 0
                size = room.release(snapshot.size)
                return replace(snapshot, size=size, waited_seconds=began - came, seconds=clock.monotonic() - began)
        raise BodyError(f"the list of {self.resource} got no room in time: lists of other clusters are being read")

    def _read_pages(self, page_limit: int, deadline_monotonic: float, sink: WatchSink | None) -> Snapshot:
        """Read all pages of one list, and grow the room before each further page.

        ``kept``: bytes of the objects in scope that the list keeps. ``seen``: how many objects came, in scope or not.

        Args:
            page_limit: objects a page; 0: no pages.

        Raises NoRoomError if the rest does not fit now, besides what ``read`` raises.
        """
        policy, resource, scope = self._policy, self.resource, self.scope
        items: list[Observation] = []
        token, version, limit = "", None, page_limit
        kept = seen = pages = 0
        # Pages with objects are limited by bytes and time. Only pages without an object are counted: a list of these may never end.
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
            if kept > policy.max_list_bytes:
                kept = _drop_largest_values(items, policy.max_list_bytes)
                if kept > policy.max_list_bytes:  # the names alone take that much
                    raise BodyError(f"the list of {resource} {TOO_LONG} {policy.max_list_bytes} bytes in memory")
            if not page.continue_token:
                return Snapshot(resource, version, tuple(items), size=kept)
            if page.continue_token == token:
                raise BodyError(f"the list of {resource} does not advance: the same continue token came twice")
            token = page.continue_token
            if sink is not None:
                sink.on_page(seen, page.remaining)
            # Estimates the rest: as much for each item as the items so far. Where the server does not say how many are left: as much again.
            rest = kept if page.remaining is None else kept * page.remaining // max(1, seen)
            needed = min(kept + max(rest, policy.page_bytes), policy.max_list_bytes)
            if not self._room.try_grow(needed):
                raise NoRoomError(needed)
        raise BodyError(f"the list of {resource} has more than {policy.max_list_pages} pages without an object")

    def _fetch_page(self, kept: int, token: str, limit: int, deadline_monotonic: float) -> tuple[ListPage, int]:
        """Fetch one page. Ask for half as many objects as long as the page is too large.

        the page is too long, at a limit of    then
        -----------------------------------    ----
        several objects                        ask for half as many
        one object                             the object has no value, only a name (``read_cut_page``); it is reported on its key (I4)
        0 (no pages)                           BodyTooLongError

        Returns the page and the limit for the next one: twice as many objects after a page of at most a quarter of the bytes. Raises NoRoomError
        if a single object does not fit beside the ``kept`` bytes.
        """
        policy, resource, scope = self._policy, self.resource, self.scope
        while True:
            # A page of one object may be longer than others (``longest``). So far there is room for a usual page only.
            if limit == 1 and not self._room.try_grow(alone := kept + policy.max_list_page_bytes):
                raise NoRoomError(alone)
            request = urls.list_page(
                resource, scope.namespace, limit=limit, continue_token=token, selectors=scope.selectors(resource)
            )
            # By limit: 0, no pages, is the whole list; 1 is a single object.
            longest = {0: policy.max_list_bytes, 1: policy.max_list_page_bytes}.get(limit, policy.page_bytes)
            try:
                body = self.api.fetch(request, deadline_monotonic=deadline_monotonic, max_bytes=longest)
            except BodyTooLongError as error:
                if limit > 1:
                    limit //= 2
                    continue
                page = read_cut_page(resource, error.head, f"it {TOO_LONG} {longest} bytes")
                if limit == 0 or page is None:
                    raise
                return page, limit
            page = read_list_page(resource, body, scope.annotation_prefixes)
            # After a small page, the large objects are behind.
            return page, limit * 2 if 4 * len(body) <= policy.page_bytes else limit


def _drop_largest_values(items: list[Observation], most: int) -> int:
    """Make room in a list that keeps more than ``most`` bytes: drop values of the namespaces that take most, their largest objects first.

    Each namespace may keep an equal share of 3/4 of ``most``, and what others leave of theirs. So there is room for further pages, and a
    namespace cannot make its cluster unlistable (I9). An object without value gets a problem. Its name is enough to prove that it exists: what
    is stored of it stays (I5).

    Changes ``items``. Returns how many bytes are left.
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
        # Endpoints still say whose they are, so that their Service shows the problem.
        label = EndpointsObject(item.value.service) if isinstance(item.value, EndpointsObject) else None
        problem = (
            f"the list has no room for it: the objects of its namespace take {taken[item.namespace]} of {most} bytes"
        )
        items[at] = replace(item, value=label, problem=problem)
        left[item.namespace] -= sizes[at] - bytes_of(label)
    logger.warning("objects left out of a list", extra={"namespaces": taken.most_common(3), "room": most})
    return left.total()


def cluster_identity(api: ApiClient, deadline_monotonic: float, *, lists: bool = True) -> str | None:
    """Ask the server for the uid of Service ``default/kubernetes``. An API server creates that Service once in the life of its store.

    So another uid than the stored one shows that this is another cluster: its lists must not count as absences in the old one (I5).

    Returns None if it does not exist or may not be read. ``lists``: ask with a list; else read the object (RBAC: ``get``).

    Raises:
        ListenerError: the server could not be reached, or did not answer before the deadline.
    """
    try:
        request = urls.list_by_name(*IDENTITY) if lists else urls.get_object(*IDENTITY)
        body = api.fetch(request, deadline_monotonic=deadline_monotonic)
    except (DeniedError, StatusError) as error:
        if error.status == HTTPStatus.FORBIDDEN or (error.status == HTTPStatus.NOT_FOUND and not lists):
            return None
        raise
    resource, _, name = IDENTITY
    if not lists:
        return read_uid(body)
    page = read_list_page(resource, body)
    return next((item.uid for item in page.items if item.name == name and item.uid), None)
