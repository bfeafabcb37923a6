"""A complete list of one resource, or none at all."""

from __future__ import annotations

from dataclasses import dataclass

from kubesync.domain.errors import BodyError
from kubesync.domain.objects import Observation, Resource
from kubesync.kubernetes import urls
from kubesync.kubernetes.failures import TooOldError
from kubesync.kubernetes.transport import ApiClient
from kubesync.kubernetes.wire import read_list_page


@dataclass(frozen=True, slots=True)
class CompleteList:
    """Every object of one resource as of one version."""

    resource_version: int
    items: tuple[Observation, ...]


def list_all(
    api: ApiClient, resource: Resource, namespace: str, *, page_limit: int, deadline_monotonic: float
) -> CompleteList:
    """Read every page of one consistent list.

    Args:
        api: the client.
        resource: what to list.
        namespace: one namespace; empty: all.
        page_limit: objects a page; 0: all in one piece, whose ``continue`` cannot expire.
        deadline_monotonic: when to give up.

    Raises:
        TooOldError: the ``continue`` token expired, or the pages are of different versions: start over.
        ListenerError: a page failed. Nothing of a list that is not complete may be used (I5).
    """
    items: list[Observation] = []
    token = ""
    version: int | None = None
    size = 0
    for _ in range(api.policy.max_list_pages):
        request = urls.list_page(resource, namespace, limit=page_limit, continue_token=token)
        body = api.fetch(request, deadline_monotonic=deadline_monotonic)
        size += len(body)
        if size > api.policy.max_list_bytes:
            raise BodyError(f"the list of {resource.value} is longer than {api.policy.max_list_bytes} bytes")
        page = read_list_page(resource, body)
        if page.unreadable:
            raise BodyError(f"the list of {resource.value} holds an object without a name: {page.unreadable[0]}")
        if version is not None and page.resource_version != version:
            raise TooOldError(f"pages of one list are of versions {version} and {page.resource_version}")
        version = page.resource_version
        items += page.items
        if not page.continue_token:
            return CompleteList(version, tuple(items))
        if page.continue_token == token:
            raise BodyError(f"the list of {resource.value} does not go on: the same continue token twice")
        token = page.continue_token
    raise BodyError(f"the list of {resource.value} has more than {api.policy.max_list_pages} pages")
