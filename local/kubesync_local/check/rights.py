"""What we may do: a real list of one object, and a real short watch, of each resource that the cluster's listeners read."""

import json
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.errors import BodyError, DeniedError, ListenerError, StatusError
from kubesync.domain.objects import Resource
from kubesync.domain.sources.registry import kind_of, may_be_absent
from kubesync.kubernetes.lister import cluster_identity
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.wire.decode import read_list_page
from kubesync_local.check import advice
from kubesync_local.check.step import Result, Step, failed, passed, skipped, warned

_WATCH_SECONDS: Final = 1
# A watch that should end after a second and still runs by then is delayed by something in between.
_PATIENCE_SECONDS: Final = 8.0
_ACCESS_REVIEW: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def rights_steps(
    new_api: Callable[[], ApiClient], config: ClusterConfig, clock: Clock, served: Collection[Resource]
) -> Iterator[Step]:
    """A step for each verb. ``new_api`` makes a client for each resource; resources are tested at the same time.

    ``served``: what sessions have listed. Another source may be without an API.
    """

    def both(resource: Resource) -> tuple[Step, Step]:
        with closing(new_api()) as api:
            step, version = _list(api, config, resource, optional=may_be_absent(resource) and resource not in served)
            if step.result is Result.WARNING:
                return step, skipped(f"watch {resource.value}", "not served")
            return step, _watch(api, config, resource, version, clock)

    resources = config.resources
    with ThreadPoolExecutor(len(resources), thread_name_prefix="check") as pool:
        for steps in pool.map(both, resources):
            yield from steps
    if not config.shows_identity:
        with closing(new_api()) as api:
            yield _identity(api, clock, lists=config.lists_services)
    if config.write_events:
        with closing(new_api()) as api:
            yield _events(api, config)


def _list(api: ApiClient, config: ClusterConfig, resource: Resource, *, optional: bool) -> tuple[Step, int]:
    name = f"list {resource.value}"
    scope = config.scope
    request = urls.list_page(resource, scope.namespace, limit=1, selectors=scope.selectors(resource))
    try:
        page = read_list_page(resource, api.fetch(request))
    except ListenerError as error:
        if optional and error.status == HTTPStatus.NOT_FOUND:
            group = kind_of(resource).api_version
            return warned(name, f"this API server has no {resource} of {group}, yet", advice.ABSENT), 0
        return failed(name, error, advice.of_verb(error, "list", resource)), 0
    where = f"namespace {scope.namespace}" if scope.namespace else "all namespaces"
    seen = "some exist" if page.items else "none exist"
    return passed(name, f"allowed in {where}, {seen}; resource version {page.resource_version}"), page.resource_version


def _watch(api: ApiClient, config: ClusterConfig, resource: Resource, version: int, clock: Clock) -> Step:
    name = f"watch {resource.value}"
    scope = config.scope
    request = urls.watch(
        resource,
        scope.namespace,
        resource_version=version,
        timeout_seconds=_WATCH_SECONDS,
        selectors=scope.selectors(resource),
    )
    until = clock.monotonic() + _PATIENCE_SECONDS
    try:
        with api.stream(request, deadline_monotonic=until) as stream:
            while (block := stream.read(max(0.1, until - clock.monotonic()))) is not None:
                _refuse_error(block.before)
                if clock.monotonic() >= until:
                    raise BodyError(f"a watch of {_WATCH_SECONDS} s did not end within {_PATIENCE_SECONDS:.0f} s")
    except ListenerError as error:
        return failed(name, error, advice.of_verb(error, "watch", resource))
    return passed(name, f"allowed, and ended after {_WATCH_SECONDS} s as requested")


def _refuse_error(lines: list[bytes]) -> None:
    """An error inside a stream whose status was 200."""
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            raise BodyError("a line of the watch is not JSON") from None
        if isinstance(event, dict) and event.get("type") == "ERROR":
            status = event.get("object") or {}
            raise StatusError(f"in the stream: {status.get('message', 'an error')}", status=status.get("code"))


def _identity(api: ApiClient, clock: Clock, *, lists: bool) -> Step:
    """No list of this scope holds default/kubernetes: sessions ask for it, and go on without the guard if they may not (I5)."""
    try:
        uid = cluster_identity(api, clock.monotonic() + _PATIENCE_SECONDS, lists=lists)
    except ListenerError as error:
        return failed("identity", error, advice.of_error(error))
    if uid is None:
        return warned("identity", advice.UNGUARDED, advice.IDENTITY if lists else advice.IDENTITY_BY_GET)
    return passed(
        "identity", "Service default/kubernetes can be read: another cluster at this address would be noticed"
    )


def _events(api: ApiClient, config: ClusterConfig) -> Step:
    """Asked, not tried: an Event would stay in the cluster."""
    attributes = {"verb": "create", "resource": "events", "namespace": config.scope.namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    try:
        answer = json.loads(api.fetch(urls.ApiRequest(_ACCESS_REVIEW, body=json.dumps(body).encode())))
        allowed = bool(answer["status"]["allowed"])
    except ListenerError as error:
        if error.status in (403, 404):
            return skipped("create events", "the server does not say")
        return failed("create events", error, advice.of_error(error))
    except (ValueError, TypeError, KeyError):
        return skipped("create events", "the server does not say")
    if allowed:
        return passed("create events", "allowed")
    denied = DeniedError("creating events is not allowed", status=403)
    return failed(
        "create events", denied, "allow create on events (docs/cluster-access.yaml), or leave out --write-events"
    )
