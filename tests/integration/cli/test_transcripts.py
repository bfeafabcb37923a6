"""What pages for people type is run, and prints what they show: in a pipe, and on terminals of 80 and 160 columns."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from harness.cli_stack import a_bare_environment
from harness.terminal import shown_on
from harness.transcripts import Block, blocks_of, missing_from, squeezed
from harness.waiting import PATIENCE_SECONDS
from harness.wire.template import ROOT

PAGES: Final = ("README.md", "docs/getting-started.md")
RUN: Final = "docs/getting-started.md"
_END: Final = "-- end of a block:"
# Any port is good: another test, or the person at this machine, may use the usual ones.
_WRAPPER: Final = """#!/bin/sh
case "$1 $2" in
"local up") shift 2; set -- local up --dynamodb-port 0 --route53-port 0 --api-port 0 "$@";;
esac
exec "{python}" -m kubesync_local "$@"
"""


ADD: Final = '.venv/bin/kubesync cluster add try --kubeconfig "$PWD/kind.kubeconfig" --context kind-try --domain try.example.com --zone "$ZONE" \\'


def of(page: str) -> list[Block]:
    return blocks_of(ROOT / page)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_whether_a_test_runs_it(page: str) -> None:
    assert [block.first for block in of(page) if block.why_not is None] == []


def test_blocks_that_are_not_run_are_these() -> None:
    left_out = {page: [(block.why_not, block.first) for block in of(page) if block.why_not] for page in PAGES}

    assert left_out == {
        "README.md": [
            (
                "the tests run the demo in another way",
                "make demo     see it work on this machine: a plan, then a stand-in cluster",
            )
        ],
        "docs/getting-started.md": [
            ("the tests run the demo in another way", "make demo"),
            ("kind", "kind create cluster --name try"),
            ("kind", ADD),
            ("kind", ".venv/bin/kubesync session --max-runtime 120 > report.json &"),
            ("kind", "kind delete cluster --name try"),
            (
                "needs a cluster in an AWS account",
                "kubesync cluster add prod --eks prod --domain prod.example.com --zone Z0123456789ABCDEFGHIJ \\",
            ),
            ("kubectl", ".venv/bin/kubesync local up --detach --kubeconfig demo.kubeconfig"),
            ("kubectl", "kubectl create service clusterip web --tcp=80 --dry-run=client -o yaml | kubectl apply -f -"),
            ("kubectl", "kubectl apply -f - <<EOF"),
            ("kubectl", "kubectl get services -A -o json > mine.json            # with the other cluster's kubeconfig"),
            ("AWS", "ZONE=$(aws route53 list-hosted-zones --query 'HostedZones[0].Id' --output text)"),
            ("AWS", ".venv/bin/python -m kubesync_local.standins.apiserver --port 6444 --tls --ca-file two.pem --token two \\"),
            ("a stack takes minutes; make aws plays it", "make sam .venv-aws/.requirements"),
        ],
    }  # fmt: skip


class Place:
    """A folder in which ``.venv/bin/kubesync`` is this checkout's command, and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = folder / ".venv" / "bin" / "kubesync"
        command.parent.mkdir(parents=True)
        command.write_text(_WRAPPER.format(python=sys.executable))
        command.chmod(0o755)
        kept = {name: value for name, value in a_bare_environment().items() if name not in ("COLUMNS", "NO_PROXY")}
        self.environment = {**kept, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder), "NO_PROXY": "*"}

    def script(self) -> str:
        """All blocks of the page that are run, with a line and the exit status after each."""
        return "".join(f"{block.code}echo '{_END}' $?\n" for block in of(RUN) if block.why_not == "")

    def end(self) -> None:
        self.in_a_pipe(".venv/bin/kubesync local down\n")

    def in_a_pipe(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, text=True, timeout=2 * PATIENCE_SECONDS, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.stdout

    def on_a_terminal(self, script: str, columns: int) -> str:
        reading, writing = pty.openpty()
        fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        found: list[bytes] = []
        reader = threading.Thread(target=_drain, args=(reading, found))
        reader.start()
        try:
            subprocess.run(
                ["bash", "-c", script], cwd=self.folder, env={**self.environment, "TERM": "xterm-256color"},
                timeout=2 * PATIENCE_SECONDS, check=False, stdin=subprocess.DEVNULL, stdout=writing, stderr=writing,
            )  # fmt: skip
        finally:
            os.close(writing)
            reader.join()
            os.close(reading)
        return b"".join(found).decode().replace("\r\n", "\n")


def _drain(reading: int, found: list[bytes]) -> None:
    with suppress(OSError):  # the other end is closed
        while data := os.read(reading, 65_536):
            found.append(data)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


def parts_of(output: str) -> list[tuple[str, str]]:
    """What each block printed, and its exit status."""
    found = re.split(rf"^{_END} (\d+)\n", output, flags=re.MULTILINE)
    return list(zip(found[::2], found[1::2], strict=False))


@pytest.mark.thorough
@pytest.mark.soak  # the same commands as on a terminal
def test_getting_started_prints_in_a_pipe_what_it_shows(place: Place) -> None:
    parts = parts_of(place.in_a_pipe(place.script()))

    run = [block for block in of(RUN) if block.why_not == ""]
    assert len(parts) == len(run) == 9
    for block, (printed, status) in zip(run, parts, strict=True):
        assert status == "0", (block.first, printed)
        assert block.shown, block.first
        assert missing_from(printed, block.shown) == [], (block.first, printed)


KEY_WORDS: Final = (
    "runninginthebackground", "themaster(firstsession)", "releasedthelease", "10.68.0.17", "demo/shop/web/80/TCP", "itisaswanted",
    "upstreamdemo.shop.web.80.TCP", "web.shop.svc.prod.example.com", "nothingwaskept", "thezoneisZ", "nothingwaskept",
)  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("columns", [80, pytest.param(160, marks=pytest.mark.soak)])
def test_getting_started_fits_a_terminal(place: Place, columns: int) -> None:
    output = place.on_a_terminal(place.script(), columns)
    parts = parts_of(shown_on(output))

    assert [status for _, status in parts] == ["0"] * 9
    assert "Traceback" not in output
    joined = "".join(squeezed(shown_on(output)).split())
    assert [word for word in KEY_WORDS if word not in joined] == []
    # Tables, and what explains: exports, changes and configuration of others are as long as they are.
    for printed, _ in (parts[2], parts[3]):
        assert [line for line in printed.splitlines() if len(line) > columns] == []


@pytest.mark.parametrize(
    ("output", "missing"),
    [
        ("one\ntwo  2\nthree\n", []),
        ("zero\none\ntwo 2\nmore\nthree\n", []),
        ("one\nmore\ntwo 2\nthree\n", ["two ..."]),
        ("one\ntwo 2\n", ["three"]),
        ("", ["one"]),
    ],
)
def test_line_that_is_shown_and_not_printed_is_found(output: str, missing: list[str]) -> None:
    assert missing_from(output, ("...", "one", "two ...", "...", "three")) == missing


def test_marks_and_outputs_of_blocks_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Text.\n\n<!-- run -->\n\n    a\n\n    b\n\n```text\nout\n...\n```\n\n<!-- not run: kind -->\n\n    c\n\nText.\n\n    d\n"
        "\n```python\n    e\n```\n"
    )

    assert blocks_of(page) == [Block("a\n\nb\n", ("out", "..."), ""), Block("c\n", (), "kind"), Block("d\n", (), None)]
