"""What a person sees of credentials that end: after a real session over TLS, in ``kubesync status`` and ``cluster check``."""

import base64
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.seen.cluster_check import add, check
from kubesync.aws.dynamodb.store import Key
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority

DAY = 86_400.0


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        yield made


def a_token(ends_in: float) -> str:
    """A JWT of a year that ends so many seconds from now."""
    now = int(time.time())
    claims = {"exp": now + int(ends_in), "iat": now + int(ends_in) - 365 * 86_400, "sub": "kubesync"}
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2lnbmF0dXJl"


def date_in(seconds: float) -> str:
    return f"{datetime.fromtimestamp(int(time.time()) + int(seconds), UTC):%Y-%m-%d}"


def credentials(stack: CliStack) -> list[tuple[str, int]]:
    (cluster,) = stack.call("status", "--output", "json").json["clusters"]
    found: list[dict[str, Any]] = cluster["credentials"]
    assert all(row.keys() == {"what", "ends_at", "days_left"} for row in found)
    return [(row["what"], row["days_left"]) for row in found]


def test_status_shows_what_ends_soon_and_what_a_new_token_changes(stack: CliStack, tmp_path: Path) -> None:
    near, far, over = a_token(12.5 * DAY), a_token(300.5 * DAY), a_token(-3.5 * DAY)
    ca = CertificateAuthority()
    with ApiServer(ServerOptions(tls=ca.issue()), tokens=dict.fromkeys((near, far), "admin")) as api:
        (tmp_path / "ca.pem").write_bytes(ca.pem)
        (tmp_path / "token").write_text(near)
        add(stack, "prod", "--ca-file", str(tmp_path / "ca.pem"), server=api.url, token=f"file:{tmp_path / 'token'}")
        assert credentials(stack) == [], "no session has seen any"
        assert stack.session().status == 0
        assert credentials(stack) == [("token", 12), ("server certificate", 89), ("CA", 364)]
        shown = stack.call("status").out
        assert f"token of cluster prod ends in 12 days ({date_in(12.5 * DAY)})" in shown
        assert "server certificate of cluster" not in shown
        item = stack.store.get(Key("control", "cluster#prod", "credentials"))
        assert near not in json.dumps(item, default=str)

        (tmp_path / "token").write_text(far)
        before = len(api.requests.all())
        assert stack.session(lambda: len(api.requests.all()) > before).status == 0
        assert credentials(stack) == [("server certificate", 89), ("token", 300), ("CA", 364)]
        assert "ends in" not in stack.call("status").out

        (tmp_path / "token").write_text(over)
        assert stack.session(lambda: stack.last_errors("prod")).status == 0
        assert credentials(stack)[0] == ("token", -4)
        assert f"token of cluster prod ended 3 days ago ({date_in(-3.5 * DAY)})" in stack.call("status").out

        # Whatever a changed configuration uses is not known yet.
        assert stack.call("cluster", "disable", "prod").status == 0
        assert credentials(stack) == []


def test_check_warns_in_the_same_words(stack: CliStack, tmp_path: Path) -> None:
    near = a_token(12.5 * DAY)
    # As of 80 days ago: its certificate ends in 10 days, and the authority in 285.
    ca = CertificateAuthority(now=datetime.fromtimestamp(time.time() - 79.5 * DAY, UTC))
    with ApiServer(ServerOptions(tls=ca.issue()), tokens={near: "admin"}) as api:
        (tmp_path / "ca.pem").write_bytes(ca.pem)
        (tmp_path / "token").write_text(near)
        add(stack, "prod", "--ca-file", str(tmp_path / "ca.pem"), server=api.url, token=f"file:{tmp_path / 'token'}")
        steps, status = check(stack, "prod")
    assert status == 0
    assert (steps["tls"]["result"], steps["tls"]["advice"]) == (
        "warning",
        "docs/runbook.md#credentialsend says what to do",
    )
    assert steps["tls"]["details"].endswith(f"; server certificate ends in 10 days ({date_in(10.5 * DAY)})")
    assert steps["credentials"]["result"] == "warning"
    assert steps["credentials"]["details"] == (
        f"token of kubesync from file:{tmp_path / 'token'} ends in 12 days ({date_in(12.5 * DAY)})"
    )
