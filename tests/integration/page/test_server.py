"""The page's server and programs of this machine that keep connections open: the owner's browser is answered all the same."""

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.page_visitor import Visitor
from harness.waiting import PATIENCE_SECONDS, wait_until
from kubesync_local.page.server import HOST, PageServer, listening, serving


class Served:
    """A server whose pages wait while ``gate`` is closed."""

    def __init__(self, port: int, clock: ManualClock, stack: ExitStack) -> None:
        self.port = port
        self.clock = clock
        self.gate = threading.Event()
        self.gate.set()
        self.answering = 0
        self._stack = stack
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._lock:
            self.answering += 1
        assert self.gate.wait(PATIENCE_SECONDS)
        start_response("200 OK", [("Content-Length", "4")])
        return [b"page"]

    def send(self, sent: bytes) -> socket.socket:
        """A new connection that has sent this much."""
        made = self._stack.enter_context(socket.create_connection((HOST, self.port), timeout=PATIENCE_SECONDS))
        made.sendall(sent)
        return made


@pytest.fixture
def served() -> Iterator[Served]:
    with ExitStack() as stack, listening(0) as sock:
        made = Served(sock.getsockname()[1], ManualClock(), stack)
        with serving(made, sock, made.clock):
            yield made
            made.gate.set()


def threads() -> int:
    return sum("process_request_thread" in each.name for each in threading.enumerate())


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def test_connections_without_a_request_do_not_keep_the_owner_out(served: Served) -> None:
    slow = [served.send(b"GET / HTTP/1.0\r\nX: ") for _ in range(100)]

    assert Visitor(served.port).get("/").body == "page"

    assert [ended(each) for each in slow[:69]] == [
        True
    ] * 69  # 32 places, one of them the owner's; the oldest went first
    wait_until(lambda: threads() <= 32)
    assert served.answering == 1  # a head that was cut is no request


def test_head_that_does_not_end_is_cut_after_ten_seconds_whatever_it_sends(served: Served) -> None:
    slow = served.send(b"GET / HTTP/1.0\r\nX: ")
    wait_until(lambda: threads() == 1)
    served.clock.advance(9)
    slow.sendall(b"a")
    for _ in range(2):  # late connections are looked for after each one
        assert Visitor(served.port).get("/").body == "page"
    slow.setblocking(False)
    with pytest.raises(BlockingIOError):
        slow.recv(100)

    slow.settimeout(PATIENCE_SECONDS)
    slow.sendall(b"a")
    served.clock.advance(1.5)

    assert ended(slow)
    wait_until(lambda: threads() == 0)


def test_answer_under_way_is_never_cut(served: Served) -> None:
    served.gate.clear()
    first = served.send(b"GET / HTTP/1.0\r\n\r\n")
    wait_until(lambda: served.answering == 1)
    served.clock.advance(3_600)
    slow = [served.send(b"GET") for _ in range(40)]
    assert ended(slow[0])

    served.gate.set()

    assert first.recv(100).startswith(b"HTTP/1.0 200 OK\r\n")


def test_too_many_answers_at_once_are_refused(served: Served) -> None:
    served.gate.clear()
    asked = [served.send(b"GET / HTTP/1.0\r\n\r\n") for _ in range(32)]
    wait_until(lambda: served.answering == 32)

    assert ended(served.send(b"GET / HTTP/1.0\r\n\r\n"))

    served.gate.set()
    assert [each.recv(12) for each in asked] == [b"HTTP/1.0 200"] * 32
    wait_until(lambda: threads() == 0)
    assert Visitor(served.port).get("/").body == "page"


def test_what_follows_the_head_is_not_read(served: Served) -> None:
    more = served.send(b"GET / HTTP/1.0\r\nContent-Length: 99999999\r\n\r\nX")

    answer = b""
    while part := more.recv(65536):  # it ends although we could send on
        answer += part

    assert answer.endswith(b"\r\n\r\npage")
    wait_until(lambda: threads() == 0)


def test_accepting_that_fails_makes_room_and_is_tried_again_after_a_pause() -> None:
    clock = ManualClock()
    ours, theirs = socket.socketpair()
    with ours, theirs, listening(0) as sock, closing(sock.dup()) as same:
        server = PageServer(lambda _environ, _start: [], same, clock)
        assert server._takes(ours)
        server.socket.close()  # accepting fails, as it does when no file is left

        with pytest.raises(OSError, match="Bad file descriptor"):
            server.get_request()

        assert theirs.recv(1) == b""
    assert clock.slept == [0.2]
