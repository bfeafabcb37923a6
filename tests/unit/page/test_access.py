"""Who may read the page: each row of the table in ``access``, with nothing but the request's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from kubesync_local.page.access import Guard, Pass

PORT = 8123
TOKEN = "the-token"
COOKIE = "the-cookie"


class Asked:
    """The guard, the pages behind it, and what was answered."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.guard = Guard(self.pages, Pass(TOKEN, COOKIE), PORT)
        self.status = ""
        self.headers: dict[str, str] = {}
        self.body = ""

    def pages(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.reached.append(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Type", "text/html"), ("Cache-Control", "public")])
        return [b"page"]

    def ask(self, path: str = "/", query: str = "", method: str = "GET", cookie: str = "", **more: str) -> Asked:
        environ: dict[str, Any] = {
            "HTTP_HOST": f"127.0.0.1:{PORT}",
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            **({"HTTP_COOKIE": cookie} if cookie else {}),
            **more,
        }
        environ = {name: value for name, value in environ.items() if value != "none"}

        def start(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
            self.status, self.headers = status, dict(headers)
            assert len(headers) == len(self.headers), "a header that is there twice: browsers choose"
            return lambda _: None

        self.body = b"".join(self.guard(environ, start)).decode()
        return self


@pytest.fixture
def asked() -> Asked:
    return Asked()


GOOD = f"kubesync-{PORT}={COOKIE}"


@pytest.mark.parametrize("host", ["127.0.0.1:8123", "localhost:8123", "LOCALHOST:8123"])
def test_own_host_reaches_the_page(asked: Asked, host: str) -> None:
    assert asked.ask(cookie=GOOD, HTTP_HOST=host).status == "200 OK"
    assert asked.reached == ["/"]


@pytest.mark.parametrize(
    "host",
    ["evil.example.com", "evil.example.com:8123", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8123,evil.example.com", "0.0.0.0:8123",
     "[::1]:8123", "localhost.:8123", "127.0.0.1:8123.evil.example.com", "", "none"],
)  # fmt: skip
def test_other_host_is_refused_even_with_the_cookie(asked: Asked, host: str) -> None:
    assert asked.ask(cookie=GOOD, HTTP_HOST=host).status == "403 Forbidden"
    assert asked.body == "kubesync: this page answers only at http://127.0.0.1:8123/ and http://localhost:8123/\n"
    assert asked.reached == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_other_method_is_refused(asked: Asked, method: str) -> None:
    assert asked.ask(cookie=GOOD, method=method).status == "405 Method Not Allowed"
    assert asked.headers["Allow"] == "GET, HEAD"
    assert asked.body == "kubesync: this page only reads: GET and HEAD are its only methods\n"
    assert asked.reached == []


def test_token_is_exchanged_for_a_cookie_once(asked: Asked) -> None:
    asked.ask("/enter", f"token={TOKEN}")

    assert asked.status == "303 See Other"
    assert asked.headers["Location"] == "/"  # an address without the token
    assert asked.headers["Set-Cookie"] == "kubesync-8123=the-cookie; HttpOnly; Path=/; SameSite=Strict"
    assert asked.ask("/enter", f"token={TOKEN}").status == "403 Forbidden"
    assert (
        asked.body
        == "kubesync: this address was used already: it works once. Start `kubesync ui` again for a new one\n"
    )
    assert "Set-Cookie" not in asked.headers
    assert asked.reached == []


def test_second_use_in_the_same_browser_names_the_page(asked: Asked) -> None:
    asked.ask("/enter", f"token={TOKEN}")

    assert asked.ask("/enter", f"token={TOKEN}", cookie=GOOD).status == "403 Forbidden"
    assert "by this browser: open http://127.0.0.1:8123/ instead" in asked.body


@pytest.mark.parametrize(
    "query", ["", "token=", "token=wrong", f"token={TOKEN}x", f"token={TOKEN}&token={TOKEN}", "token=%ff%00"]
)
def test_wrong_token_is_refused_and_uses_nothing_up(asked: Asked, query: str) -> None:
    assert asked.ask("/enter", query).status == "403 Forbidden"
    assert asked.body == "kubesync: this address has a wrong token: open the one that `kubesync ui` printed\n"
    assert asked.ask("/enter", f"token={TOKEN}").status == "303 See Other"


@pytest.mark.parametrize("more", [{"method": "HEAD"}, {"HTTP_SEC_PURPOSE": "prefetch;prerender"}])
def test_what_nobody_sees_uses_no_token_up(asked: Asked, more: dict[str, str]) -> None:
    assert asked.ask("/enter", f"token={TOKEN}", **more).status == "403 Forbidden"
    assert asked.ask("/enter", f"token={TOKEN}").status == "303 See Other"


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "other=1",
        "kubesync-8123=",
        "kubesync-8123=wrong",
        f"kubesync-9000={COOKIE}",
        f"kubesync-8123={TOKEN}",
        "kubesync-8123=\xff",
    ],
)
def test_without_the_cookie_every_address_is_refused(asked: Asked, cookie: str) -> None:
    for path in ("/", "/page.css", "/changes", "/no-such-page", "//enter"):
        assert asked.ask(path, cookie=cookie).status == "403 Forbidden", path
        assert asked.body == (
            "kubesync: no access: open the address that `kubesync ui` printed. It works once, in one browser\n"
        )
    assert asked.reached == []


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [("same-site", "no-cors", "script", "403 Forbidden"), ("cross-site", "no-cors", "image", "403 Forbidden"),
     ("same-site", "navigate", "iframe", "403 Forbidden"), ("same-site", "cors", "empty", "403 Forbidden"),
     ("same-site", "navigate", "document", "200 OK"), ("same-origin", "no-cors", "style", "200 OK"), ("none", "navigate", "document", "200 OK")],
)  # fmt: skip
def test_other_page_gets_no_part(asked: Asked, site: str, mode: str, dest: str, status: str) -> None:
    asked.ask(cookie=GOOD, HTTP_SEC_FETCH_SITE=site, HTTP_SEC_FETCH_MODE=mode, HTTP_SEC_FETCH_DEST=dest)

    assert asked.status == status


def test_every_answer_has_the_headers_and_the_pages_cannot_change_them(asked: Asked) -> None:
    asked.ask(cookie=GOOD)
    page = dict(asked.headers)
    asked.ask()
    refused = dict(asked.headers)
    asked.ask("/enter", f"token={TOKEN}")
    entered = dict(asked.headers)
    for headers in (page, refused, entered):
        assert headers["Content-Security-Policy"] == (
            "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_token_and_cookie_are_long_random_and_different() -> None:
    made = [secret for _ in range(50) for each in [Pass()] for secret in (each.token, each.cookie)]

    assert len(set(made)) == 100
    assert all(re.fullmatch(r"[\w-]{43}", secret) for secret in made)


def test_address_holds_the_token_once(asked: Asked) -> None:
    assert asked.guard.address == "http://127.0.0.1:8123/enter?token=the-token"
