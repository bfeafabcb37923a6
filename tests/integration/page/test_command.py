"""``kubesync ui`` as a process: it prints an address that works once, refuses everybody else, and ends in order."""

import importlib.util
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.page_visitor import Visitor
from harness.waiting import PATIENCE_SECONDS


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """Nothing answers at its endpoint of DynamoDB, which the command does not need to begin."""
    with a_cli_stack(in_memory=True) as made:
        made.environment["AWS_ENDPOINT_URL_DYNAMODB"] = "http://127.0.0.1:9"
        made.environment["AWS_MAX_ATTEMPTS"] = "1"
        yield made


@pytest.fixture(scope="module", autouse=True)
def sigint_is_heard() -> Iterator[None]:
    """Processes inherit what is ignored: as a job in the background of a script they would not hear it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@dataclass
class Ui:
    """The running command."""

    stack: CliStack
    address: str
    port: int

    def end(self, number: signal.Signals) -> tuple[int, str, str]:
        process = self.stack.processes[-1]
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, out, err


def start(stack: CliStack, *arguments: str) -> Ui:
    process = stack.start("ui", *arguments)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:"), process.communicate()
    return Ui(stack, address, int(address.split(":")[2].split("/")[0]))


@pytest.fixture(scope="module")
def ui(stack: CliStack) -> Ui:
    return start(stack)


def test_token_works_once_over_the_wire(ui: Ui) -> None:
    visitor, stranger = Visitor(ui.port), Visitor(ui.port)
    assert stranger.get("/").status == 403

    entered = visitor.enter(ui.address)

    assert (entered.status, entered.headers["Location"]) == (303, "/")
    assert "token" not in entered.headers["Location"] + entered.headers["Set-Cookie"]
    again = stranger.enter(ui.address)
    assert again.status == 403
    assert (
        again.body
        == "kubesync: this address was used already: it works once. Start `kubesync ui` again for a new one\n"
    )
    assert stranger.cookies == {}
    # Its tables cannot be reached: a page says so, and what to do; no traceback.
    page = visitor.get("/")
    assert page.status == 503
    assert "DynamoDB cannot be reached: check the network, the region and AWS_ENDPOINT_URL_DYNAMODB" in page.text
    assert "Traceback" not in page.body
    assert visitor.get("/page.css").headers["Content-Type"] == "text/css; charset=utf-8"
    for refused in (
        visitor.get("/", Host="evil.example.com"),
        visitor.get("/", Host=""),
        visitor.get("http://evil.example.com/"),
        stranger.get("/page.css"),
        stranger.get("/no-such-page"),
    ):
        assert refused.status == 403
        assert refused.body.count("\n") == 1
        assert refused.headers["Content-Type"] == "text/plain; charset=utf-8"
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "X"):
        assert visitor.get("/", method).status == 405
    head = visitor.get("/page.css", "HEAD")
    assert (head.status, head.body) == (200, "")
    assert head.headers["Server"] == "kubesync"


def test_two_hosts_in_one_request_are_refused(ui: Ui) -> None:
    with socket.create_connection(("127.0.0.1", ui.port), timeout=PATIENCE_SECONDS) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{ui.port}\r\nHost: evil.example.com\r\n\r\n".encode())
        assert raw.recv(100).startswith(b"HTTP/1.0 403 ")


def test_second_request_on_one_connection_is_not_answered(ui: Ui) -> None:
    request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{ui.port}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", ui.port), timeout=PATIENCE_SECONDS) as raw:
        raw.sendall(request + request)
        answer = b""
        try:
            while part := raw.recv(65536):
                answer += part
        except ConnectionResetError:  # it closed while our second request was still unread
            pass
    assert answer.count(b"HTTP/1.0 ") == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signal_ends_it_in_order(stack: CliStack, number: signal.Signals, status: int) -> None:
    ui = start(stack)
    assert Visitor(ui.port).get("/").status == 403

    ended, out, err = ui.end(number)

    assert ended == status
    assert out == ""  # the address was all
    assert "Traceback" not in err
    with pytest.raises(ConnectionRefusedError):
        Visitor(ui.port).get("/")


def test_port_in_use_is_one_line(stack: CliStack, ui: Ui) -> None:
    ran = stack.call("ui", "--port", str(ui.port))

    assert (ran.status, ran.out) == (1, "")
    assert ran.lines == [
        f"kubesync: port {ui.port} on 127.0.0.1 is in use: choose another with --port (0: any free port)"
    ]


def test_it_listens_on_loopback_only(ui: Ui) -> None:
    with socket.socket() as other:  # 127.0.0.2 is free, so nothing listens on all addresses
        other.bind(("127.0.0.2", ui.port))


def test_terminal_shows_the_token_once_and_no_request(stack: CliStack) -> None:
    ui = start(stack, "--port", "0")
    visitor = Visitor(ui.port)
    visitor.enter(ui.address)
    visitor.get("/changes?name=secret-name")

    _, out, err = ui.end(signal.SIGINT)

    token = ui.address.partition("token=")[2]
    assert len(token) == 43
    assert token not in out + err
    assert "secret-name" not in out + err
    assert err.splitlines()[0] == "open this address in a browser: it works once. The page only reads. Ctrl-C ends it"


def test_without_flask_it_says_what_to_install(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    really = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "flask" else really(name))

    ran = stack.call("ui")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "kubesync: 'kubesync ui' needs packages that are not installed (flask): install its extra `ui` with the same Python: "
        f"{sys.executable} -m pip install '.[ui]' in the folder of kubesync's source, or "
        f"'kubesync-{metadata.version('kubesync')}-py3-none-any.whl[ui]' beside the wheel\n"
    )


@pytest.mark.parametrize("port", ["-1", "65536", "x", "", "8 0"])
def test_wrong_port_is_wrong_use(stack: CliStack, port: str) -> None:
    ran = stack.call("ui", "--port", port)

    assert ran.status == 2
    assert len(ran.lines) == 1
    assert "--port" in ran.err
