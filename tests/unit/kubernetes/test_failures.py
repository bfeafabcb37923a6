"""The table of foreign errors is complete: whatever these libraries define, in whatever phase, has its code."""

import http.client
import inspect
import socket
import ssl
import zlib
from types import ModuleType

import pytest
import requests.exceptions
import urllib3.exceptions

from kubesync.domain.errors import (
    BodyError,
    ConnectError,
    DomainNameError,
    HandshakeError,
    ListenerError,
    RequestError,
)
from kubesync.kubernetes.transport.connections import Phase
from kubesync.kubernetes.transport.failures import FOREIGN_ERRORS, RULES, classify
from kubesync.kubernetes.wire.lines import MalformedBodyError, one_line

# What a phase may become; a name that is none shows before a connection, a refused client certificate after it.
ALLOWED: dict[Phase, tuple[type[ListenerError], ...]] = {
    Phase.CONNECT: (DomainNameError, ConnectError, HandshakeError),
    Phase.HANDSHAKE: (DomainNameError, ConnectError, HandshakeError),
    Phase.REQUEST: (DomainNameError, HandshakeError, RequestError),
    Phase.BODY: (BodyError,),
}


# No proxy is ever used.
NEVER_RAISED = (urllib3.exceptions.ProxySchemeUnsupported,)
MODULES = (requests.exceptions, urllib3.exceptions, http.client, ssl, socket)


def defined_in(module: ModuleType) -> list[type[Exception]]:
    return [
        found
        for name, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, Exception)
        and not issubclass(found, Warning)
        and not name.startswith("_")
        and found.__module__.startswith(("requests", "urllib3", "http", "ssl", "socket"))
        and found not in NEVER_RAISED
    ]


FOREIGN = sorted(
    {kind for module in MODULES for kind in defined_in(module)}
    | {ConnectionResetError, ConnectionAbortedError, BrokenPipeError, ConnectionRefusedError, TimeoutError, OSError}
    | {UnicodeError, zlib.error, MalformedBodyError},
    key=str,
)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_foreign_error_is_caught_and_has_a_rule(kind: type[Exception]) -> None:
    assert issubclass(kind, FOREIGN_ERRORS)
    error = kind.__new__(kind)
    error.args = ()
    for phase in Phase:
        assert any(phase in rule.phases and isinstance(error, rule.cause) for rule in RULES)
        assert isinstance(classify(error, phase, "k8s:443"), ALLOWED[phase])


@pytest.mark.parametrize(
    ("error", "phase", "becomes"),
    [
        (socket.gaierror(-2, "Name or service not known"), Phase.CONNECT, DomainNameError),
        (UnicodeError("label too long"), Phase.CONNECT, DomainNameError),
        (requests.exceptions.InvalidURL("x"), Phase.CONNECT, DomainNameError),
        (ConnectionRefusedError(111, "Connection refused"), Phase.CONNECT, ConnectError),
        (OSError(113, "No route to host"), Phase.CONNECT, ConnectError),
        (TimeoutError(), Phase.CONNECT, ConnectError),
        (TimeoutError(), Phase.HANDSHAKE, ConnectError),
        (ssl.SSLCertVerificationError("expired"), Phase.HANDSHAKE, HandshakeError),
        (ConnectionResetError(104, "reset"), Phase.HANDSHAKE, HandshakeError),
        (ssl.SSLError(1, "unknown ca"), Phase.REQUEST, HandshakeError),
        (ssl.SSLEOFError(8, "EOF"), Phase.REQUEST, RequestError),
        (http.client.RemoteDisconnected("closed"), Phase.REQUEST, RequestError),
        (TimeoutError(), Phase.REQUEST, RequestError),
        (TimeoutError(), Phase.BODY, BodyError),
        (http.client.IncompleteRead(b"{", 9), Phase.BODY, BodyError),
        (urllib3.exceptions.DecodeError("gzip"), Phase.BODY, BodyError),
        (ssl.SSLError(1, "bad record mac"), Phase.BODY, BodyError),
    ],
)
def test_phase_and_cause_decide_the_code(error: Exception, phase: Phase, becomes: type[ListenerError]) -> None:
    outer = requests.exceptions.ConnectionError(urllib3.exceptions.ProtocolError("wrapped", error))
    assert type(classify(outer, phase, "k8s:443")) is becomes
    assert type(classify(error, phase, "k8s:443")) is becomes


def test_message_names_the_server_and_not_the_request_i8() -> None:
    error = requests.exceptions.ConnectionError("GET https://k8s/api?continue=s3cr3t Bearer s3cr3t")
    assert classify(error, Phase.REQUEST, "k8s:443").message == (
        "k8s:443: the connection was lost before a status line came"
    )


def test_text_of_a_server_is_made_one_short_printable_line() -> None:
    assert one_line("a\r\nb\x1b[31m\u2028c\x00") == "a b [31m c"
    assert one_line("x" * 501) == "x" * 499 + "…"
