"""The stand-in Kubernetes API server: services, endpoints, endpointslices and ingresses over HTTP, as a real one serves them."""

import contextlib
import json
from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import Final, Self

from kubesync.actors.scheduler import Clock
from kubesync.actors.threads import ThreadScheduler
from kubesync_local.standins.apiserver.objects import status
from kubesync_local.standins.apiserver.objects.allocation import ServiceAllocations
from kubesync_local.standins.apiserver.objects.resources import (
    SERVED,
    SERVICES,
    ResourceType,
    Target,
    parse_path,
)
from kubesync_local.standins.apiserver.objects.schema import unknown_fields
from kubesync_local.standins.apiserver.objects.status import ApiStatusError, JsonObject
from kubesync_local.standins.apiserver.objects.store import Store, StoredObject
from kubesync_local.standins.apiserver.objects.wire import go_json, object_bytes
from kubesync_local.standins.apiserver.options import ServerOptions
from kubesync_local.standins.apiserver.requests.discovery import discovered
from kubesync_local.standins.apiserver.requests.listing import answer_list
from kubesync_local.standins.apiserver.requests.query import is_true
from kubesync_local.standins.apiserver.requests.watching import Watch
from kubesync_local.standins.apiserver.requests.writing import Writer
from kubesync_local.standins.apiserver.transport.auth import Authority, User
from kubesync_local.standins.apiserver.transport.connection import Connection, HttpRequest, MalformedRequestError
from kubesync_local.standins.apiserver.transport.exchange import Exchange
from kubesync_local.standins.apiserver.transport.faults import EndOfStreamError, Fault, FaultPlan
from kubesync_local.standins.apiserver.transport.listener import Listener
from kubesync_local.standins.apiserver.transport.request_log import RecordedRequest, RequestLog, without_credentials
from kubesync_local.standins.apiserver.workloads.client import ApiClient
from kubesync_local.standins.apiserver.workloads.cluster import Cluster, install_own_service

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCH_TYPES: Final = ("application/merge-patch+json", _STRATEGIC)
_VERSION_BODY: Final = {"major": "1", "minor": "36", "gitVersion": "v1.36.0", "platform": "linux/amd64"}


class ApiServer:
    """A server in this process: ``with ApiServer() as server: requests.get(server.url + "/api/v1/services")``.

    For tests: ``store``, ``writer`` (writes without HTTP), ``authority`` (tokens, denials), ``faults``,
    ``requests`` (the log of requests), ``cluster`` (plays deployments and their controllers).
    """

    def __init__(
        self,
        options: ServerOptions | None = None,
        *,
        tokens: Mapping[str, User | str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises OSError if the address cannot be used. ``tokens`` None: no token is needed."""
        self.options = options or ServerOptions()
        self.clock: Clock = clock or ThreadScheduler()
        self.store = Store(self.options.first_version, self.options.history_limit)
        self.allocations = ServiceAllocations(self.options.ipv4_cidr, self.options.ipv6_cidr)
        self.writer = Writer(self.store, self.clock, self.allocations, self.options.new_uid)
        self.authority = Authority(tokens)
        self.faults = FaultPlan()
        self.requests = RequestLog()
        self._pace = (0, 0.0)
        tls = self.options.tls.server_context() if self.options.tls else None
        self._listener = Listener(self.options.host, self.options.port, tls, self._serve)
        if self.options.bootstrap:
            install_own_service(self.writer.create, str(self.allocations.ranges["IPv4"].network[1]))

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT`` or ``https://...``, without a trailing slash."""
        host, port = self._listener.address
        return f"{'https' if self.options.tls else 'http'}://{host}:{port}"

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self._listener.address

    @cached_property
    def cluster(self) -> Cluster:
        """Plays what runs in the cluster. Its HTTP calls are not logged and get no faults."""
        return Cluster(self.internal_client())

    def internal_client(self) -> ApiClient:
        """A client with the controllers' token."""
        ca_pem = self.options.tls.ca_pem if self.options.tls else None
        return ApiClient(self.url, self.authority.internal_token, ca_pem)

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to serve."""
        self._listener.start()
        return self

    def stop(self) -> None:
        """Drop all connections and wait for the threads."""
        self._listener.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- what tests do to it ------------------------------------------------------------------------------------

    def compact(self, to_version: int, resource: ResourceType | None = None) -> None:
        """Make versions below ``to_version`` too old."""
        self.store.compact(to_version, resource)

    def restore(self, to_version: int) -> None:
        """Restore the store from a backup of ``to_version``: versions go back, all connections drop."""
        self.store.restore(to_version)
        with self.store.changed:
            self.allocations = ServiceAllocations(self.options.ipv4_cidr, self.options.ipv6_cidr)
            self.note_allocations()
            self.writer = Writer(self.store, self.clock, self.allocations, self.options.new_uid)
        self.sever()

    def note_allocations(self) -> None:
        """Mark the addresses of stored services as allocated, after objects were installed."""
        for service in self.store.objects(SERVICES):
            self.allocations.note(service.item)

    def sever(self) -> None:
        """Drop all live connections."""
        self._listener.sever()

    @property
    def live_connections(self) -> int:
        """Open connections."""
        return self._listener.live_connections

    def bookmark(self) -> None:
        """Send a bookmark to every watch that wants them, now."""
        for resource in SERVED:
            self.store.bookmark(resource)

    def deliver_in_pieces(self, bytes_at_once: int = 1, seconds_between: float = 0.0) -> None:
        """From now on send all answers in pieces of ``bytes_at_once``; 0: whole."""
        self._pace = (bytes_at_once, seconds_between)

    # -- requests ------------------------------------------------------------------------------------------------

    def _serve(self, connection: Connection) -> None:
        while True:
            try:
                request = connection.read_request()
            except MalformedRequestError:
                return
            if request is None:
                return
            exchange = self._exchange(connection, request)
            connection.pace(*self._pace)
            try:
                if not exchange.fault.answer(exchange):
                    self._answer(exchange)
            finally:
                self.requests.update(exchange.record, ended=True)
            if not request.keep_alive:
                return

    def _exchange(self, connection: Connection, request: HttpRequest) -> Exchange:
        target = parse_path(request.path)
        authorization = request.headers.get("authorization", "")
        record = RecordedRequest(
            number=self.requests.next_number(),
            connection=connection.number,
            method=request.method,
            path=request.path,
            params=request.params,
            headers=without_credentials(request.headers),
            had_authorization=bool(authorization),
            resource=target.resource.plural if target else "",
            verb=_verb(request, target) if target else "",
            received_monotonic=self.clock.monotonic(),
        )
        fault = Fault()
        if not self.authority.is_internal(authorization):
            self.requests.add(record)
            fault = self.faults.take(record)
        return Exchange(connection, request, record, self.requests, fault, self.clock.epoch_seconds())

    def _answer(self, exchange: Exchange) -> None:
        request, target = exchange.request, parse_path(exchange.request.path)
        try:
            exchange.user = self.authority.authenticate(request.headers.get("authorization", ""))
            exchange.record.user = exchange.user.name
            if target is None:
                self._answer_elsewhere(exchange)
                return
            exchange.target = target
            self.authority.authorize(exchange.user, exchange.record.verb, target)
            if exchange.record.verb == "watch":
                self._watch(exchange, target)
            else:
                self._read_or_write(exchange, target)
        except ApiStatusError as refusal:
            exchange.send_refusal(refusal)

    def _answer_elsewhere(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path in ("/livez", "/readyz", "/healthz"):
            exchange.send_whole(200, exchange.headers("text/plain; charset=utf-8"), b"ok")
        elif path == "/version":
            exchange.send_object(200, go_json(_VERSION_BODY))
        elif (served := discovered(path)) is not None:
            exchange.send_object(200, go_json(served))
        else:
            raise status.no_such_resource()

    def _watch(self, exchange: Exchange, target: Target) -> None:
        watch = Watch(self.store, target, exchange.request.params, self.clock, self.options.watch)
        with contextlib.suppress(EndOfStreamError):
            watch.run(exchange)
        exchange.connection.end_stream()

    def _read_or_write(self, exchange: Exchange, target: Target) -> None:
        request, verb = exchange.request, exchange.record.verb
        if verb == "list":
            wait = self.options.future_version_wait
            exchange.send_list(answer_list(self.store, target, request.params, self.clock, wait))
            return
        code = 200
        if verb == "get":
            stored = self.store.get(target.resource, target.namespace, target.name)
            if stored is None:
                raise status.not_found(target.resource, target.name)
        elif verb == "create" and target.namespace and not target.name:
            code, stored = 201, self.writer.create(target, _checked(request, target))
        elif verb == "update" and target.name:
            stored, created = self.writer.update(target, _checked(request, target))
            code = 201 if created else 200
        elif verb == "patch" and target.name:
            media_type = request.headers.get("content-type", "").partition(";")[0]
            if media_type not in _PATCH_TYPES:
                raise status.unsupported_media_type(media_type)
            strategic = media_type == _STRATEGIC
            stored = self.writer.patch(target, _checked(request, target), strategic=strategic)
        elif verb == "delete" and target.name and not target.subresource:
            stored = self.writer.delete(target, _body(request) if request.body else {})
            if target.resource is not SERVICES:
                exchange.send_object(200, go_json(_deleted(stored, target)) + b"\n")
                return
        else:
            raise status.method_not_allowed()
        exchange.send_object(code, object_bytes(target.resource, stored.encoded) + b"\n")


def _verb(request: HttpRequest, target: Target) -> str:
    if request.method in ("GET", "HEAD"):
        if target.legacy_watch or (not target.name and is_true(request.params.get("watch", ""))):
            return "watch"
        return "get" if target.name else "list"
    return _VERBS.get(request.method, request.method.lower())


def _checked(request: HttpRequest, target: Target) -> JsonObject:
    """The body of a write, with ``fieldValidation=Strict`` only if all its fields are known."""
    body = _body(request)
    unknown = unknown_fields(target.resource.plural, body)
    if unknown and request.params.get("fieldValidation") == "Strict":
        raise status.unknown_fields(target.resource, unknown)
    return body


def _body(request: HttpRequest) -> JsonObject:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if media_type.startswith("application/vnd."):  # what kubectl's typed commands send: protobuf
        raise status.not_json(media_type)
    try:
        value = json.loads(request.body)
    except ValueError as error:
        raise status.bad_request(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise status.bad_request("the body is not a JSON object")
    return value


def _deleted(stored: StoredObject, target: Target) -> JsonObject:
    """The answer to DELETE, except for a Service, which is returned itself."""
    details: JsonObject = {"name": target.name}
    if target.resource.group:
        details["group"] = target.resource.group
    details |= {"kind": target.resource.plural, "uid": stored.item["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
