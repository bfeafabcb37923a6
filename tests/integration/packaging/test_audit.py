"""``make audit`` fails for a known vulnerability, and only says so where nobody can be asked."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
KNOWN: Final = {"vulns": [{"id": "GHSA-462w-v97r-4m45"}]}
# What pip-audit prints, and with which status, for a clean file and for one with a finding (version 2.10.1).
CLEAN: Final = {"dependencies": [{"name": "idna", "version": "3.20", "vulns": []}], "fixes": []}
BAD: Final = {
    "dependencies": [
        {"name": "idna", "version": "3.20", "vulns": [{"id": "CVE-1", "fix_versions": ["4"], "aliases": []}]}
    ],
    "fixes": [],
}


@contextmanager
def osv(answer: Mapping[str, Any], status: int = 200) -> Iterator[str]:
    """A server that gives one answer to every question. Yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()


def audited(url: str, folder: Path, said: str, status: int) -> subprocess.CompletedProcess[str]:
    """Run the audit with a pip-audit that says this."""
    (folder / "said").write_text(said)
    fake = folder / "pip-audit"
    fake.write_text(f"#!/bin/sh\ncat {folder / 'said'}\nexit {status}\n")
    fake.chmod(0o755)
    return subprocess.run(
        [sys.executable, ROOT / "tools/audit.py", "--osv-url", url, "--pip-audit", fake],
        capture_output=True,
        text=True,
        check=False,
    )


def test_audit_without_findings_says_how_much_it_compared(tmp_path: Path) -> None:
    with osv(KNOWN) as url:
        ran = audited(url, tmp_path, json.dumps(CLEAN), 0)

    files = 1 + len(list((ROOT / "requirements").glob("*.txt")))  # one pin is said of each
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"· known vulnerabilities: none in {files} pins\n", "")


def test_audit_with_a_known_vulnerability_fails(tmp_path: Path) -> None:
    with osv(KNOWN) as url:
        ran = audited(url, tmp_path, json.dumps(BAD), 1)

    assert ran.returncode == 1
    assert "layers/dependencies/requirements.txt: idna 3.20 has CVE-1, fixed in 4\n" in ran.stderr


def test_audit_that_breaks_is_not_taken_for_a_clean_one(tmp_path: Path) -> None:
    with osv(KNOWN) as url:
        ran = audited(url, tmp_path, "", 1)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "requirements.txt: pip-audit failed: exit status 1\n"


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [({}, 404, "HTTP 404"), ({}, 200, "it does not know a vulnerability that OSV knows")],
)
def test_database_that_is_not_osv_leaves_the_pins_unchecked_and_is_said(
    answer: dict[str, Any], status: int, why: str, tmp_path: Path
) -> None:
    with osv(answer, status) as url:
        ran = audited(url, tmp_path, json.dumps(CLEAN), 0)

    assert ran.returncode == 0
    assert ran.stdout == f"· known vulnerabilities: NOT CHECKED, {url} cannot be asked: {why}\n"


def test_database_that_nobody_serves_leaves_the_pins_unchecked_and_is_said(tmp_path: Path) -> None:
    with osv(KNOWN) as url:
        pass

    ran = audited(url, tmp_path, json.dumps(CLEAN), 0)

    assert ran.returncode == 0
    assert ran.stdout.startswith(f"· known vulnerabilities: NOT CHECKED, {url} cannot be asked: [Errno 111]")
