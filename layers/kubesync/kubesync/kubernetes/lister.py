"""What is read outside of any watch: a complete list of one resource or none at all, and the cluster's identity."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubesync.clock import Clock
from kubesync.domain.errors import BodyError, DeniedError, StatusError
from kubesync.domain.objects import Observation, Resource, Snapshot
from kubesync.domain.scope import Scope
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.failures import TooOldError
from kubesync.kubernetes.wire.decode import read_list_page

_ATTEMPTS: Final = 3  # a continue token may expire; the last attempt reads everything in one piece


def list_all(
    api: ApiClient, resource: Resource, scope: Scope, *, page_limit: int, deadline_monotonic: float
) -> Snapshot:
    """Read every page of one consistent list.

    ``page_limit``: objects a page; 0: everything in one piece, so that no ``continue`` can expire.

    Raises:
        TooOldError: the ``continue`` token expired, or pages have different versions. The caller starts over.
        ListenerError: a page failed. The caller must not use any part of an incomplete list (I5).
    """
    items: list[Observation] = []
    token = ""
    version: int | None = None
    size = 0
    for _ in range(api.policy.max_list_pages):
        request = urls.list_page(
            resource, scope.namespace, limit=page_limit, continue_token=token, selectors=scope.selectors(resource)
        )
        body = api.fetch(request, deadline_monotonic=deadline_monotonic)
        size += len(body)
        if size > api.policy.max_list_bytes:
            raise BodyError(f"the list of {resource.value} is longer than {api.policy.max_list_bytes} bytes")
        page = read_list_page(resource, body, scope.annotation_prefixes)
        if page.unreadable:
            raise BodyError(f"the list of {resource.value} holds an object without a name: {page.unreadable[0]}")
        if version is not None and page.resource_version != version:
            raise TooOldError(f"pages of one list are of versions {version} and {page.resource_version}")
        version = page.resource_version
        items += (item for item in page.items if scope.holds(item.namespace)) if scope.filtered else page.items
        if not page.continue_token:
            return Snapshot(resource, version, tuple(items))
        if page.continue_token == token:
            raise BodyError(f"the list of {resource.value} does not advance: the same continue token came twice")
        token = page.continue_token
    raise BodyError(f"the list of {resource.value} has more than {api.policy.max_list_pages} pages")


class KubernetesLister:
    """Implements ``ports.Lister``. Good for one ``run``, which closes the client at its end."""

    def __init__(self, api: ApiClient, resource: Resource, scope: Scope, clock: Clock) -> None:
        self._api = api
        self._resource = resource
        self._scope = scope
        self._clock = clock

    def run(self, deadline_monotonic: float) -> Snapshot:
        """Raises StoppedError if ``stop`` was called."""
        began = self._clock.monotonic()
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                limit = self._api.policy.page_limit if attempt < _ATTEMPTS else 0
                try:
                    found = list_all(
                        self._api, self._resource, self._scope, page_limit=limit, deadline_monotonic=deadline_monotonic
                    )
                except TooOldError:
                    continue
                return replace(found, seconds=self._clock.monotonic() - began)
            raise StatusError("the list kept expiring while it was read", status=410)
        finally:
            self._api.close()

    def stop(self) -> None:
        """End ``run`` at once, also while a read blocks. Any thread may call it, any number of times."""
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
