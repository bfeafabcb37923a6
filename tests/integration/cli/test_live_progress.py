"""What a session shows while it runs: on a terminal a live view, in a pipe one line for each change."""

import signal
import threading
from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, a_cli_stack, environment_of, logging_restored
from harness.ended_sessions import ended_when
from harness.terminal import on_a_terminal
from kubesync_local.commands.show.watch import gathered
from kubesync_local.standins.route53.http_api.faults import CHANGE
from kubesync_local.workplace.readings import ZoneReadings
from kubesync_local.workplace.workplace import Workplace


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        assert made.add_cluster("prod").status == 0
        for name in ("one", "two", "three"):
            made.api.cluster.expose("shop", name, {"ports": [{"port": 80}], "selector": {"app": name}})
        made.environment["KUBESYNC_PAGE_LIMIT"] = "2"
        yield made


def test_pipe_gets_one_line_a_change(stack: CliStack) -> None:
    said = [line[9:] for line in stack.session().lines]
    (address,) = stack.zone_records()["one.shop.svc.prod.example.com A"]
    assert f"+ one.shop.svc.prod.example.com A {address} ttl 30" in said
    assert "+ upstream prod/shop/one/80/TCP version 1, 0 nodes" in said
    assert not [line for line in said if "\x1b" in line]
    stack.api.cluster.delete_service("shop", "one")
    said = [line[9:] for line in stack.session().lines]
    assert f"- one.shop.svc.prod.example.com A {address} ttl 30" in said
    assert "- upstream prod/shop/one/80/TCP version 1" in said


def test_terminal_shows_lists_changes_and_counts_and_gets_its_cursor_back(stack: CliStack) -> None:
    environment = {name: value for name, value in stack.environment.items() if name != "COLUMNS"}
    with ended_when(stack.settled):
        status, shown = on_a_terminal("session", "--max-runtime", "3600", environment=environment)
    assert status == 0
    text = shown.decode()
    assert "+ one.shop.svc.prod.example.com A 10." in text
    assert "master for 0 s · " in text
    assert text.index("\x1b[?25l") < text.rindex("\x1b[?25h")
    after = text[text.rindex("\x1b[?25h") :]
    assert '"ended": "ERR_MAX_RUNTIME"' in after, "the report comes after the live view"


def test_watched_status_is_drawn_until_a_signal_and_leaves_the_terminal_as_it_was(stack: CliStack) -> None:
    stack.session()
    environment = {name: value for name, value in stack.environment.items() if name != "COLUMNS"}
    timer = threading.Timer(1.5, signal.raise_signal, [signal.SIGINT])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        status, shown = on_a_terminal("status", "--watch", environment=environment)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    text = shown.decode()
    assert status == 0
    assert "released the lease cleanly" in text
    assert "+ one.shop.svc.prod.example.com A 10." in text
    assert text.index("\x1b[?1049h") < text.rindex("\x1b[?1049l")
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_watched_status_says_which_zone_a_service_waits_for(stack: CliStack) -> None:
    stack.route53.faults.deny(operation=CHANGE, times=None, message="not authorized")
    stack.session(lambda: bool(ZoneReadings(stack.store, "0", "").current()))
    with environment_of(stack.environment), logging_restored():
        view = gathered(Workplace(), "prod")
    (problem,) = view.zone_problems
    assert problem.startswith("zone example.com: AccessDenied: not authorized")
    assert {service: why for service, _, why in view.clusters[0].opened}[
        "prod/shop/one"
    ] == "waits for zone example.com"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status", "--watch"), "--watch needs a terminal: leave it out, or repeat `kubesync status --output json`"),
        (("status", "--watch", "--output", "json"), "--watch is for people: leave out --check and --output"),
        (("status", "--watch", "--check"), "--watch is for people: leave out --check and --output"),
    ],
)
def test_status_is_watched_on_terminals_only(stack: CliStack, arguments: tuple[str, ...], said: str) -> None:
    ran = stack.call(*arguments)
    assert (ran.status, ran.lines) == (2, [f"kubesync: {said}"])
