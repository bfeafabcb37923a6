"""Who may read the page. A WSGI application around the one of the pages; nothing of those runs before its checks.

The first matching row:

    the request                                     the answer
    -----------                                     ----------
    its Host is another than 127.0.0.1:PORT
      or localhost:PORT (DNS rebinding)             403
    another method than GET and HEAD                405
    GET of the address with the right token         303 to /, with the cookie; the token is used up
    the address with a used or a wrong token        403
    no cookie, or a wrong one                       403
    another page of this machine asks for a part of
      itself: a picture, a script, a frame          403
    else                                            the page
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlencode

from werkzeug.http import dump_cookie, parse_cookie

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ENTER: Final = "/enter"
_TOKEN_BYTES: Final = 32
POLICY: Final = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
"""No script at all: the pages have none."""
HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)
"""In every answer, refusals included."""

_WRONG_HOST: Final = "this page answers only at http://127.0.0.1:{port}/ and http://localhost:{port}/"
_WRONG_METHOD: Final = "this page only reads: GET and HEAD are its only methods"
_USED: Final = "this address was used already: it works once. Start `kubesync ui` again for a new one"
_USED_HERE: Final = "this address was used already, by this browser: open http://127.0.0.1:{port}/ instead"
_WRONG_TOKEN: Final = "this address has a wrong token: open the one that `kubesync ui` printed"  # noqa: S105 - a message
_OTHER_PAGE: Final = "another page asks for this: open it by itself, at http://127.0.0.1:{port}/"
_NO_COOKIE: Final = "no access: open the address that `kubesync ui` printed. It works once, in one browser"


@dataclass(slots=True)
class Pass:
    """The token of the printed address, which works once, and the value of the cookie that it is exchanged for."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    used: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def use(self, token: str) -> bool:
        """Whether this is the token, for the first time."""
        with self._lock:
            right = self.knows(token) and not self.used
            self.used = self.used or right
            return right

    def knows(self, token: str) -> bool:
        """Whether this is the token, used or not."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def admits(self, cookies: Iterable[str]) -> bool:
        """Whether one of these is the cookie."""
        return any(hmac.compare_digest(given.encode("utf-8", "replace"), self.cookie.encode()) for given in cookies)


class Guard:
    """The WSGI application that the server runs: refuses, lets in, or hands over to the pages.

    Args:
        pages: the WSGI application of the pages.
        port: where the server listens. Browsers send a cookie to every port of a host, so its name holds the port.
    """

    def __init__(self, pages: WSGIApplication, ticket: Pass, port: int) -> None:
        self._pages = pages
        self._pass = ticket
        self._port = port
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"kubesync-{port}"

    @property
    def address(self) -> str:
        """What a person opens, once."""
        return f"http://127.0.0.1:{self._port}{ENTER}?{urlencode({'token': self._pass.token})}"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("HTTP_HOST", "").lower() not in self._hosts:
            return self._refuse(start_response, "403 Forbidden", _WRONG_HOST)
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return self._refuse(start_response, "405 Method Not Allowed", _WRONG_METHOD, ("Allow", "GET, HEAD"))
        admitted = self._pass.admits(self._cookies(environ))
        if environ.get("PATH_INFO") == ENTER:
            return self._enter(environ, start_response, admitted=admitted)
        if not admitted:
            return self._refuse(start_response, "403 Forbidden", _NO_COOKIE)
        # Browsers send the cookie for pages on other ports of this host too. They say who asks, and no script can forge that.
        foreign = environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin")
        if foreign and (environ.get("HTTP_SEC_FETCH_MODE"), environ.get("HTTP_SEC_FETCH_DEST")) != (
            "navigate",
            "document",
        ):
            return self._refuse(start_response, "403 Forbidden", _OTHER_PAGE)
        return self._pages(environ, _with_headers(start_response))

    def _cookies(self, environ: WSGIEnvironment) -> list[str]:
        try:
            return parse_cookie(environ).getlist(self._cookie)
        except UnicodeError:  # bytes that are no text
            return []

    def _enter(self, environ: WSGIEnvironment, start_response: StartResponse, *, admitted: bool) -> Iterable[bytes]:
        tokens = parse_qs(environ.get("QUERY_STRING", ""), errors="replace").get("token", [])
        token = tokens[0] if len(tokens) == 1 else ""
        # A browser that fetches ahead, or asks for the head, would use the token up before anybody sees the page.
        opened = environ["REQUEST_METHOD"] == "GET" and "prefetch" not in environ.get("HTTP_SEC_PURPOSE", "")
        if opened and self._pass.use(token):
            cookie = dump_cookie(self._cookie, self._pass.cookie, httponly=True, samesite="Strict")
            return _answer(start_response, "303 See Other", "", ("Location", "/"), ("Set-Cookie", cookie))
        why = _WRONG_TOKEN
        if self._pass.knows(token) and self._pass.used:
            why = _USED_HERE if admitted else _USED
        return self._refuse(start_response, "403 Forbidden", why)

    def _refuse(
        self, start_response: StartResponse, status: str, why: str, *headers: tuple[str, str]
    ) -> Iterable[bytes]:
        return _answer(start_response, status, f"kubesync: {why.format(port=self._port)}\n", *headers)


def _answer(start_response: StartResponse, status: str, text: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    body = text.encode()
    about = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    _with_headers(start_response)(status, [*about, *headers])
    return [body]


def _with_headers(start_response: StartResponse) -> StartResponse:
    names = {name.lower() for name, _ in HEADERS}

    def start(status: str, headers: list[tuple[str, str]], *error: object) -> Callable[[bytes], object]:
        kept = [(name, value) for name, value in headers if name.lower() not in names]
        return start_response(status, [*kept, *HEADERS], *error)  # type: ignore[arg-type]

    return start
