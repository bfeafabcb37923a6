"""Text that obeys nobody: a cluster, a zone and API servers say what a terminal would obey, and every command prints it harmless."""

import io
import json
import logging
import os
import re
import runpy
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from typing import Final

import pytest

from harness.cli_stack import ROOT, CliStack, a_cli_stack, environment_of, logging_restored
from harness.seen.raw_objects import a_port, put_raw, raw_endpoints, raw_service
from harness.terminal import on_a_terminal
from kubesync.aws.tables.audit import AuditTable, Entry
from kubesync_local.demo.board import Board
from kubesync_local.demo.screen import showing
from kubesync_local.standins.apiserver.transport.faults import Answer
from kubesync_local.standins.route53.http_api.faults import CHANGE
from kubesync_local.standins.route53.zone.model import Change, Limits, SetKey, StoredSet
from kubesync_local.terminal.logs import set_up_logs
from kubesync_local.terminal.output import new_console
from kubesync_local.workplace.readings import ZoneReadings

# A title, an erased screen, a bell, steps back, a carriage return and lines that look like ours, C1 with its own CSI, DEL, bidirectional
# controls, what hides (no width, soft hyphen, byte order mark, fillers, variations, tags), and ends of lines that are none in ASCII.
HOSTILE: Final = (
    "<\x1b]0;owned\x07\x1b[2J\x1b[31m\x08\x00\rkubesync: forged\n7.77  forged\x9b2J\x85\x7f\u202e\u2066\u200f\u200b\xad"
    "\ufeff\u2028\u115f\u3164\ufe0f\u034f\U000e0041\U000e0100>"
)
# XML holds no C0; a name of the DNS no line feed.
HOSTILE_XML: Final = "<\x9b2J\x85\x7f\u202e\u2066\u200b\ufeff\u2028\u3164\U000e0041>"
FILLER: Final = "\u3164"
"""In both, and whatever is left out of a message before it is stored: it shows that hostile text has come so far."""
SHOWN: Final = r"\u3164"
HOSTILE_NAME: Final = "bad\x1b]0;owned\x07\x9b2J\u202e\u200b\x7f"
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
LIVE: Final = re.compile(r"\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r")
"""How the progress of a session moves on a terminal."""
"""What rich writes itself. HOSTILE holds one as well: escaped, it is not found here."""
LISTS: Final = [
    ["status"], ["records"], ["upstreams"], ["errors"], ["audit"], ["explain", "prod/shop/web"],
    ["cluster", "list"], ["cluster", "show", "prod"], ["cluster", "check", "prod"], ["upstream", "list"],
    ["upstream", "show", "mixed"], ["recover"], ["resync", "--dry-run"], ["plan"],
]  # fmt: skip
LIVE_LISTS: Final = (["recover"], ["resync", "--dry-run"], ["plan"])
QUIET_LISTS: Final = (
    ["upstreams"], ["cluster", "list"], ["cluster", "show", "prod"], ["upstream", "list"], ["upstream", "show", "mixed"],
)  # fmt: skip
"""They show what a person registered or what is checked before it is stored. Nodes show their names as JSON only."""
QUIET_JSON: Final = (["cluster", "list"], ["cluster", "show", "prod"], ["upstream", "list"])
WRONG_USES: Final = [
    [f"x{HOSTILE}"], ["records", f"--x{HOSTILE}"], ["records", "--output", HOSTILE], ["session", "--max-runtime", HOSTILE],
    ["explain", HOSTILE], ["explain", f"prod/shop/{HOSTILE_NAME}x"], ["audit", "--since", HOSTILE],
    ["cluster", "show", HOSTILE], ["cluster", "check", HOSTILE], ["cluster", "disable", HOSTILE], ["cluster", "remove", HOSTILE],
    ["upstream", "show", HOSTILE], ["upstream", "remove", HOSTILE],
    ["cluster", "add", f"x{HOSTILE}", "--server", HOSTILE, "--domain", "x.example.com", "--zone", "Z1"],
    ["cluster", "add", "x", "--kubeconfig", f"/{HOSTILE}".replace("\0", ""), "--domain", "x.example.com", "--zone", "Z1"],
    ["recover", "--cluster", HOSTILE], ["resync", "--cluster", HOSTILE], ["plan", "--cluster", HOSTILE],
    ["cluster", "set", HOSTILE, "--ttl", "7"], ["cluster", "set", "prod", "--unset", HOSTILE], ["cluster", "export", HOSTILE],
    ["cluster", "apply", "-f", f"/{HOSTILE}"],
]  # fmt: skip


def unsafe(text: str) -> set[str]:
    """Characters that a terminal obeys, or that hide or reorder others; by their categories, not by the code under test."""
    return {c for c in text if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or c in HIDDEN)}


HIDDEN: Final = "\u115f\u3164\ufe0f\u034f\U000e0100"


def test_hostile_text_holds_what_it_says() -> None:
    assert len(unsafe(HOSTILE)) == 21
    assert len(unsafe(HOSTILE_XML)) == 10


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """A cluster, a zone, AWS's answers and tables that are full of it."""
    with a_cli_stack(in_memory=True) as made:
        asked_for = {"external-dns.kubernetes.io/hostname": f"a.example.com,{HOSTILE}", HOSTILE: HOSTILE}
        put_raw(made.api, raw_service("web", metadata={"annotations": asked_for}))
        put_raw(made.api, raw_service("port", spec={"ports": [a_port(HOSTILE)]}))
        put_raw(made.api, raw_service(HOSTILE_NAME))
        pods = {"addresses": [{"ip": "10.1.1.1", "nodeName": HOSTILE, "targetRef": {"kind": "Pod", "name": HOSTILE}}]}
        for service, port in (("web", "http"), ("port", HOSTILE), (HOSTILE_NAME, "http")):
            put_raw(made.api, raw_endpoints(service, subsets=[{**pods, "ports": [a_port(port, 8080)]}]), "endpoints")
        foreign = StoredSet(SetKey("a.example.com.", "CNAME"), 300, (f"{HOSTILE_XML}.example.net.",))
        _put_foreign(made, foreign)
        assert made.add_cluster("prod", "--endpoints-source", "endpoints", "--domain-filter", "example.com").status == 0
        members = ["--service", "prod/shop/web/80", "--static", "10.0.0.9:80"]
        assert made.call("upstream", "add", "mixed", *members).status == 0
        assert made.session().json["clean"]
        _fail(made)
        put_raw(made.api, raw_service("late", metadata={"annotations": {}}))
        blocked = ZoneReadings(made.store, "0", "")
        made.session(lambda: blocked.current() and made.last_errors("prod"))
        audit = AuditTable("0000").changes("prod", [Entry(f"refused {HOSTILE}", HOSTILE, {"ttl": 1, "values": [HOSTILE]},
            f"watch services/{HOSTILE}@7", f"prod/shop/{HOSTILE}", HOSTILE, HOSTILE, HOSTILE)], 1, time.time(), "t")  # fmt: skip
        made.store.write(audit)
        yield made


def _put_foreign(stack: CliStack, foreign: StoredSet) -> None:
    """Past the stand-in's rules: what a zone holds was not always written by these."""
    zone = stack.route53.account.zone(stack.zone_id)
    name = foreign.key.name
    plain = replace(foreign, values=("x.example.net.",))
    assert zone.change([Change("CREATE", plain, name)], Limits()) is None
    zone._sets[name] = {(foreign.key.type, ""): foreign}


def _fail(stack: CliStack) -> None:
    stack.api.faults.add(Answer(500, "Odd", HOSTILE), resource="endpoints", times=None)
    stack.route53.faults.deny(operation=CHANGE, message=HOSTILE_XML)


@contextmanager
def _answered(stack: CliStack, command: list[str]) -> Iterator[None]:
    """What lists a whole cluster needs one that answers."""
    if command[0] in ("recover", "resync", "plan"):
        stack.api.faults.clear()
        stack.route53.faults.clear()
    yield
    _fail(stack)


def _id(command: list[str]) -> str:
    return " ".join(command).encode("unicode_escape").decode()[:40]


def _assert_harmless(text: str) -> None:
    assert unsafe(text) == set()
    assert not [line for line in text.splitlines() if line.startswith(("kubesync: forged", "7.77"))], (
        "a line was forged"
    )
    assert "Traceback" not in text


@pytest.mark.parametrize("command", LISTS, ids=_id)
def test_list_holds_no_hostile_character(stack: CliStack, command: list[str]) -> None:
    for width in (60, 5000):
        with _answered(stack, command):
            ran = stack.call(*command, "--output", "table", COLUMNS=str(width))
        _assert_harmless(ran.out + ran.err)
        assert (SHOWN in ran.out + ran.err) is (command not in QUIET_LISTS)


@pytest.mark.parametrize("command", LISTS, ids=_id)
def test_list_on_a_terminal_holds_colours_only(stack: CliStack, command: list[str]) -> None:
    with _answered(stack, command):
        _, written = on_a_terminal(*command, "--output", "table", environment=stack.environment)

    text = written.decode()
    moves = LIVE if command in LIVE_LISTS else COLOURS
    _assert_harmless(COLOURS.sub("", moves.sub("", text)))
    assert (SHOWN in text) is (command not in QUIET_LISTS)


@pytest.mark.parametrize("command", LISTS, ids=_id)
def test_json_escapes_and_keeps_the_text(stack: CliStack, command: list[str]) -> None:
    with _answered(stack, command):
        ran = stack.call(*command, "--output", "json")

    _assert_harmless(ran.out + ran.err)
    assert (FILLER in json.dumps(ran.json, ensure_ascii=False)) is (command not in QUIET_JSON)


@pytest.mark.parametrize("command", WRONG_USES, ids=_id)
def test_error_is_one_line_without_hostile_characters(stack: CliStack, command: list[str]) -> None:
    ran = stack.call(*command)

    assert ran.status in (1, 2)
    assert len(ran.lines) == 1
    _assert_harmless(ran.out + ran.err)
    assert r"\u202e" in ran.err
    _, written = on_a_terminal(*command, environment=stack.environment)
    assert unsafe(written.decode()) == set()


def test_session_logs_progress_and_report_hold_none(stack: CliStack) -> None:
    before = stack.last_errors("prod")
    ran = stack.session(lambda: stack.last_errors("prod") != before, KUBESYNC_LOG_LEVEL="DEBUG")

    assert ran.status == 0
    assert any("ERR_REQUEST_STATUS 127.0.0.1" in line and SHOWN in line for line in ran.lines), "no line of progress"
    assert any(line.startswith("info: ") for line in ran.lines), "no line of the log"
    _assert_harmless(ran.out + ran.err)


def test_line_of_the_log_is_one_line_without_hostile_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    monkeypatch.setenv("KUBESYNC_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("KUBESYNC_DEBUG", "1")
    with environment_of(dict(os.environ)), logging_restored(), redirect_stderr(err):
        set_up_logs()
        logging.getLogger("kubesync").warning("said", extra={"by": HOSTILE})
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            logging.getLogger("kubesync").exception(HOSTILE)

    first, second, *traceback = err.getvalue().splitlines()
    assert first.startswith(
        r"warning: said (by=<\x1b]0;owned\x07\x1b[2J\x1b[31m\x08\x00 kubesync: forged 7.77 forged\x9b2J"
    )
    assert second.startswith(r"error: <\x1b]0;owned")
    assert traceback[0] == "Traceback (most recent call last):"
    assert unsafe(err.getvalue()) == set()


def test_traceback_that_a_person_asks_for_holds_none(stack: CliStack) -> None:
    ran = stack.call("cluster", "show", HOSTILE, KUBESYNC_DEBUG="1")

    assert ran.lines[0] == "Traceback (most recent call last):"
    assert ran.status == 1
    assert unsafe(ran.err) == set()
    assert r"\u202e" in ran.err


def test_demo_shows_what_the_cluster_says_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    board = Board([HOSTILE])
    with showing(board, new_console()):
        board.say("error", HOSTILE)
        board.say("dns", HOSTILE)

    out = capsys.readouterr().out
    assert len(out.splitlines()) == 2
    _assert_harmless(out)
    assert r"\u202e" in out


@pytest.mark.parametrize("handler", ["watch", "resync"])
def test_log_of_a_function_is_ascii(handler: str, capsys: pytest.CaptureFixture[str]) -> None:
    with logging_restored():
        app = runpy.run_path(str(ROOT / "functions" / handler / "app.py"))
        app["logger"].error("said", server=HOSTILE)

    (line,) = [line for line in capsys.readouterr().out.splitlines() if '"said"' in line]
    assert line.isascii()
    assert unsafe(line) == set()
    assert json.loads(line)["server"] == HOSTILE
