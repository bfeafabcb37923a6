"""I8: secrets stay put; what a server sends is bounded. Every stack looks for leaks when it ends, see ``harness.secrets_watch``."""

import json
import logging
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.wide_room import unlimited_reservation
from harness.hurried import a_hurried_stack
from harness.secrets_watch import AWS_SECRET, LeakingLogs, leak_in
from harness.seen.raw_objects import put_raw, raw_service
from harness.stack import TOKEN, a_stack
from integration.weather.scenarios_secrets import HOW, play_repeated
from kubesync.aws.dynamodb.store import AUDIT, Key, Put
from kubesync.domain.errors import BodyError
from kubesync.domain.objects import Resource
from kubesync.domain.sources.scope import Scope
from kubesync.kubernetes.lister import KubernetesLister
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.transport.faults import RawLine, redirect


@pytest.mark.parametrize(
    "value",
    [
        TOKEN,
        {"a": [b"body " + TOKEN.encode()]},
        zlib.compress(f"a report with {AWS_SECRET} in it".encode()),
        "Authorization: Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9",
        "dG9rZW4tb2YtYS10ZXN0LXRoYXQtbXVzdC1ub3QtbGVhaw==",
    ],
)
def test_watch_for_secrets_finds_them(value: object) -> None:
    assert leak_in(value)


def test_watch_for_secrets_reads_data_and_tracebacks_of_logs() -> None:
    handler, logger = LeakingLogs(), logging.getLogger("test-of-the-watch")
    logger.propagate = False
    logger.addHandler(handler)
    try:
        logger.warning("data", extra={"answer": {"token": TOKEN}})
        try:
            raise ValueError(TOKEN)
        except ValueError:
            logger.exception("traceback")
        logger.warning("nothing")
    finally:
        logger.removeHandler(handler)
    assert len(handler.leaks) == 2


def test_stack_that_leaves_a_secret_in_a_table_fails_i8() -> None:
    with pytest.raises(AssertionError, match="I8"), a_stack() as stack:
        stack.store.write(Put(Key(AUDIT, "sessions", "1"), {"message": f"no token {TOKEN}"}))


@pytest.mark.parametrize("how", HOW)
def test_token_that_a_server_repeats_is_nowhere_i8(how: str) -> None:
    play_repeated(how)


class _Eavesdropper(BaseHTTPRequestHandler):
    def handle_one_request(self) -> None:
        cast(Any, self.server).heard.append(self.rfile.readline())
        self.close_connection = True


@pytest.fixture
def eavesdropper() -> Iterator[tuple[str, list[bytes]]]:
    """A server that notes the first line of whatever is sent to it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Eavesdropper)
    heard: list[bytes] = []
    cast(Any, server).heard = heard
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", heard
    server.shutdown()
    thread.join()
    server.server_close()


def test_token_goes_to_the_configured_server_only_i8(
    eavesdropper: tuple[str, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole session: redirects, proxies and credentials of the environment change nothing."""
    url, heard = eavesdropper
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    with a_hurried_stack() as stack, ApiServer(tokens={TOKEN: "admin"}) as other:
        stack.add_cluster()
        put_raw(stack.api, raw_service("web"))
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
            monkeypatch.setenv(name, url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setenv("NETRC", str(netrc))
        stack.api.faults.add(redirect(f"{other.url}/api/v1/services"), resource="services", verb="list", times=2)
        running = stack.start()
        running.wait_for(lambda: "web.shop.svc.prod.example.com A" in stack.records())
        report = running.end()
        assert other.requests.all() == []
        assert heard == []
        assert {request.user for request in stack.api.requests.all() if request.status == 200} == {"admin"}
        services = next(each for each in report.listeners if each.resource == "services")
        assert services.errors == {"ERR_REQUEST_STATUS": 2}


def test_endless_line_ends_with_code_12_and_the_session_goes_on() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        stack.api.faults.add(RawLine(b"x" * (17 * 1024 * 1024)), resource="services", verb="watch")
        running = stack.start()
        running.wait_for(lambda: running.saw("error", key="ERR_READ_BODY", resource="services"))
        put_raw(stack.api, raw_service("web"))
        running.wait_for(lambda: "web.shop.svc.prod.example.com A" in stack.records())
        running.end()
        (error,) = [d for what, d in running.events if what == "error"]
        assert "a line is longer than 16777216 bytes" in str(error["message"])


class _EndlessList:
    """An API server whose lists have a page after every page."""

    def __init__(self, policy: ReflectorPolicy) -> None:
        self.policy = policy
        self.pages = 0

    def fetch(self, request: object, *, deadline_monotonic: float, max_bytes: int) -> bytes:
        self.pages += 1
        items = [{**raw_service(f"s{self.pages}")}]
        metadata = {"resourceVersion": "7", "continue": f"page-{self.pages}"}
        items[0]["metadata"]["resourceVersion"] = "5"
        return json.dumps({"kind": "ServiceList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (ReflectorPolicy(max_list_bytes=10_000), "longer than 10000 bytes"),
        (ReflectorPolicy(max_list_bytes=20_000), "longer than 20000 bytes"),
    ],
)
def test_endless_list_ends_with_code_12(policy: ReflectorPolicy, says: str) -> None:
    server = _EndlessList(policy)
    clock = ManualClock()
    reader = KubernetesLister(cast(ApiClient, server), Resource.SERVICES, Scope(), unlimited_reservation(clock), clock)
    with pytest.raises(BodyError, match=says):
        reader.read(1e9)
    assert server.pages <= 100
