"""One embedded DynamoDB (moto) for a whole test process; each stack of servers has tables of its own there."""

from __future__ import annotations

import atexit
import io
import sys
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.httpsession import URLLib3Session

from kubesync_local.standins.dynamodb import EmbeddedDynamoDB

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

_numbers = count(1)


@cache
def _server() -> EmbeddedDynamoDB:
    server = EmbeddedDynamoDB()
    server.__enter__()
    atexit.register(server.__exit__, None, None, None)
    return server


@cache
def dynamodb_url() -> str:
    """Where it listens; it starts when this is first asked.

    boto3's clients in this process reach it without a socket, which takes half as long; other processes by HTTP.

    Do not start another one while a stack is in use: moto keeps its state in the process, and a new server empties it.
    """
    server = _server()
    _answer_without_sockets(server.url, server.application)
    return server.url


def dynamodb_url_by_socket() -> str:
    """The same server, which clients in this process reach by HTTP as well."""
    return dynamodb_url().replace("127.0.0.1", "localhost")


def a_table_prefix() -> str:
    """A prefix that no other stack of this process has."""
    return f"kubesync-test-{next(_numbers)}"


def _answer_without_sockets(url: str, application: WSGIApplication) -> None:
    send = URLLib3Session.send

    def answered(self: URLLib3Session, request: Any) -> Any:
        if not request.url.startswith(f"{url}/"):
            return send(self, request)
        started: list[tuple[int, dict[str, str]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> Any:
            started.append((int(status.split()[0]), dict(headers)))

        body = b"".join(application(_environ(request), start_response))
        ((status, headers),) = started
        return AWSResponse(request.url, status, HTTPHeaders.from_dict(headers), _Body(body))

    # In the class: commands and handlers make clients of their own, which no hook of ours would reach.
    URLLib3Session.send = answered  # type: ignore[method-assign]


def _environ(request: Any) -> WSGIEnvironment:
    """The request as a WSGI server would hand it on."""
    address = urlsplit(request.url)
    body = request.body or b""
    body = body.encode() if isinstance(body, str) else bytes(body)
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": address.path,
        "QUERY_STRING": address.query,
        "REQUEST_URI": address.path,
        "SERVER_NAME": address.hostname,
        "SERVER_PORT": str(address.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": address.netloc,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in request.headers.items():
        environ[f"HTTP_{name.upper().replace('-', '_')}"] = str(value, "ascii") if isinstance(value, bytes) else value
    environ["CONTENT_LENGTH"] = str(len(body))
    environ["CONTENT_TYPE"] = environ.get("HTTP_CONTENT_TYPE", "")
    return environ


class _Body(io.BytesIO):
    """A response's body as urllib3 offers it."""

    def stream(self, **_options: object) -> Any:
        yield self.read()
