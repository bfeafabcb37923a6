"""The stand-in as a server: real HTTP/1.1 on loopback, one thread per connection."""

import contextlib
import re
import socket
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Self, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from kubesync_local.standins.route53.http_api import wire
from kubesync_local.standins.route53.http_api.faults import CHANGE, Bucket, Call, Fault, Faults, Kind
from kubesync_local.standins.route53.http_api.operations import Answer, Operations, Request, route
from kubesync_local.standins.route53.zone.model import Limits, SetKey, StoredSet
from kubesync_local.standins.route53.zone.names import lets_change
from kubesync_local.standins.route53.zone.zone import Account, RefusedError, Vpc, zone_name

_JOIN_SECONDS = 5.0
_SIGNED_BY = re.compile(r"Credential=([^/,\s]+)/")


@dataclass(slots=True)
class _Held:
    """A batch that waits for ``release``. ``done`` is set when it has an outcome."""

    request: Request
    call: Call
    done: threading.Event
    outcome: Answer | RefusedError | None = None


class StrictRoute53:
    """Route 53 as strict as the real one, for tests and the demo.

    ``with StrictRoute53() as r53:`` serves at ``r53.url`` until the block ends. ``faults`` sets what goes wrong,
    ``calls`` are all requests in the order of arrival, ``records`` is what a zone holds.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: Limits | None = None,
        requests: Bucket | None = None,
        changes: Bucket | None = None,
        legacy_errors: bool = False,
    ) -> None:
        """Make a server that does not serve yet. Raises OSError if the address cannot be used.

        Args:
            port: 0 for any free port.
            requests: the account's bucket of requests; None: throttling only by ``faults``.
            changes: the account's bucket of changes; None: the same.
            legacy_errors: refuse batches with the older form of errors, see ``wire.error_document``.
        """
        self.faults = Faults()
        self.account = Account(limits or Limits())
        self._operations = Operations(self.account)
        self._requests = requests
        self._changes = changes
        self._legacy_errors = legacy_errors
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._held: list[_Held] = []
        self._accounts: dict[str, str] = {}
        self._record_names: tuple[str, ...] | None = None
        self._server = _Server((host, port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="route53", daemon=True)

    @property
    def url(self) -> str:
        """The endpoint for boto3 on this machine."""
        host = str(self._server.server_address[0])
        return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{self.port}"  # noqa: S104 - nothing is bound here

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def calls(self) -> list[Call]:
        """Every request so far, in the order of arrival."""
        with self._lock:
            return list(self._calls)

    def batches(self, zone_id: str = "") -> list[Call]:
        """The ChangeResourceRecordSets requests so far, of one zone or of all."""
        return [call for call in self.calls if call.operation == CHANGE and zone_id in ("", call.zone_id)]

    def create_zone(self, name: str, *, zone_id: str = "", private: bool = False) -> str:
        """Make a zone without a request; returns its id."""
        vpc = Vpc("us-east-1", f"vpc-{uuid.uuid4().hex[:17]}") if private else None
        return self.account.create(zone_name(name), uuid.uuid4().hex, vpc, "", zone_id).id

    def move_to_account(self, zone_id: str, account: str) -> None:
        """From now on only temporary credentials of this account reach the zone: key ids that begin with ASIA-<account>-."""
        self._accounts[zone_id] = account

    def allow_names(self, patterns: Sequence[str] | None) -> None:
        """From now on everybody may change only names like these (see ``names.lets_change``); None: any."""
        self._record_names = None if patterns is None else tuple(patterns)

    def records(self, zone_id: str) -> dict[SetKey, StoredSet]:
        """What the zone holds, in listing order."""
        return {stored.key: stored for stored in self.account.page(zone_id, None, 10**9).sets}

    def release(self) -> list[Call]:
        """Let the delayed and stalled batches take effect, in the order of arrival; returns them with their outcome."""
        with self._lock:
            held, self._held = self._held, []
        for batch in held:
            try:
                batch.outcome = self._perform(batch.request, batch.call)
            except RefusedError as error:
                batch.outcome = error
            batch.done.set()
        return [batch.call for batch in held]

    @property
    def held(self) -> int:
        """Number of batches that wait for ``release``."""
        with self._lock:
            return len(self._held)

    def start(self) -> Self:
        """Serve in a thread of its own."""
        self._thread.start()
        return self

    def serve_forever(self) -> None:
        """Serve in this thread until interrupted."""
        self._server.serve_forever()

    def close(self) -> None:
        """Stop serving, drop held batches, close every connection and wait for the threads."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(_JOIN_SECONDS)
        with self._lock:
            held, self._held = self._held, []
        for batch in held:
            batch.done.set()
        self._server.close_all()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def handle(self, request: Request) -> Answer | None:
        """One request through faults, throttling and rules. None: close the connection without an answer."""
        try:
            call = self._operations.call(request)
        except RefusedError as error:
            call = Call(request.operation, request.resource, accepted=False, code=error.code, answered=True)
            self._record(call)
            return self._refusal(error)
        self._record(call)
        fault = self.faults.take(call)
        try:
            answer = self._with_fault(fault, request, call)
        except RefusedError as error:
            answer = self._refusal(error)
        if fault is not None and fault.kind is Kind.DROP_AFTER:
            return None
        call.answered = answer is not None
        return answer

    def _with_fault(self, fault: Fault | None, request: Request, call: Call) -> Answer | None:
        if fault is None or fault.kind is Kind.DROP_AFTER:
            self._throttle(call)
            return self._perform(request, call)
        if fault.kind is Kind.REFUSE:
            raise self._refused(call, RefusedError(fault.status, fault.code, fault.message))
        if fault.kind is Kind.DROP_BEFORE:
            return None
        held = _Held(request, call, threading.Event())
        with self._lock:
            self._held.append(held)
        if fault.kind is Kind.DELAY:
            return None
        held.done.wait()
        if isinstance(held.outcome, RefusedError):
            raise held.outcome
        return held.outcome

    def _throttle(self, call: Call) -> None:
        # Two buckets: https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/throttling-api-requests.html
        enough = self._requests is None or self._requests.try_take(1)
        if enough and self._changes is not None and call.changes:
            enough = self._changes.try_take(len(call.changes))
        if not enough:
            raise self._refused(call, RefusedError(400, "Throttling", "Rate exceeded"))

    def _perform(self, request: Request, call: Call) -> Answer:
        account = self._accounts.get(request.resource)
        if account is not None and not request.access_key.startswith(f"ASIA-{account}-"):
            message = f"User: {request.access_key} is not authorized to access this resource"
            raise self._refused(call, RefusedError(403, "AccessDenied", message))
        patterns, names = self._record_names, [change.record_set.key.name for change in call.changes]
        if patterns is not None and not lets_change(patterns, names):
            message = (
                f"User: {request.access_key} is not authorized to perform: {CHANGE} on resource: "
                f"arn:aws:route53:::hostedzone/{call.zone_id} because no identity-based policy allows the {CHANGE} action"
            )
            raise self._refused(call, RefusedError(403, "AccessDenied", message))
        try:
            answer = self._operations.perform(request, call)
        except RefusedError as error:
            raise self._refused(call, error) from None
        call.accepted = True
        return answer

    @staticmethod
    def _refused(call: Call, error: RefusedError) -> RefusedError:
        call.accepted, call.code, call.messages = False, error.code, error.messages
        return error

    def _refusal(self, error: RefusedError) -> Answer:
        body = wire.error_document(error, str(uuid.uuid4()), legacy_root=self._legacy_errors)
        return Answer(error.status, body, {})

    def _record(self, call: Call) -> None:
        with self._lock:
            self._calls.append(call)


class _Server(HTTPServer):
    """One thread per connection. Unlike ThreadingHTTPServer it can end idle and stalled connections."""

    def __init__(self, address: tuple[str, int], owner: StrictRoute53) -> None:
        super().__init__(address, _Handler)
        self.owner = owner
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        connection = cast("socket.socket", request)
        thread = threading.Thread(
            target=self._serve, args=(connection, client_address), name="route53-call", daemon=True
        )
        with self._lock:
            self._connections[connection] = thread
        thread.start()

    def _serve(self, connection: socket.socket, client_address: object) -> None:
        try:
            self.finish_request(connection, client_address)
        except OSError:
            pass  # The client has gone, or the server is being closed.
        finally:
            self.shutdown_request(connection)
            with self._lock:
                self._connections.pop(connection, None)

    def close_all(self) -> None:
        """Close the listening socket and every connection, and wait for their threads."""
        self.server_close()
        with self._lock:
            connections = dict(self._connections)
        for connection, thread in connections.items():
            with contextlib.suppress(OSError):  # Closed meanwhile.
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(_JOIN_SECONDS)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "StrictRoute53"
    # Head and body in one segment: else every answer waits for a delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        operation, resource = route(self.command, parts.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        signed = _SIGNED_BY.search(self.headers.get("Authorization") or "")
        request = Request(operation, unquote(resource), query, body, signed[1] if signed else "")
        answer = cast("_Server", self.server).owner.handle(request)
        if answer is None:
            self.close_connection = True
            return
        self._send(answer.status, answer.body, answer.headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("x-amzn-RequestId", str(uuid.uuid4()))
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = do_PUT = _handle  # noqa: N815 - the base class's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """No log: ``calls`` has all requests."""
