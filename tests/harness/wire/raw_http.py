"""HTTP without comfort: what a server sends, header by header and line by line."""

import http.client
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Self

# Headers that differ from answer to answer.
_VOLATILE = ("date", "audit-id")
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """``headers`` as sent, less Date and Audit-Id; ``body`` is dechunked and nothing else."""

    status: int
    headers: dict[str, str]
    body: bytes


class Stream:
    """An answer that is read line by line. A context manager; leaving it closes the connection."""

    def __init__(
        self,
        address: tuple[str, int],
        target: str,
        headers: dict[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._connection = _connect(address, tls)
        self._connection.request("GET", target, headers=headers or {})
        self.response = self._connection.getresponse()
        self.headers = _headers(self.response)

    def line(self) -> str:
        """The next line with its newline, empty at the clean end."""
        return self.response.readline().decode()

    def lines(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.response.close()
        self._connection.close()


def ask(
    address: tuple[str, int],
    target: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: str | bytes | None = None,
    tls: ssl.SSLContext | None = None,
) -> RawAnswer:
    """One request on a connection of its own, read to the end."""
    connection = _connect(address, tls)
    try:
        connection.request(method, target, body, headers or {})
        response = connection.getresponse()
        return RawAnswer(response.status, _headers(response), response.read())
    finally:
        connection.close()


def _connect(address: tuple[str, int], tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    if tls is None:
        return http.client.HTTPConnection(*address, timeout=TIMEOUT_SECONDS)
    return http.client.HTTPSConnection(*address, timeout=TIMEOUT_SECONDS, context=tls)


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name: value for name, value in response.getheaders() if name.lower() not in _VOLATILE}
