"""Serves the page in this process and visits it over a socket, as a browser does, or as somebody who should not."""

import http.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser

from harness.cli_stack import environment_of, logging_restored
from harness.waiting import PATIENCE_SECONDS
from kubesync_local.page.access import Guard, Pass
from kubesync_local.page.app import make_app
from kubesync_local.page.gathering import Gatherer
from kubesync_local.page.server import listening, serving
from kubesync_local.workplace.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Seen:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def text(self) -> str:
        """What a person reads: all text, with single spaces."""
        return " ".join("".join(parsed(self.body).texts).split())


@dataclass(slots=True)
class Visitor:
    """Somebody at an address. ``cookies`` are sent with each request."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, method: str = "GET", **headers: str) -> Seen:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        given = {"Host": f"127.0.0.1:{self.port}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Seen(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()

    def enter(self, address: str) -> Seen:
        """Open the printed address and keep the cookie."""
        seen = self.get(address.partition(f":{self.port}")[2])
        if "Set-Cookie" in seen.headers:
            name, _, value = seen.headers["Set-Cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        return seen


@contextmanager
def a_visited_page(environment: Mapping[str, str]) -> Iterator[tuple[Visitor, Gatherer]]:
    """A page of this environment's tables, and somebody who has entered."""
    with environment_of(environment), logging_restored(), listening(0) as sock, Gatherer(Workplace()) as gatherer:
        port = sock.getsockname()[1]
        guard = Guard(make_app(gatherer).wsgi_app, Pass(), port)
        with serving(guard, sock):
            visitor = Visitor(port)
            assert visitor.enter(guard.address).status == 303
            yield visitor, gatherer


class Parsed(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        self.texts.append("" if tag in ("wbr", "code", "strong", "time") else " ")  # those stand within words

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(body: str) -> Parsed:
    """A page as a browser reads it."""
    made = Parsed()
    made.feed(body)
    made.close()
    return made
