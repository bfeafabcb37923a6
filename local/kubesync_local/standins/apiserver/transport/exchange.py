"""One request and its answer: handlers write to it, faults act on it."""

import gzip
import uuid
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final

from kubesync_local.standins.apiserver.objects.resources import Target
from kubesync_local.standins.apiserver.objects.status import ApiStatusError
from kubesync_local.standins.apiserver.objects.wire import go_json
from kubesync_local.standins.apiserver.transport.auth import User
from kubesync_local.standins.apiserver.transport.connection import Connection, HttpRequest
from kubesync_local.standins.apiserver.transport.faults import Fault
from kubesync_local.standins.apiserver.transport.request_log import RecordedRequest, RequestLog

# Longer answers are compressed if the client accepts it (the API server's gzip threshold).
_GZIP_BYTES: Final = 128 * 1024
# Priority and fairness name the flow schema and priority level that took the request, as recorded.
_EXEMPT: Final = {
    "X-Kubernetes-Pf-Flowschema-Uid": "4b6058c9-2592-4ed8-9b6f-8d30222e7fd5",
    "X-Kubernetes-Pf-Prioritylevel-Uid": "d9ffa15b-d3b9-4127-9aac-b1490b973267",
}
_ORDINARY: Final = {
    "X-Kubernetes-Pf-Flowschema-Uid": "95ab987b-78ed-48e1-86fa-7fcc17a838d3",
    "X-Kubernetes-Pf-Prioritylevel-Uid": "83a9a5cc-3e4c-4bcb-9af9-babb2931b081",
}


@dataclass(slots=True)
class Exchange:
    """A request under way. ``user`` and ``target`` are set when they are known."""

    connection: Connection
    request: HttpRequest
    record: RecordedRequest
    log: RequestLog
    fault: Fault
    date_epoch: float
    user: User | None = None
    target: Target | None = None
    lines_sent: int = 0

    def headers(self, content_type: str = "application/json") -> dict[str, str]:
        """The headers that every answer carries."""
        headers = {
            "Audit-Id": str(uuid.uuid4()),
            "Cache-Control": "no-cache, private",
            "Content-Type": content_type,
            "Date": formatdate(self.date_epoch, usegmt=True),
        }
        if self.user is not None:
            headers.update(_EXEMPT if self.user.administrator else _ORDINARY)
        if self.target is not None and self.target.resource.warning:
            headers["Warning"] = self.target.resource.warning
        return headers

    def send_object(self, code: int, body: bytes) -> None:
        """Send an object, list or Status."""
        headers = self.headers()
        if len(body) > _GZIP_BYTES and "gzip" in self.request.headers.get("accept-encoding", ""):
            headers.update({"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})
            body = gzip.compress(body, compresslevel=4, mtime=0)
        self.send_whole(code, headers, body)

    def send_list(self, body: bytes) -> None:
        """Send a list, changed by its fault if there is one."""
        self.send_object(200, self.fault.shape_body(body))

    def send_refusal(self, error: ApiStatusError) -> None:
        """Send the Status of a failure, newline included."""
        headers = {**self.headers(), **error.headers}
        if error.code in (401, 403):
            headers.pop("Warning", None)  # The endpoint adds warnings, and it was not reached.
        self.send_whole(error.code, headers, go_json(error.body) + b"\n")

    # -- EventStream, for watches --------------------------------------------------------------------------------

    def open(self) -> None:
        """Send status and headers of a watch."""
        self.log.update(self.record, status=200)
        self.connection.begin_stream(200, self.headers(), self.request)
        self.fault.after_events(0, self)

    def send(self, line: bytes) -> None:
        """Send one line of a watch."""
        self.connection.send_chunk(line)
        self.lines_sent += 1
        self.fault.after_events(self.lines_sent, self)

    def alive(self) -> bool:
        """Whether the client is still connected."""
        return self.connection.alive()

    # -- Answering, for faults -----------------------------------------------------------------------------------

    def send_whole(self, code: int, headers: dict[str, str], body: bytes) -> None:
        """Send a whole answer."""
        self.log.update(self.record, status=code)
        self.connection.send_whole(code, headers, body, self.request)

    def hang(self, seconds: float | None = None) -> None:
        """Send nothing for a while."""
        self.connection.hang(seconds)

    def cut_next_chunk(self, *, reset: bool) -> None:
        """Break in the middle of what is sent next."""
        self.connection.cut_next_chunk(reset=reset)

    def pace(self, bytes_at_once: int, seconds_between: float) -> None:
        """Send the rest slowly."""
        self.connection.pace(bytes_at_once, seconds_between)
