"""DynamoDB, Secrets Manager and Parameter Store in this process: moto's server in a thread, for the demo and tests.

Use it for small tables. Import this module where it is used, not at the top of a command: moto takes half a second.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import io
import json
import socket
import threading
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from itertools import accumulate
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from moto.dynamodb import models
from moto.dynamodb.models.table import Table
from moto.dynamodbstreams import models as stream_models
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import ThreadedWSGIServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_TRANSACT_TARGET: Final = "DynamoDB_20120810.TransactWriteItems"
_REMEMBERED_TOKENS: Final = 1_000
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetRecords.html
_GET_RECORDS_BYTES: Final = 1_000_000
_MISMATCH: Final = b'{"__type":"com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException"}'

type _Answer = tuple[str, list[tuple[str, str]], list[bytes]]


class EmbeddedDynamoDB:
    """A server, by default on 127.0.0.1 at a free port; its tables, secrets and parameters are empty when it starts.

    moto keeps its state in the process, so only one may run at a time. Clients take any credentials and any region,
    but see only what was made in the same region. Entering raises OSError if the address cannot be used.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._address = (host, port)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        #: What answers its requests: for clients in this process that need no socket.
        self.application: WSGIApplication = _OneAtATime(_Services(create_backend_app))

    @property
    def url(self) -> str:
        """The endpoint of all its services on this machine, once started."""
        return f"http://{_reachable(self._address[0])}:{self.port}"

    @property
    def port(self) -> int:
        """Where it listens, once started."""
        assert self._server is not None, "not started"
        return self._server.port

    def __enter__(self) -> Self:
        # Bound here: if an address cannot be used, werkzeug prints, and ends the process.
        with socket.create_server(self._address) as bound:
            host, port = bound.getsockname()
            self._server = _Server(host, port, self.application, _Handler, fd=bound.fileno())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="moto", daemon=True)
        self._thread.start()
        self._forget_everything()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._thread.join()
        self._server.close_connections()
        self._server = self._thread = None

    def _forget_everything(self) -> None:
        connection = http.client.HTTPConnection(_reachable(self._address[0]), self.port, timeout=10)
        try:
            connection.request("POST", "/moto-api/reset")
            connection.getresponse().read()
        finally:
            connection.close()


class _Handler(MotoRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """No access log."""


class _Server(ThreadedWSGIServer):
    """Keeps its connections, to close those that clients keep alive when it stops."""

    def __init__(self, host: str, port: int, app: WSGIApplication, handler: type[MotoRequestHandler], fd: int) -> None:
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._connections_lock = threading.Lock()
        super().__init__(host, port, app, handler, fd=fd)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), name="moto connection", daemon=True
        )
        with self._connections_lock:
            self._connections[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._connections_lock:
            self._connections.pop(request, None)

    def close_connections(self) -> None:
        with self._connections_lock:
            connections = dict(self._connections)
        for connection, thread in connections.items():
            with contextlib.suppress(OSError):  # the client closed it first
                connection.shutdown(socket.SHUT_RDWR)  # wakes the thread, which then closes it
            thread.join()


class _Services(DomainDispatcherApplication):
    """moto's services. Which one a DynamoDB request is for, moto finds out by searching its folders: here once."""

    def get_application(self, environ: WSGIEnvironment) -> Any:
        known = self.app_instances.get("dynamodb")
        if known is not None and environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB_20120810."):
            return known
        return super().get_application(environ)


class _OneAtATime:
    """Makes moto's DynamoDB safe for concurrent clients, and its transactions idempotent.

    moto undoes a refused transaction by restoring a copy of the whole table. That also undoes what another request wrote
    meanwhile, such as a renewed lease. moto also ignores ClientRequestToken. DynamoDB honours it: a repeated transaction
    that landed is answered with success (AWS: for ten minutes; here: for the last thousand transactions).
    """

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._landed: OrderedDict[str, tuple[bytes, _Answer]] = OrderedDict()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with self._lock:
            if environ.get("HTTP_X_AMZ_TARGET") == _TRANSACT_TARGET:
                status, headers, body = self._transact(environ)
            else:
                status, headers, body = self._run(environ)
        start_response(status, headers)
        return body

    def _transact(self, environ: WSGIEnvironment) -> _Answer:
        request = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = io.BytesIO(request)
        asked = json.loads(request)
        token = asked["ClientRequestToken"]
        if token in self._landed:
            landed, answer = self._landed[token]
            return answer if landed == request else ("400 Bad Request", _headers_of(_MISMATCH), [_MISMATCH])
        QuickTable.begin(asked["TransactItems"])
        answer = self._run(environ)
        if answer[0].startswith("200"):
            self._landed[token] = (request, answer)
            if len(self._landed) > _REMEMBERED_TOKENS:
                self._landed.popitem(last=False)
        return answer

    def _run(self, environ: WSGIEnvironment) -> _Answer:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> Any:
            started.append((status, headers))

        body = list(self._app(environ, start_response))
        status, headers = started[-1]
        return status, headers, body


class QuickTable(Table):
    """moto's table, spared most of its work. Its answers are the same: tests/integration/store/test_quick_tables.py.

    Without it, tests/upgrade/test_updates_change_nothing.py takes two and a half times as long.
    moto copies a whole table once for each action of a transaction, and sorts a whole table for each query. Here a
    transaction copies the partitions that it names, once, and a query sees its own partition only. Both are right
    because requests come one at a time, and because no table of kubesync has an index.
    """

    _touched: ClassVar[set[str]] = set()
    _copies: ClassVar[dict[int, QuickTable]] = {}

    @classmethod
    def begin(cls, actions: Iterable[dict[str, dict[str, Any]]]) -> None:
        """A transaction comes, with these actions."""
        cls._copies.clear()
        places = [action.get("Item") or action["Key"] for each in actions for action in each.values()]
        cls._touched = {str(value.get("S")) for place in places for value in place.values()}

    def __deepcopy__(self, memo: dict[int, Any]) -> QuickTable:
        if id(self) not in self._copies:
            made = self._copies[id(self)] = copy.copy(self)
            made.items = copy.copy(self.items)
            for key, rows in self.items.items():
                if key.value in self._touched:
                    made.items[key] = copy.deepcopy(rows, memo)
            if self.stream_shard is not None:
                made.stream_shard = copy.copy(self.stream_shard)
                made.stream_shard.table, made.stream_shard.items = made, list(self.stream_shard.items)
        return self._copies[id(self)]

    def query(self, hash_key: Any, *given: Any, **named: Any) -> Any:
        every = self.items
        self.items = defaultdict(dict, {hash_key: every[hash_key]} if hash_key in every else {})
        try:
            return super().query(hash_key, *given, **named)
        finally:
            self.items = every


class CurrentShardIterator(stream_models.ShardIterator):
    """moto's iterator, as DynamoDB has it: an answer holds at most 1 MB of records, or one record.

    moto's own reads a shard of the table as it was when the iterator was made. A refused transaction replaces that table.
    """

    def get(self, limit: int = 1000) -> dict[str, Any]:
        present = self.streams_backend.dynamodb.get_table(self.stream_shard.table.name).stream_shard
        assert present is not None, "the table has lost its stream"
        self.stream_shard = present
        start = self.sequence_number - present.starting_sequence_number
        sizes = [each.record["dynamodb"]["SizeBytes"] for each in present.items[start : start + limit]]
        fitting = bisect_right(list(accumulate(sizes)), _GET_RECORDS_BYTES)
        answer: dict[str, Any] = super().get(max(1, fitting))
        return answer


# moto makes its tables and iterators by these names.
vars(models)["Table"] = QuickTable
vars(stream_models)["ShardIterator"] = CurrentShardIterator


def _reachable(host: str) -> str:
    return "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 - nothing is bound here


def _headers_of(body: bytes) -> list[tuple[str, str]]:
    return [("Content-Type", "application/x-amz-json-1.0"), ("Content-Length", str(len(body)))]
